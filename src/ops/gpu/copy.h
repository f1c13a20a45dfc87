// Copies and casts on a GPU. Operands are checked; shapes are equal.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::gpu {

// Writes every element that `out` addresses. Any strides on both sides.
void copy(const Tensor& in, Tensor& out);
void cast(const Tensor& in, Tensor& out);  // `out` is contiguous
void fill(Tensor& out, Scalar value);

}  // namespace tl::gpu
