#include "model/layered_cache.h"

#include <utility>

#include "tl/base/error.h"
#include "tl/ops/copy.h"
#include "tl/ops/join.h"
#include "tl/runtime/stream.h"

namespace tl::model {

namespace {

constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;

DType dtype_of(KvType type) {
  switch (type) {
    case KvType::F16:
      return DType::F16;
    case KvType::BF16:
      return DType::BF16;
    case KvType::F32:
      return DType::F32;
    case KvType::Q8:
      break;
  }
  throw Error(ErrorKind::Unsupported, "KvCache", "keys of ", type, " are no tensor");
}

}  // namespace

LayeredCache::LayeredCache(const Device& device, const KvShape& shape)
    : device_(device), cache_(device, shape, kMostPositions) {
  lengths_.resize(place(shape.layers));
  config_.layers = shape.layers;
  config_.kv_heads = shape.heads;
  config_.key_size = shape.key_size;
  config_.value_size = shape.value_size;
  config_.attention.resize(place(shape.layers));
  nothing_ = Tensor::zeros({1, 1}, DType::F32, device);
}

// The first layer of a step makes room for all of them.
void LayeredCache::make_room(std::int64_t positions) {
  if (positions <= cache_.length()) return;
  const Stream& stream = device_.stream();
  const std::int64_t more = positions - cache_.length();
  cache_.extend(more, stream);
  std::vector<std::byte*> blocks = cache_.addresses(stream);
  if (blocks != rows_.blocks) table_.reset();
  rows_.blocks = std::move(blocks);
  cache_.commit(more);
}

const Tensor& LayeredCache::block_table() {
  if (!table_) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(rows_.blocks.size());
    for (std::byte* block : rows_.blocks) {
      numbers.push_back(reinterpret_cast<std::intptr_t>(block));
    }
    table_ = Tensor::from(numbers, device_);
  }
  return *table_;
}

Tensor LayeredCache::attend(std::int64_t layer, const Tensor& q, const Tensor& k, const Tensor& v,
                            const LayerSight& sight, gpu::RowQueue* queue) {
  const std::int64_t count = q.shape()[0], position = length(layer);
  if (config_.heads != q.shape()[1] || rows_.position != position || rows_.count != count ||
      position + count > cache_.length()) {
    step_.reset();
  }
  make_room(position + count);
  rows_.first = 0;
  rows_.count = count;
  rows_.position = position;
  config_.heads = q.shape()[1];
  config_.attention_scale = sight.scale;
  config_.attention_softcap = sight.softcap;
  config_.rope_pairs = sight.pairs;
  config_.rope_size = sight.cosines ? 2 * sight.cosines->shape()[1] : 0;
  config_.attention[place(layer)].window = sight.window;
  const LayerCache cache{.config = &config_,
                         .shape = shape(),
                         .layer = layer,
                         .cosines = sight.cosines ? &*sight.cosines : &nothing_,
                         .sines = sight.sines ? &*sight.sines : &nothing_};
  if (queue != nullptr && count == 1) {
    const Shape found{1, config_.heads, config_.value_size};
    auto out = queue->attend({.config = &config_,
                              .shape = shape(),
                              .layer = layer,
                              .position = position,
                              .q = q,
                              .k = k,
                              .v = v,
                              .cosines = *cache.cosines,
                              .sines = *cache.sines,
                              .blocks = block_table(),
                              .cache = shared_from_this()});
    if (out) {
      ++lengths_[place(layer)];
      return out->view(found);
    }
  }
  Tensor queries = contiguous(q), keys = contiguous(k);
  const Tensor values = contiguous(v);
  Tensor out =
      Tensor::uninitialized({count, config_.heads, config_.value_size}, DType::F32, device_);
  if (device_.is_cpu()) {
    cpu::cached_attention(cache, {rows_}, queries, keys, values, out);
  } else {
    if (!step_) step_.emplace(config_, std::vector{rows_}, device_);
    gpu::cached_attention(cache, *step_, queries, keys, values, out);
  }
  lengths_[place(layer)] += count;
  return out;
}

Tensor LayeredCache::kept(std::int64_t layer, bool keys) const {
  const KvShape& shape = cache_.shape();
  const KvLayout layout(shape);
  const DType dtype = dtype_of(shape.type);
  const auto size = keys ? shape.key_size : shape.value_size;
  const auto at =
      static_cast<std::uint64_t>(layer) * layout.layer_bytes + (keys ? 0 : layout.values_at);
  constexpr std::int64_t kRows = KvCache::kBlockPositions;
  std::vector<Tensor> parts;
  for (std::int64_t first = 0; first < length(layer); first += kRows) {
    const RawMemory& block = cache_.blocks()[place(first / kRows)];
    const Layout rows({std::min(kRows, length(layer) - first), shape.heads, size},
                      {size, kRows * size, 1}, static_cast<std::int64_t>(at / size_of(dtype)));
    parts.push_back(Tensor::from_memory(block, dtype, rows));
  }
  if (parts.empty()) return Tensor::zeros({0, shape.heads, size}, dtype, device_);
  // A copy in any case: later rows are written where these are.
  return parts.size() == 1 ? copy(parts[0]) : cat(parts, 0);
}

}  // namespace tl::model
