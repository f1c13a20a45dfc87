#include "model/gpu/cached_attention.h"

#include <algorithm>
#include <numbers>
#include <span>

#include "kernels/gpu_cache.h"
#include "ops/gpu/launcher.h"
#include "tl/kernels/cache.h"
#include "tl/runtime/label.h"

namespace tl::gpu {

namespace {

using kernels::Bits8;
using kernels::CacheAttention;
using kernels::CacheRow;
using kernels::CacheSequence;
using kernels::CacheWork;

static_assert(kernels::kCacheTypes[static_cast<std::size_t>(KvType::F16)] == "f16" &&
              kernels::kCacheTypes[static_cast<std::size_t>(KvType::BF16)] == "bf16" &&
              kernels::kCacheTypes[static_cast<std::size_t>(KvType::Q8)] == "q8" &&
              kernels::kCacheTypes[static_cast<std::size_t>(KvType::F32)] == "f32");

// Adds a part to the bytes and says where it begins. All parts are of multiples of eight bytes.
template <class T>
std::size_t append(std::vector<std::byte>& bytes, const std::vector<T>& part) {
  static_assert(sizeof(T) % 8 == 0);
  const std::size_t at = bytes.size();
  const auto from = std::as_bytes(std::span(part));
  bytes.insert(bytes.end(), from.begin(), from.end());
  return at;
}

CacheAttention describe(const model::LayerCache& layer, const Stream& stream) {
  const DecoderConfig& config = *layer.config;
  const KvLayout layout(layer.shape);
  const double scale = config.attention_scale, cap = config.attention_softcap;
  CacheAttention a{};
  a.cosines = layer.cosines->read<float>(stream);
  a.sines = layer.sines->read<float>(stream);
  a.layer_at = layer.layer * static_cast<Index>(layout.layer_bytes);
  a.values_at = static_cast<Index>(layout.values_at);
  a.key_head_bytes = static_cast<Index>(layout.key_head_bytes);
  a.value_head_bytes = static_cast<Index>(layout.value_head_bytes);
  a.window = static_cast<int>(config.attention[static_cast<std::size_t>(layer.layer)].window);
  a.heads = static_cast<int>(config.heads);
  a.kv_heads = static_cast<int>(config.kv_heads);
  a.key_size = static_cast<int>(config.key_size);
  a.value_size = static_cast<int>(config.value_size);
  a.query_size =
      static_cast<int>(divide_up(config.key_size, kernels::kCacheUnit)) * kernels::kCacheUnit;
  a.rope_size = static_cast<int>(config.rope_size);
  a.rope_halves = config.rope_pairs == RopePairs::Halves ? 1 : 0;
  // cap * tanh(x / cap) = cap * (1 - 2 / (1 + e^(2 x / cap))).
  a.query_scale = static_cast<float>((cap == 0 ? scale : 2 * scale / cap) * std::numbers::log2e);
  a.cap = static_cast<float>(cap * std::numbers::log2e);
  return a;
}

}  // namespace

AttentionBatch::AttentionBatch(const DecoderConfig& config,
                               const std::vector<model::SequenceRows>& sequences,
                               const Device& device) {
  struct Weighed {
    CacheWork work;
    std::int64_t keys;
  };
  const std::int64_t group = config.heads / config.kv_heads;
  std::vector<CacheRow> rows;
  std::vector<std::byte*> blocks;
  std::vector<CacheSequence> parts;
  std::vector<Weighed> weighed;
  for (const model::SequenceRows& each : sequences) {
    const std::int64_t pairs = each.count * group;
    for (std::int64_t at = 0; at < pairs; at += kernels::kCachePairs) {
      const std::int64_t last = std::min<std::int64_t>(at + kernels::kCachePairs, pairs) - 1;
      weighed.push_back(
          {{static_cast<int>(parts.size()), static_cast<int>(at)}, each.position + last / group});
    }
    for (std::int64_t t = 0; t < each.count; ++t) {
      const std::int64_t position = each.position + t;
      std::byte* block = each.blocks[static_cast<std::size_t>(position / KvCache::kBlockPositions)];
      rows.push_back({reinterpret_cast<Bits8*>(block), position});
    }
    parts.push_back({.first_block = static_cast<Index>(blocks.size()),
                     .position = static_cast<int>(each.position),
                     .first_row = static_cast<int>(each.first),
                     .rows = static_cast<int>(each.count),
                     .fill = 0});
    blocks.insert(blocks.end(), each.blocks.begin(), each.blocks.end());
  }
  std::stable_sort(weighed.begin(), weighed.end(),
                   [](const Weighed& a, const Weighed& b) { return a.keys > b.keys; });
  std::vector<CacheWork> work;
  work.reserve(weighed.size());
  for (const Weighed& each : weighed) work.push_back(each.work);

  std::vector<std::byte> bytes;
  append(bytes, rows);
  blocks_at_ = append(bytes, blocks);
  sequences_at_ = append(bytes, parts);
  work_at_ = append(bytes, work);
  rows_ = std::ssize(rows);
  work_ = std::ssize(work);
  const LabelScope label("attention");
  table_ = Tensor::from_bytes(bytes, DType::U8, {std::ssize(bytes)}, device);
}

void cached_attention(const model::LayerCache& layer, const AttentionBatch& batch, const Tensor& q,
                      const Tensor& k, const Tensor& v, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  CacheAttention a = describe(layer, stream);
  const std::byte* table = batch.table_.read(stream);
  a.rows = reinterpret_cast<const CacheRow*>(table);
  a.blocks = reinterpret_cast<Bits8* const*>(table + batch.blocks_at_);
  a.sequences = reinterpret_cast<const CacheSequence*>(table + batch.sequences_at_);
  a.work = reinterpret_cast<const CacheWork*>(table + batch.work_at_);

  const auto type = static_cast<unsigned>(layer.shape.type);
  Tensor queries = Tensor::uninitialized({batch.rows_ * a.heads, a.query_size}, DType::F16, device);
  std::byte* turned = queries.write(stream);
  run(device, cache_kernel(CacheFamily::Keep, type),
      {.grid = {static_cast<std::uint64_t>(batch.rows_)}, .block = {kernels::kCacheThreads}},
      q.read<float>(stream), k.read<float>(stream), v.read<float>(stream), turned, a);

  // Blocks of the larger kind also hold longer queries.
  const bool small = a.value_size <= 64 && a.key_size <= 64;
  const std::int64_t blocks = batch.work_ * a.kv_heads * divide_up(a.value_size, small ? 64 : 128);
  const auto threads = static_cast<std::uint32_t>(kernels::kCacheWarps * device.warp_width());
  run(device, cache_kernel(small ? CacheFamily::Attend64 : CacheFamily::Attend128, type),
      {.grid = {static_cast<std::uint64_t>(blocks)}, .block = {threads}},
      static_cast<const std::byte*>(turned), out.write<float>(stream), a);
}

}  // namespace tl::gpu
