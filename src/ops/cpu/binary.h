// Functions of two elements on the CPU. Operands are checked; `out` is contiguous.
#pragma once

#include "tl/kernels/elementwise.h"
#include "tl/tensor/tensor.h"

namespace tl::cpu {

// Layouts have the shape of `out`; the null one stands for `value`, which the dtype holds.
void binary(BinaryOp op, const Tensor& a, const Layout* a_layout, const Tensor& b,
            const Layout* b_layout, Scalar value, Tensor& out);

}  // namespace tl::cpu
