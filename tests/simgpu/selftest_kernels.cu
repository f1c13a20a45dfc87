// Kernels of simgpu's own test, written against gpu_host.h alone: they check the simulator, not the
// product's gpu.h.
#include <cstdint>

#include "kernels/gpu_host.h"

namespace {

const gpu_host::Api* api = nullptr;

const gpu_host::Thread& self() { return *api->self(); }
unsigned global_index() { return self().block[0] * self().block_dim[0] + self().thread[0]; }

// One rendezvous per level, as gpu.h would do it.
unsigned long long warp_sum(unsigned long long value) {
  for (unsigned step = GPU_HOST_WARP / 2; step > 0; step /= 2) {
    value += api->shuffle(value, self().lane ^ step);
  }
  return value;
}

struct Shape {
  std::int64_t rows, cols;
  unsigned char flag;
};

}  // namespace

extern "C" {

extern const unsigned gpu_host_warp;
const unsigned gpu_host_warp = GPU_HOST_WARP;
void gpu_host_bind(const gpu_host::Api* given) { api = given; }

std::uint32_t selftest_variable[4] = {1, 2, 3, 4};

void add_one(std::uint32_t* data, unsigned count) {
  if (global_index() < count) data[global_index()] += 1;
}

// Many arguments of different sizes and alignments, and a struct by value.
void many_arguments(std::uint64_t* out, char a, double b, short c, Shape shape, float d) {
  if (global_index() != 0) return;
  out[0] = static_cast<std::uint64_t>(a);
  out[1] = static_cast<std::uint64_t>(b);
  out[2] = static_cast<std::uint64_t>(c);
  out[3] = static_cast<std::uint64_t>(shape.rows * 1000 + shape.cols * 10 + shape.flag);
  out[4] = static_cast<std::uint64_t>(d);
}

// Every coordinate of every thread: 8 words each.
void coordinates(std::uint32_t* out) {
  const gpu_host::Thread& t = self();
  const std::uint64_t block =
      (std::uint64_t{t.block[2]} * t.grid_dim[1] + t.block[1]) * t.grid_dim[0] + t.block[0];
  const std::uint64_t thread =
      (std::uint64_t{t.thread[2]} * t.block_dim[1] + t.thread[1]) * t.block_dim[0] + t.thread[0];
  std::uint32_t* at = out + (block * t.block_dim[0] * t.block_dim[1] * t.block_dim[2] + thread) * 8;
  for (int i = 0; i < 3; ++i) {
    at[i] = t.thread[i];
    at[3 + i] = t.block[i];
  }
  at[6] = t.lane;
  at[7] = t.warp;
}

// Sum of a block's values: warps by shuffle, then the first warp over the warps' sums in static
// shared memory.
void block_sum(const std::uint32_t* in, std::uint64_t* out) {
  static thread_local unsigned long long partial[64];
  const unsigned long long mine = warp_sum(in[global_index()]);
  if (self().lane == 0) partial[self().warp] = mine;
  api->barrier();
  const unsigned warps = (self().block_dim[0] + GPU_HOST_WARP - 1) / GPU_HOST_WARP;
  if (self().warp != 0) return;
  const unsigned long long sum = warp_sum(self().lane < warps ? partial[self().lane] : 0);
  if (self().lane == 0) out[self().block[0]] = sum;
}

// Reverses each block's values through dynamic shared memory.
void reverse_block(std::uint32_t* data) {
  auto* shared = static_cast<std::uint32_t*>(api->dynamic_shared());
  const unsigned n = self().block_dim[0];
  shared[self().thread[0]] = data[global_index()];
  api->barrier();
  data[global_index()] = shared[n - 1 - self().thread[0]];
}

// What uninitialised shared memory holds, static and dynamic; then it is dirtied for the next
// block.
void read_shared(std::uint32_t* out) {
  static thread_local std::uint32_t fixed[8];
  auto* dynamic = static_cast<std::uint32_t*>(api->dynamic_shared());
  if (self().thread[0] != 0) return;
  out[self().block[0] * 2] = fixed[5];
  out[self().block[0] * 2 + 1] = dynamic != nullptr ? dynamic[0] : 0;
  fixed[5] = 7;
  if (dynamic != nullptr) dynamic[0] = 7;
}

// Lane i gets what lane `source[i]` gave; odd lanes leave first when told to.
void shuffle_values(std::uint64_t* out, const std::uint32_t* source, unsigned odd_leave) {
  const unsigned lane = self().lane;
  if (odd_leave != 0 && lane % 2 == 1) return;
  out[global_index()] = api->shuffle(1000 + lane, source[lane]);
}

void ballot_lanes(std::uint64_t* out, unsigned divisor, unsigned leave_above) {
  if (self().lane > leave_above) return;
  out[global_index()] = api->ballot(self().lane % divisor == 0);
}

// Threads leave one after the other; those that are left meet at a barrier each round.
void staggered_exit(std::uint32_t* out) {
  static thread_local std::uint32_t rounds;
  const unsigned mine = self().thread[0];
  if (mine == 0) rounds = 0;
  api->barrier();
  for (unsigned round = 0; round < self().block_dim[0]; ++round) {
    if (round > mine) return;
    if (mine == self().block_dim[0] - 1) ++rounds;
    api->barrier();
    out[mine] = rounds;
    api->barrier();
  }
}

// Half of the warp waits for the block, the other half for the warp: nobody will ever come.
void mixed_wait(std::uint32_t* out) {
  if (self().lane % 2 == 0) {
    api->barrier();
  } else {
    api->shuffle(1, 0);
  }
  out[global_index()] = 1;
}

// The first `workers` threads take ten numbers from the thread after them, which hands over one at
// a time. Shared memory: the number, how many were given, how many were taken.
void hand_over(std::uint32_t* out, unsigned workers) {
  auto* shared = static_cast<volatile unsigned*>(api->dynamic_shared());
  const unsigned thread = self().thread[0];
  if (thread == 0) {
    shared[1] = 0;
    shared[2] = 0;
  }
  api->barrier();
  unsigned sum = 0;
  for (unsigned i = 0; i < 10 && thread < workers; ++i) {
    while (shared[1] == i) api->pause();
    sum += shared[0];
    api->barrier_of(workers);
    if (thread == 0) shared[2] = i + 1;
  }
  for (unsigned i = 0; i < 10 && thread == workers; ++i) {
    while (shared[2] != i) api->pause();
    shared[0] = i * i;
    shared[1] = i + 1;
  }
  if (thread < workers) out[thread] = sum;
}

void wait_for_nobody(std::uint32_t* out) {
  while (out[0] != 1) api->pause();
}

// Deep enough to need the stack, with a wait at the bottom.
unsigned descend(unsigned depth) {
  volatile unsigned char room[256];
  room[depth % sizeof room] = static_cast<unsigned char>(depth);
  if (depth == 0) {
    api->barrier();
    return 0;
  }
  return descend(depth - 1) +
         (room[depth % sizeof room] == static_cast<unsigned char>(depth) ? 1 : 0);
}

void deep_stack(std::uint32_t* out, unsigned depth) { out[global_index()] = descend(depth); }

void write_at(std::uint8_t* base, std::int64_t offset) {
  if (global_index() == 0) base[offset] = 1;
}

// Writes outside on purpose, unseen by AddressSanitizer, as a GPU would.
__attribute__((no_sanitize("address", "undefined"))) void write_outside(std::uint8_t* base,
                                                                        std::int64_t offset) {
  if (global_index() == 0) base[offset] = 1;
}

void count_up(std::uint32_t* counter) { __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED); }

void bump_variable(std::uint32_t* out) {
  if (global_index() == 0) out[0] = ++selftest_variable[0];
}

void no_arguments() { api->barrier(); }

#define SELFTEST_ENTRY(name)                          \
  extern const gpu_host::Entry gpu_host_entry_##name; \
  const gpu_host::Entry gpu_host_entry_##name = gpu_host::EntryOf<&name>::value;
SELFTEST_ENTRY(add_one)
SELFTEST_ENTRY(many_arguments)
SELFTEST_ENTRY(coordinates)
SELFTEST_ENTRY(block_sum)
SELFTEST_ENTRY(reverse_block)
SELFTEST_ENTRY(read_shared)
SELFTEST_ENTRY(shuffle_values)
SELFTEST_ENTRY(ballot_lanes)
SELFTEST_ENTRY(staggered_exit)
SELFTEST_ENTRY(mixed_wait)
SELFTEST_ENTRY(hand_over)
SELFTEST_ENTRY(wait_for_nobody)
SELFTEST_ENTRY(deep_stack)
SELFTEST_ENTRY(write_at)
SELFTEST_ENTRY(write_outside)
SELFTEST_ENTRY(count_up)
SELFTEST_ENTRY(bump_variable)
SELFTEST_ENTRY(no_arguments)

}  // extern "C"
