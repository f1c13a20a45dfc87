#include "runtime/deferred.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "runtime/stream_state.h"

namespace tl {

namespace {

// The streams that work may be put off for: one or none in most processes.
struct Streams {
  std::mutex mutex;
  std::vector<StreamState*> all;
};
Streams& streams() {
  static auto* const kept = new Streams;
  return *kept;
}
std::atomic<int> stream_count{0};

// What submit() queues comes after nothing that waits.
thread_local bool is_submitting = false;
struct Submitting {
  Submitting() noexcept { is_submitting = true; }
  ~Submitting() { is_submitting = false; }
  Submitting(const Submitting&) = delete;
  Submitting& operator=(const Submitting&) = delete;
};

}  // namespace

DeferredWork::DeferredWork(const Stream& stream) : stream_(stream) {
  StreamState& state = *stream_.state();
  const std::lock_guard all(streams().mutex);
  const std::lock_guard lock(state.deferred_mutex);
  if (state.deferred != nullptr) return;
  streams().all.push_back(&state);
  state.deferred = this;
  is_first_ = true;
  stream_count.fetch_add(1, std::memory_order_relaxed);
}

void DeferredWork::set_waiting(bool waiting) const noexcept {
  stream_.state()->has_deferred.store(waiting, std::memory_order_release);
}

DeferredWork::Alone::Alone(const DeferredWork& work) : stream_(*work.stream_.state()) {
  stream_.deferred_mutex.lock();
  is_submitting = true;
}

DeferredWork::Alone::~Alone() {
  is_submitting = false;
  stream_.deferred_mutex.unlock();
}

void DeferredWork::end() noexcept {
  if (!is_first_) return;
  StreamState& state = *stream_.state();
  const std::lock_guard all(streams().mutex);
  const std::lock_guard lock(state.deferred_mutex);
  state.has_deferred.store(false, std::memory_order_relaxed);
  state.deferred = nullptr;
  is_first_ = false;
  std::erase(streams().all, &state);
  stream_count.fetch_sub(1, std::memory_order_relaxed);
}

void StreamState::submit_deferred() {
  if (is_submitting) return;
  const std::lock_guard lock(deferred_mutex);
  if (deferred == nullptr || !has_deferred.load(std::memory_order_acquire)) return;
  const Submitting mark;
  deferred->submit();
}

void submit_deferred_everywhere() {
  if (stream_count.load(std::memory_order_relaxed) == 0 || is_submitting) return;
  const std::lock_guard all(streams().mutex);
  for (StreamState* state : streams().all) state->submit_deferred();
}

}  // namespace tl
