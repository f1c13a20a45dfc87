#include "tl/logic/program.h"

#include <algorithm>

namespace tl::logic {

std::string to_text(const ColumnType& type) {
  switch (type.kind) {
    case ColumnType::Kind::Any:
      return "any";
    case ColumnType::Kind::Entity:
      return type.entity.empty() ? "entity" : type.entity;
    case ColumnType::Kind::Int:
      return "int";
    case ColumnType::Kind::Float:
      return "float";
    case ColumnType::Kind::Bool:
      return "bool";
    case ColumnType::Kind::String:
      return "string";
  }
  return "any";
}

bool go_together(const ColumnType& a, const ColumnType& b) noexcept {
  using enum ColumnType::Kind;
  if (a.kind == Any || b.kind == Any) return true;
  if (a.kind == Entity && b.kind == Entity) {
    return a.entity.empty() || b.entity.empty() || a.entity == b.entity;
  }
  const auto is_text = [](ColumnType::Kind k) { return k == Entity || k == String; };
  if (is_text(a.kind) && is_text(b.kind)) return true;
  const auto is_numeric = [](ColumnType::Kind k) { return k == Int || k == Float; };
  return a.kind == b.kind || (is_numeric(a.kind) && is_numeric(b.kind));
}

bool holds(ColumnType::Kind kind, const Constant& value) noexcept {
  using enum ColumnType::Kind;
  switch (kind) {
    case Any:
      return true;
    case Entity:
    case String:
      return std::holds_alternative<std::string>(value);
    case Int:
      return std::holds_alternative<std::int64_t>(value);
    case Float:
      return is_number(value);
    case Bool:
      return std::holds_alternative<bool>(value);
  }
  return false;
}

Expression Expression::of_constant(Id id) {
  Expression e;
  e.op = Op::Value;
  e.constant = id;
  return e;
}

Expression Expression::of_variable(std::uint32_t variable) {
  Expression e;
  e.op = Op::Variable;
  e.variable = variable;
  return e;
}

Expression Expression::any() { return {}; }

Expression Expression::of(Op op, std::vector<Expression> parts) {
  Expression e;
  e.op = op;
  e.parts = std::move(parts);
  return e;
}

bool Rule::aggregates() const noexcept {
  return std::any_of(head.begin(), head.end(),
                     [](const HeadTerm& t) { return t.aggregate != Aggregate::None; });
}

LogicError LogicError::at(std::int64_t place, std::string name) const {
  LogicError out = *this;
  out.literal = place;
  out.variable = std::move(name);
  return out;
}

std::string LogicError::text() const {
  const std::string whole = what();
  return whole.substr(std::string("logic: ").size());
}

}  // namespace tl::logic
