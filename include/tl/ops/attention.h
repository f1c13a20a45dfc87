// Scaled dot-product attention: softmax(q k^T * scale) v, without the matrix in between.
//
//   q (b, h, t, d), k (b, h_kv, s, d), v (b, h_kv, s, dv)  ->  (b, h, t, dv)
//
// h is a multiple of h_kv: that many neighbouring query heads share a key head, and nothing is
// repeated in memory. Any d and dv; any strides, so a transposed (b, t, h, d) is used as it is.
// Floats of every width; f8, f16, bf16 and f32 are computed in f32. A query that sees no key gives
// zeros.
#pragma once

#include <optional>

#include "tl/tensor/tensor.h"

namespace tl {

struct AttentionOptions {
  // Broadcast to (b, h, t, s). u8 or bool: a key takes part where it is not 0. The dtype of q:
  // added to the scores.
  std::optional<Tensor> mask = std::nullopt;
  // Query i sees keys up to i + s - t: both sequences end together, as with a cache of earlier
  // keys.
  bool causal = false;
  // How many keys before its own (key i + s - t) query i sees; all when not given.
  std::optional<std::int64_t> window = std::nullopt;
  std::optional<double> scale = std::nullopt;  // 1 / sqrt(d) when not given
  double softcap = 0;  // scores become softcap * tanh(score / softcap), before any mask
  // ALiBi, one slope per head (h), of the dtype of q: slope * (j - (i + s - t)) is added to the
  // score of query i and key j.
  std::optional<Tensor> slopes = std::nullopt;
};

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

// The same with its options in a row, as the table of ops calls it.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const std::optional<Tensor>& mask = std::nullopt, bool causal = false,
                 std::optional<double> scale = std::nullopt, double softcap = 0,
                 std::optional<std::int64_t> window = std::nullopt,
                 const std::optional<Tensor>& slopes = std::nullopt);

}  // namespace tl
