// Calls that are resolved at run time: of builtins, methods and function values.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ostream>

#include "lang/vm.h"

namespace tl::lang {

namespace {

void refuse_files(const Builtin& builtin) {
  for (const Parameter& p : builtin.parameters) {
    if (p.name == "path") {
      throw invalid_operation(builtin.name, "(): this program may not use files");
    }
  }
}

// Gives up a receiver and its arguments.
void clear_call(Value* receiver, std::uint32_t count) noexcept {
  for (std::uint32_t i = count + 1; i-- > 0;) receiver[i].clear();
}

}  // namespace

// For calls that are resolved at run time: named arguments to their places, Missing for those that
// were left out.
void Vm::prepare_arguments(const Function& function, const CallSite& site, Value* values,
                           bool has_receiver) {
  const std::size_t shift = has_receiver ? 1 : 0;
  const std::size_t count = site.count + shift;
  const std::size_t wanted = function.params.size();
  const auto complain = [&] {
    throw type_error("Function '", function.name, "' expects ", wanted - std::min(wanted, shift),
                     " arguments, got ", site.count);
  };
  if (count > wanted) complain();
  if (site.named.empty()) {
    for (std::size_t i = count; i < wanted; ++i) {
      if (!function.params[i].optional) complain();
      values[i] = Value::missing();
    }
    return;
  }
  std::vector<Value> placed(wanted, Value::missing());
  const std::size_t positional = site.named.front().first + shift;
  for (std::size_t i = 0; i < positional; ++i) placed[i] = std::move(values[i]);
  for (const auto& [at, name] : site.named) {
    std::size_t to = 0;
    while (to < wanted && function.params[to].name != name) ++to;
    if (to == wanted) {
      throw type_error("Function '", function.name, "' has no parameter '", name, "'");
    }
    placed[to] = std::move(values[at + shift]);
  }
  for (std::size_t i = 0; i < wanted; ++i) {
    if (placed[i].is(Kind::Missing) && !function.params[i].optional) complain();
    values[i] = std::move(placed[i]);
  }
}

void Vm::call_builtin(const Builtin& builtin, Value* values, std::uint32_t count,
                      const CallSite* site, bool has_receiver, Value& result) {
  if (!allow_files) refuse_files(builtin);
  const std::size_t wanted = builtin.fixed();
  std::size_t total = count;
  if (site != nullptr) {  // resolved now: fill in what a compiler would have
    const std::size_t shift = has_receiver ? 1 : 0;
    std::vector<Value> placed(std::max(wanted, total), Value::missing());
    const std::size_t positional = site->named.empty() ? total : site->named.front().first + shift;
    for (std::size_t i = 0; i < positional; ++i) placed[i] = std::move(values[i]);
    for (const auto& [at, name] : site->named) {
      std::size_t to = 0;
      while (to < wanted && builtin.parameters[to].name != name) ++to;
      if (to == wanted) throw type_error(builtin.name, "() has no parameter '", name, "'");
      placed[to] = std::move(values[at + shift]);
    }
    if (total > wanted && !builtin.variadic) {
      throw type_error(builtin.name, "() expects ", builtin.signature, ", got ", total);
    }
    total = std::max(total, wanted);
    for (std::size_t i = 0; i < wanted; ++i) {
      if (!placed[i].is(Kind::Missing)) continue;
      if (!builtin.parameters[i].optional) {
        throw type_error(builtin.name, "() expects ", builtin.signature, ", got ", count);
      }
      placed[i] = builtin.parameters[i].default_value;
    }
    Args args(builtin, std::span(placed).first(total));
    if (perf != nullptr) {
      time_builtin(builtin, args, result);
    } else {
      result = builtin.call(*this, args);
    }
    return;
  }
  Args args(builtin, std::span(values, total));
  if (perf != nullptr) {
    time_builtin(builtin, args, result);
  } else {
    result = builtin.call(*this, args);
  }
}

// [PERF] linear(f16): 0.412ms, with the work of the device.
void Vm::time_builtin(const Builtin& builtin, Args& args, Value& result) {
  const auto start = std::chrono::steady_clock::now();
  std::string dtype;
  if (args.size() > 0 && args[0].is(Kind::Tensor)) dtype = name(args[0].tensor().dtype());
  result = builtin.call(*this, args);
  if (device.is_open()) device->synchronize();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  *perf << fmt::format("[PERF] {}({}): {:.3f}ms\n", builtin.name, dtype, took.count());
}

void Vm::tell_share(const Value& value, const Function& function, const Instruction* pc) {
  if (!value.is(Kind::Tensor) || value.tensor().count() == 0) return;
  *shares << join("[GPU_MEMORY] share ", value.tensor().size_bytes(), " bytes on ",
                  value.tensor().location(), " at ", label(function, pc).text(), "\n");
}

// Methods that change a list or a map do so where it is. False: it is none of them, and what is
// there was fetched to `receiver`.
bool Vm::change_place(const Function& caller, const CallSite& site, Value* receiver, Value& root,
                      Value& result) {
  const Path& way = caller.paths[static_cast<std::size_t>(site.path)];
  const std::string& name = caller.names[static_cast<std::size_t>(site.name)];
  Value* indices = receiver - way.registers;
  Value& target = walk(root, caller, way, way.steps.size(), indices);
  if (site.named.empty() &&
      call_mutating(*this, target, name, std::span(receiver + 1, site.count), result)) {
    clear_call(receiver, site.count);
    for (std::uint32_t i = 1; i <= way.registers; ++i) (receiver - i)->clear();
    return true;
  }
  *receiver = target;
  // A struct with a Drop has one owner while it changes, or what it was would be dropped.
  if (target.is(Kind::Struct) && target.as<StructObject>().type->drop != nullptr) {
    const auto& methods = target.as<StructObject>().type->methods;
    const auto method = methods.find(name);
    if (method != methods.end() && method->second->changes_self) target.clear();
  }
  return false;
}

// A method of the struct's type, or a field that holds a function.
Vm::Entry Vm::struct_method(const CallSite& site, const std::string& name, Value* receiver) {
  const auto type = receiver->as<StructObject>().type;
  if (const auto method = type->methods.find(name); method != type->methods.end()) {
    const Function& callee = *method->second;
    if (callee.params.empty() || callee.params[0].name != "self") {
      throw type_error("'", callee.name, "' takes no self; call it as ", callee.name, "(...)");
    }
    prepare_arguments(callee, site, receiver, true);
    return {&callee, receiver, nullptr, site.self};
  }
  const int field = type->field(name);
  if (field < 0) return {};
  const Value held = receiver->as<StructObject>().fields[static_cast<std::size_t>(field)];
  if (!held.is(Kind::Function) || held.as<FunctionObject>().function == nullptr) return {};
  const auto& object = held.as<FunctionObject>();
  prepare_arguments(*object.function, site, receiver + 1, false);
  *receiver = held;
  return {object.function, receiver + 1, object.captured.data(), kNowhere};
}

Vm::Entry Vm::call_method(const Function& caller, const CallSite& site, Value* receiver,
                          Value* root, Value& result) {
  const std::string& name = caller.names[static_cast<std::size_t>(site.name)];
  if (root != nullptr && change_place(caller, site, receiver, *root, result)) return {};
  if (receiver->is(Kind::Struct)) {
    if (const Entry entry = struct_method(site, name, receiver); entry.function != nullptr) {
      return entry;
    }
  }
  bool done = false;
  if (receiver->is(Kind::Host) && site.named.empty()) {
    const Builtin described{name, "", "(...)", "", nullptr};
    Args args(described, std::span(receiver + 1, site.count));
    done = static_cast<HostObject*>(receiver->object())->method(*this, name, args, result);
  } else if (is_mutating_name(name) && site.named.empty()) {
    done = call_mutating(*this, *receiver, name, std::span(receiver + 1, site.count), result);
  }
  if (!done && site.function != nullptr) {
    prepare_arguments(*site.function, site, receiver, true);
    return {site.function, receiver, nullptr, kNowhere};
  }
  if (!done && site.builtin != nullptr) {
    call_builtin(*site.builtin, receiver, site.count + 1, &site, true, result);
    done = true;
  }
  if (!done) throw type_error(type_name(*receiver), " has no method '", name, "'");
  clear_call(receiver, site.count);
  return {};
}

}  // namespace tl::lang
