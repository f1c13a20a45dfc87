// What is behind a Stream: the driver's handle, and the free memory that is safe to reuse in its
// order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/driver/table.h"
#include "runtime/segment_list.h"

namespace tl {

class Context;
class DeferredWork;

struct StreamState {
  StreamState(Context& owner, driver::Handle handle, bool is_borrowed) noexcept
      : context(owner), borrowed(is_borrowed), native_(handle) {}
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  // The driver's handle, for what comes after all that was meant to be queued so far.
  driver::Handle native() {
    if (has_deferred.load(std::memory_order_acquire)) [[unlikely]]
      submit_deferred();
    return native_;
  }
  // The same where work that was put off does not matter: it holds all memory that it touches.
  driver::Handle bare() const noexcept { return native_; }

  Context& context;
  bool borrowed;
  std::atomic<std::uint32_t> references{1};
  std::array<SegmentList, 2> free_memory;  // small and large; guarded by the pool's mutex

  std::mutex arrivals_mutex;                      // guards making arrivals
  std::atomic<std::uint32_t*> arrivals{nullptr};  // see Stream::arrivals

  StreamState* next_deferred = nullptr;  // guarded by the context, see defer_stream_release
  std::uint32_t deferred_releases = 0;

  // See deferred.h.
  std::mutex deferred_mutex;  // held while it is submitted
  DeferredWork* deferred = nullptr;
  std::atomic<bool> has_deferred{false};
  void submit_deferred();

  // A new driver stream with one reference. Throws.
  static StreamState* create(Context& context);

  // A borrowed stream belongs to other code, which may destroy it as soon as the last Stream handle
  // is gone. That handle waits for the stream and retires it; blocks may go on naming it, as a
  // stream on which everything is done.
  std::atomic<std::uint32_t> handles{0};
  std::atomic<bool> retired{false};

  void add_handle() noexcept { handles.fetch_add(1, std::memory_order_relaxed); }
  void remove_handle() noexcept {
    if (handles.fetch_sub(1, std::memory_order_acq_rel) == 1 && borrowed) retire();
  }
  // Nothing runs on it any more and its driver handle must not be used.
  bool is_retired() const noexcept { return retired.load(std::memory_order_acquire); }

  void add() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void remove() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
  }

 private:
  void retire() noexcept;
  void free_arrivals() noexcept;  // the stream has ended; its context is current
  static void destroy(StreamState* state) noexcept;

  driver::Handle native_;
};

// Of all streams: where one is about to wait for another.
void submit_deferred_everywhere();

}  // namespace tl
