// Gated units on a GPU.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::gpu {

// The last dimension of `in` is twice that of `out`, which is contiguous.
void glu(const Tensor& in, Tensor& out, bool swiglu);

}  // namespace tl::gpu
