// Functions of one element on a GPU. Operands are checked; `out` is contiguous and of x's shape.
#pragma once

#include "tl/kernels/elementwise_ids.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

void unary(UnaryOp op, const Tensor& x, Tensor& out, double parameter);

}  // namespace tl::gpu
