#include "lang/vm.h"

#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "lang/knowledge.h"
#include "lang/types.h"

namespace tl::lang {

namespace {

constexpr std::size_t kStackValues = std::size_t{1} << 20;
constexpr std::size_t kMaxFrames = 100000;
constexpr std::int64_t kLook = 4096;  // steps between two looks at interruption

thread_local Vm* running = nullptr;

std::string describe(const Value& value) {
  std::string out = type_name(value);
  if (value.is(Kind::Tensor)) {
    out = join("Tensor of ", value.tensor().dtype(), " ", value.tensor().shape());
  }
  return out;
}

}  // namespace

Vm* activate(Vm* vm) noexcept { return std::exchange(running, vm); }

std::int64_t bound_of(const Value& value) {
  if (value.is(Kind::Int)) return value.integer();
  return cast(value, true).integer();
}

std::string_view struct_name(const StructObject& object) { return object.type->name; }
std::string_view function_name(const FunctionObject& object) {
  return object.function != nullptr ? std::string_view(object.function->name)
                                    : object.builtin->name;
}

int StructType::field(std::string_view wanted) const {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] == wanted) return static_cast<int>(i);
  }
  return -1;
}

// A struct whose type has a Drop is kept until the machine has run it.
void StructObject::expire() noexcept {
  if (type->drop != nullptr && !dropped && running != nullptr) {
    dropped = true;
    try {
      running->pending_drops_.push_back(this);
      return;
    } catch (const std::bad_alloc&) {
      // Not even room for a pointer: it goes without.
    }
  }
  release_nested();
}

Vm::Stack Vm::new_stack(std::size_t count) {
  // All zeros is Void, and pages that are never touched cost nothing.
  auto* values = static_cast<Value*>(std::calloc(count, sizeof(Value)));
  if (values == nullptr) throw std::bad_alloc();
  return Stack(values);
}

Vm::Vm(World& world)
    : world_(world),
      stack_(new_stack(kStackValues)),
      globals_(new_stack(kMaxPlaces + 1)),
      budget_(kLook) {
  learning = std::make_shared<Learning>();
  knowledge = std::make_shared<Knowledge>(world.logic);
}

Vm::~Vm() { forget_globals(); }

// After an error, or at the end of a learn block.
void Vm::stop_learning() noexcept {
  learning->trainer.reset();
  history_.reset();
  training = false;
  dropout = kDropout;
}

void Vm::clear_globals() {
  learning->forget();
  Vm* const before = running;
  running = this;
  try {
    for (std::size_t i = world_.globals.size(); i-- > 0;) {
      globals_[i] = Value::missing();
      if (!pending_drops_.empty()) run_drops();
    }
  } catch (...) {
    running = before;
    throw;
  }
  running = before;
  knowledge->reset();
}

void Vm::forget_globals() noexcept {
  learning->forget();
  for (std::size_t i = world_.globals.size(); i-- > 0;) globals_[i].clear();
  unwind(0);
}

Value Vm::run(const Function& function) {
  Value* base =
      frames_.empty() ? stack_.get() : frames_.back().base + frames_.back().function->registers;
  const std::size_t entry = frames_.size();
  push(function, base, nullptr, 0, kNowhere, false);
  return execute(entry);
}

void Vm::synchronize(const Function& block) {
  if (!device.is_open()) return;
  try {
    device->synchronize();
  } catch (const Error& e) {
    Diagnostic d;
    d.message = join("Tensor error: ", e.what());
    // The last statement that ran, as far as can be told.
    d.span = block.spans.size() > 1 ? block.spans[block.spans.size() - 2] : block.span;
    d.stack.push_back({block.name, d.span});
    throw ProgramError(std::move(d));
  }
}

Value Vm::call(const Value& function, std::span<const Value> given) {
  if (!function.is(Kind::Function)) {
    throw type_error("a function is needed, not ", type_name(function));
  }
  const auto& callee = function.as<FunctionObject>();
  const CallFrame* top = frames_.empty() ? nullptr : &frames_.back();
  Value* base = top == nullptr ? stack_.get() : top->base + top->function->registers;
  if (base + given.size() + 1 > stack_.get() + kStackValues) {
    throw RuntimeError("Stack overflow: the calls need too much room");
  }
  for (std::size_t i = 0; i < given.size(); ++i) base[i] = given[i];
  CallSite site;
  site.count = static_cast<std::uint32_t>(given.size());
  const auto clear = [&] {
    for (std::size_t i = given.size(); i-- > 0;) base[i].clear();
  };
  try {
    if (callee.builtin != nullptr) {
      Value result;
      call_builtin(*callee.builtin, base, site.count, &site, false, result);
      return result;
    }
    prepare_arguments(*callee.function, site, base, false);
    const std::size_t entry = frames_.size();
    push(*callee.function, base, callee.captured.data(), 0, kNowhere, false);
    return execute(entry);
  } catch (...) {
    clear();
    throw;
  }
}

void Vm::check_interrupt() {
  if (interrupted != nullptr && interrupted->load(std::memory_order_relaxed)) {
    throw RuntimeError("Interrupted");
  }
}

void Vm::count_work() {
  steps_ += kLook;
  check_interrupt();
  if (step_limit != 0 && steps_ >= step_limit) {
    throw RuntimeError(join("Step limit of ", step_limit, " reached"));
  }
}

void Vm::steps_used() {
  budget_ = kLook;
  count_work();
}

void Vm::push(const Function& function, Value* base, const Value* captured, Operand result,
              Operand self, bool clears_callee) {
  if (frames_.size() >= kMaxFrames || base + function.registers + 1 > stack_.get() + kStackValues) {
    throw RuntimeError(join("Stack overflow: more than ", frames_.size(), " calls deep"));
  }
  if (--budget_ < 0) steps_used();
  frames_.push_back({&function, function.code.data(), base, captured, result, self, clears_callee});
}

void Vm::unwind(std::size_t entry) noexcept {
  while (frames_.size() > entry) {
    const CallFrame& frame = frames_.back();
    for (std::uint32_t i = frame.function->registers; i-- > 0;) frame.base[i].clear();
    frames_.pop_back();
  }
  if (entry == 0) stop_learning();
  // What was on its way to a Drop goes without it.
  while (!pending_drops_.empty()) {
    StructObject* object = pending_drops_.back();
    pending_drops_.pop_back();
    const Value gone = Value::of(object);
  }
}

Span Vm::span_of(const CallFrame& frame, const Instruction* pc) const {
  const auto at = static_cast<std::size_t>(pc - frame.function->code.data());
  return at < frame.function->spans.size() ? frame.function->spans[at] : frame.function->span;
}

void Vm::fail(const std::string& message, const Instruction* pc) {
  Diagnostic d;
  d.message = message;
  for (std::size_t i = frames_.size(); i-- > 0;) {
    const CallFrame& frame = frames_[i];
    const Instruction* at = i + 1 == frames_.size() ? pc : frame.pc;
    d.stack.push_back({frame.function->name, span_of(frame, at)});
  }
  if (!d.stack.empty()) d.span = d.stack.front().at;
  // What is wrong with an argument is wrong where the call is written.
  if (pc->op == Op::Enter && d.stack.size() > 1) {
    d.span = d.stack[1].at;
    d.stack.erase(d.stack.begin());
  }
  throw ProgramError(std::move(d));
}

// The line of the source, so that memory taken now can be told by it.
Label Vm::label(const Function& function, const Instruction* pc) {
  const auto at = static_cast<std::size_t>(pc - function.code.data());
  if (function.labels.empty()) function.labels.resize(function.code.size());
  Label& known = function.labels[at];
  if (known == Label()) {
    const Span& span = function.spans[at];
    const Source& source = world_.sources[span.source];
    known = Label(join(source.name(), ":", source.line(span.begin)));
  }
  return known;
}

void Vm::run_drops() {
  while (!pending_drops_.empty()) {
    StructObject* object = pending_drops_.front();
    pending_drops_.erase(pending_drops_.begin());
    const Value self = Value::of(object);
    const Function& drop = *object->type->drop;
    Value* base =
        frames_.empty() ? stack_.get() : frames_.back().base + frames_.back().function->registers;
    if (base + 1 > stack_.get() + kStackValues) {
      throw RuntimeError("Stack overflow: no room to drop a struct");
    }
    base[0] = self;
    const std::size_t entry = frames_.size();
    push(drop, base, nullptr, 0, kNowhere, false);
    execute(entry);
  }
}

// ---- parts of instructions

void Vm::enter(const Function& function, Value* base) {
  DimNames names;
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const FunctionParam& p = function.params[i];
    if (p.type.kind == ast::Type::Kind::Any) continue;
    if (p.type.kind == ast::Type::Kind::Scalar && base[i].is(p.type.scalar)) continue;
    // A list that becomes a tensor takes its memory where the call is written.
    const bool has_caller = base[i].is(Kind::List) && frames_.size() > 1;
    const CallFrame* caller = has_caller ? &frames_[frames_.size() - 2] : nullptr;
    const LabelScope scope(has_caller ? label(*caller->function, caller->pc) : Label::current());
    if (!convert(*this, base[i], p.type, names)) {
      std::string why;
      for (const TypeInfo::Dim& dim : p.type.dims) {
        for (const auto& [name, size] : names) {
          if (name == dim.name) why += join(why.empty() ? " where " : ", ", name, " = ", size);
        }
      }
      throw type_error("Function '", function.name, "': parameter '", p.name, "' expects ",
                       p.type.text, why, ", got ", describe(base[i]));
    }
  }
}

void Vm::check_result(const Function& function, Value& result) {
  if (function.result.kind == ast::Type::Kind::Void) {
    result.clear();
    return;
  }
  if (function.result.kind == ast::Type::Kind::Scalar && result.is(function.result.scalar)) return;
  DimNames names;
  if (!convert(*this, result, function.result, names)) {
    throw type_error("Function '", function.name, "' returns ", function.result.text, ", not ",
                     describe(result));
  }
}

Value Vm::get_field(const Value& base, const std::string& name) {
  if (base.is(Kind::Struct)) {
    const auto& object = base.as<StructObject>();
    const int field = object.type->field(name);
    if (field >= 0) return object.fields[static_cast<std::size_t>(field)];
    throw RuntimeError(join("Struct '", object.type->name, "' has no field '", name, "'"));
  }
  if (base.is(Kind::Host)) return base.as<HostObject>().property(*this, name);
  if (base.is(Kind::Map)) {
    if (const Value* found = base.as<MapObject>().find(Value(name))) return *found;
    throw RuntimeError(join("Map has no key \"", name, "\""));
  }
  if (base.is_tensor()) {
    for (const std::string_view known : {"shape", "dtype", "device", "rank", "T"}) {
      if (name != known) continue;
      if (const Builtin* builtin = BuiltinTable::instance().find(name)) {
        Value argument = base;
        CallSite site;
        Value result;
        call_builtin(*builtin, &argument, 1, &site, true, result);
        return result;
      }
    }
  }
  throw type_error(type_name(base), " has no field '", name, "'");
}

// Goes `steps` steps into a value that is about to be changed; each part is detached on the way.
Value& Vm::walk(Value& root, const Function& function, const Path& path, std::size_t steps,
                Value*& indices) {
  Value* at = &root;
  for (std::size_t s = 0; s < steps; ++s) {
    const PathStep& step = path.steps[s];
    if (step.field >= 0) {
      const std::string& name = function.names[static_cast<std::size_t>(step.field)];
      if (at->is(Kind::Map)) {
        at = &at->mutate<MapObject>().slot(Value(name));
        continue;
      }
      if (!at->is(Kind::Struct)) throw type_error(type_name(*at), " has no field '", name, "'");
      const int field = at->as<StructObject>().type->field(name);
      if (field < 0) {
        throw RuntimeError(
            join("Struct '", at->as<StructObject>().type->name, "' has no field '", name, "'"));
      }
      at = &at->mutate<StructObject>().fields[static_cast<std::size_t>(field)];
      continue;
    }
    if (step.index.slices.size() != 1 || step.index.slices[0]) {
      throw invalid_operation("a slice can only be the last part of what is assigned");
    }
    IndexArg index;
    index.index = *indices++;  // which a write back may need again
    at = &element(*at, index);
  }
  return *at;
}

Value Vm::get_path(const Value& root, const Function& function, const Path& path,
                   const Value* indices) {
  Value at = root;
  for (const PathStep& step : path.steps) {
    if (step.field >= 0) {
      at = get_field(at, function.names[static_cast<std::size_t>(step.field)]);
      continue;
    }
    std::vector<IndexArg> where;
    for (const bool is_slice : step.index.slices) {
      IndexArg index;
      index.is_slice = is_slice;
      if (is_slice) {
        index.start = indices[0];
        index.stop = indices[1];
        index.step = indices[2];
        indices += 3;
      } else {
        index.index = *indices++;
      }
      where.push_back(std::move(index));
    }
    at = index(*this, at, where);
  }
  return at;
}

// A field that is learnable keeps the parameter it has, with other elements; one that is frozen
// lets no gradient through.
void Vm::set_field(StructObject& object, std::size_t field, Value value) {
  const StructType& type = *object.type;
  Value& place = object.fields[field];
  if (type.learnable[field] && !is_parameter(value)) {
    if (is_parameter(place)) {
      Learning::assign(*this, place, value);
    } else {
      place = learning->add(*this, join(type.name, ".", type.fields[field]), value);
    }
    return;
  }
  if (type.frozen[field] && value.is(Kind::Tensor) && value.tensor().has_history()) {
    value = Value(value.tensor().detach());
  }
  place = std::move(value);
}

void Vm::set_path(Value& root, const Function& function, const Path& path, Value* indices) {
  const PathStep& last = path.steps.back();
  Value& at = walk(root, function, path, path.steps.size() - 1, indices);
  if (last.field >= 0) {
    const std::string& name = function.names[static_cast<std::size_t>(last.field)];
    Value& value = *indices;
    if (at.is(Kind::Map)) {
      at.mutate<MapObject>().slot(Value(name)) = std::move(value);
      return;
    }
    if (!at.is(Kind::Struct)) throw type_error(type_name(at), " has no field '", name, "'");
    const StructType& type = *at.as<StructObject>().type;
    const int field = type.field(name);
    if (field < 0) {
      throw RuntimeError(join("Struct '", type.name, "' has no field '", name, "'"));
    }
    const auto place = static_cast<std::size_t>(field);
    DimNames names;
    if (!convert(*this, value, type.types[place], names)) {
      throw type_error("Field '", type.name, ".", name, "' is ", type.types[place].text, ", not ",
                       describe(value));
    }
    set_field(at.mutate<StructObject>(), place, std::move(value));
    return;
  }
  std::vector<IndexArg> where;
  for (const bool is_slice : last.index.slices) {
    IndexArg index;
    index.is_slice = is_slice;
    if (is_slice) {
      index.start = std::move(indices[0]);
      index.stop = std::move(indices[1]);
      index.step = std::move(indices[2]);
      indices += 3;
    } else {
      index.index = std::move(*indices++);
    }
    where.push_back(std::move(index));
  }
  assign_index(*this, at, where, *indices);
  indices->clear();
}

bool Vm::match(const CompiledPattern& pattern, const Value& value, Value* base) {
  using PatternKind = ast::Pattern::Kind;
  switch (pattern.kind) {
    case PatternKind::Any:
      return true;
    case PatternKind::Bind:
      base[pattern.bind & kPlaceMask] = value;
      return true;
    case PatternKind::Float:
      return value.is(Kind::Float) && std::abs(value.real() - pattern.literal.real()) <=
                                          std::numeric_limits<double>::epsilon();
    case PatternKind::Integer:
    case PatternKind::Bool:
    case PatternKind::String:
      return value.kind() == pattern.literal.kind() && equal(value, pattern.literal);
    case PatternKind::Tuple: {
      if (!value.is(Kind::Tuple)) return false;
      const auto& parts = value.as<TupleObject>().values;
      if (parts.size() != pattern.parts.size()) return false;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!match(pattern.parts[i], parts[i], base)) return false;
      }
      return true;
    }
    case PatternKind::Struct: {
      if (!value.is(Kind::Struct)) return false;
      const auto& object = value.as<StructObject>();
      if (object.type->name != pattern.name) return false;
      for (std::size_t i = 0; i < pattern.fields.size(); ++i) {
        const int field = object.type->field(pattern.fields[i]);
        if (field < 0 ||
            !match(pattern.parts[i], object.fields[static_cast<std::size_t>(field)], base)) {
          return false;
        }
      }
      return true;
    }
    case PatternKind::Either:
      for (const CompiledPattern& part : pattern.parts) {
        if (match(part, value, base)) return true;
      }
      return false;
  }
  return false;
}

Value Vm::new_struct(const StructSite& site, Value* fields) {
  auto* object = new StructObject(site.type);
  const Value result = Value::of(object);
  object->dropped = true;  // until it is complete
  object->fields.resize(site.type->fields.size());
  DimNames names;
  for (std::size_t i = 0; i < site.order.size(); ++i) {
    const std::uint32_t field = site.order[i];
    if (!convert(*this, fields[i], site.type->types[field], names)) {
      throw type_error("Field '", site.type->name, ".", site.type->fields[field], "' is ",
                       site.type->types[field].text, ", not ", describe(fields[i]));
    }
    set_field(*object, field, std::move(fields[i]));
  }
  object->dropped = false;
  return result;
}

}  // namespace tl::lang
