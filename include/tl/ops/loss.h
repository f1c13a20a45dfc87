// Losses.
//
// `reduction` is "mean" (over the rows that count), "sum" or "none" (a loss for each row).
#pragma once

#include <optional>
#include <string_view>

#include "tl/tensor/tensor.h"

namespace tl {

// -log(softmax(logits))[target] for logits (n, c) and targets (n) of an index dtype. Rows whose
// target is `ignore_index`, or the largest value of its dtype, are left out. With label smoothing e
// every class has a share of e / c in the target, and the target itself 1 - e more. Accumulates in
// f32 or wider; the result has the dtype of the logits. The mean over no rows is NaN.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     std::string_view reduction = "mean",
                     std::optional<std::int64_t> ignore_index = std::nullopt,
                     double label_smoothing = 0);

}  // namespace tl
