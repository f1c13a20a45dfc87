// Gated units on the CPU.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::cpu {

// The last dimension of `in` is twice that of `out`, which is contiguous.
void glu(const Tensor& in, Tensor& out, bool swiglu);

}  // namespace tl::cpu
