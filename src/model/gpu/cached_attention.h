// Attention of many new tokens over their sequences' caches, on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/cached_attention.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// What is the same in all layers of a pass, on the device: where rows are kept, the blocks of the
// sequences' caches, and what each block of threads does. One upload.
class AttentionBatch {
 public:
  AttentionBatch(const DecoderConfig& config, const std::vector<model::SequenceRows>& sequences,
                 const Device& device);

 private:
  friend void cached_attention(const model::LayerCache& layer, const AttentionBatch& batch,
                               const Tensor& q, const Tensor& k, const Tensor& v, Tensor& out);

  Tensor table_;  // the parts below, one after the other
  std::size_t blocks_at_ = 0;
  std::size_t sequences_at_ = 0;
  std::size_t work_at_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t work_ = 0;  // blocks of threads, for each key head
};

// Turns q (rows, heads * key_size) and k, keeps k and v in the caches, and writes what q finds
// there to `out` (rows, heads * value_size). All f32 and contiguous; q and k stay as they are.
// Products are of f16, whatever the type of the cache.
void cached_attention(const model::LayerCache& layer, const AttentionBatch& batch, const Tensor& q,
                      const Tensor& k, const Tensor& v, Tensor& out);

}  // namespace tl::gpu
