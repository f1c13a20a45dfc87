// Functions of one element.
//
// Results have the dtype of x. f32 and f64 results are the same bits on every device, within 2
// units in the last place of the exact value; narrower floats are computed in f32 and rounded once.
// Integer tensors have neg, abs, sqr, sign, relu, bitwise_not, the roundings (which change nothing)
// and the three questions isnan, isinf, isfinite; every other op refuses them (Unsupported).
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sqr(const Tensor& x);
Tensor sign(const Tensor& x);  // -1, 0 or 1; NaN stays
Tensor recip(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);

Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor powf(const Tensor& x, double exponent);  // x^exponent, as pow() in tl/ops/binary.h

Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor tanh(const Tensor& x);

Tensor erf(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor normcdf(const Tensor& x);  // the share of a standard normal distribution below x

Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor round(const Tensor& x);       // half away from zero
Tensor round_even(const Tensor& x);  // half to even
// Rounded to that many decimals: round(x 10^decimals) / 10^decimals.
Tensor round_to(const Tensor& x, std::int64_t decimals);

Tensor relu(const Tensor& x);
Tensor relu6(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
Tensor elu(const Tensor& x, double alpha = 1);  // x for x > 0, else alpha (e^x - 1)
Tensor selu(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor hard_sigmoid(const Tensor& x);  // min(max(x + 3, 0), 6) / 6
Tensor silu(const Tensor& x);          // x sigmoid(x)
Tensor hard_swish(const Tensor& x);    // x hard_sigmoid(x)
Tensor gelu(const Tensor& x);          // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Tensor gelu_erf(const Tensor& x);      // x normcdf(x)
Tensor softplus(const Tensor& x);      // log(1 + e^x)
Tensor mish(const Tensor& x);          // x tanh(softplus(x))

// u8, 1 where it is so
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor logical_not(const Tensor& x);  // every dtype

Tensor bitwise_not(const Tensor& x);  // integers

}  // namespace tl
