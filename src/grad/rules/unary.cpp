// Elementwise functions of one tensor.
#include <cmath>
#include <numbers>

#include "grad/flow.h"
#include "grad/rules.h"
#include "ops/backward.h"
#include "tl/ops/affine.h"
#include "tl/ops/binary.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

constexpr unsigned kInput = keeps_input(0);
constexpr unsigned kResult = kKeepsResult;

// The derivative from the result, or from the input.
template <Tensor (*kDerivative)(const Tensor&)>
void from_result(Flow& flow) {
  flow.give(0, mul(flow.gradient(), kDerivative(flow.result())));
}
template <Tensor (*kDerivative)(const Tensor&)>
void from_input(Flow& flow) {
  flow.give(0, mul(flow.gradient(), kDerivative(flow.input(0))));
}
// The gradient where a condition on the input holds, nothing elsewhere.
template <Tensor (*kCondition)(const Tensor&)>
void where_input(Flow& flow) {
  flow.give(0, where(kCondition(flow.input(0)), flow.gradient(), 0));
}

Tensor same(const Tensor& y) { return y; }
Tensor twice(const Tensor& x) { return mul(x, 2); }
Tensor recip_slope(const Tensor& y) { return neg(sqr(y)); }
Tensor sqrt_slope(const Tensor& y) { return div(0.5, y); }
Tensor rsqrt_slope(const Tensor& y) { return mul(mul(sqr(y), y), -0.5); }
Tensor exp2_slope(const Tensor& y) { return mul(y, std::numbers::ln2); }
Tensor one_more(const Tensor& y) { return add(y, 1); }
Tensor log2_slope(const Tensor& x) { return div(std::numbers::log2e, x); }
Tensor log10_slope(const Tensor& x) { return div(std::numbers::log10e, x); }
Tensor log1p_slope(const Tensor& x) { return recip(add(x, 1)); }
Tensor cos_slope(const Tensor& x) { return neg(sin(x)); }
Tensor tan_slope(const Tensor& y) { return add(sqr(y), 1); }
Tensor asin_slope(const Tensor& x) { return rsqrt(affine(sqr(x), -1, 1)); }
Tensor acos_slope(const Tensor& x) { return neg(asin_slope(x)); }
Tensor atan_slope(const Tensor& x) { return recip(add(sqr(x), 1)); }
Tensor tanh_slope(const Tensor& y) { return affine(sqr(y), -1, 1); }
Tensor bell(const Tensor& x, double width, double height) {
  return mul(exp(mul(sqr(x), -width)), height);
}
Tensor erf_slope(const Tensor& x) { return bell(x, 1, 2 * std::numbers::inv_sqrtpi); }
Tensor erfc_slope(const Tensor& x) { return bell(x, 1, -2 * std::numbers::inv_sqrtpi); }
Tensor normal_density(const Tensor& x) {
  return bell(x, 0.5, std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}
Tensor sigmoid_slope(const Tensor& y) { return mul(y, affine(y, -1, 1)); }
Tensor silu_slope(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return mul(s, add(mul(x, affine(s, -1, 1)), 1));
}
Tensor hard_swish_slope(const Tensor& x) {
  const Tensor inside = affine(x, 1.0 / 3, 0.5);
  return where(le(x, -3), 0, where(ge(x, 3), 1, inside));
}
Tensor gelu_slope(const Tensor& x) {
  const double c = std::sqrt(2 / std::numbers::pi);
  const Tensor square = sqr(x);
  const Tensor t = tanh(mul(x, affine(square, 0.044715 * c, c)));
  const Tensor inner = mul(mul(x, affine(square, 3 * 0.044715 * c, c)), affine(sqr(t), -1, 1));
  return affine(add(t, inner), 0.5, 0.5);
}
Tensor gelu_erf_slope(const Tensor& x) { return add(normcdf(x), mul(x, normal_density(x))); }
Tensor mish_slope(const Tensor& x) {
  const Tensor t = tanh(softplus(x));
  return add(t, mul(mul(x, sigmoid(x)), affine(sqr(t), -1, 1)));
}

// In one pass, unless the gradient is to be differentiated itself.
template <SlopeOf kFunction, Tensor (*kDerivative)(const Tensor&)>
void fused(Flow& flow) {
  if (flow.follows() || !ops::has_slope(flow.dtype(0))) return from_input<kDerivative>(flow);
  flow.give(0, ops::slope(kFunction, flow.input(0), flow.gradient()));
}

Tensor is_positive(const Tensor& x) { return gt(x, 0); }
Tensor is_in_relu6(const Tensor& x) { return logical_and(gt(x, 0), lt(x, 6)); }
Tensor is_in_hard_sigmoid(const Tensor& x) { return logical_and(gt(x, -3), lt(x, 3)); }

void neg_rule(Flow& flow) { flow.give(0, neg(flow.gradient())); }
void log_rule(Flow& flow) { flow.give(0, div(flow.gradient(), flow.input(0))); }

void powf_rule(Flow& flow) {
  const double exponent = flow.real(0);
  if (exponent == 0) return;
  flow.give(0, mul(flow.gradient(), mul(powf(flow.input(0), exponent - 1), exponent)));
}

void leaky_relu_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
  flow.give(0, where(gt(flow.input(0), 0), g, mul(g, flow.real(0))));
}

// scale x for x > 0, else scale alpha (e^x - 1), whose slope is what it gives + scale alpha.
void elu_like(Flow& flow, double alpha, double scale) {
  const Tensor x = flow.input(0);
  const Tensor below = mul(exp(x), alpha * scale);
  flow.give(0, mul(flow.gradient(), where(gt(x, 0), scale, below)));
}
void elu_rule(Flow& flow) { elu_like(flow, flow.real(0), 1); }
void selu_rule(Flow& flow) { elu_like(flow, 1.6732632423543772848, 1.0507009873554804934); }

void hard_sigmoid_rule(Flow& flow) {
  flow.give(0, where(is_in_hard_sigmoid(flow.input(0)), mul(flow.gradient(), 1.0 / 6), 0));
}

}  // namespace

std::span<const Rule> unary_rules() {
  static constexpr Rule kRules[] = {
      {"neg", neg_rule},
      {"abs", from_input<&sign>, kInput},
      {"sqr", from_input<&twice>, kInput},
      {"recip", from_result<&recip_slope>, kResult},
      {"sqrt", from_result<&sqrt_slope>, kResult},
      {"rsqrt", from_result<&rsqrt_slope>, kResult},
      {"exp", from_result<&same>, kResult},
      {"exp2", from_result<&exp2_slope>, kResult},
      {"expm1", from_result<&one_more>, kResult},
      {"log", log_rule, kInput},
      {"log2", from_input<&log2_slope>, kInput},
      {"log10", from_input<&log10_slope>, kInput},
      {"log1p", from_input<&log1p_slope>, kInput},
      {"powf", powf_rule, kInput},
      {"sin", from_input<&cos>, kInput},
      {"cos", from_input<&cos_slope>, kInput},
      {"tan", from_result<&tan_slope>, kResult},
      {"asin", from_input<&asin_slope>, kInput},
      {"acos", from_input<&acos_slope>, kInput},
      {"atan", from_input<&atan_slope>, kInput},
      {"sinh", from_input<&cosh>, kInput},
      {"cosh", from_input<&sinh>, kInput},
      {"tanh", from_result<&tanh_slope>, kResult},
      {"erf", from_input<&erf_slope>, kInput},
      {"erfc", from_input<&erfc_slope>, kInput},
      {"normcdf", from_input<&normal_density>, kInput},
      {"relu", where_input<&is_positive>, kInput},
      {"relu6", where_input<&is_in_relu6>, kInput},
      {"leaky_relu", leaky_relu_rule, kInput},
      {"elu", elu_rule, kInput},
      {"selu", selu_rule, kInput},
      {"sigmoid", from_result<&sigmoid_slope>, kResult},
      {"hard_sigmoid", hard_sigmoid_rule, kInput},
      {"silu", fused<SlopeOf::Silu, &silu_slope>, kInput},
      {"hard_swish", from_input<&hard_swish_slope>, kInput},
      {"gelu", fused<SlopeOf::Gelu, &gelu_slope>, kInput},
      {"gelu_erf", fused<SlopeOf::GeluErf, &gelu_erf_slope>, kInput},
      {"softplus", from_input<&sigmoid>, kInput},
      {"mish", from_input<&mish_slope>, kInput},
  };
  return kRules;
}

}  // namespace tl::grad
