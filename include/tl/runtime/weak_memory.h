// A handle that does not keep memory alive, and can tell whether someone else does.
//
// A cache that has let go of a block hands out the same block again for as long as anyone holds it.
// Memory that has a weak handle is frozen: a write detaches even from a sole owner, so what lock()
// gives is always what it was made from.
#pragma once

#include <cstdint>
#include <optional>

#include "tl/runtime/raw_memory.h"

namespace tl {

class WeakMemory {
 public:
  WeakMemory() noexcept = default;  // of nothing: expired
  explicit WeakMemory(const RawMemory& memory) noexcept;

  // A share of the memory, or nothing when its last owner is gone. From any thread, also while that
  // owner goes. Memory that only a transfer under way keeps has no owner.
  std::optional<RawMemory> lock() const noexcept;
  bool expired() const noexcept { return !lock().has_value(); }

 private:
  // The record outlives every block that is in it; the serial tells them apart.
  BlockHeader* block_ = nullptr;
  std::uint64_t serial_ = 0;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace tl
