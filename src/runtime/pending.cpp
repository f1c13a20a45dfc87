#include "tl/runtime/pending.h"

#include <mutex>
#include <vector>

#include "runtime/block_record.h"
#include "runtime/context.h"
#include "runtime/parking.h"
#include "tl/base/error.h"

namespace tl {

namespace {

// All parked transfers of the process; few at a time, so one list will do.
struct Parking {
  std::mutex mutex;
  std::vector<Transfer> transfers;
};

Parking& parking() {
  static auto* const lot = new Parking;
  return *lot;
}

Context& context_of(const Stream& stream) { return stream.state()->context; }

}  // namespace

Transfer Transfer::upload(RawMemory& to, RawHostBuffer& buffer, const Stream& stream) {
  Transfer transfer;
  if (to.bytes() == 0) {
    transfer.buffer_ = std::move(buffer);
    return transfer;
  }
  // The whole of the memory is written, so a shared handle moves to a fresh block without a copy,
  // and only once the upload was accepted.
  const bool in_place = to.is_unique();
  RawMemory target = in_place ? RawMemory() : to;
  RawMemory& written = in_place ? to : target;
  std::byte* address = written.overwrite_data(stream);
  Context& context = context_of(stream);
  const CurrentContext current(context);
  BlockPin pin(written.block().get());
  Stream ordered(stream);
  count(context.counters().uploads);
  context.check(
      context.table().upload(address, buffer.data(), written.bytes(), stream.state()->native()),
      "upload");
  // From here the device may be reading the buffer, so nothing may throw before the transfer owns
  // it.
  transfer.buffer_ = std::move(buffer);
  transfer.pin_ = std::move(pin);
  try {
    transfer.done_.emplace(ordered.record());
  } catch (...) {
    context.note_failure(context.table().synchronize_stream(stream.state()->native()), "upload");
    buffer = std::move(transfer.buffer_);
    throw;
  }
  if (!in_place) to = std::move(target);
  return transfer;
}

Transfer Transfer::download(const RawMemory& from, RawHostBuffer& buffer, const Stream& stream) {
  Transfer transfer;
  if (from.bytes() == 0) {
    transfer.buffer_ = std::move(buffer);
    return transfer;
  }
  const std::byte* address = from.data(stream);
  Context& context = context_of(stream);
  const CurrentContext current(context);
  Stream ordered(stream);
  BlockPin pin(from.block().get());
  count(context.counters().downloads);
  context.check(
      context.table().download(buffer.data(), address, from.bytes(), stream.state()->native()),
      "download");
  transfer.buffer_ = std::move(buffer);
  transfer.pin_ = std::move(pin);
  try {
    transfer.done_.emplace(ordered.record());
  } catch (...) {
    context.note_failure(context.table().synchronize_stream(stream.state()->native()), "download");
    buffer = std::move(transfer.buffer_);
    throw;
  }
  return transfer;
}

// Waits, without throwing: the host buffer and the block may go only when the device is done with
// them.
void Transfer::finish() noexcept {
  if (!in_flight()) return;
  Context& context = done_->context();
  try {
    const CurrentContext current(context);
    context.note_failure(context.table().synchronize_event(done_->native()), "pending copy");
  } catch (const Error&) {
    // The context cannot be selected: the device is gone, and nothing copies any more.
  }
  done_.reset();
}

Transfer::~Transfer() { finish(); }

// A moved-from optional still holds a (moved-from) value; this one must not look as if it were in
// flight.
Transfer::Transfer(Transfer&& other) noexcept
    : buffer_(std::move(other.buffer_)),
      pin_(std::move(other.pin_)),
      done_(std::exchange(other.done_, std::nullopt)) {}

Transfer& Transfer::operator=(Transfer&& other) noexcept {
  if (this == &other) return *this;
  finish();
  buffer_ = std::move(other.buffer_);
  pin_ = std::move(other.pin_);
  done_ = std::exchange(other.done_, std::nullopt);
  return *this;
}

bool Transfer::is_ready() const { return !in_flight() || done_->passed(); }

RawHostBuffer Transfer::wait() {
  if (in_flight()) {
    done_->synchronize();
    done_.reset();
  }
  pin_ = BlockPin();
  return std::move(buffer_);
}

void Transfer::park() && {
  if (!in_flight()) return;
  drain_parked(done_->context());
  const std::lock_guard lock(parking().mutex);
  parking().transfers.push_back(std::move(*this));
}

void drain_parked(Context& context) noexcept {
  std::vector<Transfer> done;  // let go of outside the lock
  {
    const std::lock_guard lock(parking().mutex);
    auto& all = parking().transfers;
    for (std::size_t i = 0; i < all.size();) {
      bool over = false;
      try {
        over = &all[i].done_->context() == &context && all[i].is_ready();
      } catch (const Error&) {
        over = true;  // the device is gone; finish() reports it
      }
      if (!over) {
        ++i;
        continue;
      }
      std::swap(all[i], all.back());
      try {
        done.push_back(std::move(all.back()));
      } catch (const std::bad_alloc&) {
        return;  // try again another time
      }
      all.pop_back();
    }
  }
}

}  // namespace tl
