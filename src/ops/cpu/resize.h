// Resizing on the CPU.
#pragma once

#include "ops/resizing.h"
#include "tl/tensor/tensor.h"

namespace tl::cpu {

// x is (b, c, h, w) with any strides; `out` is contiguous; neither is empty.
void resize_nearest(const ops::Resizing& resizing, const Tensor& x, Tensor& out);
void resize_bilinear(const ops::Resizing& resizing, const Tensor& x, Tensor& out);

}  // namespace tl::cpu
