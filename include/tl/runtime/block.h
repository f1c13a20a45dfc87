// A counted reference to one block of device memory.
//
// The count lives in the block, so sharing is one atomic increment: no allocation, no lock, no
// driver call. Owners (handles) and pins (transfers in flight, captured graphs) are counted apart
// in one word: a pin keeps the block alive but does not make it shared. A block can be frozen: its
// bytes are then never written in place, because weak handles or a mapped file show them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define TL_SINGLE_THREADED() (__libc_single_threaded != 0)
#else
#define TL_SINGLE_THREADED() false
#endif

namespace tl {

// The part of a block that handles touch; the pool keeps more behind it.
struct BlockHeader {
  static constexpr std::uint64_t kOwner = 1;
  static constexpr std::uint64_t kPin = std::uint64_t{1} << 32;

  static constexpr std::uint64_t kFrozen = std::uint64_t{1} << 63;

  // Owners in the low half, pins in the high half, and kFrozen above them.
  std::atomic<std::uint64_t> references{0};
  std::byte* address = nullptr;  // null for the empty block of a device
  std::uint64_t bytes = 0;       // as asked for
  std::uint64_t serial = 0;      // unique over the life of the process

  // A sole reference cannot be copied by anybody else meanwhile, so it can be dropped without a
  // locked instruction; unless the block is frozen, when a weak handle may ask for another.
  void add(std::uint64_t unit) noexcept {
    if (TL_SINGLE_THREADED()) {
      references.store(references.load(std::memory_order_relaxed) + unit,
                       std::memory_order_relaxed);
    } else {
      references.fetch_add(unit, std::memory_order_relaxed);
    }
  }
  // True when that was the last reference.
  bool remove(std::uint64_t unit) noexcept {
    if (references.load(std::memory_order_acquire) == unit) return true;
    if (TL_SINGLE_THREADED()) {
      const std::uint64_t left = references.load(std::memory_order_relaxed) - unit;
      references.store(left, std::memory_order_relaxed);
      return (left & ~kFrozen) == 0;
    }
    return (references.fetch_sub(unit, std::memory_order_acq_rel) & ~kFrozen) == unit;
  }
  // By an owner. Lasts until the block goes back.
  void freeze() noexcept { references.fetch_or(kFrozen, std::memory_order_relaxed); }
  // Adds an owner to a frozen block that has one, and to no other. The block may be any at all by
  // now: records are never freed, only used again.
  bool add_to_frozen() noexcept {
    std::uint64_t now = references.load(std::memory_order_relaxed);
    while ((now & kFrozen) != 0 && static_cast<std::uint32_t>(now) != 0) {
      if (references.compare_exchange_weak(now, now + kOwner, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  std::uint32_t owners() const noexcept {
    return static_cast<std::uint32_t>(references.load(std::memory_order_acquire));
  }
  // May its one owner write where it is?
  bool is_writable() const noexcept {
    const std::uint64_t now = references.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(now) <= 1 && (now & kFrozen) == 0;
  }
};

// Gives a block without references back to its pool, in stream order.
void return_block(BlockHeader* block) noexcept;

template <std::uint64_t kUnit>
class CountedBlock {
 public:
  CountedBlock() noexcept = default;
  // Adds a reference to a block that someone else keeps alive during the call.
  explicit CountedBlock(BlockHeader* block) noexcept : block_(block) {
    if (block_ != nullptr) block_->add(kUnit);
  }
  CountedBlock(const CountedBlock& other) noexcept : CountedBlock(other.block_) {}
  CountedBlock(CountedBlock&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  CountedBlock& operator=(const CountedBlock& other) noexcept {
    CountedBlock copy(other);
    std::swap(block_, copy.block_);
    return *this;
  }
  CountedBlock& operator=(CountedBlock&& other) noexcept {
    CountedBlock moved(std::move(other));
    std::swap(block_, moved.block_);
    return *this;
  }
  ~CountedBlock() {
    if (block_ != nullptr && block_->remove(kUnit)) return_block(block_);
  }

  // Takes over the reference that a pool hands out with a fresh block.
  static CountedBlock adopt(BlockHeader* block) noexcept {
    CountedBlock owner;
    owner.block_ = block;
    return owner;
  }

  BlockHeader* get() const noexcept { return block_; }
  BlockHeader* operator->() const noexcept { return block_; }
  explicit operator bool() const noexcept { return block_ != nullptr; }

 private:
  BlockHeader* block_ = nullptr;
};

using BlockRef = CountedBlock<BlockHeader::kOwner>;
using BlockPin = CountedBlock<BlockHeader::kPin>;

}  // namespace tl
