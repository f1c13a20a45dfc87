#include "runtime/pool.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#include "runtime/context.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define TL_HIDE_MEMORY(start, bytes) ASAN_POISON_MEMORY_REGION(start, bytes)
#define TL_SHOW_MEMORY(start, bytes) ASAN_UNPOISON_MEMORY_REGION(start, bytes)
#else
#define TL_HIDE_MEMORY(start, bytes) static_cast<void>(0)
#define TL_SHOW_MEMORY(start, bytes) static_cast<void>(0)
#endif

namespace tl {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kSmall = 1 * kMiB;         // larger blocks come from large segments
constexpr std::uint64_t kSmallSegment = 2 * kMiB;  // drivers round to this anyway
constexpr std::uint64_t kMedium = 8 * kMiB;        // blocks up to this share a segment
constexpr std::uint64_t kMediumSegment = 16 * kMiB;
constexpr std::uint64_t kSegmentStep = 2 * kMiB;
constexpr std::uint64_t kSplitLarge =
    1 * kMiB;  // a smaller rest of a large chunk is not worth a record

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

// Sizes that do not overflow when they are rounded up.
void expect_possible(std::uint64_t bytes) {
  if (bytes > std::numeric_limits<std::uint64_t>::max() - 2 * kMediumSegment) {
    throw Error(ErrorKind::Overflow, "allocate", bytes, " bytes is more than any device has");
  }
}

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> serial{0};
  return serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Pool::Pool(Context& context, Memory memory)
    : context_(context),
      memory_(memory),
      one_order_(memory == Memory::PinnedHost || context.location().is_cpu()),
      limit_(std::numeric_limits<std::uint64_t>::max()) {
  // Host memory is wanted by everyone else on the machine too.
  if (one_order_) {
    limit_ = memory == Memory::PinnedHost ? 512 * kMiB : context.properties().total_memory / 4;
  }
}

Pool::~Pool() {
  trim_locked();
  while (spare_records_ != nullptr) {
    Block* record = spare_records_;
    spare_records_ = record->next_held;
    delete record;
  }
}

// ---- records

void Pool::reserve_records(std::size_t count) {
  while (spare_count_ < count) {
    auto* record = new Block;
    record->pool = this;
    drop_record(*record);
  }
}

Block* Pool::new_record() noexcept {
  Block* record = spare_records_;
  spare_records_ = record->next_held;
  record->next_held = nullptr;
  --spare_count_;
  return record;
}

void Pool::drop_record(Block& record) noexcept {
  if (reserved_ == &record) reserved_ = nullptr;
  record.start = nullptr;
  record.capacity = 0;
  record.before = nullptr;
  record.after = nullptr;
  record.next_held = spare_records_;
  spare_records_ = &record;
  ++spare_count_;
}

// ---- chunks

SegmentList& Pool::list_of(const Block& block) noexcept {
  auto& lists = one_order_ ? own_lists_ : block.home->free_memory;
  return lists[block.large ? 1 : 0];
}

// Cuts `chunk` to `bytes` and frees the rest. A record is at hand (reserve_records).
void Pool::split(Block& chunk, std::uint64_t bytes) noexcept {
  const std::uint64_t rest = chunk.capacity - bytes;
  if (rest < (chunk.large ? kSplitLarge : SegmentList::kGranularity)) return;
  Block* tail = new_record();
  tail->start = chunk.start + bytes;
  tail->capacity = rest;
  tail->home = chunk.home;
  tail->large = chunk.large;
  tail->before = &chunk;
  tail->after = chunk.after;
  if (tail->after != nullptr) tail->after->before = tail;
  chunk.after = tail;
  chunk.capacity = bytes;
  list_of(*tail).add(tail);
}

// Joins a chunk with its free neighbours and puts the result on the free list.
void Pool::put_free(Block& chunk) noexcept {
  Block* whole = &chunk;
  const auto absorb = [this](Block& left, Block& right) {  // right is gone afterwards
    left.capacity += right.capacity;
    left.after = right.after;
    if (left.after != nullptr) left.after->before = &left;
    drop_record(right);
  };
  if (auto* after = static_cast<Block*>(whole->after); after != nullptr && after->is_free) {
    list_of(*after).remove(after);
    absorb(*whole, *after);
  }
  if (auto* before = static_cast<Block*>(whole->before); before != nullptr && before->is_free) {
    list_of(*before).remove(before);
    absorb(*before, *whole);
    whole = before;
  }
  if (whole->whole_segment() && statistics_.reserved_bytes - taken_capacity_ > limit_) {
    return_to_driver(*whole);
    return;
  }
  list_of(*whole).add(whole);
}

// ---- the driver's side

driver::Status Pool::ask_driver(std::byte** start, std::uint64_t bytes) {
  const driver::Table& table = context_.table();
  void* address = nullptr;
  const bool device = memory_ == Memory::Device;
  const driver::Status status =
      device ? table.allocate(&address, bytes) : table.allocate_host(&address, bytes);
  if (status == driver::kSuccess) {
    count(device ? context_.counters().allocations : context_.counters().host_allocations);
  }
  *start = static_cast<std::byte*>(address);
  return status;
}

// A whole, free segment that hangs in no list. Waits for its stream first: work on the chunks may
// still be running.
void Pool::return_to_driver(Block& chunk) noexcept {
  const driver::Table& table = context_.table();
  if (!one_order_ && !context_.lost() && !chunk.home->is_retired()) {
    context_.note_failure(table.synchronize_stream(chunk.home->bare()), "pool");
  }
  if (one_order_) TL_SHOW_MEMORY(chunk.start, chunk.capacity);
  const bool device = memory_ == Memory::Device;
  count(device ? context_.counters().frees : context_.counters().host_frees);
  const driver::Status status = device ? table.free(chunk.start, chunk.capacity)
                                       : table.free_host(chunk.start, chunk.capacity);
  if (status != driver::kSuccess) {
    context_.note_failure(status, "pool: free");
  }
  statistics_.reserved_bytes -= chunk.capacity;
  drop_record(chunk);
}

Block* Pool::new_segment(std::uint64_t bytes, bool large) {
  const std::uint64_t exact = round_up(bytes, kSegmentStep);
  const std::uint64_t preferred = !large             ? kSmallSegment
                                  : bytes <= kMedium ? kMediumSegment
                                                     : exact;
  std::byte* start = nullptr;
  std::uint64_t size = preferred;
  driver::Status status = ask_driver(&start, size);
  if (status == driver::kOutOfMemory && exact < preferred) {
    size = exact;
    status = ask_driver(&start, size);
  }
  if (status == driver::kOutOfMemory && trim_locked() > 0) {
    size = exact;
    status = ask_driver(&start, size);
  }
  if (status == driver::kOutOfMemory) throw_out_of_memory(bytes);
  context_.check(status, "allocate");
  statistics_.reserved_bytes += size;
  Block* chunk = new_record();
  chunk->start = start;
  chunk->capacity = size;
  chunk->large = large;
  if (one_order_) TL_HIDE_MEMORY(start, size);
  return chunk;
}

void Pool::throw_out_of_memory(std::uint64_t bytes) {
  MemoryInfo info;
  if (!context_.lost()) {
    std::size_t free = 0;
    std::size_t total = 0;
    if (context_.table().memory_info(&free, &total) == driver::kSuccess) info = {free, total};
  }
  const std::vector<LabelUse> uses = live_by_label_locked();
  std::string held;
  for (std::size_t i = 0; i < std::min<std::size_t>(uses.size(), 3); ++i) {
    held += join(i == 0 ? "" : ", ", uses[i].label.empty() ? "(no label)" : uses[i].label, " ",
                 format_bytes(uses[i].bytes));
  }
  throw OutOfMemory(
      "allocate", memory_ == Memory::Device ? context_.text() : context_.text() + " (pinned host)",
      bytes, info.free, info.total, statistics_.reserved_bytes - taken_capacity_, held);
}

// ---- take and give back

void Pool::add_live(Block& block) noexcept {
  block.previous_live = nullptr;
  block.next_live = live_;
  if (live_ != nullptr) live_->previous_live = &block;
  live_ = &block;
}

void Pool::remove_live(Block& block) noexcept {
  if (block.next_live != nullptr) block.next_live->previous_live = block.previous_live;
  if (block.previous_live != nullptr) {
    block.previous_live->next_live = block.next_live;
  } else {
    live_ = block.next_live;
  }
}

void Pool::reserve(std::span<const std::uint64_t> sizes, StreamState& home) {
  std::uint64_t size = 0;
  for (const std::uint64_t bytes : sizes) {
    expect_possible(bytes);
    const std::uint64_t rounded = round_up(bytes, SegmentList::kGranularity);
    if (rounded <= kSmall) continue;
    if (__builtin_add_overflow(size, rounded, &size)) {
      throw Error(ErrorKind::Overflow, "allocate", "blocks of more than 2^64 bytes");
    }
  }
  if (size == 0) return;
  expect_possible(size);
  context_.require_alive("allocate");
  {
    const std::lock_guard lock(mutex_);
    if (held_ != nullptr) collect_held(false);
    SegmentList& list = (one_order_ ? own_lists_ : home.free_memory)[1];
    if (Chunk* chunk = list.take(size); chunk != nullptr) {
      list.add(chunk);
      reserved_ = static_cast<Block*>(chunk);
    } else {
      reserve_records(1);
      const CurrentContext current(context_);
      Block* segment = new_segment(size, /*large=*/true);
      segment->home = &home;
      list.add(segment);
      reserved_ = segment;
    }
  }
  context_.release_deferred_streams();
}

BlockHeader* Pool::wrap(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                        StreamState& home, DeviceState* device, Label label) {
  Block* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    reserve_records(1);
    block = new_record();
    block->bytes = bytes.size();
    block->label = label;
    ++statistics_.mapped_blocks;
    statistics_.mapped_bytes += bytes.size();
    add_live(*block);
  }
  block->address = const_cast<std::byte*>(bytes.data());  // frozen: never written
  block->serial = next_serial();
  block->keeper = std::move(keeper);
  block->home = &home;
  home.add();
  block->device = device;
  device->add();
  block->references.store(BlockHeader::kOwner | BlockHeader::kFrozen, std::memory_order_release);
  return block;
}

BlockHeader* Pool::take(std::uint64_t bytes, StreamState& home, DeviceState* device, Label label) {
  expect_possible(bytes);
  context_.require_alive("allocate");
  Block* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    reserve_records(2);  // for a new segment and for what is cut off
    if (bytes == 0) {
      block = new_record();
      block->bytes = 0;
      block->home = &home;
    } else {
      if (held_ != nullptr) collect_held(false);
      const std::uint64_t size = round_up(bytes, SegmentList::kGranularity);
      const bool large = size > kSmall;
      auto& lists = one_order_ ? own_lists_ : home.free_memory;
      SegmentList& list = lists[large ? 1 : 0];
      // What was reserved goes to those it was reserved for: the best fit for each of them might be
      // elsewhere, and then there would be no room for the next ones.
      const bool from_reserved = large && reserved_ != nullptr && reserved_->is_free &&
                                 reserved_->capacity >= size && &list_of(*reserved_) == &list;
      if (from_reserved) {
        block = reserved_;
        list.remove(block);
      } else {
        block = static_cast<Block*>(list.take(size));
      }
      if (block != nullptr) {
        ++statistics_.hits;
      } else {
        const CurrentContext current(context_);
        block = new_segment(size, large);
      }
      block->home = &home;
      split(*block, size);
      if (from_reserved) {
        Chunk* rest = block->after;
        reserved_ = rest != nullptr && rest->is_free ? static_cast<Block*>(rest) : nullptr;
      }
      if (one_order_) TL_SHOW_MEMORY(block->start, bytes);
      block->bytes = bytes;
      block->label = label;

      taken_capacity_ += block->capacity;
      ++statistics_.allocations;
      ++statistics_.live_blocks;
      statistics_.live_bytes += bytes;
      statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.live_bytes);
      add_live(*block);
    }
  }
  context_.release_deferred_streams();
  block->address = block->start;
  block->serial = next_serial();
  home.add();
  block->device = device;
  if (device != nullptr) device->add();
  // Release: a weak handle of an earlier block in this record may look at it from now on.
  block->references.store(BlockHeader::kOwner, std::memory_order_release);
  tell(MemoryEvent::Kind::Allocate, *block);
#if defined(TL_STRESS)
  // Fresh memory must not be relied on: give it a value that no one mistakes for a result.
  if (bytes != 0) {
    const CurrentContext current(context_);
    const driver::Status status =
        memory_ == Memory::Device ? context_.table().fill8(block->address, 0xCB, bytes, home.bare())
                                  : (std::fill_n(block->address, bytes, std::byte{0xCB}), 0);
    if (status != driver::kSuccess) {
      return_block(block);
      context_.check(status, "allocate");
    }
  }
#endif
  return block;
}

void Pool::tell(MemoryEvent::Kind kind, const Block& block, std::uint64_t detached) const noexcept {
  const MemoryHook hook = memory_hook.load(std::memory_order_relaxed);
  if (hook == nullptr || block.bytes == 0) return;
  hook({kind, context_.location(), block.bytes, block.serial, detached, block.label.text(),
        memory_ == Memory::PinnedHost});
}

void return_block(BlockHeader* block) noexcept {
  Block& record = record_of(block);
  record.pool->give_back(record);
}

void Pool::give_back(Block& block) noexcept {
  tell(MemoryEvent::Kind::Return, block);
  block.references.store(0, std::memory_order_relaxed);
  if (block.foreign.load(std::memory_order_acquire)) collect_uses(block);
  StreamState* home = block.home;
  DeviceState* device = block.device;
  block.device = nullptr;
  const std::shared_ptr<const void> keeper = std::move(block.keeper);  // goes outside the lock
  bool still_home = false;
  {
    const std::lock_guard lock(mutex_);
    if (block.bytes == 0) {
      drop_record(block);
    } else if (keeper != nullptr) {
      --statistics_.mapped_blocks;
      statistics_.mapped_bytes -= block.bytes;
      remove_live(block);
      drop_record(block);
    } else {
      --statistics_.live_blocks;
      statistics_.live_bytes -= block.bytes;
      ++statistics_.returns;
      taken_capacity_ -= block.capacity;
      remove_live(block);
      if (one_order_) TL_HIDE_MEMORY(block.start, block.capacity);
      if (block.pending_count != 0) {
        statistics_.held_bytes += block.capacity;
        block.next_held = held_;
        held_ = &block;
        still_home = true;  // a held block keeps its stream
      } else {
        put_free(block);
      }
    }
  }
  // Outside the lock: the last reference to a stream hands its memory on, which takes the lock.
  if (!still_home) home->remove();
  if (device != nullptr) device->remove();
}

// Frees the held blocks whose foreign work has passed; with `wait`, all of them. Streams that lose
// their last reference here are kept: the caller holds the mutex that destroying one needs, so
// their references are dropped later.
void Pool::collect_held(bool wait) noexcept {
  Block** link = &held_;
  while (*link != nullptr) {
    Block& block = **link;
    bool done = true;
    for (std::size_t i = 0; i < block.pending_count && done; ++i) {
      Context& where = block.pending[i].stream->context;
      const driver::Table& table = where.table();
      try {
        const CurrentContext current(where);
        const driver::Status status = wait ? table.synchronize_event(block.pending[i].event)
                                           : table.query_event(block.pending[i].event);
        // An event that fails belongs to a device that is gone; nothing will touch the memory any
        // more.
        done = status != driver::kNotReady;
        if (done && status != driver::kSuccess) where.note_failure(status, "pool: event");
      } catch (const Error&) {
        done = true;
      }
    }
    if (!done) {
      link = &block.next_held;
      continue;
    }
    *link = block.next_held;
    block.next_held = nullptr;
    statistics_.held_bytes -= block.capacity;
    for (std::size_t i = 0; i < block.pending_count; ++i) {
      StreamState* stream = block.pending[i].stream;
      stream->context.release_event(block.pending[i].event);
      stream->context.defer_stream_release(stream);
      block.pending[i] = {};
    }
    block.pending_count = 0;
    StreamState* home = block.home;
    put_free(block);
    context_.defer_stream_release(home);
  }
}

// ---- trim

std::uint64_t Pool::trim_locked() noexcept {
  collect_held(true);
  std::uint64_t returned = 0;
  const auto sweep = [&](std::array<SegmentList, 2>& lists) {
    for (SegmentList& list : lists) {
      list.for_each([&](Chunk* chunk) {
        if (!chunk->whole_segment()) return;
        list.remove(chunk);
        returned += chunk->capacity;
        return_to_driver(static_cast<Block&>(*chunk));
      });
    }
  };
  try {
    const CurrentContext current(context_);
    if (one_order_) sweep(own_lists_);
    for (StreamState* stream : streams_) sweep(stream->free_memory);
  } catch (const Error&) {
    // The context cannot be selected: the device is gone, and its memory with it.
  }
  return returned;
}

std::uint64_t Pool::trim() {
  std::uint64_t returned = 0;
  {
    const std::lock_guard lock(mutex_);
    returned = trim_locked();
  }
  context_.release_deferred_streams();
  return returned;
}

void Pool::set_limit(std::uint64_t bytes) {
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    over = statistics_.reserved_bytes - taken_capacity_ > limit_;
  }
  if (over) trim();
}

std::uint64_t Pool::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

// ---- streams

void Pool::add_stream(StreamState& stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(&stream);
}

void Pool::remove_stream(StreamState& stream, StreamState& heir) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(streams_, &stream);
  if (one_order_) return;
  for (std::size_t size = 0; size < 2; ++size) {
    SegmentList& from = stream.free_memory[size];
    from.for_each([&](Chunk* chunk) {
      from.remove(chunk);
      static_cast<Block*>(chunk)->home = &heir;
      heir.free_memory[size].add(chunk);
    });
  }
}

// ---- statistics

PoolStatistics Pool::statistics() const {
  const std::lock_guard lock(mutex_);
  PoolStatistics out = statistics_;
  out.pooled_bytes = out.reserved_bytes - taken_capacity_;
  out.failures = context_.failures();
  return out;
}

void Pool::reset_peak() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_bytes = statistics_.live_bytes;
}

std::vector<LabelUse> Pool::live_by_label() const {
  const std::lock_guard lock(mutex_);
  return live_by_label_locked();
}

std::vector<LabelUse> Pool::live_by_label_locked() const {
  std::vector<LabelUse> uses;
  std::vector<std::uint32_t> ids;
  for (const Block* block = live_; block != nullptr; block = block->next_live) {
    const auto found = std::find(ids.begin(), ids.end(), block->label.id());
    const auto at = static_cast<std::size_t>(found - ids.begin());
    if (found == ids.end()) {
      ids.push_back(block->label.id());
      uses.push_back({std::string(block->label.text()), 0, 0});
    }
    uses[at].bytes += block->bytes;
    ++uses[at].blocks;
  }
  std::sort(uses.begin(), uses.end(), [](const LabelUse& a, const LabelUse& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.label < b.label;
  });
  return uses;
}

}  // namespace tl
