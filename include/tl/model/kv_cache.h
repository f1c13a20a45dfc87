// The keys and values of one sequence's positions, in blocks that copies share.
//
//   KvCache chat = decoder.new_cache();
//   decoder.forward(prompt, chat);
//   KvCache other = chat.fork();          // handles only: no key or value is copied
//   decoder.forward(question, other);     // detaches the last block, and only that
//
// A value like any tensor: what is done to one copy is never seen by another. Memory grows by a
// block at a time and goes back to the pool block by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include "tl/runtime/device.h"
#include "tl/runtime/raw_memory.h"
#include "tl/tensor/tensor.h"

namespace tl {

// How a key or value is kept. Q8: bytes, with an f16 scale for each 32 of them.
enum class KvType : std::uint8_t { F16, BF16, Q8, F32 };
KvType parse_kv_type(std::string_view text);  // "f16", "bf16", "q8_0", "f32"; throws BadArgument
std::ostream& operator<<(std::ostream& out, KvType type);

struct KvShape {
  std::int64_t layers = 0;
  std::int64_t heads = 0;       // that have keys and values
  std::int64_t key_size = 0;    // elements of a head's key
  std::int64_t value_size = 0;  // and of its value
  KvType type = KvType::F16;

  friend bool operator==(const KvShape&, const KvShape&) = default;
};

class KvCache {
 public:
  static constexpr std::int64_t kBlockPositions = 64;

  KvCache() = default;  // of no model: holds nothing and takes nothing
  // No position is kept yet and no memory taken. Throws Unsupported for head sizes that the type
  // cannot keep.
  KvCache(const Device& device, const KvShape& shape, std::int64_t context);

  std::int64_t length() const noexcept { return length_; }    // positions
  std::int64_t context() const noexcept { return context_; }  // the most of them
  std::int64_t room() const noexcept { return context_ - length_; }
  const KvShape& shape() const noexcept { return shape_; }
  std::uint64_t size_bytes() const noexcept;   // of all blocks, whoever shares them
  std::uint64_t block_bytes() const noexcept;  // of one

  KvCache fork() const { return *this; }
  // Forgets positions from `length` on; blocks that are then empty go back to the pool.
  void truncate(std::int64_t length);
  void clear() { truncate(0); }

  // ---- for what fills and reads it
  // Room for `count` more positions, in blocks that no one else sees from position length() on.
  // Throws BadArgument when the context is not that long, OutOfMemory; then nothing has changed.
  void extend(std::int64_t count, const Stream& stream);
  void commit(std::int64_t count) { length_ += count; }  // positions that extend() made room for
  const std::vector<RawMemory>& blocks() const noexcept { return blocks_; }
  // The blocks' addresses, and the same on the device (i64). After extend().
  std::vector<std::byte*> addresses(const Stream& stream);
  const Tensor& address_table(const Stream& stream);

 private:
  std::vector<RawMemory> blocks_;
  std::vector<std::byte*> tabled_;  // what table_ holds
  Tensor table_;
  KvShape shape_;
  std::int64_t length_ = 0;
  std::int64_t context_ = 0;
  Device device_ = Device::cpu();
};

// Where things lie in a block: layer by layer; of each, first the keys of all heads and then the
// values; of each head, position by position. With Q8 the scales of a head come after its bytes.
struct KvLayout {
  static constexpr std::int64_t kScaled = 32;  // elements that share a scale in Q8

  explicit KvLayout(const KvShape& shape);
  std::uint64_t layer_bytes = 0;
  std::uint64_t values_at = 0;         // from the start of a layer
  std::uint64_t key_head_bytes = 0;    // from head to head
  std::uint64_t value_head_bytes = 0;  // from head to head
};

}  // namespace tl
