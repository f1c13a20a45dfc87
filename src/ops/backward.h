// What gradients and optimisers compute in one pass, for src/grad/: the same as a few ops in a row.
#pragma once

#include "kernels/train_math.h"
#include "tl/kernels/train.h"
#include "tl/tensor/tensor.h"

namespace tl::ops {

// Does the dtype have a kernel for it?
bool has_slope(DType dtype);
// gradient * f'(x), elementwise; both of one shape.
Tensor slope(SlopeOf function, const Tensor& x, const Tensor& gradient);

// Moves a parameter in place, with its moments; f32 or f64, all of one shape. `largest` may be
// null.
void adam(Tensor& parameter, const Tensor& gradient, Tensor& first, Tensor& second, Tensor* largest,
          const training::AdamNumbers<double>& numbers);

template <class C>
training::AdamNumbers<C> numbers_as(const training::AdamNumbers<double>& n) {
  return {static_cast<C>(n.beta1), static_cast<C>(n.rest1),  static_cast<C>(n.beta2),
          static_cast<C>(n.rest2), static_cast<C>(n.rate),   static_cast<C>(n.scale),
          static_cast<C>(n.eps),   static_cast<C>(n.shrink), static_cast<C>(n.decay)};
}

}  // namespace tl::ops
