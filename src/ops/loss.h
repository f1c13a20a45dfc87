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
};

}  // namespace tl::ops
