// What a kernel compiled by the host compiler asks of the simulator that runs it.
//
// A kernel file compiled for a CPU becomes a shared object. The simulator (tests/simgpu) opens it,
// calls gpu_host_bind() once with its Api, finds the Entry of a kernel under the symbol
// "gpu_host_entry_<kernel>", packs the launch arguments with it while the launch call runs, and
// later calls it once per GPU thread, each in a context of its own. This file is the whole contract
// between the two.
#pragma once

#include <cstddef>
#include <new>
#include <tuple>
#include <utility>

namespace gpu_host {

inline constexpr unsigned kAbi = 2;

// Where a GPU thread is. Warps are cut from the linear thread index x + y * dim.x + z * dim.x *
// dim.y.
struct Thread {
  unsigned thread[3];
  unsigned block[3];
  unsigned block_dim[3];
  unsigned grid_dim[3];
  unsigned lane;  // position in the warp
  unsigned warp;  // number of the warp in the block
};

struct Api {
  unsigned abi;         // kAbi
  unsigned warp_width;  // 32 or 64, equal to the GPU_HOST_WARP the module was compiled with
  const Thread* (*self)();
  // Waits for every live thread of the block.
  void (*barrier)();
  // Waits for so many threads of the block, of which no others call it.
  void (*barrier_of)(unsigned threads);
  // Lets other threads of the block run, for one that waits for what they do.
  void (*pause)();
  // Every live lane of the warp deposits `value`; the result is what lane `source` deposited, or
  // the caller's own value where that lane is outside the warp or has returned.
  unsigned long long (*shuffle)(unsigned long long value, unsigned source);
  // Bit i is set when lane i is live and passed true.
  unsigned long long (*ballot)(bool predicate);
  // Start of the dynamic shared memory of the block (16-byte aligned); null when the launch asked
  // for none.
  void* (*dynamic_shared)();
};

// How to launch one kernel without knowing its parameter types.
struct Entry {
  unsigned long long packed_bytes;  // bytes the packed arguments need, in room aligned to 16
  void (*pack)(void* const* parameters,
               void* room);        // copies the argument values out of the launch call's array
  void (*call)(const void* room);  // runs the kernel body for the current thread
  unsigned parameter_count;
  const unsigned* parameter_offsets;  // each argument as a member of a C struct, then the struct's
                                      // bytes without padding
};

template <class... Args>
struct Packed {
  template <std::size_t... I>
  static void pack_each(void* const* parameters, void* room, std::index_sequence<I...>) {
    new (room) std::tuple<Args...>{*static_cast<const Args*>(parameters[I])...};
  }
  static void pack(void* const* parameters, void* room) {
    pack_each(parameters, room, std::index_sequence_for<Args...>{});
  }
};

// Where each argument lies when all of them are given in one buffer (the `extra` form of a launch).
template <class... Args>
struct Offsets {
  unsigned at[sizeof...(Args) + 1] = {};
  constexpr Offsets() {
    const std::size_t sizes[] = {sizeof(Args)..., 0};
    const std::size_t aligns[] = {alignof(Args)..., 1};
    std::size_t end = 0;
    for (std::size_t i = 0; i <= sizeof...(Args); ++i) {
      end = (end + aligns[i] - 1) / aligns[i] * aligns[i];
      at[i] = static_cast<unsigned>(end);
      end += sizes[i];
    }
  }
};

template <auto kKernel>
struct EntryOf;

template <class... Args, void (*kKernel)(Args...)>
struct EntryOf<kKernel> {
  static void call(const void* room) {
    std::apply(kKernel, *static_cast<const std::tuple<Args...>*>(room));
  }
  static constexpr Offsets<Args...> kOffsets{};
  static constexpr Entry value{sizeof(std::tuple<Args...>), &Packed<Args...>::pack, &call,
                               sizeof...(Args), kOffsets.at};
};

}  // namespace gpu_host

// The build appends one line per kernel to the source of a module (and the simulator's run-time
// compiler does too):
//   extern "C" const gpu_host::Entry gpu_host_entry_fill_u32 = gpu_host::EntryOf<&fill_u32>::value;
