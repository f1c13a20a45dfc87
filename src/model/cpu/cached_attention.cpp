#include "model/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu/aligned.h"
#include "tl/base/thread_pool.h"
#include "tl/runtime/stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/cached_attention.cpp"
#include "ops/cpu/targets.h"
// After targets.h.
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "ops/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

using model::LayerCache;
using model::SequenceRows;

inline constexpr std::int64_t kScaled = KvLayout::kScaled;
static_assert(kTile == KvCache::kBlockPositions);

// One head's keys or values in one block.
class Kept {
 public:
  Kept(std::byte* at, KvType type, std::int64_t size) : at_(at), type_(type), size_(size) {}

  void store(std::int64_t position, const float* row) const {
    switch (type_) {
      case KvType::F16:
        return narrow_row(row, size_, place<half>(position), 1);
      case KvType::BF16:
        return narrow_row(row, size_, place<bfloat16>(position), 1);
      case KvType::F32:
        std::copy_n(row, size_, place<float>(position));
        return;
      case KvType::Q8:
        return store_bytes(position, row);
    }
  }

  void load(std::int64_t position, float* row) const {
    switch (type_) {
      case KvType::F16:
        return widen_row(place<half>(position), 1, size_, row);
      case KvType::BF16:
        return widen_row(place<bfloat16>(position), 1, size_, row);
      case KvType::F32:
        std::copy_n(place<float>(position), size_, row);
        return;
      case KvType::Q8:
        return load_bytes(position, row);
    }
  }

 private:
  template <class T>
  T* place(std::int64_t position) const {
    return reinterpret_cast<T*>(at_) + position * size_;
  }
  half* scale(std::int64_t position) const {
    return reinterpret_cast<half*>(at_ + KvCache::kBlockPositions * size_) +
           position * (size_ / kScaled);
  }

  void store_bytes(std::int64_t position, const float* row) const {
    for (std::int64_t group = 0; group < size_ / kScaled; ++group) {
      const float* from = row + group * kScaled;
      float most = 0;
      for (std::int64_t i = 0; i < kScaled; ++i) most = std::max(most, std::abs(from[i]));
      const half d = convert<half>(most / 127);
      const float inverse = convert<float>(d) > 0 ? 1 / convert<float>(d) : 0;
      auto* to = place<std::int8_t>(position) + group * kScaled;
      for (std::int64_t i = 0; i < kScaled; ++i) {
        const float q = std::nearbyint(from[i] * inverse);
        to[i] = static_cast<std::int8_t>(std::clamp(q, -127.0F, 127.0F));
      }
      scale(position)[group] = d;
    }
  }
  void load_bytes(std::int64_t position, float* row) const {
    for (std::int64_t group = 0; group < size_ / kScaled; ++group) {
      const auto* from = place<std::int8_t>(position) + group * kScaled;
      const float d = convert<float>(scale(position)[group]);
      for (std::int64_t i = 0; i < kScaled; ++i) {
        row[group * kScaled + i] = d * static_cast<float>(from[i]);
      }
    }
  }

  std::byte* at_;
  KvType type_;
  std::int64_t size_;
};

class Layer {
 public:
  Layer(const LayerCache& layer, const Stream& stream)
      : config_(*layer.config),
        shape_(layer.shape),
        layout_(layer.shape),
        at_(static_cast<std::uint64_t>(layer.layer) * layout_.layer_bytes),
        cosines_(layer.cosines->read<float>(stream)),
        sines_(layer.sines->read<float>(stream)),
        window_(config_.attention[static_cast<std::size_t>(layer.layer)].window) {}

  std::int64_t group() const { return config_.heads / config_.kv_heads; }
  std::int64_t row_blocks(const SequenceRows& rows) const {
    return (group() * rows.count + kRows - 1) / kRows;
  }

  // Rows [first, last) of a sequence's tokens: q and k turned, k and v kept.
  void append(const SequenceRows& rows, std::int64_t first, std::int64_t last, float* q, float* k,
              const float* v) const {
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t row = rows.first + t, position = rows.position + t;
      for (std::int64_t h = 0; h < config_.heads; ++h) {
        turn(q + (row * config_.heads + h) * config_.key_size, position);
      }
      for (std::int64_t h = 0; h < config_.kv_heads; ++h) {
        float* key = k + (row * config_.kv_heads + h) * config_.key_size;
        turn(key, position);
        keys(rows, position, h).store(position % kTile, key);
        values(rows, position, h)
            .store(position % kTile, v + (row * config_.kv_heads + h) * config_.value_size);
      }
    }
  }

  // Block `block` of the (head, token) pairs that share key head `kv`.
  void attend(const SequenceRows& rows, std::int64_t kv, std::int64_t block, const float* q,
              float* out) const {
    const std::int64_t depth = config_.key_size, pitch = (config_.value_size + 15) / 16 * 16;
    const std::int64_t row0 = block * kRows;
    const std::int64_t count = std::min(kRows, group() * rows.count - row0);
    const auto room_q = aligned<float>(static_cast<std::size_t>(kRows * depth));
    const auto room_k = aligned<float>(static_cast<std::size_t>(kTile * depth));
    const auto room_keys = aligned<float>(static_cast<std::size_t>(kTile * depth));
    const auto room_v = aligned<float>(static_cast<std::size_t>(kTile * pitch));
    const auto scores = aligned<float>(static_cast<std::size_t>(kRows * kTile));
    const auto result = aligned<float>(static_cast<std::size_t>(kRows * pitch));
    const auto head = [&](std::int64_t r) { return kv * group() + (row0 + r) % group(); };
    const auto token = [&](std::int64_t r) { return (row0 + r) / group(); };

    for (std::int64_t r = 0; r < count; ++r) {
      const float* from = q + ((rows.first + token(r)) * config_.heads + head(r)) * depth;
      std::copy_n(from, depth, room_q.get() + r * depth);
    }
    float most[kRows], sum[kRows], scale[kRows];
    std::fill_n(most, kRows, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, kRows, 0.0F);
    std::fill_n(result.get(), count * pitch, 0.0F);
    const std::int64_t end = rows.position + token(count - 1) + 1;
    const std::int64_t begin = first_key(rows.position + token(0)) / kTile * kTile;
    for (std::int64_t key = begin; key < end; key += kTile) {
      const std::int64_t here = std::min(kTile, end - key);
      const Kept from_k = keys(rows, key, kv), from_v = values(rows, key, kv);
      for (std::int64_t j = 0; j < here; ++j) {
        float* to = room_v.get() + j * pitch;
        from_k.load(j, room_k.get() + j * depth);
        from_v.load(j, to);
        std::fill(to + config_.value_size, to + pitch, 0.0F);
      }
      tile_scores(room_q.get(), count, depth, room_k.get(), here, room_keys.get(), scores.get());
      for (std::int64_t r = 0; r < count; ++r) {
        score(scores.get() + r * kTile, rows.position + token(r), key);
        scale[r] = weigh(scores.get() + r * kTile, most[r], sum[r]);
      }
      tile_values(result.get(), pitch, scale, scores.get(), count, here, room_v.get());
    }
    for (std::int64_t r = 0; r < count; ++r) {
      float* to = out + ((rows.first + token(r)) * config_.heads + head(r)) * config_.value_size;
      const float by = 1 / sum[r];
      for (std::int64_t c = 0; c < config_.value_size; ++c) to[c] = result[r * pitch + c] * by;
    }
  }

 private:
  Kept keys(const SequenceRows& rows, std::int64_t position, std::int64_t head) const {
    return {block(rows, position) + head * layout_.key_head_bytes, shape_.type, config_.key_size};
  }
  Kept values(const SequenceRows& rows, std::int64_t position, std::int64_t head) const {
    return {block(rows, position) + layout_.values_at + head * layout_.value_head_bytes,
            shape_.type, config_.value_size};
  }
  std::byte* block(const SequenceRows& rows, std::int64_t position) const {
    return rows.blocks[static_cast<std::size_t>(position / kTile)] + at_;
  }

  std::int64_t first_key(std::int64_t position) const {
    return window_ == 0 ? 0 : std::max<std::int64_t>(0, position - window_ + 1);
  }

  void turn(float* head, std::int64_t position) const {
    const std::int64_t half = config_.rope_size / 2;
    const float* c = cosines_ + position * half;
    const float* s = sines_ + position * half;
    const bool halves = config_.rope_pairs == RopePairs::Halves;
    for (std::int64_t i = 0; i < half; ++i) {
      float& a = head[halves ? i : 2 * i];
      float& b = head[halves ? i + half : 2 * i + 1];
      const float x = a, y = b;
      a = x * c[i] - y * s[i];
      b = x * s[i] + y * c[i];
    }
  }

  // What becomes of the products of the query at `position` with keys [key, key + kTile).
  void score(float* products, std::int64_t position, std::int64_t key) const {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const auto scale = static_cast<float>(config_.attention_scale);
    const auto cap = static_cast<float>(config_.attention_softcap);
    for (std::int64_t j = 0; j < kTile; ++j) products[j] *= scale;
    if (cap != 0) {
      for (std::int64_t j = 0; j < kTile; ++j) products[j] = cap * std::tanh(products[j] / cap);
    }
    const std::int64_t first = std::clamp<std::int64_t>(first_key(position) - key, 0, kTile);
    const std::int64_t last = std::clamp<std::int64_t>(position + 1 - key, 0, kTile);
    std::fill(products, products + first, kNever);
    std::fill(products + last, products + kTile, kNever);
  }

  const DecoderConfig& config_;
  const KvShape& shape_;
  KvLayout layout_;
  std::uint64_t at_;
  const float* cosines_;
  const float* sines_;
  std::int64_t window_;
};

void cached_attention_loops(const LayerCache& layer, const std::vector<SequenceRows>& sequences,
                            Tensor& q, Tensor& k, const Tensor& v, Tensor& out) {
  const Stream stream = out.device().stream();
  const Layer work(layer, stream);
  float* queries = q.update<float>(stream);
  float* keys = k.update<float>(stream);
  const float* values = v.read<float>(stream);
  float* to = out.write<float>(stream);
  ThreadPool& pool = ThreadPool::shared();
  constexpr std::int64_t kTokens = 8;  // worth a thread
  for (const SequenceRows& rows : sequences) {
    pool.parallel_for(0, rows.count, kTokens, [&](std::int64_t first, std::int64_t last) {
      work.append(rows, first, last, queries, keys, values);
    });
  }
  const std::int64_t kv_heads = layer.config->kv_heads;
  std::vector<std::int64_t> ends;  // of each sequence's blocks among all
  std::int64_t blocks = 0;
  for (const SequenceRows& rows : sequences) {
    blocks += kv_heads * work.row_blocks(rows);
    ends.push_back(blocks);
  }
  pool.parallel_for(0, blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t at = first; at < last; ++at) {
      const auto place = std::upper_bound(ends.begin(), ends.end(), at) - ends.begin();
      const SequenceRows& rows = sequences[static_cast<std::size_t>(place)];
      const std::int64_t within = at - (place == 0 ? 0 : ends[static_cast<std::size_t>(place - 1)]);
      // The last tokens see most: they begin first.
      const std::int64_t row_blocks = work.row_blocks(rows);
      work.attend(rows, within / row_blocks, row_blocks - 1 - within % row_blocks, queries, to);
    }
  });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(cached_attention_loops);

void cached_attention(const model::LayerCache& layer,
                      const std::vector<model::SequenceRows>& sequences, Tensor& q, Tensor& k,
                      const Tensor& v, Tensor& out) {
  HWY_DYNAMIC_DISPATCH(cached_attention_loops)(layer, sequences, q, k, v, out);
}

}  // namespace tl::cpu
#endif
