// Running one kernel launch: blocks one after the other, the threads of a block as fibers.
//
// A fiber takes threads of the block one by one and runs them to their end, so a kernel whose
// threads never wait needs a single stack and costs little more than a function call per thread.
// Only when a thread waits (barrier, shuffle, ballot, pause) does it keep the fiber it is on, and
// another fiber carries on with the rest. Threads that have been released go before threads that
// have not started: a warp runs as far as it can before the next one begins, which keeps few stacks
// alive and makes a missing barrier visible as poison. Threads that pause come last.
//
// When nothing can run and threads are left, they wait for something that will never come: the
// launch fails.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fiber.h"
#include "kernels/gpu_host.h"
#include "status.h"

namespace simgpu {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

class Module;

struct Launch {
  struct alignas(16) Chunk {
    std::byte bytes[16];
  };

  std::shared_ptr<Module> module;  // keeps the code mapped
  const gpu_host::Entry* entry = nullptr;
  std::string name;
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
  unsigned warp = 32;
  bool reverse = false;  // last block and last thread first
  std::vector<Chunk> arguments;
};

// The functions a kernel module is given.
const gpu_host::Api* kernel_api(unsigned warp);

// One per operating system thread, kept for its fibers.
class Grid {
 public:
  static Grid& of_this_thread();

  Status run(const Launch& launch);

  // What the kernel asks for, on behalf of the thread that runs now.
  void barrier();
  void barrier_of(unsigned threads);
  void pause();
  unsigned long long shuffle(unsigned long long value, unsigned source);
  unsigned long long ballot(bool predicate);
  void* dynamic_shared() { return shared_bytes_ == 0 ? nullptr : shared_.data(); }

 private:
  enum Wait : unsigned { kNothing, kBarrier, kBarrierOf, kShuffle, kBallot, kPause, kWaits };

  struct Thread {
    gpu_host::Thread where;
    Wait wait = kNothing;
    unsigned source = 0;           // shuffle: the lane to read
    unsigned long long value = 0;  // deposited, then the answer
    Fiber* fiber = nullptr;        // while it waits
    Thread* next = nullptr;        // in a queue
  };

  struct Queue {
    Thread* first = nullptr;
    Thread* last = nullptr;
    void put(Thread& thread);
    Thread* take();  // null: there is none
  };

  struct Warp {
    unsigned live = 0;
    unsigned waiting[kWaits] = {};
  };

  void prepare(const Launch& launch);
  void run_block(Dim3 block);
  void run_thread(Thread& thread);
  static void fiber_body(void* grid);

  void wait(Wait what);
  void suspend(Thread& thread);
  void leave(Fiber& from);  // switches to whatever can run
  void meet_in_warp(Warp& warp, unsigned index, Wait what);
  void meet_in_block();
  void release(Thread& thread);
  void report_stuck(Dim3 block) const;

  const Launch* launch_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  unsigned warp_width_ = 32;
  unsigned live_ = 0;
  unsigned at_barrier_ = 0, at_barrier_of_ = 0;
  unsigned pauses_ = 0;  // since the last barrier
  unsigned started_ = 0;
  Thread* running_ = nullptr;
  Queue released_, paused_;

  std::size_t shared_bytes_ = 0;
  std::vector<Launch::Chunk> shared_;

  std::unique_ptr<Fiber> home_;  // the thread's own stack, while run() is active
  Fiber* on_ = nullptr;          // the fiber that runs now
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

}  // namespace simgpu
