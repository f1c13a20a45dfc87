// What training does to single elements: one definition for every device. See functors.h.
#pragma once

#include "functors.h"

namespace tl::training {

using elementary::fma;
using elementary::mul;

// A step of Adam, with all that is the same for every element worked out.
template <class C>
struct AdamNumbers {
  C beta1, rest1;  // rest: 1 - beta
  C beta2, rest2;
  C rate;   // over what corrects the first moment
  C scale;  // corrects the root of the second
  C eps;
  C shrink;  // the parameter is multiplied by it first: decoupled decay
  C decay;   // of it that is added to the gradient
};

// An element and its moments. By value: what has an address may end up in memory.
template <class C>
struct AdamElement {
  C parameter, first, second;
  C largest;  // with AMSGrad
};

template <class C>
TL_MATH_FN AdamElement<C> adam(const AdamElement<C>& old, C gradient, bool amsgrad,
                               const AdamNumbers<C>& n) {
  const C g = fma(n.decay, old.parameter, gradient);
  const C m = fma(n.beta1, old.first, mul(n.rest1, g));
  const C v = fma(n.beta2, old.second, mul(mul(g, g), n.rest2));
  const C most = old.largest > v ? old.largest : v;
  const C divisor = fma(elementary::sqrt(amsgrad ? most : v), n.scale, n.eps);
  return {mul(old.parameter, n.shrink) - mul(n.rate, m) / divisor, m, v, most};
}

template <class C>
TL_MATH_FN C sigmoid(C x) {
  return functors::times_sigmoid(C(1), x, C(0));
}

// x sigmoid(x)
template <class C>
TL_MATH_FN C silu_slope(C x) {
  const C s = sigmoid(x);
  return mul(s, fma(x, C(1) - s, C(1)));
}

// x sigmoid(2u) with u = sqrt(2 / pi) (x + 0.044715 x^3)
template <class C>
TL_MATH_FN C gelu_slope(C x) {
  constexpr C kOne = C(1.5957691216057307);     // 2 sqrt(2 / pi)
  constexpr C kThree = C(0.07135481627260025);  // times 0.044715
  const C square = mul(x, x);
  const C s = sigmoid(mul(x, fma(kThree, square, kOne)));
  const C inner = mul(x, fma(C(3) * kThree, square, kOne));
  // Far out the sigmoid is 0 or 1, and 0 times an infinite square must be 0.
  const C rest = mul(s, C(1) - s);
  return rest == C(0) ? s : fma(inner, rest, s);
}

// x times the share of a normal distribution below x
template <class C>
TL_MATH_FN C gelu_erf_slope(C x) {
  constexpr C kHeight = C(0.3989422804014327);  // 1 / sqrt(2 pi)
  const C density = mul(kHeight, elementary::exp(mul(C(-0.5), mul(x, x))));
  const C share = elementary::normcdf(x);
  return density == C(0) ? share : fma(x, density, share);
}

}  // namespace tl::training
