// Matrix products on a GPU.
#pragma once

#include "ops/matmul_plan.h"

namespace tl::gpu {

// Writes every element of `out`, which is contiguous with shape (batch..., m, n).
void matmul(const ops::Product& product, Tensor& out);

}  // namespace tl::gpu
