#pragma once

#include "ops/backward.h"

namespace tl::cpu {

// Operands lie without gaps and have elements.
void slope(SlopeOf function, const Tensor& x, const Tensor& gradient, Tensor& out);
void adam(Tensor& parameter, const Tensor& gradient, Tensor& first, Tensor& second, Tensor* largest,
          const training::AdamNumbers<double>& numbers);

}  // namespace tl::cpu
