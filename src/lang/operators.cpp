#include "lang/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lang/convert.h"
#include "lang/linalg.h"
#include "lang/tensor_operators.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/unary.h"

namespace tl::lang {

using ast::BinaryOp;
using ast::UnaryOp;

namespace {

[[noreturn]] void throw_kinds(BinaryOp op, const Value& a, const Value& b) {
  throw type_error("Binary operation requires compatible types: ", type_name(a), " ",
                   ast::symbol(op), " ", type_name(b));
}
[[noreturn]] void throw_overflow(std::int64_t a, std::string_view symbol, std::int64_t b) {
  throw RuntimeError(join("Integer overflow: ", a, " ", symbol, " ", b));
}
[[noreturn]] void throw_zero_divisor() { throw RuntimeError("Division by zero"); }

bool is_comparison(BinaryOp op) noexcept {
  return op >= BinaryOp::Equal && op <= BinaryOp::GreaterEqual;
}

// What a comparison says of an order: less, equal, greater, or none (NaN).
template <class T>
bool compare(BinaryOp op, const T& a, const T& b) {
  switch (op) {
    case BinaryOp::Equal:
      return a == b;
    case BinaryOp::NotEqual:
      return !(a == b);
    case BinaryOp::Less:
      return a < b;
    case BinaryOp::LessEqual:
      return a <= b;
    case BinaryOp::Greater:
      return a > b;
    default:
      return a >= b;
  }
}

// ---- numbers

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  std::int64_t result = 1;
  std::int64_t factor = base;
  for (std::int64_t left = exponent; left > 0;) {
    if ((left & 1) != 0 && __builtin_mul_overflow(result, factor, &result)) {
      throw_overflow(base, "**", exponent);
    }
    left >>= 1;
    if (left > 0 && __builtin_mul_overflow(factor, factor, &factor)) {
      throw_overflow(base, "**", exponent);
    }
  }
  return result;
}

Value integers(BinaryOp op, const Value& left, const Value& right) {
  const std::int64_t a = left.integer();
  const std::int64_t b = right.integer();
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::Add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOp::Subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOp::Multiply:
    case BinaryOp::Hadamard:
    case BinaryOp::Outer:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOp::Divide:
      if (b == 0) throw_zero_divisor();
      overflow = b == -1 && a == std::numeric_limits<std::int64_t>::min();
      if (!overflow) result = a / b;
      break;
    case BinaryOp::Remainder:
      if (b == 0) throw_zero_divisor();
      result = b == -1 ? 0 : a % b;
      break;
    case BinaryOp::Power:
      return integer_power(a, b);
    default:
      throw_kinds(op, left, right);
  }
  if (overflow) throw_overflow(a, ast::symbol(op), b);
  return result;
}

Value reals(BinaryOp op, const Value& left, const Value& right) {
  const double a = left.number();
  const double b = right.number();
  switch (op) {
    case BinaryOp::Add:
      return a + b;
    case BinaryOp::Subtract:
      return a - b;
    case BinaryOp::Multiply:
    case BinaryOp::Hadamard:
    case BinaryOp::Outer:
      return a * b;
    case BinaryOp::Divide:
      if (b == 0) throw_zero_divisor();
      return a / b;
    case BinaryOp::Remainder:
      if (b == 0) throw_zero_divisor();
      return std::fmod(a, b);
    case BinaryOp::Power:
      return std::pow(a, b);
    case BinaryOp::Approx:
      return a == b ||
             std::abs(a - b) <= kApproxNumbers * std::max({1.0, std::abs(a), std::abs(b)});
    default:
      throw_kinds(op, left, right);
  }
}

Value numbers(BinaryOp op, const Value& a, const Value& b) {
  const bool both = a.is(Kind::Int) && b.is(Kind::Int);
  if (is_comparison(op)) {
    return both ? compare(op, a.integer(), b.integer()) : compare(op, a.number(), b.number());
  }
  return both && op != BinaryOp::Approx ? integers(op, a, b) : reals(op, a, b);
}

// ---- texts

Value repeated(const std::string& text, std::int64_t times) {
  constexpr std::size_t kLongest = std::size_t{1} << 30;
  if (times <= 0 || text.empty()) return std::string();
  if (static_cast<std::uint64_t>(times) > kLongest / text.size()) {
    throw invalid_operation("A String of ", text.size(), " bytes repeated ", times,
                            " times is too long");
  }
  std::string out;
  out.reserve(text.size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 0; i < times; ++i) out += text;
  return out;
}

// ---- lists

Value joined_lists(const Value& a, const Value& b) {
  std::vector<Value> values = list_values(a);
  const std::vector<Value> more = list_values(b);
  values.insert(values.end(), more.begin(), more.end());
  return make<ListObject>(std::move(values));
}

bool is_plain_list(const Value& value) noexcept {
  return is_list_like(value) && !value.is(Kind::Tuple);
}

// Operands of which one stands for a tensor: a tensor, a list of numbers, a number beside them.
bool as_tensors(const Value& a, const Value& b) noexcept {
  if (a.is(Kind::Tuple) || b.is(Kind::Tuple)) return false;
  const auto fits = [](const Value& v) {
    return v.is_tensor() || v.is_number() || v.is(Kind::Bool) || is_tensor_like(v);
  };
  const auto leads = [](const Value& v) {
    return v.is_tensor() || is_number_list(v) || is_pieces(v);
  };
  return (leads(a) && fits(b)) || (leads(b) && fits(a));
}

}  // namespace

Value binary(Context& context, BinaryOp op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return numbers(op, a, b);
  if (a.is(Kind::Tensor) && (b.is(Kind::Tensor) || b.is_number())) {
    return tensor_binary(context, op, a, b);
  }
  const bool equality = op == BinaryOp::Equal || op == BinaryOp::NotEqual;
  if (a.is(Kind::String) && b.is(Kind::String)) {
    if (op == BinaryOp::Add) return a.string() + b.string();
    if (is_comparison(op)) return compare(op, a.string(), b.string());  // bytes: by code point
    throw_kinds(op, a, b);
  }
  if (op == BinaryOp::Multiply && a.is(Kind::String) && b.is(Kind::Int)) {
    return repeated(a.string(), b.integer());
  }
  if (op == BinaryOp::Multiply && a.is(Kind::Int) && b.is(Kind::String)) {
    return repeated(b.string(), a.integer());
  }
  if (a.is(Kind::Bool) && b.is(Kind::Bool)) {
    if (op == BinaryOp::And) return a.boolean() && b.boolean();
    if (op == BinaryOp::Or) return a.boolean() || b.boolean();
    if (equality) return (a.boolean() == b.boolean()) == (op == BinaryOp::Equal);
    throw_kinds(op, a, b);
  }
  if (is_plain_list(a) && is_plain_list(b)) {
    if (equality) return loosely_equal(a, b) == (op == BinaryOp::Equal);
    // A list without elements has no kind of element: it is continued, not added to.
    const bool empty = list_size(a) == 0 || list_size(b) == 0;
    if (op == BinaryOp::Add && (empty || !as_tensors(a, b))) return joined_lists(a, b);
  }
  if (as_tensors(a, b)) return tensor_binary(context, op, a, b);
  if (a.kind() == b.kind() && equality) return loosely_equal(a, b) == (op == BinaryOp::Equal);
  throw_kinds(op, a, b);
}

Value unary(Context& context, UnaryOp op, const Value& a) {
  switch (op) {
    case UnaryOp::Negate:
      if (a.is(Kind::Int)) {
        std::int64_t result = 0;
        if (__builtin_sub_overflow(std::int64_t{0}, a.integer(), &result)) {
          throw RuntimeError(join("Integer overflow: -(", a.integer(), ")"));
        }
        return result;
      }
      if (a.is(Kind::Float)) return -a.real();
      if (is_tensor_like(a)) {
        const tl::Tensor x = to_tensor(context, "-", a);
        return neg(x.dtype() == DType::Bool ? to_dtype(x, DType::F32) : x);
      }
      throw type_error("Unary operation requires a number or a tensor: -", type_name(a));
    case UnaryOp::Not:
      if (a.is(Kind::Bool)) return !a.boolean();
      if (is_tensor_like(a))
        return logical_not(to_tensor(context, "!", a)).reinterpret(DType::Bool);
      throw type_error("Unary operation requires a Boolean: !", type_name(a));
    case UnaryOp::Inverse:
      if (a.is_number()) return numbers(BinaryOp::Divide, 1.0, a);
      if (is_tensor_like(a)) return inverse(to_tensor(context, "inv", a));
      throw type_error("Unary operation requires a matrix: inv ", type_name(a));
  }
  return {};
}

Value cast(const Value& value, bool to_integer) {
  if (to_integer) {
    if (const auto integer = integer_in(value)) return *integer;
  } else if (const auto real = real_in(value)) {
    return *real;
  }
  throw type_error("Cannot cast ", type_name(value), " to ", to_integer ? "int" : "float");
}

bool truth(const Value& value, std::string_view what) {
  if (value.is(Kind::Bool)) return value.boolean();
  if (value.is(Kind::Tensor)) {
    if (value.tensor().count() == 1) return value.tensor().item().real() != 0;
    throw type_error("The condition of ", what,
                     " must be a Boolean or one element, got a Tensor of ", value.tensor().count(),
                     " elements; use any() or all()");
  }
  throw type_error("The condition of ", what, " must be a Boolean, got ", type_name(value));
}

Value declared_tensor(Context& context, std::string_view name, DType dtype, const Dims& shape,
                      const Value* value) {
  const auto shape_text = [](const Dims& dims) {
    std::string out = "[";
    for (int d = 0; d < dims.size(); ++d) {
      if (d > 0) out += ", ";
      out += dims[d] < 0 ? "?" : std::to_string(dims[d]);
    }
    return out + "]";
  };
  const auto holes = std::count(shape.begin(), shape.end(), -1);
  const auto needs_shape = [&] {
    if (holes == 0) return;
    throw type_error("Tensor '", name, "' needs a size for every dimension, got ",
                     shape_text(shape));
  };
  if (value == nullptr) {
    needs_shape();
    return tl::Tensor::zeros(shape, dtype, context.device);
  }
  if (value->is(Kind::Host)) {
    if (const auto* initializer = dynamic_cast<const Initializer*>(value->object())) {
      needs_shape();
      return initializer->make(shape, dtype, context.device);
    }
  }
  if (value->is_number() || value->is(Kind::Bool)) {
    needs_shape();
    if (value->is(Kind::Float)) return full(shape, value->real(), dtype, context.device);
    return full(shape, value->integer(), dtype, context.device);
  }
  const tl::Tensor given = to_tensor(context, join("Tensor '", name, "'"), *value, dtype);
  bool fits = given.rank() == shape.size();
  for (int d = 0; fits && d < shape.size(); ++d) {
    fits = shape[d] < 0 || shape[d] == given.shape()[d];
  }
  if (fits) return given;
  std::int64_t known = 1;
  for (const std::int64_t size : shape) {
    if (size >= 0 && __builtin_mul_overflow(known, size, &known)) known = -1;
  }
  const bool reshapes = holes == 0   ? known == given.count()
                        : holes == 1 ? known > 0 && given.count() % known == 0
                                     : false;
  if (!reshapes) {
    throw RuntimeError(join("Tensor error: Shape mismatch: expected ", shape_text(shape), ", got ",
                            shape_text(given.shape())));
  }
  return reshape(given, shape);
}

}  // namespace tl::lang
