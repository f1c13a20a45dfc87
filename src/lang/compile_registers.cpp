// Registers, constants, jumps and scopes of the function at hand.
#include <algorithm>

#include "lang/compiler.h"

namespace tl::lang {

// ---- emitting

std::size_t FunctionCompiler::put(const Instruction& instruction, const Span& span) {
  f_.code.push_back(instruction);
  f_.spans.push_back(span);
  if (f_.code.size() == 0xffff) {  // what a jump can name
    c_.error(f_.span, join("Function '", f_.name, "' is too long"), "cut it into several");
  }
  return f_.code.size() - 1;
}

std::size_t FunctionCompiler::emit(Op op, const Span& span, Operand a, Operand b, Operand c) {
  return put({op, flags(a, b, c), a, b, c}, span);
}

void FunctionCompiler::patch(std::size_t jump) { patch(jump, here()); }
void FunctionCompiler::patch(std::size_t jump, std::size_t target) {
  f_.code[jump].c = static_cast<Operand>(target);
}

Operand FunctionCompiler::constant(Value value) {
  // Numbers and texts are often the same; a short look back finds most.
  const std::size_t count = f_.constants.size();
  for (std::size_t i = count > 64 ? count - 64 : 0; i < count; ++i) {
    const Value& other = f_.constants[i];
    const bool same =
        other.kind() == value.kind() &&
        (value.is(Kind::String) ? other.string() == value.string()
                                : !value.is_object() && other.integer() == value.integer());
    if (same) return operand(Where::Constant, i);
  }
  if (count >= kMaxPlaces) return bad(f_.span, "a function with too many constants");
  f_.constants.push_back(std::move(value));
  return operand(Where::Constant, count);
}

Operand FunctionCompiler::text_constant(std::string_view text) { return constant(Value(text)); }

std::uint32_t FunctionCompiler::name_index(std::string_view name) {
  for (std::size_t i = 0; i < f_.names.size(); ++i) {
    if (f_.names[i] == name) return static_cast<std::uint32_t>(i);
  }
  f_.names.emplace_back(name);
  return static_cast<std::uint32_t>(f_.names.size() - 1);
}

Operand FunctionCompiler::temporary() {
  if (top_ >= kMaxPlaces) {
    c_.error(f_.span, join("Function '", f_.name, "' needs too many registers"),
             "cut it into several");
    top_ = 0;
  }
  const Operand o = operand(Where::Register, top_++);
  f_.registers = std::max(f_.registers, top_);
  return o;
}

bool FunctionCompiler::is_temporary(Operand o) const {
  if (where(o) != Where::Register) return false;
  for (const Scope& scope : scopes_) {
    for (const Variable& v : scope.variables) {
      if (v.at == o) return false;
    }
  }
  return true;
}

std::uint8_t FunctionCompiler::flags(Operand a, Operand b, Operand c) const {
  return static_cast<std::uint8_t>((is_temporary(a) ? kTemporaryA : 0) |
                                   (is_temporary(b) ? kTemporaryB : 0) |
                                   (is_temporary(c) ? kTemporaryC : 0));
}

Operand FunctionCompiler::bad(const Span& span, std::string message, std::string hint) {
  c_.error(span, std::move(message), std::move(hint));
  return operand(Where::Register, 0);
}

// ---- scopes

void FunctionCompiler::open_scope(bool global) { scopes_.push_back({{}, top_, global}); }

void FunctionCompiler::close_scope(const Span& span) {
  clear_scopes(scopes_.size() - 1, span);
  top_ = scopes_.back().first;
  scopes_.pop_back();
}

void FunctionCompiler::clear_scopes(std::size_t down_to, const Span& span) {
  for (std::size_t s = scopes_.size(); s > down_to; --s) {
    const Scope& scope = scopes_[s - 1];
    if (scope.global || scope.variables.empty()) continue;
    std::uint32_t last = scope.first;
    for (const Variable& v : scope.variables) {
      last = std::max(last, static_cast<std::uint32_t>(v.at & kPlaceMask));
    }
    emit(Op::Clear, span, operand(Where::Register, last),
         static_cast<Operand>(last - scope.first + 1));
  }
}

Operand FunctionCompiler::declare(const std::string& name, const Span& span) {
  if (in_global_scope()) {
    const std::uint32_t slot = c_.world.global(name);
    if (slot >= kMaxPlaces) return bad(span, "too many variables");
    return declare_at(name, operand(Where::Global, slot));
  }
  if (const auto again = declared_here(name)) return *again;
  return declare_at(name, temporary());
}

std::optional<Operand> FunctionCompiler::declared_here(std::string_view name) const {
  for (const Variable& v : scopes_.back().variables) {
    if (v.name == name) return v.at;
  }
  return std::nullopt;
}

Operand FunctionCompiler::declare_at(const std::string& name, Operand at) {
  for (Variable& v : scopes_.back().variables) {
    if (v.name == name) {
      v.at = at;
      return at;
    }
  }
  scopes_.back().variables.push_back({name, at});
  return at;
}

std::optional<Operand> FunctionCompiler::find_local(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    for (const Variable& v : scope->variables) {
      if (v.name == name) return v.at;
    }
  }
  return std::nullopt;
}

std::optional<Operand> FunctionCompiler::find_variable(const std::string& name, const Span& span) {
  if (const auto local = find_local(name)) return local;
  if (const auto known = captured_.find(name); known != captured_.end()) return known->second;
  if (outer_ != nullptr) {
    const auto outside = outer_->find_variable(name, span);
    if (outside && where(*outside) != Where::Global) {
      const Operand at = operand(Where::Captured, captures_.size());
      captures_.emplace_back(name, *outside);
      captured_.emplace(name, at);
      return at;
    }
    if (outside) return outside;
  }
  const auto global = c_.world.globals.find(name);
  if (global == c_.world.globals.end()) return std::nullopt;
  // In main a variable is there from its `let` on, which find_local() would have found; a function
  // may be called before.
  if (in_program_block() && !c_.world.top_level.contains(name)) return std::nullopt;
  const Operand at = operand(Where::Global, global->second);
  emit(Op::CheckSet, span, at, text_constant(name));
  return at;
}

std::vector<std::string_view> FunctionCompiler::known_names() const {
  std::vector<std::string_view> names;
  for (const FunctionCompiler* f = this; f != nullptr; f = f->outer_) {
    for (const Scope& scope : f->scopes_) {
      for (const Variable& v : scope.variables) names.push_back(v.name);
    }
  }
  for (const auto& [name, slot] : c_.world.globals) names.push_back(name);
  return names;
}

}  // namespace tl::lang
