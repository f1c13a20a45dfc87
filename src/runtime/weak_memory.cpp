#include "tl/runtime/weak_memory.h"

#include <utility>

namespace tl {

WeakMemory::WeakMemory(const RawMemory& memory) noexcept
    : block_(memory.block_.get()),
      serial_(memory.generation()),
      data_(memory.data_),
      bytes_(memory.bytes_) {
  if (block_ != nullptr) block_->freeze();
}

std::optional<RawMemory> WeakMemory::lock() const noexcept {
  if (block_ == nullptr || !block_->add_to_frozen()) return std::nullopt;
  BlockRef owner = BlockRef::adopt(block_);
  // Now that it is owned it stays what it is, and it may be another block than it was.
  if (owner->serial != serial_) return std::nullopt;
  return RawMemory(std::move(owner), data_, bytes_);
}

}  // namespace tl
