// Resizing on a GPU.
#pragma once

#include "ops/resizing.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// x is (b, c, h, w) with any strides; `out` is contiguous; neither is empty.
void resize_nearest(const ops::Resizing& resizing, const Tensor& x, Tensor& out);
void resize_bilinear(const ops::Resizing& resizing, const Tensor& x, Tensor& out);

}  // namespace tl::gpu
