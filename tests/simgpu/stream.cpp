// Running queued items, lazily or by worker threads.
#include "stream.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

namespace simgpu {

void Scheduler::submit(const StreamRef& stream, Item item) {
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
}

void Scheduler::finish(Lock& lock, MarkerRef marker) {
  if (threads_) {
    changed_.wait(lock, [&] { return marker->passed; });
  } else if (!marker->passed) {
    const Memory::Window window(memory_);
    while (!marker->passed) run_until(lock, *marker->stream, marker->stream->completed + 1);
  }
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
  if (item.work && error == Status::Ok) {
    if (threads_) lock.unlock();
    const Status status = item.work();
    item.work = nullptr;  // lets go of what the work held before anybody learns that it is done
    if (threads_) lock.lock();
    if (status != Status::Ok && error == Status::Ok) error = status;
  }
  if (item.bookkeeping) item.bookkeeping();
  if (item.signal) {
    item.signal->nanoseconds = now();
    item.signal->passed = true;
  }
  ++stream.completed;
  changed_.notify_all();
}

void Scheduler::work(StreamRef stream) {
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
