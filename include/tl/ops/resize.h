// Resizing (b, c, l) and (b, c, h, w), and moving between channels and pixels.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// The element at floor(i * in / out). Every dtype.
Tensor upsample_nearest1d(const Tensor& x, std::int64_t size);
Tensor upsample_nearest2d(const Tensor& x, std::int64_t height, std::int64_t width);
Tensor interpolate1d(const Tensor& x, std::int64_t size);                        // the same
Tensor interpolate2d(const Tensor& x, std::int64_t height, std::int64_t width);  // the same

// The mean of the four elements around a position, weighted by nearness. Positions, in f64: with
// align_corners i (in - 1) / (out - 1), else (i + 0.5) in / out - 0.5 and not below 0. Floats.
Tensor upsample_bilinear2d(const Tensor& x, std::int64_t height, std::int64_t width,
                           bool align_corners = false);
// The output is floor(in * scale); positions use 1 / scale for in / out.
Tensor upsample_bilinear2d_with_scale(const Tensor& x, double scale_height, double scale_width,
                                      bool align_corners = false);

// (..., c r^2, h, w) to (..., c, h r, w r), and back. Every dtype.
Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);

}  // namespace tl
