// Softmax on a GPU.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::gpu {

// Equal shapes, not empty; `out` is contiguous.
void softmax(const Tensor& in, Tensor& out, int dim, bool logarithm);

}  // namespace tl::gpu
