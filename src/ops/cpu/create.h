// Tensors from a rule, on the CPU: `out` is contiguous, new and not empty; arguments are checked.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::cpu {

void arange(Tensor& out, Scalar start, Scalar step);  // integers for an integer dtype
void linspace(Tensor& out, double start, double end);
// Diagonals low to high of the matrices in the last two dimensions, 0 elsewhere: of `in`, or all
// `value` when it is null.
void band(const Tensor* in, Tensor& out, std::int64_t low, std::int64_t high, Scalar value);

}  // namespace tl::cpu
