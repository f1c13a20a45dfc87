// Normalisation layers, as used for inference.
//
// Floats of every width; f8, f16, bf16 and f32 are computed in f32 and rounded once. Weight and
// bias have the dtype and device of x. The variance is taken around the mean, never as a difference
// of large numbers.
#pragma once

#include <optional>

#include "tl/tensor/tensor.h"

namespace tl {

// x / sqrt(mean(x^2) + eps) * weight over the last dimension; weight (n).
Tensor rms_norm(const Tensor& x, const std::optional<Tensor>& weight = std::nullopt,
                double eps = 1e-5);

// (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions, as many as weight (or
// bias) has; over the last one when neither is given.
Tensor layer_norm(const Tensor& x, const std::optional<Tensor>& weight = std::nullopt,
                  const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5);
// The same over the last dimensions of x, which must be `shape`.
Tensor layer_norm_over(const Tensor& x, const Shape& shape,
                       const std::optional<Tensor>& weight = std::nullopt,
                       const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5);

// x (b, c, ...): layer norm over each of `groups` parts of the channels together with all that
// follows; weight and bias (c).
Tensor group_norm(const Tensor& x, std::int64_t groups,
                  const std::optional<Tensor>& weight = std::nullopt,
                  const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5);

// x (b, c, ...): (x - mean) / sqrt(variance + eps) * weight + bias with mean and variance (c)
// given.
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance,
                  const std::optional<Tensor>& weight = std::nullopt,
                  const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5);

}  // namespace tl
