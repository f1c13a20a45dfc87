// Softmax on the CPU.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::cpu {

// Equal shapes, not empty; `out` is contiguous.
void softmax(const Tensor& in, Tensor& out, int dim, bool logarithm);

}  // namespace tl::cpu
