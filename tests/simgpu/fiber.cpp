// Switching stacks, and telling the sanitizers about it.
#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "sanitizer.h"

namespace simgpu {
namespace {

// Kernels keep little on the stack, but sanitizers make frames many times larger. Untouched pages
// cost nothing.
constexpr std::size_t kStackBytes = 256 << 10;
constexpr std::size_t kStackFence = 4096;

// The switch under way on this thread, read by the side that wakes up.
thread_local Fiber* leaving = nullptr;
thread_local Fiber* entering = nullptr;

}  // namespace

#ifndef SIMGPU_UCONTEXT
extern "C" void simgpu_swap_stacks(void** save, void* load);

// Saves what the ABI lets a callee keep, swaps stacks and returns on the other one.
asm(R"(
    .pushsection .text
    .hidden simgpu_swap_stacks
    .globl simgpu_swap_stacks
    .type simgpu_swap_stacks, @function
simgpu_swap_stacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size simgpu_swap_stacks, .-simgpu_swap_stacks
    .popsection
)");
#endif

Fiber::Fiber() {
#ifdef SIMGPU_TSAN
  tsan_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*body)(void*), void* argument)
    : body_(body), argument_(argument), owns_stack_(true) {
  void* mapping = mmap(nullptr, kStackFence + kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mprotect(mapping, kStackFence, PROT_NONE);
  stack_ = static_cast<std::byte*>(mapping) + kStackFence;
  stack_bytes_ = kStackBytes;
#ifdef SIMGPU_UCONTEXT
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = stack_bytes_;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::start, 0);
#else
  // As if start() had been called: six registers to pop, the address to return to, and an empty
  // return address of its own, which ends backtraces and leaves the stack aligned as a call would.
  auto* top = reinterpret_cast<std::uintptr_t*>(stack_ + stack_bytes_);
  *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(&Fiber::start);
  for (int i = 0; i < 6; ++i) *--top = 0;
  stack_pointer_ = top;
#endif
#ifdef SIMGPU_TSAN
  tsan_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (!owns_stack_) return;
#ifdef SIMGPU_TSAN
  __tsan_destroy_fiber(tsan_);
#endif
  unpoison(stack_, stack_bytes_);  // frames that were dropped have left their marks
  munmap(stack_ - kStackFence, kStackFence + stack_bytes_);
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  leaving = &from;
  entering = &to;
#ifdef SIMGPU_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_, to.stack_bytes_);
#endif
#ifdef SIMGPU_TSAN
  __tsan_switch_to_fiber(to.tsan_, 0);
#endif
#ifdef SIMGPU_UCONTEXT
  swapcontext(&from.context_, &to.context_);
#else
  simgpu_swap_stacks(&from.stack_pointer_, to.stack_pointer_);
#endif
  arrived();
}

void Fiber::arrived() {
#ifdef SIMGPU_ASAN
  // AddressSanitizer says where the stack we came from lies; for the thread's own that is the only
  // way to know.
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(entering->fake_stack_, &bottom, &bytes);
  if (!leaving->owns_stack_) {
    leaving->stack_ = static_cast<std::byte*>(const_cast<void*>(bottom));
    leaving->stack_bytes_ = bytes;
  }
#endif
}

void Fiber::start() {
  arrived();
  Fiber* self = entering;
  self->body_(self->argument_);
  std::abort();  // a body never returns: there is nothing below it
}

}  // namespace simgpu
