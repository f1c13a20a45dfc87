// One tensor and two numbers: scaling and clamping.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// x factor + offset, rounded once. For an integer tensor both must be whole.
Tensor affine(const Tensor& x, Scalar factor, Scalar offset);

// max(x, low), then min with high: high where low is above it. NaN stays.
Tensor clamp(const Tensor& x, Scalar low, Scalar high);
Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high);
Tensor clamp(const Tensor& x, const Tensor& low, Scalar high);
Tensor clamp(const Tensor& x, Scalar low, const Tensor& high);

}  // namespace tl
