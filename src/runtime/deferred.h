// Work that is put off, so that several steps of it can go to a stream as one.
//
// To everyone else it is as if it had been queued at once: before a stream is given anything else,
// or is asked or waited for, what was put off goes there first. Who puts work off holds the memory
// that it touches, so that none of it goes to another owner or back to the driver meanwhile.
#pragma once

#include "tl/runtime/stream.h"

namespace tl {

class DeferredWork {
 public:
  DeferredWork(const DeferredWork&) = delete;
  DeferredWork& operator=(const DeferredWork&) = delete;

  // Another one may be there for the stream already; this one must then put nothing off.
  bool may_defer() const noexcept { return is_first_; }

 protected:
  explicit DeferredWork(const Stream& stream);
  // The one that may defer has called end().
  ~DeferredWork() = default;

  // Gives everything to the stream. Called by any thread, one at a time; what it queues itself does
  // not lead back here.
  virtual void submit() = 0;

  const Stream& stream() const noexcept { return stream_; }
  // Whether there is anything to submit. A thread that adds to it says so before anyone can have
  // seen what will come of it.
  void set_waiting(bool waiting) const noexcept;
  // While there is one, no one else submits, and what its thread queues is not led back to
  // submit().
  class Alone {
   public:
    explicit Alone(const DeferredWork& work);
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    StreamState& stream_;
  };
  // From now on submit() is not called. First thing of a destructor.
  void end() noexcept;

 private:
  friend struct StreamState;

  Stream stream_;
  bool is_first_ = false;
};

}  // namespace tl
