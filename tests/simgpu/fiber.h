// A fiber: a stack and a place to continue at.
//
// GPU threads that wait for each other need their own stacks but no operating system threads: one
// block runs on one thread, and waiting is a switch to another fiber. On x86-64 a switch is a dozen
// instructions; elsewhere, or with SIMGPU_UCONTEXT defined, it is swapcontext, which is portable
// and pays a system call each time.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) || defined(SIMGPU_UCONTEXT)
#undef SIMGPU_UCONTEXT
#define SIMGPU_UCONTEXT 1
#include <ucontext.h>
#endif

namespace simgpu {

class Fiber {
 public:
  Fiber();  // stands for the calling thread and its own stack
  Fiber(void (*body)(void*),
        void* argument);  // a new stack; `body` starts at the first switch, never returns
  ~Fiber();               // a fiber that has not ended is dropped without unwinding
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves `from`, which is the running fiber, and continues `to`. Returns when someone switches
  // back.
  static void switch_to(Fiber& from, Fiber& to);

 private:
  static void start();    // where a new fiber begins
  static void arrived();  // what both sides of a switch do once they run again

  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::byte* stack_ = nullptr;  // lowest usable byte
  std::size_t stack_bytes_ = 0;
#ifdef SIMGPU_UCONTEXT
  ucontext_t context_;
#else
  void* stack_pointer_ = nullptr;
#endif
  bool owns_stack_ = false;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  void* tsan_ = nullptr;        // ThreadSanitizer's idea of this fiber
};

}  // namespace simgpu
