#include "tl/ops/unary.h"

#include <cmath>

#include "ops/check.h"
#include "ops/cpu/unary.h"
#include "ops/gpu/unary.h"
#include "ops/rows.h"
#include "tl/ops/affine.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/where.h"

namespace tl {

namespace {

// Is it the same all around almost every x, so that no gradient goes through?
bool is_flat(UnaryOp op) {
  return op == UnaryOp::Sign || (op >= UnaryOp::Floor && op <= UnaryOp::RoundEven) ||
         gives_flag(op) || op == UnaryOp::BitwiseNot;
}

Tensor apply(UnaryOp op, const Tensor& x, double parameter = 0) {
  if (!takes(op, x.dtype())) {
    throw Error(ErrorKind::Unsupported, name(op), "needs ",
                op == UnaryOp::BitwiseNot ? "an integer tensor"
                : op <= UnaryOp::Relu     ? "a tensor of numbers"
                                          : "a float tensor",
                ", got ", x.dtype());
  }
  Tensor out = Tensor::uninitialized(x.shape(), gives_flag(op) ? DType::U8 : x.dtype(), x.device());
  if (out.empty()) return out;
  if (out.location().is_cpu()) {
    cpu::unary(op, x, out, parameter);
  } else {
    gpu::unary(op, x, out, parameter);
  }
  if (has_history(x) && !is_flat(op)) add_history(out, name(op), {x}, {parameter});
  return out;
}

// Integers are whole already.
Tensor apply_rounding(UnaryOp op, const Tensor& x) {
  return is_int(x.dtype()) ? contiguous(x) : apply(op, x);
}

Tensor apply_question(UnaryOp op, const Tensor& x, int of_integers) {
  return is_int(x.dtype()) ? full(x.shape(), of_integers, DType::U8, x.device()) : apply(op, x);
}

}  // namespace

Tensor neg(const Tensor& x) { return apply(UnaryOp::Neg, x); }
Tensor abs(const Tensor& x) { return apply(UnaryOp::Abs, x); }
Tensor sqr(const Tensor& x) { return apply(UnaryOp::Sqr, x); }
Tensor sign(const Tensor& x) { return apply(UnaryOp::Sign, x); }
Tensor recip(const Tensor& x) { return apply(UnaryOp::Recip, x); }
Tensor sqrt(const Tensor& x) { return apply(UnaryOp::Sqrt, x); }
Tensor rsqrt(const Tensor& x) { return apply(UnaryOp::Rsqrt, x); }

Tensor exp(const Tensor& x) { return apply(UnaryOp::Exp, x); }
Tensor exp2(const Tensor& x) { return apply(UnaryOp::Exp2, x); }
Tensor expm1(const Tensor& x) { return apply(UnaryOp::Expm1, x); }
Tensor log(const Tensor& x) { return apply(UnaryOp::Log, x); }
Tensor log2(const Tensor& x) { return apply(UnaryOp::Log2, x); }
Tensor log10(const Tensor& x) { return apply(UnaryOp::Log10, x); }
Tensor log1p(const Tensor& x) { return apply(UnaryOp::Log1p, x); }
Tensor powf(const Tensor& x, double exponent) { return apply(UnaryOp::Powf, x, exponent); }

Tensor sin(const Tensor& x) { return apply(UnaryOp::Sin, x); }
Tensor cos(const Tensor& x) { return apply(UnaryOp::Cos, x); }
Tensor tan(const Tensor& x) { return apply(UnaryOp::Tan, x); }
Tensor asin(const Tensor& x) { return apply(UnaryOp::Asin, x); }
Tensor acos(const Tensor& x) { return apply(UnaryOp::Acos, x); }
Tensor atan(const Tensor& x) { return apply(UnaryOp::Atan, x); }
Tensor sinh(const Tensor& x) { return apply(UnaryOp::Sinh, x); }
Tensor cosh(const Tensor& x) { return apply(UnaryOp::Cosh, x); }
Tensor tanh(const Tensor& x) { return apply(UnaryOp::Tanh, x); }

Tensor erf(const Tensor& x) { return apply(UnaryOp::Erf, x); }
Tensor erfc(const Tensor& x) { return apply(UnaryOp::Erfc, x); }
Tensor normcdf(const Tensor& x) { return apply(UnaryOp::Normcdf, x); }

Tensor floor(const Tensor& x) { return apply_rounding(UnaryOp::Floor, x); }
Tensor ceil(const Tensor& x) { return apply_rounding(UnaryOp::Ceil, x); }
Tensor trunc(const Tensor& x) { return apply_rounding(UnaryOp::Trunc, x); }
Tensor round(const Tensor& x) { return apply_rounding(UnaryOp::Round, x); }
Tensor round_even(const Tensor& x) { return apply_rounding(UnaryOp::RoundEven, x); }

Tensor round_to(const Tensor& x, std::int64_t decimals) {
  ops::expect_float("round_to", x);
  if (x.has_history()) return round_to(x.detach(), decimals);  // flat, whatever it is made of
  if (size_of(x.dtype()) < 4) {  // 100 times an f16 leaves its digits behind
    return to_dtype(round_to(to_dtype(x, DType::F32), decimals), x.dtype());
  }
  const int largest = x.dtype() == DType::F64 ? 308 : 38;  // power of ten that the dtype has
  if (decimals < -largest) return where(isfinite(x), mul(x, 0), x);
  const double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  if (decimals < 0) return mul(round(div(x, scale)), scale);
  // A number whose product overflows is so large that it has no decimals.
  const Tensor scaled = mul(x, scale);
  return where(isfinite(scaled), div(round(scaled), scale), x);
}

Tensor relu(const Tensor& x) { return apply(UnaryOp::Relu, x); }
Tensor relu6(const Tensor& x) { return apply(UnaryOp::Relu6, x); }
Tensor leaky_relu(const Tensor& x, double slope) { return apply(UnaryOp::LeakyRelu, x, slope); }
Tensor elu(const Tensor& x, double alpha) { return apply(UnaryOp::Elu, x, alpha); }
Tensor selu(const Tensor& x) { return apply(UnaryOp::Selu, x); }
Tensor sigmoid(const Tensor& x) { return apply(UnaryOp::Sigmoid, x); }
Tensor hard_sigmoid(const Tensor& x) { return apply(UnaryOp::HardSigmoid, x); }
Tensor silu(const Tensor& x) { return apply(UnaryOp::Silu, x); }
Tensor hard_swish(const Tensor& x) { return apply(UnaryOp::HardSwish, x); }
Tensor gelu(const Tensor& x) { return apply(UnaryOp::Gelu, x); }
Tensor gelu_erf(const Tensor& x) { return apply(UnaryOp::GeluErf, x); }
Tensor softplus(const Tensor& x) { return apply(UnaryOp::Softplus, x); }
Tensor mish(const Tensor& x) { return apply(UnaryOp::Mish, x); }

Tensor isnan(const Tensor& x) { return apply_question(UnaryOp::IsNan, x, 0); }
Tensor isinf(const Tensor& x) { return apply_question(UnaryOp::IsInf, x, 0); }
Tensor isfinite(const Tensor& x) { return apply_question(UnaryOp::IsFinite, x, 1); }
Tensor logical_not(const Tensor& x) { return eq(x, 0); }

Tensor bitwise_not(const Tensor& x) { return apply(UnaryOp::BitwiseNot, x); }

namespace ops {

std::span<const OpRow> unary_rows() {
  static constexpr OpRow kRows[] = {
      {"neg", "unary", "(x)", kNumberSet, "-x.", call<&neg>},
      {"abs", "unary", "(x)", kNumberSet, "Magnitudes.", call<&abs>},
      {"sqr", "unary", "(x)", kNumberSet, "x^2.", call<&sqr>},
      {"sign", "unary", "(x)", kNumberSet, "-1, 0 or 1.", call<&sign>},
      {"recip", "unary", "(x)", kFloatSet, "1 / x.", call<&recip>},
      {"sqrt", "unary", "(x)", kFloatSet, "Square root.", call<&sqrt>},
      {"rsqrt", "unary", "(x)", kFloatSet, "1 / sqrt(x).", call<&rsqrt>},
      {"exp", "unary", "(x)", kFloatSet, "e^x.", call<&exp>},
      {"exp2", "unary", "(x)", kFloatSet, "2^x.", call<&exp2>},
      {"expm1", "unary", "(x)", kFloatSet, "e^x - 1, exact near 0.", call<&expm1>},
      {"log", "unary", "(x)", kFloatSet, "Natural logarithm.", call<&log>},
      {"log2", "unary", "(x)", kFloatSet, "Logarithm to base 2.", call<&log2>},
      {"log10", "unary", "(x)", kFloatSet, "Logarithm to base 10.", call<&log10>},
      {"log1p", "unary", "(x)", kFloatSet, "log(1 + x), exact near 0.", call<&log1p>},
      {"powf", "unary", "(x, exponent)", kFloatSet, "x^exponent.", call<&powf>},
      {"sin", "unary", "(x)", kFloatSet, "Sine.", call<&sin>},
      {"cos", "unary", "(x)", kFloatSet, "Cosine.", call<&cos>},
      {"tan", "unary", "(x)", kFloatSet, "Tangent.", call<&tan>},
      {"asin", "unary", "(x)", kFloatSet, "Inverse sine.", call<&asin>},
      {"acos", "unary", "(x)", kFloatSet, "Inverse cosine.", call<&acos>},
      {"atan", "unary", "(x)", kFloatSet, "Inverse tangent.", call<&atan>},
      {"sinh", "unary", "(x)", kFloatSet, "Hyperbolic sine.", call<&sinh>},
      {"cosh", "unary", "(x)", kFloatSet, "Hyperbolic cosine.", call<&cosh>},
      {"tanh", "unary", "(x)", kFloatSet, "Hyperbolic tangent.", call<&tanh>},
      {"erf", "unary", "(x)", kFloatSet, "Error function.", call<&erf>},
      {"erfc", "unary", "(x)", kFloatSet, "1 - erf(x), exact where it is small.", call<&erfc>},
      {"normcdf", "unary", "(x)", kFloatSet, "Share of a standard normal distribution below x.",
       call<&normcdf>},
      {"floor", "unary", "(x)", kNumberSet, "Rounded down.", call<&floor>},
      {"ceil", "unary", "(x)", kNumberSet, "Rounded up.", call<&ceil>},
      {"trunc", "unary", "(x)", kNumberSet, "Rounded toward zero.", call<&trunc>},
      {"round", "unary", "(x)", kNumberSet, "Rounded, half away from zero.", call<&round>},
      {"round_even", "unary", "(x)", kNumberSet, "Rounded, half to even.", call<&round_even>},
      {"round_to", "unary", "(x, decimals)", kFloatSet, "Rounded to a number of decimals.",
       call<&round_to>},
      {"relu", "unary", "(x)", kNumberSet, "max(x, 0).", call<&relu>},
      {"relu6", "unary", "(x)", kFloatSet, "x between 0 and 6.", call<&relu6>},
      {"leaky_relu", "unary", "(x, slope = 0.01)", kFloatSet, "x for x > 0, else slope x.",
       call<&leaky_relu>},
      {"elu", "unary", "(x, alpha = 1)", kFloatSet, "x for x > 0, else alpha (e^x - 1).",
       call<&elu>},
      {"selu", "unary", "(x)", kFloatSet, "Scaled elu that keeps mean and variance.", call<&selu>},
      {"sigmoid", "unary", "(x)", kFloatSet, "1 / (1 + e^-x).", call<&sigmoid>},
      {"hard_sigmoid", "unary", "(x)", kFloatSet, "min(max(x + 3, 0), 6) / 6.",
       call<&hard_sigmoid>},
      {"silu", "unary", "(x)", kFloatSet, "x sigmoid(x).", call<&silu>},
      {"hard_swish", "unary", "(x)", kFloatSet, "x hard_sigmoid(x).", call<&hard_swish>},
      {"gelu", "unary", "(x)", kFloatSet, "Gaussian error unit, tanh form.", call<&gelu>},
      {"gelu_erf", "unary", "(x)", kFloatSet, "x normcdf(x).", call<&gelu_erf>},
      {"softplus", "unary", "(x)", kFloatSet, "log(1 + e^x).", call<&softplus>},
      {"mish", "unary", "(x)", kFloatSet, "x tanh(softplus(x)).", call<&mish>},
      {"isnan", "unary", "(x)", kNumberSet, "1 where x is NaN (u8).", call<&isnan>},
      {"isinf", "unary", "(x)", kNumberSet, "1 where x is infinite (u8).", call<&isinf>},
      {"isfinite", "unary", "(x)", kNumberSet, "1 where x is neither infinite nor NaN (u8).",
       call<&isfinite>},
      {"logical_not", "unary", "(x)", kAnySet, "1 where x is 0 (u8).", call<&logical_not>},
      {"bitwise_not", "unary", "(x)", kIntSet, "Every bit turned.", call<&bitwise_not>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
