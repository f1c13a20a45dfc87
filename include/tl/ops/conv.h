// Convolutions over one, two or three spatial dimensions.
//
// Cross-correlations, as everywhere in machine learning: the kernel is not flipped. `padding`,
// `stride`, `dilation` and `output_padding` have one entry per spatial dimension, or one entry for
// all. Channels are cut into `groups` parts, each with kernels of its own. Floats only; sums are
// kept in f32 (f64 for f64) and rounded once; where a GPU's own library does the work, a bias is
// added after that and the sum rounded again. Errors name the sizes that do not fit.
#pragma once

#include <optional>

#include "tl/tensor/tensor.h"

namespace tl {

// x (b, c_in, ...), kernel (c_out, c_in / groups, ...), bias (c_out); the output has
// (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1 places along a spatial dimension.
Tensor conv1d(const Tensor& x, const Tensor& kernel, const Dims& padding = {0},
              const Dims& stride = {1}, const Dims& dilation = {1}, std::int64_t groups = 1,
              const std::optional<Tensor>& bias = std::nullopt);
Tensor conv2d(const Tensor& x, const Tensor& kernel, const Dims& padding = {0},
              const Dims& stride = {1}, const Dims& dilation = {1}, std::int64_t groups = 1,
              const std::optional<Tensor>& bias = std::nullopt);
Tensor conv3d(const Tensor& x, const Tensor& kernel, const Dims& padding = {0},
              const Dims& stride = {1}, const Dims& dilation = {1}, std::int64_t groups = 1,
              const std::optional<Tensor>& bias = std::nullopt);

// x (b, c_in, ...), kernel (c_in, c_out / groups, ...), bias (c_out); the output has
// (in - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1 places. output_padding
// is less than stride or dilation: it says which of the sizes that a strided convolution maps to
// `in` is meant.
Tensor conv_transpose1d(const Tensor& x, const Tensor& kernel, const Dims& padding = {0},
                        const Dims& output_padding = {0}, const Dims& stride = {1},
                        const Dims& dilation = {1}, std::int64_t groups = 1,
                        const std::optional<Tensor>& bias = std::nullopt);
Tensor conv_transpose2d(const Tensor& x, const Tensor& kernel, const Dims& padding = {0},
                        const Dims& output_padding = {0}, const Dims& stride = {1},
                        const Dims& dilation = {1}, std::int64_t groups = 1,
                        const std::optional<Tensor>& bias = std::nullopt);
Tensor conv_transpose3d(const Tensor& x, const Tensor& kernel, const Dims& padding = {0},
                        const Dims& output_padding = {0}, const Dims& stride = {1},
                        const Dims& dilation = {1}, std::int64_t groups = 1,
                        const std::optional<Tensor>& bias = std::nullopt);

}  // namespace tl
