// Walking a grid, and threads working together: shuffles and reductions over warps and blocks.
// Included by gpu.h.
//
// Everything is right for 32 and for 64 lanes, and when the last warp of a block is not full. Calls
// that exchange values must be reached by all live threads of the warp (or block) together.
// Reductions treat blocks as one-dimensional.
#pragma once

// ---- grid

GPU_INLINE Index global_thread() {
  return static_cast<Index>(block_index()) * block_threads() + thread_index();
}

// f(i) for i = 0 ... count - 1, spread over the grid, whatever its size.
template <class F>
GPU_INLINE void grid_stride(Index count, F f) {
  const Index step = grid_threads();
  GPU_ROLLED
  for (Index i = global_thread(); i < count; i += step) f(i);
}

// ---- errors

GPU_INLINE void report_bad_index(volatile Fault* fault, unsigned tag, Index index, Index size) {
  fault->size = size;
  fault->what = static_cast<Bits64>(tag) << 56 | (static_cast<Bits64>(index) & 0xffffffffffffffull);
}

// ---- shuffles

// What lane `source` (below kWarp, and live) passed. T has 1, 2, 4 or 8 bytes.
template <class T>
GPU_INLINE T shuffle(T value, unsigned source) {
  if constexpr (sizeof(T) == 8) {
    const Bits64 b = __builtin_bit_cast(Bits64, value);
    const Bits64 low = shuffle_word(static_cast<Bits32>(b), source);
    const Bits64 high = shuffle_word(static_cast<Bits32>(b >> 32), source);
    return __builtin_bit_cast(T, high << 32 | low);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, shuffle_word(__builtin_bit_cast(Bits32, value), source));
  } else if constexpr (sizeof(T) == 2) {
    const Bits32 b = __builtin_bit_cast(Bits16, value);
    return __builtin_bit_cast(T, static_cast<Bits16>(shuffle_word(b, source)));
  } else {
    const Bits32 b = __builtin_bit_cast(Bits8, value);
    return __builtin_bit_cast(T, static_cast<Bits8>(shuffle_word(b, source)));
  }
}
template <class T>
GPU_INLINE T shuffle_xor(T value, unsigned mask) {
  return shuffle(value, lane() ^ mask);
}
// From `delta` lanes above; the lanes at the top keep their own value.
template <class T>
GPU_INLINE T shuffle_down(T value, unsigned delta) {
  const unsigned source = lane() + delta;
  return shuffle(value, source < kWarp ? source : lane());
}

// ---- reductions

namespace math {
constexpr float kInfinity = bits::float_of(bits::kF32Infinity);
// NaN wins, in either place.
template <class T>
GPU_INLINE T max(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
GPU_INLINE T min(T a, T b) {
  return a < b || a != a ? a : b;
}
}  // namespace math

// How two values become one: any commutative and associative operation.
struct Sum {
  template <class T>
  GPU_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  GPU_INLINE T operator()(T a, T b) const {
    return math::max(a, b);
  }
};
struct Min {
  template <class T>
  GPU_INLINE T operator()(T a, T b) const {
    return math::min(a, b);
  }
};

GPU_INLINE unsigned warp_index() { return thread_index() / kWarp; }
GPU_INLINE unsigned live_lanes() {
  const unsigned from_here = block_threads() - warp_index() * kWarp;
  return from_here < kWarp ? from_here : kWarp;
}

// Over the first `live` lanes; every lane gets the result. Values move towards lane 0 by clearing
// one bit of the lane number at a time, so they never pass through a lane that is not there; with
// all lanes present everyone has the result.
template <class T, class Op>
GPU_INLINE T warp_reduce(T value, Op op, unsigned live = kWarp) {
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
    const unsigned source = lane() ^ mask;
    const T other = shuffle(value, source < live ? source : lane());
    if (source < live) value = op(value, other);
  }
  return live == kWarp ? value : shuffle(value, 0);
}
template <class T>
GPU_INLINE T warp_sum(T value, unsigned live = kWarp) {
  return warp_reduce(value, Sum{}, live);
}
template <class T>
GPU_INLINE T warp_max(T value, unsigned live = kWarp) {
  return warp_reduce(value, Max{}, live);
}

// Over the lanes of a whole warp up to this one.
template <class T>
GPU_INLINE T sum_to_here(T value) {
  GPU_UNROLLED
  for (unsigned reach = 1; reach < kWarp; reach *= 2) {
    const T before = shuffle(value, lane() >= reach ? lane() - reach : lane());
    if (lane() >= reach) value += before;
  }
  return value;
}

// Over all threads of a block of at most kThreads; every thread gets the same bits. May be called
// again at once.
template <unsigned kThreads = kBlockThreads, class T, class Op>
GPU_INLINE T block_reduce(T value, Op op) {
  GPU_SHARED T partial[(kThreads + kWarp - 1) / kWarp];
  value = warp_reduce(value, op, live_lanes());
  if (lane() == 0) partial[warp_index()] = value;
  barrier();
  const unsigned warps = (block_threads() + kWarp - 1) / kWarp;
  value = partial[0];
  for (unsigned w = 1; w < warps; ++w) value = op(value, partial[w]);
  barrier();
  return value;
}
template <unsigned kThreads = kBlockThreads, class T>
GPU_INLINE T block_sum(T value) {
  return block_reduce<kThreads>(value, Sum{});
}
template <unsigned kThreads = kBlockThreads, class T>
GPU_INLINE T block_max(T value) {
  return block_reduce<kThreads>(value, Max{});
}
