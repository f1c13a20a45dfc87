// Functions of one element on the CPU. Operands are checked; `out` is contiguous and of x's shape.
#pragma once

#include "tl/kernels/elementwise.h"
#include "tl/tensor/tensor.h"

namespace tl::cpu {

void unary(UnaryOp op, const Tensor& x, Tensor& out, double parameter);

}  // namespace tl::cpu
