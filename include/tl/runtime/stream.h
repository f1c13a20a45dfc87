// Streams, the order in which a device does its work, and events, points in that order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "tl/runtime/location.h"

namespace tl {

class Context;
struct StreamState;
class Event;

// A shared handle: copies mean the same stream. The driver's stream is destroyed with the last
// handle and the last block of memory that belongs to it. On the CPU work is done at the call, so a
// stream there is always finished.
class Stream {
 public:
  // Uses a stream made by other code (a BLAS handle, an application); it is never destroyed from
  // here.
  static Stream borrow(DeviceLocation location, void* native);

  Stream(const Stream& other) noexcept;
  Stream(Stream&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Stream& operator=(Stream other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Stream();

  DeviceLocation location() const noexcept;
  void* native() const;  // the driver's own handle; what was put off is queued first

  void synchronize();        // waits for all work so far; throws what the device reports
  bool finished() const;     // does not wait
  void wait(const Event&);   // later work here starts after the event has passed
  void wait(const Stream&);  // ... after all work so far on the other stream
  Event record(bool timing = false);

  // kArrivals zeros on the device, made at the first call, in which the blocks of a launch on this
  // stream count who has come. The launch leaves zeros, so the next one on the stream finds
  // them; launches on other streams have counters of their own. Null where there is no memory left
  // for them, and on the CPU.
  static constexpr int kArrivals = 4096;
  std::uint32_t* arrivals() const;
  // kScratch bytes beside them, for what blocks of one launch tell each other; null as they are.
  static constexpr std::size_t kScratch = 48 << 10;
  std::byte* scratch() const;

  friend bool operator==(const Stream& a, const Stream& b) noexcept { return a.state_ == b.state_; }

  // For the runtime itself.
  explicit Stream(StreamState* state) noexcept;  // adds a reference
  static Stream adopt(StreamState* state) noexcept;
  StreamState* state() const noexcept { return state_; }

 private:
  Stream() = default;
  StreamState* state_ = nullptr;
};

// A point on a stream. Move-only; destroying it does not wait.
class Event {
 public:
  Event(Event&& other) noexcept
      : context_(other.context_),
        native_(std::exchange(other.native_, nullptr)),
        timing_(other.timing_) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(native_, other.native_);
    std::swap(timing_, other.timing_);
    return *this;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  bool passed() const;  // does not wait
  void synchronize() const;
  // Time on the device between two events recorded with timing.
  double milliseconds_since(const Event& start) const;

  void* native() const noexcept { return native_; }
  Context& context() const noexcept { return *context_; }

 private:
  friend class Stream;
  Event(Context& context, void* native, bool timing) noexcept
      : context_(&context), native_(native), timing_(timing) {}

  Context* context_;
  void* native_;
  bool timing_;
};

}  // namespace tl
