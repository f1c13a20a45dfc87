// Pooling: the mean or the maximum of windows over (b, c, l) or (b, c, h, w).
//
// `kernel`, `stride` and `padding` have one entry per spatial dimension, or one for all; an empty
// stride is the kernel. Padding is at most half the kernel and never wins a maximum. Means are for
// floats, computed in f32 (f64 for f64); maxima are for every number, and NaN wins them.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// Places along a spatial dimension: (in + 2 padding - kernel) / stride + 1. With count_include_pad
// a mean divides by the whole window, without by what of it lies inside.
Tensor avg_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride = {},
                  const Dims& padding = {0}, bool count_include_pad = true);
Tensor avg_pool2d(const Tensor& x, const Dims& kernel, const Dims& stride = {},
                  const Dims& padding = {0}, bool count_include_pad = true);
Tensor max_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride = {},
                  const Dims& padding = {0});
Tensor max_pool2d(const Tensor& x, const Dims& kernel, const Dims& stride = {},
                  const Dims& padding = {0});

// Windows from floor(i in / out) to ceil((i + 1) in / out), so that `size` places come out.
Tensor adaptive_avg_pool2d(const Tensor& x, const Dims& size);

// The whole of each channel as one window: (b, c, 1, 1).
Tensor global_avg_pool2d(const Tensor& x);
Tensor global_max_pool2d(const Tensor& x);

}  // namespace tl
