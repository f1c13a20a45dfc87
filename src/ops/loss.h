// What both devices are told about a cross entropy.
#pragma once

#include <optional>

#include "tl/tensor/tensor.h"

namespace tl::ops {

// `targets` are contiguous. `losses` and `counted` (n) are f32, f64 for f64 logits: each row's loss
// and 1, or 0 and 0 for a row that is left out.
struct CrossEntropyArguments {
  std::optional<std::int64_t> ignore_index;
  double smoothing = 0;
  // (2, n) as the losses, or null: each row's largest logit, and the sum of exp(x - largest). What
  // a row that is left out has there means nothing.
  Tensor* kept = nullptr;
};

}  // namespace tl::ops
