#include "tl/runtime/raw_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/block_record.h"
#include "runtime/context.h"
#include "runtime/parking.h"
#include "runtime/pool.h"
#include "tl/base/error.h"
#include "tl/runtime/host_buffer.h"

namespace tl {

namespace {

Block& record(const BlockRef& block) noexcept { return record_of(block.get()); }

void expect_same_place(std::string_view where, Context& memory, const Stream& stream) {
  if (&stream.state()->context != &memory) {
    throw Error(ErrorKind::WrongDevice, where, "memory on ", memory.location(),
                " cannot be used on a stream of ", stream.location());
  }
}

void copy_on_device(Context& context, std::byte* to, const std::byte* from, std::uint64_t bytes,
                    StreamState& stream) {
  if (bytes == 0) return;
  count(context.counters().device_copies);
  context.check(context.table().copy(to, from, bytes, stream.native()), "copy on device");
}

void wait_for(Context& context, StreamState& stream, std::string_view where) {
  count(context.counters().synchronizations);
  context.check(context.table().synchronize_stream(stream.native()), where);
  context.check_fault();
}

}  // namespace

RawMemory::RawMemory(const Device& device, std::uint64_t bytes, Label label)
    : block_(BlockRef::adopt(
          device.context().pool().take(bytes, *device.stream().state(), device.state(), label))),
      data_(block_->address),
      bytes_(bytes) {}

RawMemory RawMemory::mapped(std::shared_ptr<const void> keeper, std::span<const std::byte> bytes,
                            Label label) {
  return borrowed(Device::cpu(), std::move(keeper), bytes, label);
}

namespace {

// Lets go of the keeper once the device is done. A device that fails is not going to read any more.
std::shared_ptr<const void> kept_until_done(const Device& device,
                                            std::shared_ptr<const void> keeper) {
  const void* name = keeper.get();
  return {name, [device, keeper = std::move(keeper)](const void*) mutable {
            try {
              device.synchronize();
            } catch (...) {  // NOLINT(bugprone-empty-catch): the last handle goes in a destructor
            }
            keeper.reset();
          }};
}

}  // namespace

RawMemory RawMemory::borrowed(const Device& device, std::shared_ptr<const void> keeper,
                              std::span<const std::byte> bytes, Label label) {
  if (bytes.empty()) return {device, 0, label};
  if (keeper == nullptr) {
    throw Error(ErrorKind::BadArgument, "mapped memory", "nothing keeps the ", bytes.size(),
                " bytes there");
  }
  // The CPU has read what it was told to when a call returns.
  if (device.is_gpu()) keeper = kept_until_done(device, std::move(keeper));
  BlockRef block = BlockRef::adopt(device.context().pool().wrap(
      bytes, std::move(keeper), *device.stream().state(), device.state(), label));
  std::byte* data = block->address;
  return {std::move(block), data, bytes.size()};
}

Device RawMemory::device() const { return block_ ? Device(record(block_).device) : Device::cpu(); }

DeviceLocation RawMemory::location() const noexcept {
  return block_ ? record(block_).pool->context().location() : DeviceLocation{};
}

std::string_view RawMemory::label() const noexcept {
  return block_ ? record(block_).label.text() : std::string_view{};
}

const std::byte* RawMemory::data(const Stream& stream) const {
  if (bytes_ == 0) return data_;
  expect_same_place("read", record(block_).pool->context(), stream);
  note_use(record(block_), *stream.state(), Access::Read);
  return data_;
}

// ---- detaching

// A block for these bytes alone, at home on `stream`.
RawMemory::Fresh RawMemory::fresh(const Stream& stream) const {
  Block& old = record(block_);
  BlockRef block = BlockRef::adopt(old.pool->take(bytes_, *stream.state(), old.device, old.label));
  std::byte* data = block->address;
  old.pool->tell(MemoryEvent::Kind::Detach, record(block), old.serial);
  return {std::move(block), data};
}

void RawMemory::settle(Fresh&& other) noexcept {
  block_ = std::move(other.block);
  data_ = other.data;
}

namespace {

// The stress build detaches on every write, so that code which relies on an address staying put
// shows itself.
bool may_write_in_place(const RawMemory& memory) noexcept {
#if defined(TL_STRESS)
  static_cast<void>(memory);
  return false;
#else
  return memory.is_unique();
#endif
}

}  // namespace

std::byte* RawMemory::mutable_data(const Stream& stream) {
  if (bytes_ == 0) return data_;
  Context& context = record(block_).pool->context();
  expect_same_place("write", context, stream);
  if (may_write_in_place(*this)) {
    note_use(record(block_), *stream.state(), Access::Write);
    return data_;
  }
  Fresh copy = fresh(stream);
  const CurrentContext current(context);
  note_use(record(block_), *stream.state(), Access::Read);
  copy_on_device(context, copy.data, data_, bytes_, *stream.state());
  settle(std::move(copy));
  return data_;
}

std::byte* RawMemory::overwrite_data(const Stream& stream) {
  if (bytes_ == 0) return data_;
  expect_same_place("write", record(block_).pool->context(), stream);
  if (may_write_in_place(*this)) {
    note_use(record(block_), *stream.state(), Access::Write);
  } else {
    settle(fresh(stream));
  }
  return data_;
}

RawMemory RawMemory::slice(std::uint64_t offset, std::uint64_t bytes) const {
  RawMemory part(*this);
  part.data_ = bytes == 0 || data_ == nullptr ? nullptr : data_ + offset;
  part.bytes_ = bytes;
  return part;
}

// ---- host copies

// A handle that shares its block gets a fresh one; it moves there only once the new bytes are on
// their way, so a failure leaves it as it was.
void RawMemory::upload(std::uint64_t offset, const void* from, std::uint64_t bytes) {
  if (bytes == 0) return;
  Block& old = record(block_);
  Context& context = old.pool->context();
  const Stream stream = device().stream();
  const CurrentContext current(context);
  const bool in_place = may_write_in_place(*this);
  Fresh target{{}, data_};
  if (in_place) {
    note_use(old, *stream.state(), Access::Write);
  } else {
    target = fresh(stream);
    if (bytes != bytes_) {  // only what survives is copied: the two ends
      note_use(old, *stream.state(), Access::Read);
      copy_on_device(context, target.data, data_, offset, *stream.state());
      copy_on_device(context, target.data + offset + bytes, data_ + offset + bytes,
                     bytes_ - offset - bytes, *stream.state());
    }
  }
  count(context.counters().uploads);
  context.check(context.table().upload(target.data + offset, from, bytes, stream.state()->native()),
                "upload");
  wait_for(context, *stream.state(), "upload");
  if (!in_place) settle(std::move(target));
  drain_parked(context);
}

void RawMemory::download(std::uint64_t offset, void* to, std::uint64_t bytes) const {
  if (bytes == 0) return;
  Block& block = record(block_);
  Context& context = block.pool->context();
  const Stream stream = device().stream();
  const CurrentContext current(context);
  note_use(block, *stream.state(), Access::Read);
  count(context.counters().downloads);
  context.check(context.table().download(to, data_ + offset, bytes, stream.state()->native()),
                "download");
  wait_for(context, *stream.state(), "download");
}

// ---- device copies

void RawMemory::copy_from(const RawMemory& other) {
  if (bytes_ == 0 || (block_.get() == other.block_.get() && data_ == other.data_)) return;
  Block& mine = record(block_);
  if (mine.device == record(other.block_).device && bytes_ == other.bytes_) {
    *this = other;  // the same device: sharing is copying
    return;
  }
  copy_across(other);
}

void RawMemory::keep_promise(const RawMemory& bytes) const {
  Context& context = record(block_).pool->context();
  const Stream stream = device().stream();
  const std::byte* from = bytes.data(stream);
  const CurrentContext current(context);
  copy_on_device(context, data_, from, bytes_, *stream.state());
}

// Between two devices, or two handles of one. The vendor's peer copy orders itself on our stream;
// between vendors, or without one, the bytes go through the host.
void RawMemory::copy_across(const RawMemory& other) {
  Block& theirs = record(other.block_);
  Context& from = theirs.pool->context();
  Context& to = record(block_).pool->context();
  const Stream stream = device().stream();
  const bool in_place = may_write_in_place(*this);
  Fresh target{{}, data_};
  if (in_place) {
    note_use(record(block_), *stream.state(), Access::Write);
  } else {
    target = fresh(stream);
  }

  const bool same_vendor = from.location().kind == to.location().kind;
  if (same_vendor && (&from == &to || to.table().copy_peer != nullptr)) {
    note_use(theirs, *stream.state(), Access::Read);
    const CurrentContext current(to);
    if (&from == &to) {
      copy_on_device(to, target.data, other.data_, bytes_, *stream.state());
    } else {
      count(to.counters().device_copies);
      to.check(to.table().copy_peer(target.data, to.native(), other.data_, from.native(), bytes_,
                                    stream.state()->native()),
               "copy between devices");
    }
  } else {
    constexpr std::uint64_t kStage = std::uint64_t{16} << 20;
    RawHostBuffer stage = from.location().is_cpu() || to.location().is_cpu()
                              ? RawHostBuffer{}
                              : RawHostBuffer::pinned(device(), std::min(bytes_, kStage));
    const CurrentContext current(to);
    if (from.location().is_cpu()) {
      count(to.counters().uploads);
      to.check(to.table().upload(target.data, other.data_, bytes_, stream.state()->native()),
               "copy between devices");
      wait_for(to, *stream.state(), "copy between devices");
    } else if (to.location().is_cpu()) {
      other.download(0, target.data, bytes_);
    } else {
      for (std::uint64_t at = 0; at < bytes_; at += kStage) {
        const std::uint64_t part = std::min(kStage, bytes_ - at);
        other.download(at, stage.data(), part);
        count(to.counters().uploads);
        to.check(to.table().upload(target.data + at, stage.data(), part, stream.state()->native()),
                 "copy between devices");
        wait_for(to, *stream.state(), "copy between devices");
      }
    }
  }
  if (!in_place) settle(std::move(target));
}

// ---- fill

namespace {

template <class Word>
bool all_words_equal(const std::byte* pattern, std::uint64_t bytes, Word* word) {
  if (bytes % sizeof(Word) != 0) return false;
  std::memcpy(word, pattern, sizeof(Word));
  for (std::uint64_t at = sizeof(Word); at < bytes; at += sizeof(Word)) {
    if (std::memcmp(pattern + at, pattern, sizeof(Word)) != 0) return false;
  }
  return true;
}

}  // namespace

void RawMemory::fill(const void* pattern, std::uint64_t pattern_bytes) {
  if (bytes_ == 0) return;
  Context& context = record(block_).pool->context();
  const driver::Table& table = context.table();
  const Stream stream = device().stream();
  const auto* bytes = static_cast<const std::byte*>(pattern);
  const CurrentContext current(context);
  std::byte* to = overwrite_data(stream);
  driver::Handle native = stream.state()->native();
  std::uint8_t one = 0;
  std::uint16_t two = 0;
  std::uint32_t four = 0;
  count(context.counters().fills);
  if (all_words_equal(bytes, pattern_bytes, &one)) {
    context.check(table.fill8(to, one, bytes_, native), "fill");
  } else if (all_words_equal(bytes, pattern_bytes, &two)) {
    context.check(table.fill16(to, two, bytes_ / 2, native), "fill");
  } else if (all_words_equal(bytes, pattern_bytes, &four)) {
    context.check(table.fill32(to, four, bytes_ / 4, native), "fill");
  } else {
    // Drivers fill words of up to four bytes. Anything longer: upload a stretch of it, then double
    // that on the device.
    constexpr std::uint64_t kStretch = 65536;
    const std::uint64_t copies = std::max<std::uint64_t>(1, kStretch / pattern_bytes);
    const std::uint64_t first = std::min(bytes_, copies * pattern_bytes);
    std::vector<std::byte> stretch(first);
    for (std::uint64_t at = 0; at < first; at += pattern_bytes) {
      std::memcpy(stretch.data() + at, bytes, pattern_bytes);
    }
    count(context.counters().uploads);
    context.check(table.upload(to, stretch.data(), first, native), "fill");
    wait_for(context, *stream.state(), "fill");
    for (std::uint64_t done = first; done < bytes_;) {
      const std::uint64_t part = std::min(done, bytes_ - done);
      copy_on_device(context, to + done, to, part, *stream.state());
      done += part;
    }
  }
}

}  // namespace tl
