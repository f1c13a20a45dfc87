// Copies and casts on the CPU. Operands are checked; shapes are equal.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::cpu {

// Writes every element that `out` addresses. Any strides on both sides.
void copy(const Tensor& in, Tensor& out);
void cast(const Tensor& in, Tensor& out);  // `out` is contiguous
void fill(Tensor& out, Scalar value);

}  // namespace tl::cpu
