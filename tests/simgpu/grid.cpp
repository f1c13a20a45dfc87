// The scheduler of a block, and the rendezvous its threads meet at.
#include "grid.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "memory.h"
#include "module.h"

namespace simgpu {
namespace {

// Read by every thread_index() of every kernel, so it is worth the cheapest kind of thread-local
// access.
[[gnu::tls_model("initial-exec")]] thread_local const gpu_host::Thread* self = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local Grid* active = nullptr;

constexpr gpu_host::Api make_api(unsigned warp) {
  return {
      .abi = gpu_host::kAbi,
      .warp_width = warp,
      .self = [] { return self; },
      .barrier = [] { active->barrier(); },
      .barrier_of = [](unsigned threads) { active->barrier_of(threads); },
      .pause = [] { active->pause(); },
      .shuffle = [](unsigned long long value,
                    unsigned source) { return active->shuffle(value, source); },
      .ballot = [](bool predicate) { return active->ballot(predicate); },
      .dynamic_shared = [] { return active->dynamic_shared(); },
  };
}

// So many pauses between two barriers: nobody will do what is waited for.
constexpr unsigned kManyPauses = 2'000'000;

constexpr gpu_host::Api kApi32 = make_api(32);
constexpr gpu_host::Api kApi64 = make_api(64);

}  // namespace

const gpu_host::Api* kernel_api(unsigned warp) { return warp == 64 ? &kApi64 : &kApi32; }

Grid& Grid::of_this_thread() {
  thread_local Grid grid;
  return grid;
}

Status Grid::run(const Launch& launch) {
  prepare(launch);
  home_ = std::make_unique<Fiber>();
  on_ = home_.get();
  active = this;
  const unsigned long long blocks = 1ull * launch.grid.x * launch.grid.y * launch.grid.z;
  Status status = Status::Ok;
  for (unsigned long long i = 0; i < blocks && status == Status::Ok; ++i) {
    const unsigned long long at = launch.reverse ? blocks - 1 - i : i;
    const unsigned long long row = at / launch.grid.x;
    const Dim3 block{static_cast<unsigned>(at % launch.grid.x),
                     static_cast<unsigned>(row % launch.grid.y),
                     static_cast<unsigned>(row / launch.grid.y)};
    run_block(block);
    if (live_ == 0) continue;
    report_stuck(block);
    status = Status::LaunchFailed;
    idle_.clear();  // the stuck threads will never be resumed: drop their stacks, and for
                    // simplicity all
    fibers_.clear();
  }
  self = nullptr;
  active = nullptr;
  home_.reset();
  return status;
}

void Grid::prepare(const Launch& launch) {
  launch_ = &launch;
  warp_width_ = launch.warp;
  const Dim3 dim = launch.block;
  const unsigned count = dim.x * dim.y * dim.z;
  threads_.assign(count, Thread{});
  warps_.assign((count + warp_width_ - 1) / warp_width_, Warp{});
  for (unsigned i = 0; i < count; ++i) {
    threads_[i].where = {
        .thread = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y},
        .block = {0, 0, 0},
        .block_dim = {dim.x, dim.y, dim.z},
        .grid_dim = {launch.grid.x, launch.grid.y, launch.grid.z},
        .lane = i % warp_width_,
        .warp = i / warp_width_,
    };
  }
  shared_bytes_ = launch.shared_bytes;
  // Sized to the request, so that the sanitizers see an access past its end.
  shared_ = std::vector<Launch::Chunk>((shared_bytes_ + sizeof(Launch::Chunk) - 1) /
                                       sizeof(Launch::Chunk));
}

void Grid::run_block(Dim3 block) {
  const auto count = static_cast<unsigned>(threads_.size());
  live_ = count;
  at_barrier_ = at_barrier_of_ = 0;
  started_ = 0;
  released_ = paused_ = {};
  pauses_ = 0;
  for (Thread& thread : threads_) {
    thread.where.block[0] = block.x;
    thread.where.block[1] = block.y;
    thread.where.block[2] = block.z;
    thread.wait = kNothing;
  }
  for (unsigned w = 0; w < warps_.size(); ++w) {
    warps_[w] = Warp{};
    warps_[w].live = std::min(warp_width_, count - w * warp_width_);
  }
  if (shared_bytes_ != 0) std::memset(shared_.data(), kPoison, shared_bytes_);
  launch_->module->poison_static_shared();
  leave(*home_);
}

void Grid::fiber_body(void* grid) {
  auto& self_grid = *static_cast<Grid*>(grid);
  const auto count = [&] { return static_cast<unsigned>(self_grid.threads_.size()); };
  for (;;) {
    while (self_grid.released_.first == nullptr && self_grid.started_ < count()) {
      const unsigned i = self_grid.started_++;
      self_grid.run_thread(self_grid.threads_[self_grid.launch_->reverse ? count() - 1 - i : i]);
    }
    Fiber& fiber = *self_grid.on_;
    self_grid.idle_.push_back(&fiber);
    self_grid.leave(fiber);
  }
}

void Grid::run_thread(Thread& thread) {
  running_ = &thread;
  self = &thread.where;
  launch_->entry->call(launch_->arguments.data());
  // Whoever waited for all live threads may have waited only for this one.
  Warp& warp = warps_[thread.where.warp];
  --warp.live;
  --live_;
  if (warp.waiting[kShuffle] != 0) meet_in_warp(warp, thread.where.warp, kShuffle);
  if (warp.waiting[kBallot] != 0) meet_in_warp(warp, thread.where.warp, kBallot);
  if (at_barrier_ != 0) meet_in_block();
}

void Grid::leave(Fiber& from) {
  Fiber* to = home_.get();
  if (Thread* released = released_.take(); released != nullptr) {
    to = released->fiber;
  } else if (started_ < threads_.size()) {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>(&Grid::fiber_body, this));
      idle_.push_back(fibers_.back().get());
    }
    to = idle_.back();
    idle_.pop_back();
  } else if (pauses_ < kManyPauses) {
    if (Thread* paused = paused_.take(); paused != nullptr) {
      to = paused->fiber;
      ++pauses_;
    }
  }
  on_ = to;
  Fiber::switch_to(from, *to);
}

void Grid::wait(Wait what) {
  Thread& thread = *running_;
  thread.wait = what;
  switch (what) {
    case kBarrier:
      ++at_barrier_;
      meet_in_block();
      break;
    default: {
      Warp& warp = warps_[thread.where.warp];
      ++warp.waiting[what];
      meet_in_warp(warp, thread.where.warp, what);
    }
  }
  if (thread.wait != kNothing) suspend(thread);  // otherwise it was the last to arrive
}

void Grid::suspend(Thread& thread) {
  thread.fiber = on_;
  leave(*on_);
  running_ = &thread;
  self = &thread.where;
}

void Grid::Queue::put(Thread& thread) {
  thread.next = nullptr;
  (first == nullptr ? first : last->next) = &thread;
  last = &thread;
}

Grid::Thread* Grid::Queue::take() {
  Thread* thread = first;
  if (thread != nullptr) first = thread->next;
  return thread;
}

void Grid::release(Thread& thread) {
  thread.wait = kNothing;
  if (&thread != running_) released_.put(thread);  // that one goes on by itself
}

void Grid::meet_in_block() {
  if (at_barrier_ < live_) return;
  at_barrier_ = pauses_ = 0;
  for (Thread& thread : threads_) {
    if (thread.wait == kBarrier) release(thread);
  }
}

void Grid::meet_in_warp(Warp& warp, unsigned index, Wait what) {
  if (warp.waiting[what] < warp.live) return;
  warp.waiting[what] = 0;
  const std::size_t first = std::size_t{index} * warp_width_;
  const std::size_t last = std::min(first + warp_width_, threads_.size());
  // Answers first, for every lane, from what was deposited; only then may anyone run on and deposit
  // again.
  unsigned long long deposited[64] = {};
  unsigned long long ballot = 0;
  for (std::size_t i = first; i < last; ++i) {
    if (threads_[i].wait != what) continue;
    deposited[i - first] = threads_[i].value;
    if (threads_[i].value != 0) ballot |= 1ull << (i - first);
  }
  for (std::size_t i = first; i < last; ++i) {
    Thread& thread = threads_[i];
    if (thread.wait != what) continue;
    if (what == kBallot) {
      thread.value = ballot;
    } else if (thread.source < last - first && threads_[first + thread.source].wait == what) {
      thread.value = deposited[thread.source];
    }
  }
  for (std::size_t i = first; i < last; ++i) {
    if (threads_[i].wait == what) release(threads_[i]);
  }
}

void Grid::barrier() { wait(kBarrier); }

void Grid::barrier_of(unsigned threads) {
  if (++at_barrier_of_ == threads) {
    at_barrier_of_ = pauses_ = 0;
    for (Thread& thread : threads_) {
      if (thread.wait == kBarrierOf) release(thread);
    }
    return;
  }
  Thread& thread = *running_;
  thread.wait = kBarrierOf;
  suspend(thread);
}

// Those who wait for what others do come last, so that all others do it.
void Grid::pause() {
  Thread& thread = *running_;
  thread.wait = kPause;
  paused_.put(thread);
  suspend(thread);
  thread.wait = kNothing;
}

unsigned long long Grid::shuffle(unsigned long long value, unsigned source) {
  Thread& thread = *running_;
  thread.value = value;
  thread.source = source;
  wait(kShuffle);
  return thread.value;
}

unsigned long long Grid::ballot(bool predicate) {
  Thread& thread = *running_;
  thread.value = predicate ? 1 : 0;
  wait(kBallot);
  return thread.value;
}

void Grid::report_stuck(Dim3 block) const {
  unsigned waiting[kWaits] = {};
  for (const Thread& thread : threads_) ++waiting[thread.wait];
  std::fprintf(
      stderr,
      "simgpu: kernel %s is stuck in block (%u, %u, %u): of %zu threads %u wait at a "
      "barrier, %u in a shuffle, %u in a ballot, %u for another thread, %u have returned\n",
      launch_->name.c_str(), block.x, block.y, block.z, threads_.size(),
      waiting[kBarrier] + waiting[kBarrierOf], waiting[kShuffle], waiting[kBallot], waiting[kPause],
      waiting[kNothing]);
}

}  // namespace simgpu
