// Attention of new tokens over their sequences' caches, and what goes into those caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tl/model/decoder_config.h"
#include "tl/model/kv_cache.h"
#include "tl/tensor/tensor.h"

namespace tl::model {

// The tokens of a batch that belong to one sequence: rows `first` to first + count of the batch, at
// positions `position` and on.
struct SequenceRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t position = 0;
  std::vector<std::byte*> blocks;  // of its cache; those from `position` on may be written
};

// One layer's share.
struct LayerCache {
  const DecoderConfig* config = nullptr;
  KvShape shape;
  std::int64_t layer = 0;
  const Tensor* cosines = nullptr;  // (positions, rope_size / 2), f32
  const Tensor* sines = nullptr;
};

}  // namespace tl::model

namespace tl::cpu {

// Turns q (rows, heads * key_size) and k in place, keeps k and v in the caches, and writes what q
// finds there to `out` (rows, heads * value_size). All f32 and contiguous.
void cached_attention(const model::LayerCache& layer,
                      const std::vector<model::SequenceRows>& sequences, Tensor& q, Tensor& k,
                      const Tensor& v, Tensor& out);

}  // namespace tl::cpu
