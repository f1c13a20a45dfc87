#include "tl/ops/binary.h"

#include "ops/check.h"
#include "ops/cpu/binary.h"
#include "ops/gpu/binary.h"
#include "ops/rows.h"
#include "tl/kernels/elementwise_ids.h"
#include "tl/ops/create.h"
#include "tl/ops/unary.h"

namespace tl {

namespace {

// Ops that only ask whether something is 0, or equal, take bools as the bytes they are.
bool takes_bool(BinaryOp op) {
  return (op >= BinaryOp::LogicalAnd && op <= BinaryOp::LogicalXor) || op == BinaryOp::Eq ||
         op == BinaryOp::Ne;
}

void expect_taken(std::string_view what, BinaryOp op, DType dtype) {
  if (takes(op, dtype) || (dtype == DType::Bool && takes_bool(op))) return;
  throw Error(ErrorKind::Unsupported, what, "needs ",
              op == BinaryOp::Atan2                                      ? "float tensors"
              : op >= BinaryOp::BitwiseAnd && op <= BinaryOp::ShiftRight ? "integer tensors"
                                                                         : "tensors of numbers",
              ", got ", dtype);
}

bool is_flat(BinaryOp op) { return op == BinaryOp::FloorDiv || gives_flag(op); }

// A null layout stands for `value`.
Tensor compute(BinaryOp op, const Tensor& a, const Layout* a_layout, const Tensor& b,
               const Layout* b_layout, Scalar value, const Shape& shape) {
  const Tensor& first = a_layout != nullptr ? a : b;
  Tensor out =
      Tensor::uninitialized(shape, gives_flag(op) ? DType::U8 : first.dtype(), first.device());
  if (out.empty()) return out;
  if (out.location().is_cpu()) {
    cpu::binary(op, a, a_layout, b, b_layout, value, out);
  } else {
    gpu::binary(op, a, a_layout, b, b_layout, value, out);
  }
  if (has_history(a, b) && !is_flat(op)) {
    if (a_layout != nullptr && b_layout != nullptr) {
      add_history(out, name(op), {a, b});
    } else {
      add_history(out, join(name(op), "_number"), {first}, {value, a_layout == nullptr});
    }
  }
  return out;
}

Tensor tensors(std::string_view what, BinaryOp op, const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) {
    ops::expect_same_device(what, a, b);
    ops::expect_same_dtype(what, a, b);
    expect_taken(what, op, a.dtype());
    if (a.dtype() == DType::Bool) {
      return tensors(what, op, a.reinterpret(DType::U8), b.reinterpret(DType::U8));
    }
    return compute(op, a, &a.layout(), b, &b.layout(), 0, a.shape());
  }
  const Shape shape = broadcast_shapes(what, a.shape(), b.shape());
  ops::expect_same_device(what, a, b);
  ops::expect_same_dtype(what, a, b);
  expect_taken(what, op, a.dtype());
  if (a.dtype() == DType::Bool) {
    return tensors(what, op, a.reinterpret(DType::U8), b.reinterpret(DType::U8));
  }
  const Layout left = a.layout().broadcast_to(shape), right = b.layout().broadcast_to(shape);
  return compute(op, a, &left, b, &right, 0, shape);
}

void expect_fitting(std::string_view what, BinaryOp op, const Tensor& x, Scalar value) {
  expect_taken(what, op, x.dtype());
  ops::expect_whole(what, value, x.dtype());
}

bool is_comparison(BinaryOp op) {
  return op == BinaryOp::Eq || op == BinaryOp::Ne || op == BinaryOp::Lt || op == BinaryOp::Le;
}

// Of two different numbers.
bool compares(BinaryOp op, std::int64_t a, std::int64_t b) {
  return op == BinaryOp::Ne || (op != BinaryOp::Eq && a < b);
}

// Does an integer dtype not have that number?
bool is_outside(Scalar number, DType dtype) {
  return is_int(dtype) && ops::saturated(number, dtype).integer() != number.integer();
}

// What stands for such a number. Arithmetic wraps, so there its low bits do.
Scalar stand_in(BinaryOp op, Scalar number, DType dtype) {
  if (op == BinaryOp::Maximum || op == BinaryOp::Minimum) return ops::saturated(number, dtype);
  if (op >= BinaryOp::LogicalAnd && op <= BinaryOp::LogicalXor) return 1;
  return number;
}

Tensor number_last(std::string_view what, BinaryOp op, const Tensor& a, Scalar b) {
  expect_fitting(what, op, a, b);
  if (a.dtype() == DType::Bool) return number_last(what, op, a.reinterpret(DType::U8), b);
  if (is_outside(b, a.dtype())) {
    if (is_comparison(op)) {  // every element compares as 0 does
      return full(a.shape(), compares(op, 0, b.integer()), DType::U8, a.device());
    }
    b = stand_in(op, b, a.dtype());
  }
  return compute(op, a, &a.layout(), a, nullptr, b, a.shape());
}

Tensor number_first(std::string_view what, BinaryOp op, Scalar a, const Tensor& b) {
  expect_fitting(what, op, b, a);
  if (b.dtype() == DType::Bool) return number_first(what, op, a, b.reinterpret(DType::U8));
  if (is_outside(a, b.dtype())) {
    if (is_comparison(op)) {
      return full(b.shape(), compares(op, a.integer(), 0), DType::U8, b.device());
    }
    a = stand_in(op, a, b.dtype());
  }
  return compute(op, b, nullptr, b, &b.layout(), a, b.shape());
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return tensors("add", BinaryOp::Add, a, b); }
Tensor add(const Tensor& a, Scalar b) { return number_last("add", BinaryOp::Add, a, b); }
Tensor add(Scalar a, const Tensor& b) { return number_first("add", BinaryOp::Add, a, b); }

Tensor sub(const Tensor& a, const Tensor& b) { return tensors("sub", BinaryOp::Sub, a, b); }
Tensor sub(const Tensor& a, Scalar b) { return number_last("sub", BinaryOp::Sub, a, b); }
Tensor sub(Scalar a, const Tensor& b) { return number_first("sub", BinaryOp::Sub, a, b); }

Tensor mul(const Tensor& a, const Tensor& b) { return tensors("mul", BinaryOp::Mul, a, b); }
Tensor mul(const Tensor& a, Scalar b) { return number_last("mul", BinaryOp::Mul, a, b); }
Tensor mul(Scalar a, const Tensor& b) { return number_first("mul", BinaryOp::Mul, a, b); }

Tensor div(const Tensor& a, const Tensor& b) { return tensors("div", BinaryOp::Div, a, b); }
Tensor div(const Tensor& a, Scalar b) { return number_last("div", BinaryOp::Div, a, b); }
Tensor div(Scalar a, const Tensor& b) { return number_first("div", BinaryOp::Div, a, b); }

Tensor maximum(const Tensor& a, const Tensor& b) {
  return tensors("maximum", BinaryOp::Maximum, a, b);
}
Tensor maximum(const Tensor& a, Scalar b) {
  return number_last("maximum", BinaryOp::Maximum, a, b);
}
Tensor maximum(Scalar a, const Tensor& b) {
  return number_first("maximum", BinaryOp::Maximum, a, b);
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  return tensors("minimum", BinaryOp::Minimum, a, b);
}
Tensor minimum(const Tensor& a, Scalar b) {
  return number_last("minimum", BinaryOp::Minimum, a, b);
}
Tensor minimum(Scalar a, const Tensor& b) {
  return number_first("minimum", BinaryOp::Minimum, a, b);
}

Tensor pow(const Tensor& a, const Tensor& b) { return tensors("pow", BinaryOp::Pow, a, b); }
Tensor pow(const Tensor& a, Scalar b) { return number_last("pow", BinaryOp::Pow, a, b); }
Tensor pow(Scalar a, const Tensor& b) { return number_first("pow", BinaryOp::Pow, a, b); }

Tensor rem(const Tensor& a, const Tensor& b) { return tensors("rem", BinaryOp::Rem, a, b); }
Tensor rem(const Tensor& a, Scalar b) { return number_last("rem", BinaryOp::Rem, a, b); }
Tensor rem(Scalar a, const Tensor& b) { return number_first("rem", BinaryOp::Rem, a, b); }

Tensor fmod(const Tensor& a, const Tensor& b) { return tensors("fmod", BinaryOp::Fmod, a, b); }
Tensor fmod(const Tensor& a, Scalar b) { return number_last("fmod", BinaryOp::Fmod, a, b); }
Tensor fmod(Scalar a, const Tensor& b) { return number_first("fmod", BinaryOp::Fmod, a, b); }

Tensor floor_div(const Tensor& a, const Tensor& b) {
  return tensors("floor_div", BinaryOp::FloorDiv, a, b);
}
Tensor floor_div(const Tensor& a, Scalar b) {
  return number_last("floor_div", BinaryOp::FloorDiv, a, b);
}
Tensor floor_div(Scalar a, const Tensor& b) {
  return number_first("floor_div", BinaryOp::FloorDiv, a, b);
}

Tensor atan2(const Tensor& a, const Tensor& b) { return tensors("atan2", BinaryOp::Atan2, a, b); }
Tensor atan2(const Tensor& a, Scalar b) { return number_last("atan2", BinaryOp::Atan2, a, b); }
Tensor atan2(Scalar a, const Tensor& b) { return number_first("atan2", BinaryOp::Atan2, a, b); }

Tensor bitwise_and(const Tensor& a, const Tensor& b) {
  return tensors("bitwise_and", BinaryOp::BitwiseAnd, a, b);
}
Tensor bitwise_and(const Tensor& a, Scalar b) {
  return number_last("bitwise_and", BinaryOp::BitwiseAnd, a, b);
}
Tensor bitwise_and(Scalar a, const Tensor& b) {
  return number_first("bitwise_and", BinaryOp::BitwiseAnd, a, b);
}

Tensor bitwise_or(const Tensor& a, const Tensor& b) {
  return tensors("bitwise_or", BinaryOp::BitwiseOr, a, b);
}
Tensor bitwise_or(const Tensor& a, Scalar b) {
  return number_last("bitwise_or", BinaryOp::BitwiseOr, a, b);
}
Tensor bitwise_or(Scalar a, const Tensor& b) {
  return number_first("bitwise_or", BinaryOp::BitwiseOr, a, b);
}

Tensor bitwise_xor(const Tensor& a, const Tensor& b) {
  return tensors("bitwise_xor", BinaryOp::BitwiseXor, a, b);
}
Tensor bitwise_xor(const Tensor& a, Scalar b) {
  return number_last("bitwise_xor", BinaryOp::BitwiseXor, a, b);
}
Tensor bitwise_xor(Scalar a, const Tensor& b) {
  return number_first("bitwise_xor", BinaryOp::BitwiseXor, a, b);
}

Tensor shift_left(const Tensor& a, const Tensor& b) {
  return tensors("shift_left", BinaryOp::ShiftLeft, a, b);
}
Tensor shift_left(const Tensor& a, Scalar b) {
  return number_last("shift_left", BinaryOp::ShiftLeft, a, b);
}
Tensor shift_left(Scalar a, const Tensor& b) {
  return number_first("shift_left", BinaryOp::ShiftLeft, a, b);
}

Tensor shift_right(const Tensor& a, const Tensor& b) {
  return tensors("shift_right", BinaryOp::ShiftRight, a, b);
}
Tensor shift_right(const Tensor& a, Scalar b) {
  return number_last("shift_right", BinaryOp::ShiftRight, a, b);
}
Tensor shift_right(Scalar a, const Tensor& b) {
  return number_first("shift_right", BinaryOp::ShiftRight, a, b);
}

Tensor logical_and(const Tensor& a, const Tensor& b) {
  return tensors("logical_and", BinaryOp::LogicalAnd, a, b);
}
Tensor logical_and(const Tensor& a, Scalar b) {
  return number_last("logical_and", BinaryOp::LogicalAnd, a, b);
}
Tensor logical_and(Scalar a, const Tensor& b) {
  return number_first("logical_and", BinaryOp::LogicalAnd, a, b);
}

Tensor logical_or(const Tensor& a, const Tensor& b) {
  return tensors("logical_or", BinaryOp::LogicalOr, a, b);
}
Tensor logical_or(const Tensor& a, Scalar b) {
  return number_last("logical_or", BinaryOp::LogicalOr, a, b);
}
Tensor logical_or(Scalar a, const Tensor& b) {
  return number_first("logical_or", BinaryOp::LogicalOr, a, b);
}

Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return tensors("logical_xor", BinaryOp::LogicalXor, a, b);
}
Tensor logical_xor(const Tensor& a, Scalar b) {
  return number_last("logical_xor", BinaryOp::LogicalXor, a, b);
}
Tensor logical_xor(Scalar a, const Tensor& b) {
  return number_first("logical_xor", BinaryOp::LogicalXor, a, b);
}

Tensor eq(const Tensor& a, const Tensor& b) { return tensors("eq", BinaryOp::Eq, a, b); }
Tensor eq(const Tensor& a, Scalar b) { return number_last("eq", BinaryOp::Eq, a, b); }
Tensor eq(Scalar a, const Tensor& b) { return number_first("eq", BinaryOp::Eq, a, b); }

Tensor ne(const Tensor& a, const Tensor& b) { return tensors("ne", BinaryOp::Ne, a, b); }
Tensor ne(const Tensor& a, Scalar b) { return number_last("ne", BinaryOp::Ne, a, b); }
Tensor ne(Scalar a, const Tensor& b) { return number_first("ne", BinaryOp::Ne, a, b); }

Tensor lt(const Tensor& a, const Tensor& b) { return tensors("lt", BinaryOp::Lt, a, b); }
Tensor lt(const Tensor& a, Scalar b) { return number_last("lt", BinaryOp::Lt, a, b); }
Tensor lt(Scalar a, const Tensor& b) { return number_first("lt", BinaryOp::Lt, a, b); }

Tensor le(const Tensor& a, const Tensor& b) { return tensors("le", BinaryOp::Le, a, b); }
Tensor le(const Tensor& a, Scalar b) { return number_last("le", BinaryOp::Le, a, b); }
Tensor le(Scalar a, const Tensor& b) { return number_first("le", BinaryOp::Le, a, b); }

Tensor gt(const Tensor& a, const Tensor& b) { return tensors("gt", BinaryOp::Lt, b, a); }
Tensor gt(const Tensor& a, Scalar b) { return number_first("gt", BinaryOp::Lt, b, a); }
Tensor gt(Scalar a, const Tensor& b) { return number_last("gt", BinaryOp::Lt, b, a); }

Tensor ge(const Tensor& a, const Tensor& b) { return tensors("ge", BinaryOp::Le, b, a); }
Tensor ge(const Tensor& a, Scalar b) { return number_first("ge", BinaryOp::Le, b, a); }
Tensor ge(Scalar a, const Tensor& b) { return number_last("ge", BinaryOp::Le, b, a); }

Tensor operator-(const Tensor& x) { return neg(x); }

namespace ops {

namespace {

// The three forms of an op, of which a call takes the one that fits its arguments.
template <Tensor (*kTensors)(const Tensor&, const Tensor&),
          Tensor (*kNumberLast)(const Tensor&, Scalar),
          Tensor (*kNumberFirst)(Scalar, const Tensor&)>
std::vector<Tensor> run_two(std::string_view op, std::span<const OpValue> arguments) {
  const bool first = std::holds_alternative<Tensor>(arguments[0]);
  const bool second = std::holds_alternative<Tensor>(arguments[1]);
  if (first && !second) return call<kNumberLast>(op, arguments);
  if (!first && second) return call<kNumberFirst>(op, arguments);
  return call<kTensors>(op, arguments);
}

constexpr OpParameter kTwo[] = {{OpKind::TensorOrNumber}, {OpKind::TensorOrNumber}};

template <Tensor (*kTensors)(const Tensor&, const Tensor&),
          Tensor (*kNumberLast)(const Tensor&, Scalar),
          Tensor (*kNumberFirst)(Scalar, const Tensor&)>
constexpr OpCall call_two = {  // NOLINT(readability-identifier-naming): like call
    &run_two<kTensors, kNumberLast, kNumberFirst>, kTwo};

}  // namespace

std::span<const OpRow> binary_rows() {
  static constexpr OpRow kRows[] = {
      {"add", "binary", "(a, b)", kNumberSet, "a + b.", call_two<&add, &add, &add>},
      {"sub", "binary", "(a, b)", kNumberSet, "a - b.", call_two<&sub, &sub, &sub>},
      {"mul", "binary", "(a, b)", kNumberSet, "a b.", call_two<&mul, &mul, &mul>},
      {"div", "binary", "(a, b)", kNumberSet, "a / b; integers toward zero, x / 0 is 0.",
       call_two<&div, &div, &div>},
      {"maximum", "binary", "(a, b)", kNumberSet, "The larger; NaN if either is.",
       call_two<&maximum, &maximum, &maximum>},
      {"minimum", "binary", "(a, b)", kNumberSet, "The smaller; NaN if either is.",
       call_two<&minimum, &minimum, &minimum>},
      {"pow", "binary", "(a, b)", kNumberSet, "a^b.", call_two<&pow, &pow, &pow>},
      {"rem", "binary", "(a, b)", kNumberSet, "Remainder with the sign of b.",
       call_two<&rem, &rem, &rem>},
      {"fmod", "binary", "(a, b)", kNumberSet, "Remainder with the sign of a.",
       call_two<&fmod, &fmod, &fmod>},
      {"floor_div", "binary", "(a, b)", kNumberSet, "a / b rounded down.",
       call_two<&floor_div, &floor_div, &floor_div>},
      {"atan2", "binary", "(a, b)", kFloatSet, "Angle of the point (b, a).",
       call_two<&atan2, &atan2, &atan2>},
      {"bitwise_and", "binary", "(a, b)", kIntSet, "Bits set in both.",
       call_two<&bitwise_and, &bitwise_and, &bitwise_and>},
      {"bitwise_or", "binary", "(a, b)", kIntSet, "Bits set in either.",
       call_two<&bitwise_or, &bitwise_or, &bitwise_or>},
      {"bitwise_xor", "binary", "(a, b)", kIntSet, "Bits set in one.",
       call_two<&bitwise_xor, &bitwise_xor, &bitwise_xor>},
      {"shift_left", "binary", "(a, b)", kIntSet, "a 2^b.",
       call_two<&shift_left, &shift_left, &shift_left>},
      {"shift_right", "binary", "(a, b)", kIntSet, "a / 2^b, rounded down.",
       call_two<&shift_right, &shift_right, &shift_right>},
      {"logical_and", "binary", "(a, b)", kAnySet, "1 where both are not 0 (u8).",
       call_two<&logical_and, &logical_and, &logical_and>},
      {"logical_or", "binary", "(a, b)", kAnySet, "1 where either is not 0 (u8).",
       call_two<&logical_or, &logical_or, &logical_or>},
      {"logical_xor", "binary", "(a, b)", kAnySet, "1 where one is not 0 (u8).",
       call_two<&logical_xor, &logical_xor, &logical_xor>},
      {"eq", "binary", "(a, b)", kAnySet, "1 where a == b (u8).", call_two<&eq, &eq, &eq>},
      {"ne", "binary", "(a, b)", kAnySet, "1 where a != b (u8).", call_two<&ne, &ne, &ne>},
      {"lt", "binary", "(a, b)", kNumberSet, "1 where a < b (u8).", call_two<&lt, &lt, &lt>},
      {"le", "binary", "(a, b)", kNumberSet, "1 where a <= b (u8).", call_two<&le, &le, &le>},
      {"gt", "binary", "(a, b)", kNumberSet, "1 where a > b (u8).", call_two<&gt, &gt, &gt>},
      {"ge", "binary", "(a, b)", kNumberSet, "1 where a >= b (u8).", call_two<&ge, &ge, &ge>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
