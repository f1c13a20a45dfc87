// What both devices are told about a normalisation. Weights are contiguous, and have the dtype and
// device of the input; `out` is contiguous, and nothing is empty.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::ops {

// Over the last dimension of `in`. The weight of an element is number
// (row % period) * channels + position / inner.
struct NormArguments {
  const Tensor* weight = nullptr;  // may be null
  const Tensor* bias = nullptr;    // may be null
  double epsilon = 0;
  bool centered = true;  // layer norm; else rms norm
  std::int64_t period = 1;
  std::int64_t channels = 0;
  std::int64_t inner = 1;
};

// Channels are dimension 1 of `in`.
struct BatchNormArguments {
  const Tensor* mean = nullptr;
  const Tensor* variance = nullptr;
  const Tensor* weight = nullptr;  // may be null
  const Tensor* bias = nullptr;    // may be null
  double epsilon = 0;
};

}  // namespace tl::ops
