#include "tl/model/kv_cache.h"

#include <algorithm>
#include <ostream>

#include "tl/base/error.h"
#include "tl/runtime/label.h"
#include "tl/runtime/stream.h"

namespace tl {

namespace {

std::uint64_t head_bytes(KvType type, std::int64_t size) {
  const auto elements = static_cast<std::uint64_t>(KvCache::kBlockPositions * size);
  switch (type) {
    case KvType::F16:
    case KvType::BF16:
      return elements * 2;
    case KvType::F32:
      return elements * 4;
    case KvType::Q8:
      return elements + elements / KvLayout::kScaled * 2;
  }
  return 0;
}

}  // namespace

KvType parse_kv_type(std::string_view text) {
  if (text == "f16") return KvType::F16;
  if (text == "bf16") return KvType::BF16;
  if (text == "q8_0") return KvType::Q8;
  if (text == "f32") return KvType::F32;
  throw Error(ErrorKind::BadArgument, "parse_kv_type", "'", text,
              "' is no type of a cache: f16, bf16, q8_0 and f32 are");
}

std::ostream& operator<<(std::ostream& out, KvType type) {
  switch (type) {
    case KvType::F16:
      return out << "f16";
    case KvType::BF16:
      return out << "bf16";
    case KvType::Q8:
      return out << "q8_0";
    case KvType::F32:
      return out << "f32";
  }
  return out;
}

KvLayout::KvLayout(const KvShape& shape)
    : key_head_bytes(head_bytes(shape.type, shape.key_size)),
      value_head_bytes(head_bytes(shape.type, shape.value_size)) {
  const auto heads = static_cast<std::uint64_t>(shape.heads);
  values_at = heads * key_head_bytes;
  layer_bytes = values_at + heads * value_head_bytes;
}

KvCache::KvCache(const Device& device, const KvShape& shape, std::int64_t context)
    : shape_(shape), context_(context), device_(device) {
  if (shape.layers < 1 || shape.heads < 1 || shape.key_size < 1 || shape.value_size < 1 ||
      context < 0) {
    throw Error(ErrorKind::BadArgument, "KvCache", shape.layers, " layers of ", shape.heads,
                " heads of ", shape.key_size, " and ", shape.value_size, " elements, and ", context,
                " positions");
  }
  // Vectors of eight elements, and whole scales.
  const std::int64_t step = shape.type == KvType::Q8 ? KvLayout::kScaled : 8;
  if (shape.key_size % step != 0 || shape.value_size % step != 0) {
    throw Error(ErrorKind::Unsupported, "KvCache", "heads of ", shape.key_size, " and ",
                shape.value_size, " elements: a cache of ", shape.type,
                " keeps sizes that are multiples of ", step);
  }
}

std::uint64_t KvCache::block_bytes() const noexcept {
  return static_cast<std::uint64_t>(shape_.layers) * KvLayout(shape_).layer_bytes;
}

std::uint64_t KvCache::size_bytes() const noexcept {
  return static_cast<std::uint64_t>(blocks_.size()) * block_bytes();
}

void KvCache::truncate(std::int64_t length) {
  if (length < 0 || length > length_) {
    throw Error(ErrorKind::BadArgument, "truncate", "a cache of ", length_,
                " positions has no first ", length);
  }
  length_ = length;
  blocks_.resize(static_cast<std::size_t>((length + kBlockPositions - 1) / kBlockPositions));
}

void KvCache::extend(std::int64_t count, const Stream& stream) {
  if (count < 0 || count > room()) {
    throw Error(ErrorKind::BadArgument, "KvCache", "no room for ", count,
                " more positions: ", length_, " of ", context_, " are taken");
  }
  const std::size_t had = blocks_.size();
  const auto wanted =
      static_cast<std::size_t>((length_ + count + kBlockPositions - 1) / kBlockPositions);
  blocks_.reserve(wanted);
  try {
    if (count > 0 && length_ % kBlockPositions != 0) {
      blocks_[static_cast<std::size_t>(length_ / kBlockPositions)].make_unique(stream);
    }
    while (blocks_.size() < wanted) {
      blocks_.emplace_back(device_, block_bytes(), Label("kv cache"));
      blocks_.back().overwrite_data(stream);
    }
  } catch (...) {
    blocks_.resize(std::min(had, blocks_.size()));
    throw;
  }
}

std::vector<std::byte*> KvCache::addresses(const Stream& stream) {
  std::vector<std::byte*> addresses;
  addresses.reserve(blocks_.size());
  std::int64_t end = 0;
  for (RawMemory& block : blocks_) {
    end += kBlockPositions;
    // Blocks that are only read may be shared; nobody writes through their addresses.
    addresses.push_back(end > length_ ? block.mutable_data(stream)
                                      : const_cast<std::byte*>(block.data(stream)));
  }
  return addresses;
}

const Tensor& KvCache::address_table(const Stream& stream) {
  std::vector<std::byte*> now = addresses(stream);
  if (now != tabled_) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(now.size());
    for (std::byte* address : now) numbers.push_back(reinterpret_cast<std::intptr_t>(address));
    const LabelScope label("kv cache");
    table_ = Tensor::from(numbers, device_);
    tabled_ = std::move(now);
  }
  return table_;
}

}  // namespace tl
