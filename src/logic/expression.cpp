#include "logic/expression.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tl::logic {

namespace {

using Op = Expression::Op;
using What = LogicError::What;

[[noreturn]] void bad_operands(std::string_view what, const Constant& a, const Constant& b) {
  throw LogicError(What::Value, -1, "cannot ", what, " ", kind_name(a), " ", to_text(a), " and ",
                   kind_name(b), " ", to_text(b));
}

[[noreturn]] void overflow(std::int64_t a, std::string_view op, std::int64_t b) {
  throw LogicError(What::Value, -1, a, " ", op, " ", b, " does not fit in 64 bits");
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  std::int64_t square = base;
  for (std::int64_t left = exponent; left > 0; left >>= 1) {
    bool is_over = (left & 1) != 0 && __builtin_mul_overflow(out, square, &out);
    is_over |= left > 1 && __builtin_mul_overflow(square, square, &square);
    if (is_over) overflow(base, "**", exponent);
  }
  return out;
}

Constant integers(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (op) {
    case Op::Add:
      if (__builtin_add_overflow(a, b, &out)) overflow(a, "+", b);
      return out;
    case Op::Subtract:
      if (__builtin_sub_overflow(a, b, &out)) overflow(a, "-", b);
      return out;
    case Op::Multiply:
      if (__builtin_mul_overflow(a, b, &out)) overflow(a, "*", b);
      return out;
    case Op::Divide:
    case Op::Remainder:
      if (b == 0) throw LogicError(What::Value, -1, "Division by zero");
      if (b == -1) {  // the one quotient that may not fit
        if (op == Op::Remainder) return std::int64_t{0};
        if (__builtin_sub_overflow(std::int64_t{0}, a, &out)) overflow(a, "/", b);
        return out;
      }
      return op == Op::Divide ? a / b : a % b;
    default:
      if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
      return integer_power(a, b);
  }
}

Constant reals(Op op, double a, double b) {
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Subtract:
      return a - b;
    case Op::Multiply:
      return a * b;
    case Op::Divide:
    case Op::Remainder:
      if (b == 0) throw LogicError(What::Value, -1, "Division by zero");
      return op == Op::Divide ? a / b : std::fmod(a, b);
    default:
      return std::pow(a, b);
  }
}

std::string_view verb(Op op) {
  switch (op) {
    case Op::Add:
      return "add";
    case Op::Subtract:
      return "subtract";
    case Op::Multiply:
      return "multiply";
    case Op::Power:
      return "raise to a power";
    default:
      return "divide";
  }
}

Constant arithmetic(Op op, const Constant& a, const Constant& b) {
  const auto* i = std::get_if<std::int64_t>(&a);
  const auto* j = std::get_if<std::int64_t>(&b);
  if (i != nullptr && j != nullptr) return integers(op, *i, *j);
  if (is_number(a) && is_number(b)) return reals(op, number(a), number(b));
  const auto* s = std::get_if<std::string>(&a);
  const auto* t = std::get_if<std::string>(&b);
  if (op == Op::Add && s != nullptr && t != nullptr) {
    // Rules that make ever longer texts would never end.
    constexpr std::size_t kLongest = 1 << 14;
    if (s->size() + t->size() > kLongest) {
      throw LogicError(LogicError::What::Limit, -1, "a rule makes a text of more than ", kLongest,
                       " bytes");
    }
    return *s + *t;
  }
  bad_operands(verb(op), a, b);
}

bool same(const Constant& a, const Constant& b) {
  if (is_number(a) && is_number(b)) return compare(a, b) == 0;
  return a == b;
}

bool near(const Constant& a, const Constant& b) {
  if (!is_number(a) || !is_number(b)) return same(a, b);
  const double x = number(a);
  const double y = number(b);
  return std::abs(x - y) <= 1e-6 * std::max({1.0, std::abs(x), std::abs(y)});
}

bool ordered(Op op, const Constant& a, const Constant& b) {
  int order = 0;
  try {
    order = compare(a, b);
  } catch (const Error&) {
    bad_operands("order", a, b);
  }
  switch (op) {
    case Op::Less:
      return order < 0;
    case Op::LessEqual:
      return order <= 0;
    case Op::Greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

}  // namespace

Constant add(const Constant& a, const Constant& b) { return arithmetic(Op::Add, a, b); }

Constant evaluate(const Symbols& symbols, const Expression& e, const Id* bindings) {
  const auto part = [&](std::size_t i) { return evaluate(symbols, e.parts[i], bindings); };
  switch (e.op) {
    case Op::Value:
      return symbols[e.constant];
    case Op::Variable:
      return symbols[bindings[e.variable]];
    case Op::Any:
      throw LogicError(What::Value, -1, "'_' has no value");
    case Op::Add:
    case Op::Subtract:
    case Op::Multiply:
    case Op::Divide:
    case Op::Remainder:
    case Op::Power:
      return arithmetic(e.op, part(0), part(1));
    case Op::Negate: {
      const Constant value = part(0);
      if (!is_number(value)) {
        throw LogicError(What::Value, -1, "cannot negate ", kind_name(value), " ", to_text(value));
      }
      return arithmetic(Op::Subtract, std::int64_t{0}, value);
    }
    case Op::Equal:
      return same(part(0), part(1));
    case Op::NotEqual:
      return !same(part(0), part(1));
    case Op::Near:
      return near(part(0), part(1));
    case Op::And:
      return holds(symbols, e.parts[0], bindings) && holds(symbols, e.parts[1], bindings);
    case Op::Or:
      return holds(symbols, e.parts[0], bindings) || holds(symbols, e.parts[1], bindings);
    case Op::Not:
      return !holds(symbols, e.parts[0], bindings);
    default:
      return ordered(e.op, part(0), part(1));
  }
}

bool holds(const Symbols& symbols, const Expression& e, const Id* bindings) {
  const Constant value = evaluate(symbols, e, bindings);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  throw LogicError(What::Value, -1, "a condition must be true or false, not ", kind_name(value),
                   " ", to_text(value));
}

Id evaluate_id(Symbols& symbols, const Expression& e, const Id* bindings) {
  if (e.op == Op::Value) return e.constant;
  if (e.op == Op::Variable) return bindings[e.variable];
  return symbols.intern(evaluate(symbols, e, bindings));
}

Id fitted(Symbols& symbols, Id id, ColumnType::Kind kind) {
  const Constant& value = symbols[id];
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (kind == ColumnType::Kind::Float && integer != nullptr) {
    return symbols.real(static_cast<double>(*integer));
  }
  if (holds(kind, value)) return id;
  throw LogicError(What::Type, -1, "the head's argument is ", to_text(ColumnType{kind, ""}),
                   ", and the rule gives ", kind_name(value), " ", to_text(value));
}

Id head_id(Symbols& symbols, const HeadTerm& term, const Id* bindings) {
  const Id id = evaluate_id(symbols, term.value, bindings);
  return term.fit == ColumnType::Kind::Any ? id : fitted(symbols, id, term.fit);
}

void for_each_variable(const Expression& e, const std::function<void(std::uint32_t)>& visit) {
  if (e.op == Op::Variable) visit(e.variable);
  for (const Expression& part : e.parts) for_each_variable(part, visit);
}

bool computes(const Expression& e) noexcept { return e.op >= Op::Add && e.op <= Op::Negate; }

}  // namespace tl::logic
