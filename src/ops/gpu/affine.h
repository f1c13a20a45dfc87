// One tensor and two numbers on a GPU. Operands are checked; `out` is contiguous and of x's shape.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::gpu {

void affine(const Tensor& x, Tensor& out, Scalar factor, Scalar offset);
void clamp(const Tensor& x, Tensor& out, Scalar low, Scalar high);

}  // namespace tl::gpu
