// The pool of one kind of memory on one device.
//
// Memory comes from the driver in segments and is handed out in chunks cut from them
// (segment_list.h). A chunk goes back the moment its last owner is gone and is usable again at
// once, in the order of the stream it belongs to: the next block on that stream may overlap work
// that is still running on the old one only in submission order, which is the order the device
// keeps. A block that a second stream used is held until events on that stream have passed.
//
// Small blocks (up to 1 MiB) come from segments of their own, so that a long-lived small one never
// keeps a large segment from being whole again. When the driver has no more room, everything free
// is returned to it and the request tried again; only then OutOfMemory is thrown.
//
// One mutex guards a pool. It is held during driver calls for new segments, which are rare.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/block_record.h"
#include "tl/runtime/pool.h"
#include "tl/runtime/report.h"

namespace tl {

class Context;

extern std::atomic<MemoryHook> memory_hook;  // set_memory_hook()

class Pool {
 public:
  enum class Memory : std::uint8_t { Device, PinnedHost };

  Pool(Context& context, Memory memory);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // A block with one owner. Throws OutOfMemory, DeviceFault or Overflow. `device` may be null
  // (pinned memory).
  BlockHeader* take(std::uint64_t bytes, StreamState& home, DeviceState* device, Label label);

  // A frozen block for bytes that are not the pool's. Counted apart.
  BlockHeader* wrap(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                    StreamState& home, DeviceState* device, Label label);

  void give_back(Block& block) noexcept;
  // Tells who listens; `detached` is the block that a fresh one takes the place of.
  void tell(MemoryEvent::Kind kind, const Block& block, std::uint64_t detached = 0) const noexcept;

  // Takes a segment from the driver that is as large as the large ones of these blocks together,
  // unless a free chunk is. Small blocks share segments anyway. Throws OutOfMemory, Overflow.
  void reserve(std::span<const std::uint64_t> sizes, StreamState& home);

  // Returns everything free to the driver, after waiting for the work that still uses it. Bytes
  // returned.
  std::uint64_t trim();
  // At most this much stays pooled after a block comes back.
  void set_limit(std::uint64_t bytes);
  std::uint64_t limit() const;

  PoolStatistics statistics() const;
  std::vector<LabelUse> live_by_label() const;  // largest first
  void reset_peak();

  // A stream appears and disappears with its free memory; what is left goes to the default stream.
  void add_stream(StreamState& stream);
  void remove_stream(StreamState& stream, StreamState& heir) noexcept;

  Context& context() noexcept { return context_; }

 private:
  SegmentList& list_of(const Block& block) noexcept;
  Block* new_segment(std::uint64_t bytes, bool large);
  driver::Status ask_driver(std::byte** start, std::uint64_t bytes);
  void return_to_driver(Block& chunk) noexcept;
  void add_live(Block& block) noexcept;
  void remove_live(Block& block) noexcept;
  void split(Block& chunk, std::uint64_t bytes) noexcept;
  void put_free(Block& chunk) noexcept;
  void collect_held(bool wait) noexcept;
  std::uint64_t trim_locked() noexcept;
  std::vector<LabelUse> live_by_label_locked() const;
  [[noreturn]] void throw_out_of_memory(std::uint64_t bytes);

  void reserve_records(std::size_t count);
  Block* new_record() noexcept;  // after reserve_records
  void drop_record(Block& record) noexcept;

  Context& context_;
  const Memory memory_;
  const bool one_order_;  // every stream may reuse any chunk: the host's memory
  mutable std::mutex mutex_;
  std::array<SegmentList, 2> own_lists_;  // when one_order_
  std::vector<StreamState*> streams_;
  Block* live_ = nullptr;
  Block* held_ = nullptr;
  Block* reserved_ = nullptr;  // the free chunk that the last reserve() found or made
  Block* spare_records_ = nullptr;
  std::size_t spare_count_ = 0;
  std::uint64_t limit_;
  std::uint64_t taken_capacity_ = 0;  // what live blocks occupy, slack included
  PoolStatistics statistics_;
};

}  // namespace tl
