// Keys and values that come layer by layer, from who writes a decoder of his own, and attention
// over them. The kernels are those of Decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/cached_attention.h"
#include "model/gpu/cached_attention.h"
#include "model/gpu/row_queue.h"
#include "tl/model/decoder_config.h"
#include "tl/model/kv_cache.h"
#include "tl/tensor/tensor.h"

namespace tl::model {

// How one layer attends.
struct LayerSight {
  double scale = 1;
  double softcap = 0;       // scores become softcap * tanh(score / softcap); 0: as they are
  std::int64_t window = 0;  // a position sees itself and window - 1 before it; 0: all
  RopePairs pairs = RopePairs::Neighbours;
  // (positions, half of what turns of a head), f32, for all positions up to the last new one. None:
  // nothing turns.
  std::optional<Tensor> cosines = std::nullopt, sines = std::nullopt;
};

// Held by a shared_ptr: work that is put off keeps it.
class LayeredCache : public std::enable_shared_from_this<LayeredCache> {
 public:
  // Throws Unsupported for sizes of heads that are not kept (see KvCache).
  LayeredCache(const Device& device, const KvShape& shape);

  const Device& device() const noexcept { return device_; }
  const KvShape& shape() const noexcept { return cache_.shape(); }
  std::int64_t length(std::int64_t layer) const { return lengths_[place(layer)]; }

  // Keeps k (new, kv_heads, key_size), turned, and v (new, kv_heads, value_size) behind what the
  // layer has, and gives what q (new, heads, key_size), turned, finds: (new, heads, value_size).
  // Each row sees the keys up to its own. All f32 and on the device of the cache; on a GPU many new
  // rows are multiplied in f16. One row may be put off in `queue`, which may be null.
  Tensor attend(std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v,
                const LayerSight& sight, gpu::RowQueue* queue = nullptr);

  // The layer has no rows from now on.
  void forget(std::int64_t layer) { lengths_[place(layer)] = 0; }

  // What a layer keeps, (length, kv_heads, size), copied.
  Tensor keys(std::int64_t layer) const { return kept(layer, true); }
  Tensor values(std::int64_t layer) const { return kept(layer, false); }

 private:
  static std::size_t place(std::int64_t layer) { return static_cast<std::size_t>(layer); }
  void make_room(std::int64_t positions);
  const Tensor& block_table();
  Tensor kept(std::int64_t layer, bool keys) const;

  Device device_;
  KvCache cache_;
  std::vector<std::int64_t> lengths_;  // of each layer, at most that of cache_
  DecoderConfig config_;
  SequenceRows rows_;                        // of the last call: all layers of a step have the same
  std::optional<gpu::AttentionBatch> step_;  // made of rows_ and the number of heads
  std::optional<Tensor> table_;              // rows_.blocks on the device
  Tensor nothing_;                           // where tables would be
};

}  // namespace tl::model
