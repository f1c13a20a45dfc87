// Blocks of one launch that work together: counters that order what they write and read, and whole
// pieces of memory brought to shared memory while a block does something else. With gpu.h and
// gpu_mma.h the only place where the vendors are told apart.
//
// What a thread, and those it met at a barrier before, wrote ahead of announce() is there for
// whoever has read with observe() what announce() made of the counter.
#pragma once

#include "gpu.h"

// Whether a block of 512 threads has registers for work of many kinds. Of the targets one has not:
// 128 to a thread, and no second file of them to move some to.
#if defined(GPU_AMD) && defined(__gfx906__)
inline constexpr bool kManyRegisters = false;
#else
inline constexpr bool kManyRegisters = true;
#endif

#if defined(GPU_NVIDIA)
// Adds 1.
GPU_INLINE void announce(Bits32* counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
// Adds 1 and gives what there was; observes too.
GPU_INLINE Bits32 take_turn(Bits32* counter) {
  Bits32 before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(counter)
               : "memory");
  return before;
}
GPU_INLINE Bits32 observe(const Bits32* counter) {
  Bits32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}
#elif defined(GPU_AMD)
GPU_INLINE void announce(Bits32* counter) {
  __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
GPU_INLINE Bits32 take_turn(Bits32* counter) {
  return __hip_atomic_fetch_add(counter, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
}
GPU_INLINE Bits32 observe(const Bits32* counter) {
  return __hip_atomic_load(counter, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
}
#else
GPU_INLINE void announce(Bits32* counter) { __atomic_fetch_add(counter, 1u, __ATOMIC_RELEASE); }
GPU_INLINE Bits32 take_turn(Bits32* counter) {
  return __atomic_fetch_add(counter, 1u, __ATOMIC_ACQ_REL);
}
GPU_INLINE Bits32 observe(const Bits32* counter) {
  return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}
#endif

// Waits for `threads` threads of the block, whole warps, that all call it; others do not.
GPU_INLINE void barrier_of([[maybe_unused]] unsigned threads) {
#if defined(GPU_NVIDIA)
  asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
#elif defined(GPU_AMD)
  barrier();  // those are all there are
#else
  gpu_host_api->barrier_of(threads);
#endif
}

// Lanes of a warp meet, and see what each other wrote to shared memory before.
GPU_INLINE void warp_meet() {
#if defined(GPU_NVIDIA)
  __syncwarp();
#elif defined(GPU_AMD)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#else
  warp_ballot(true);
#endif
}

// Stands in a loop that waits for another thread of the block.
GPU_INLINE void pause() {
#if defined(GPU_SIMULATED)
  gpu_host_api->pause();
#endif
}

// Asks for the 128 bytes at p to be brought nearer, to where all blocks find them.
GPU_INLINE void call_line([[maybe_unused]] const void* p) {
#if defined(GPU_NVIDIA)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#endif
}

// The same for so many bytes; both are multiples of 16.
GPU_INLINE void call_bytes([[maybe_unused]] const void* p, [[maybe_unused]] unsigned bytes) {
#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes));
#endif
}

// Calls for what is from `first` to `end`: for kTimes lines by each of `threads` threads, of which
// this is number `own`. Nothing before `least` is called for. Unlike what reads memory this may
// stand before await_earlier(): the lines come to where later writes are seen.
template <int kTimes>
GPU_INLINE void call_range(const Bits8* first, const Bits8* end, const Bits8* least, unsigned own,
                           unsigned threads) {
  constexpr Index kLine = 128;
  const Bits8* last = end - 1 < least ? least : end - 1;
  GPU_UNROLLED
  for (int i = 0; i < kTimes; ++i) {
    const Bits8* at = first + (own + threads * static_cast<unsigned>(i)) * kLine;
    call_line(at < last ? at : last);
  }
}

// ---- pieces of memory, brought by the device itself
//
// A Delivery lies in shared memory and counts turns, 0 and 1 by turns. One thread calls open()
// once, before a barrier. A turn is over when as many threads as open() was told, else one, have
// called arrive(), or expect() with the bytes of some pieces and bring() for each of them
// (addresses and sizes are multiples of 16), and all these bytes are there. A thread that calls
// arrive_when_copied() arrives as soon as its copies of gpu_mma.h are done. there() says whether
// turn 0 or 1, whichever was asked for, is the one before the present one; wait() waits until it
// is. What a thread wrote before arrive() or expect() is there for those who waited. Where the
// hardware cannot do it (kDelivers is false) nothing of this is there. kMustDeliver says that the
// host always has room for it.

#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 900
inline constexpr bool kDelivers = true, kMustDeliver = true;
struct Delivery {
  Bits64 word;
  GPU_INLINE unsigned at() { return static_cast<unsigned>(__cvta_generic_to_shared(&word)); }
  GPU_INLINE void open(unsigned threads = 1) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at()), "r"(threads) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  GPU_INLINE void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at()) : "memory");
  }
  GPU_INLINE void arrive_when_copied() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at()) : "memory");
  }
  GPU_INLINE void expect(unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at()), "r"(bytes)
                 : "memory");
  }
  GPU_INLINE void bring(void* shared, const void* global, unsigned bytes) {
    const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(global), "r"(bytes), "r"(at())
        : "memory");
  }
  GPU_INLINE bool there(unsigned turn) {
    unsigned done;
    asm volatile(
        "{ .reg .pred there; mbarrier.test_wait.parity.shared::cta.b64 there, [%1], %2; "
        "selp.u32 %0, 1, 0, there; }"
        : "=r"(done)
        : "r"(at()), "r"(turn)
        : "memory");
    return done != 0;
  }
  GPU_INLINE void wait(unsigned turn) {
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred there; mbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2; "
          "selp.u32 %0, 1, 0, there; }"
          : "=r"(done)
          : "r"(at()), "r"(turn)
          : "memory");
    }
  }
};
#elif defined(GPU_SIMULATED)
inline constexpr bool kDelivers = kWarp == 32, kMustDeliver = false;  // so that both ways are run
struct Delivery {
  Bits32 turns;              // that are over
  Bits16 threads, arrivals;  // of a turn, in this one
  GPU_INLINE void open(unsigned count = 1) { *this = {0, static_cast<Bits16>(count), 0}; }
  GPU_INLINE void arrive() {
    if (++arrivals < threads) return;
    arrivals = 0;
    ++turns;
  }
  GPU_INLINE void arrive_when_copied() { arrive(); }
  GPU_INLINE void expect(unsigned) { arrive(); }
  GPU_INLINE void bring(void* shared, const void* global, unsigned bytes) {
    __builtin_memcpy(shared, global, bytes);
  }
  GPU_INLINE bool there(unsigned turn) const { return turns % 2 != turn; }
  GPU_INLINE void wait(unsigned turn) const {
    while (!there(turn)) pause();
  }
};
#else
inline constexpr bool kDelivers = false, kMustDeliver = false;
struct Delivery {
  Bits64 word;
  GPU_INLINE void open(unsigned = 1) {}
  GPU_INLINE void arrive() {}
  GPU_INLINE void arrive_when_copied() {}
  GPU_INLINE void expect(unsigned) {}
  GPU_INLINE void bring(void*, const void*, unsigned) {}
  GPU_INLINE bool there(unsigned) { return true; }
  GPU_INLINE void wait(unsigned) {}
};
#endif
