// Pooling on a GPU.
#pragma once

#include "ops/pooling.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// x is (b, c, h, w) with any strides; `out` is contiguous and not empty, with h * w as the axes
// say.
void avg_pool(const ops::Pooling& pooling, const Tensor& x, Tensor& out);
void max_pool(const ops::Pooling& pooling, const Tensor& x, Tensor& out);

}  // namespace tl::gpu
