// Losses, and how alike two vectors are.
//
// `reduction` is "mean", "sum" or "none" (a loss for each element, or for each row where targets
// are classes). Input and target have one shape, dtype and device: a target of shape (n, 1) beside
// an input of shape (n) is refused rather than broadcast. Floats of every width; f8, f16, bf16 and
// f32 are computed in f32 and rounded once, after the reduction. The mean over nothing is NaN.
#pragma once

#include <optional>
#include <string_view>

#include "tl/tensor/tensor.h"

namespace tl {

// ---- classes

// -log(softmax(logits))[target] for logits (n, c) and targets (n) of an index dtype. Rows whose
// target is `ignore_index`, or the largest value of its dtype, are left out of sum, mean and count.
// With label smoothing e every class has a share of e / c in the target, and the target itself
// 1 - e more. Accumulates in f32 or wider; the result has the dtype of the logits.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     std::string_view reduction = "mean",
                     std::optional<std::int64_t> ignore_index = std::nullopt,
                     double label_smoothing = 0);
// -x[target] for logarithms of probabilities x (n, c), as log_softmax gives them; else the same.
Tensor nll_loss(const Tensor& x, const Tensor& targets, std::string_view reduction = "mean",
                std::optional<std::int64_t> ignore_index = std::nullopt);

// ---- numbers

Tensor mse_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");
Tensor l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");
// d^2 / 2 where d = |x - target| is at most delta, delta (d - delta / 2) beyond; delta > 0.
Tensor huber_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean",
                  double delta = 1);
// The same over beta: slope 1 beyond it. With beta 0 it is l1_loss.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean",
                      double beta = 1);

// ---- probabilities

// -(target log(x) + (1 - target) log(1 - x)), each logarithm at least -100; NaN for x outside 0 to
// 1.
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target,
                            std::string_view reduction = "mean");
// The same of sigmoid(x), exact to the last digits for any finite x. pos_weight, broadcast to the
// shape of x, multiplies the part of `target`.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        std::string_view reduction = "mean",
                                        const std::optional<Tensor>& pos_weight = std::nullopt);
// target (log(target) - x) for logarithms x, 0 where the target is 0; with log_target the target is
// given as logarithms too. The reduction may also be "batchmean": the sum over the first size,
// which is the divergence of the distributions.
Tensor kl_div(const Tensor& x, const Tensor& target, std::string_view reduction = "mean",
              bool log_target = false);

// ---- vectors

// x / max(norm(x), eps) along `dim`, with the norm of tl/ops/reduce.h.
Tensor normalize(const Tensor& x, double p = 2, std::int64_t dim = 1, double eps = 1e-12);
// The dot product of both, normalised: 1 for the same direction. Shapes broadcast, and `dim` is one
// of what they give.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim = 1, double eps = 1e-8);

}  // namespace tl
