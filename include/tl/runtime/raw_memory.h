// Bytes on a device with value semantics: what DeviceMemory<T> is made of, without the type.
//
// A RawMemory is a range of a block that it shares with its copies and slices. Reading never
// changes who shares; every write first makes this handle the only owner of its bytes. Which bytes
// survive a write decides what that costs: a write of everything takes a fresh block and copies
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "tl/runtime/block.h"
#include "tl/runtime/device.h"
#include "tl/runtime/label.h"
#include "tl/runtime/stream.h"

namespace tl {

class Transfer;
class WeakMemory;

class RawMemory {
 public:
  RawMemory() noexcept = default;  // no bytes, on the CPU
  // Uninitialised. Zero bytes make no driver call and have a null address.
  RawMemory(const Device& device, std::uint64_t bytes, Label label = Label::current());

  // Bytes that are in host memory already, a mapped file's above all, as memory on the CPU: nothing
  // is copied. `keeper` is let go of when the last handle is. The bytes are only read: a write to a
  // handle detaches first, as if someone shared it. They are counted as mapped_bytes, not as live.
  static RawMemory mapped(std::shared_ptr<const void> keeper, std::span<const std::byte> bytes,
                          Label label = Label::current());
  // The same for bytes on any device that another library has there. `keeper` is let go of when the
  // last handle is and the device is done with all work it was given by then.
  static RawMemory borrowed(const Device& device, std::shared_ptr<const void> keeper,
                            std::span<const std::byte> bytes, Label label = Label::current());

  RawMemory(const RawMemory&) noexcept = default;  // shares
  RawMemory& operator=(const RawMemory&) noexcept = default;
  // A moved-from handle is empty and on the CPU.
  RawMemory(RawMemory&& other) noexcept
      : block_(std::move(other.block_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  RawMemory& operator=(RawMemory&& other) noexcept {
    block_ = std::move(other.block_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~RawMemory() = default;

  Device device() const;
  DeviceLocation location() const noexcept;
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint32_t use_count() const noexcept { return block_ ? block_->owners() : 0; }
  // No one else sees the bytes, so a write goes where they are. Never so for mapped bytes and for
  // memory with a WeakMemory.
  bool is_unique() const noexcept { return !block_ || block_->is_writable(); }
  // Changes whenever the address may have changed.
  std::uint64_t generation() const noexcept { return block_ ? block_->serial : 0; }
  const BlockRef& block() const noexcept { return block_; }
  std::string_view label() const noexcept;

  const std::byte* data() const noexcept { return data_; }
  // Copies bytes to where all who share this memory see them: what was promised to them before it
  // was computed. As many as there are here, on the device's own stream.
  void keep_promise(const RawMemory& bytes) const;
  // The address for work on `stream`, ordered after earlier writes.
  const std::byte* data(const Stream& stream) const;
  // The address for writes on `stream`. Detaches, keeping the bytes; siblings keep theirs.
  std::byte* mutable_data(const Stream& stream);
  // The same for a write that covers everything: nothing is copied.
  std::byte* overwrite_data(const Stream& stream);
  void make_unique(const Stream& stream) { mutable_data(stream); }

  RawMemory slice(std::uint64_t offset, std::uint64_t bytes) const;  // the caller checks the range

  // Synchronous. The caller checks ranges; these move bytes.
  void upload(std::uint64_t offset, const void* from, std::uint64_t bytes);
  void download(std::uint64_t offset, void* to, std::uint64_t bytes) const;
  // Ordered on the streams of the two sides; sizes are equal. Shares where it can.
  void copy_from(const RawMemory& other);
  // Fills with copies of a pattern of 1 or more bytes that divides the size.
  void fill(const void* pattern, std::uint64_t pattern_bytes);

 private:
  friend class Transfer;
  friend class WeakMemory;
  RawMemory(BlockRef block, std::byte* data, std::uint64_t bytes) noexcept
      : block_(std::move(block)), data_(data), bytes_(bytes) {}
  struct Fresh {
    BlockRef block;
    std::byte* data;
  };
  Fresh fresh(const Stream& stream) const;
  void settle(Fresh&& other) noexcept;
  void copy_across(const RawMemory& other);

  BlockRef block_;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace tl
