// Running queued items, lazily or by worker threads.
#include "stream.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "sanitizer.h"

namespace simgpu {

void Scheduler::submit(const StreamRef& stream, Item item) {
  if (item.work) happens_before(item.work.get());
  if (item.signal) happens_before(item.signal.get());
  stream->items.push_back(std::move(item));
  ++stream->submitted;
  if (!threads_) return;
  if (!stream->has_worker) {
    stream->has_worker = true;
    // Detached: a stream that is never destroyed must not keep the process from ending.
    std::thread([this, stream] { work(stream); }).detach();
  }
  changed_.notify_all();
}

void Scheduler::finish(Lock& lock, StreamRef stream) {
  const std::uint64_t target = stream->submitted;
  if (threads_) {
    changed_.wait(lock, [&] { return stream->completed >= target; });
  } else if (stream->completed < target) {
    const Memory::Window window(memory_);
    run_until(lock, *stream, target);
  }
  happens_after(stream.get());
}

void Scheduler::finish(Lock& lock, MarkerRef marker) {
  if (threads_) {
    changed_.wait(lock, [&] { return marker->passed; });
  } else if (!marker->passed) {
    const Memory::Window window(memory_);
    while (!marker->passed) run_until(lock, *marker->stream, marker->stream->completed + 1);
  }
  happens_after(marker.get());
}

bool Scheduler::idle(const Stream& stream) const {
  if (stream.completed < stream.submitted) return false;
  happens_after(&stream);
  return true;
}

bool Scheduler::passed(const Marker& marker) const {
  if (marker.passed) happens_after(&marker);
  return marker.passed;
}

void Scheduler::finish_all(Lock& lock, Device& device) {
  const std::vector<StreamRef> streams = device.streams;  // the list may change while we wait
  for (const StreamRef& stream : streams) finish(lock, stream);
}

void Scheduler::retire(Lock& lock, StreamRef stream) {
  finish(lock, stream);
  if (!stream->has_worker) return;
  stream->stop = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !stream->has_worker; });
}

void Scheduler::nudge(Lock& lock, Stream& stream) {
  if (threads_) return;
  const Memory::Window window(memory_);
  Stream* at = &stream;
  // Each step follows a wait to a marker that was queued before the wait, so this ends.
  while (!at->items.empty() && at->items.front().wait && !at->items.front().wait->passed) {
    at = at->items.front().wait->stream;
  }
  if (!at->items.empty()) run_front(lock, *at);
}

void Scheduler::run_until(Lock& lock, Stream& stream, std::uint64_t count) {
  while (stream.completed < count) {
    if (const MarkerRef wait = stream.items.front().wait) {
      while (!wait->passed) run_until(lock, *wait->stream, wait->stream->completed + 1);
    }
    run_front(lock, stream);
  }
}

void Scheduler::run_front(Lock& lock, Stream& stream) {
  Item item = std::move(stream.items.front());
  stream.items.pop_front();
  Status& error = stream.device.error;
  const bool stale = std::any_of(item.uses.begin(), item.uses.end(),
                                 [](const BlockRef& block) { return !block->live; });
  if (stale && error == Status::Ok) {
    std::fprintf(stderr, "simgpu: a copy or fill ran on device %d after its memory was freed\n",
                 stream.device.index);
    error = Status::IllegalAddress;
  }
  const bool lost = error != Status::Ok;
  if (threads_) lock.unlock();
  const Status status =
      run_item(stream, lost ? nullptr : item.work.release(), item.wait.get(), item.signal.get());
  if (threads_) lock.lock();
  if (status != Status::Ok && error == Status::Ok) error = status;
  if (item.bookkeeping) item.bookkeeping();
  if (item.signal) {
    item.signal->nanoseconds = now();
    item.signal->passed = true;
  }
  ++stream.completed;
  changed_.notify_all();
}

// The work is destroyed here too: what it held belongs to the stream's context. Everything else is
// passed by value and stays out of memory that the two contexts would share.
[[gnu::noinline]] Status Scheduler::run_item(Stream& stream, Item::Work* work, const Marker* wait,
                                             const Marker* signal) {
#ifdef SIMGPU_TSAN
  void* worker = __tsan_get_current_fiber();
  const bool own_context = stream.tsan_context != nullptr;  // in threads mode
  if (own_context) __tsan_switch_to_fiber(stream.tsan_context, __tsan_switch_to_fiber_no_sync);
#endif
  if (wait != nullptr) happens_after(wait);
  if (signal != nullptr) happens_after(signal);  // the call that recorded it
  if (work != nullptr) happens_after(work);
  Status status = Status::Ok;
  if (work != nullptr) {
    status = (*work)();
    delete work;
  }
  if (signal != nullptr) happens_before(signal);
  happens_before(&stream);
#ifdef SIMGPU_TSAN
  if (own_context) __tsan_switch_to_fiber(worker, __tsan_switch_to_fiber_no_sync);
#endif
  return status;
}

void Scheduler::work(StreamRef stream) {
#ifdef SIMGPU_TSAN
  stream->tsan_context = __tsan_create_fiber(0);  // before the lock is seen
#endif
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      if (stream->items.empty()) return stream->stop;
      const MarkerRef& wait = stream->items.front().wait;
      return !wait || wait->passed;
    });
    if (stream->items.empty()) break;
    run_front(lock, *stream);
  }
#ifdef SIMGPU_TSAN
  __tsan_destroy_fiber(stream->tsan_context);
#endif
  happens_after(stream.get());  // for this thread's own objects, which end with it
  stream->has_worker = false;
  changed_.notify_all();
}

// Strictly increasing, so that no interval is zero.
std::int64_t Scheduler::now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  const std::int64_t time = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  last_time_ = std::max(last_time_ + 1000, time);
  return last_time_;
}

}  // namespace simgpu
