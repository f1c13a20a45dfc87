// Streams, the work queued on them, and who runs it when.
//
// A stream is a queue of items. An event record queues a marker, and a wait names the marker that
// was the event's latest when the wait was called: recording the event again makes a new marker and
// disturbs nobody. That is all of CUDA's event semantics.
//
// Lazy mode runs nothing until somebody synchronises, and then only what that needs, on the calling
// thread. A copy that was never waited for has not happened, which is how missing synchronisation
// shows. Threads mode gives every stream a worker thread, for ThreadSanitizer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "memory.h"
#include "status.h"

namespace simgpu {

struct Stream;

struct Device {
  int index = 0;
  Status error = Status::Ok;  // sticky: a lost device, or one whose kernel failed
  std::size_t live_bytes = 0;
  int context_references = 0;
  std::shared_ptr<Stream> null_stream;
  std::vector<std::shared_ptr<Stream>> streams;  // the null stream is the first
};

// A point in a stream. Pending markers keep no stream alive: a stream is emptied before it is
// destroyed.
struct Marker {
  Stream* stream = nullptr;
  bool passed = false;
  std::int64_t nanoseconds = 0;
};
using MarkerRef = std::shared_ptr<Marker>;

struct Item {
  using Work = std::function<Status()>;

  std::unique_ptr<Work> work;         // without the lock, in threads mode
  std::function<void()> bookkeeping;  // after the work, under the lock; runs on a lost device too
  MarkerRef wait;                     // not before this has passed
  MarkerRef signal;                   // passes when the item is done
  std::vector<BlockRef> uses;         // must still be live when the item runs

  void do_work(Work what) { work = std::make_unique<Work>(std::move(what)); }
};

struct Stream {
  explicit Stream(Device& on) : device(on) {}

  Device& device;
  std::deque<Item> items;
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  void* tsan_context = nullptr;
  bool has_worker = false;
  bool stop = false;
};
using StreamRef = std::shared_ptr<Stream>;

// All functions are called with the simulator's lock held; those that take it may let go of it
// while they wait.
class Scheduler {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Scheduler(bool threads, std::mutex& mutex, Memory& memory)
      : threads_(threads), mutex_(mutex), memory_(memory) {}

  void submit(const StreamRef& stream, Item item);
  void finish(Lock& lock, StreamRef stream);  // everything submitted until now
  void finish(Lock& lock, MarkerRef marker);
  void finish_all(Lock& lock, Device& device);
  void retire(Lock& lock, StreamRef stream);  // finish, and end the worker
  // In lazy mode: one item of the stream, or of the one it waits for. Someone who polls must see an
  // end.
  void nudge(Lock& lock, Stream& stream);
  bool idle(const Stream& stream) const;  // a caller who learns that it is has synchronised with it
  bool passed(const Marker& marker) const;  // likewise

 private:
  void run_until(Lock& lock, Stream& stream, std::uint64_t count);
  void run_front(Lock& lock, Stream& stream);
  static Status run_item(Stream& stream, Item::Work* work, const Marker* wait,
                         const Marker* signal);
  void work(StreamRef stream);
  std::int64_t now();

  bool threads_;
  std::mutex& mutex_;
  Memory& memory_;
  std::condition_variable changed_;
  std::int64_t last_time_ = 0;
};

}  // namespace simgpu
