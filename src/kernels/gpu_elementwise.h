// The walks of elementwise kernels: one operand, two or three, read in vectors where the host found
// that they can be (tl/kernels/elementwise.h), else element by element through their strides. The
// output is contiguous.
//
// A block takes tiles of kFlight positions per thread, one block's threads apart, so that each
// thread has several loads on their way before it computes.
#pragma once

#include "functors.h"

using tl::kernels::Access;
using tl::kernels::Reading;
using tl::kernels::vector_width;
using tl::kernels::Weight;

// The type an element is computed in.
template <class T>
struct Compute {
  using Type = T;
};
template <>
struct Compute<Half> {
  using Type = float;
};
template <>
struct Compute<BFloat16> {
  using Type = float;
};
template <>
struct Compute<Float8> {
  using Type = float;
};
template <class T>
using ComputeOf = typename Compute<T>::Type;

// f(i) for kFlight positions per thread and tile, in two steps: load(i, k) for all of them, then
// finish(i, k).
template <int kFlight, class Load, class Finish>
GPU_INLINE void walk_tiles(Index first, Index count, Load load, Finish finish) {
  const Index tile = static_cast<Index>(kFlight) * block_threads();
  GPU_ROLLED
  for (Index start = first + block_index() * tile; start < count; start += block_count() * tile) {
    const Index at = start + thread_index();
    if constexpr (kFlight == 1) {
      if (at < count) {
        load(at, 0);
        finish(at, 0);
      }
    } else {
      for (int k = 0; k < kFlight; ++k) {
        const Index i = at + static_cast<Index>(k) * block_threads();
        if (i < count) load(i, k);
      }
      for (int k = 0; k < kFlight; ++k) {
        const Index i = at + static_cast<Index>(k) * block_threads();
        if (i < count) finish(i, k);
      }
    }
  }
}

template <class T, int kEach>
GPU_INLINE Vec<T, kEach> splat(T x) {
  Vec<T, kEach> v;
  for (int k = 0; k < kEach; ++k) v.set(k, x);
  return v;
}

template <class T, int kEach>
GPU_INLINE Vec<T, kEach> read_vec(Access access, const T* p) {
  return access == Access::Vector ? load_vec<kEach>(p) : splat<T, kEach>(*p);
}

// Where position i (of vectors of kEach elements, or of elements) lies in each operand. In a
// contiguous walk each operand is either contiguous itself or one element.
template <int kEach, int kOperands>
GPU_INLINE Offsets<kOperands> places(const Strided<kOperands>& at, const Reading& how, Index i) {
  if (!at.contiguous) return offsets(at, i);
  Offsets<kOperands> here;
  for (int k = 0; k < kOperands; ++k) here.at[k] = how.access[k] == Access::Vector ? i * kEach : 0;
  return here;
}

// ---- one operand: out = f(x)

template <Weight kWeight, class T, class R, class F>
GPU_INLINE void map_one(const T* in, R* out, const Strided<1>& at, const Reading& how, F f) {
  constexpr int kWider = sizeof(T) > sizeof(R) ? sizeof(T) : sizeof(R);
  constexpr int kEach = vector_width(kWeight, kWider);
  if constexpr (kEach > 1) {
    constexpr int kFlight = 2;
    Vec<T, kEach> x[kFlight];
    walk_tiles<kFlight>(
        0, how.vectors,
        [&](Index i, int k) {
          x[k] = read_vec<T, kEach>(how.access[0], in + places<kEach>(at, how, i).at[0]);
        },
        [&](Index i, int k) {
          Vec<R, kEach> y;
          for (int j = 0; j < kEach; ++j) y.set(j, f(x[k].get(j)));
          store_vec(out + i * kEach, y);
        });
  }
  constexpr int kFlight = kWeight == Weight::Light ? 4 : 1;
  T x[kFlight] = {};
  walk_tiles<kFlight>(
      how.vectors * kEach, how.count,
      [&](Index i, int k) { x[k] = in[places<1>(at, how, i).at[0]]; },
      [&](Index i, int k) { out[i] = f(x[k]); });
}

// ---- two: out = f(x, y), either of which may be a number passed by value

template <Weight kWeight, class T, class R, class F>
GPU_INLINE void map_two(const T* a, const T* b, R* out, const Strided<2>& at, const Reading& how,
                        T value, F f) {
  constexpr int kEach = vector_width(kWeight, sizeof(T));
  if constexpr (kEach > 1) {
    constexpr int kFlight = 2;
    Vec<T, kEach> x[kFlight], y[kFlight];
    walk_tiles<kFlight>(
        0, how.vectors,
        [&](Index i, int k) {
          const Offsets<2> from = places<kEach>(at, how, i);
          x[k] = how.access[0] == Access::Value ? splat<T, kEach>(value)
                                                : read_vec<T, kEach>(how.access[0], a + from.at[0]);
          y[k] = how.access[1] == Access::Value ? splat<T, kEach>(value)
                                                : read_vec<T, kEach>(how.access[1], b + from.at[1]);
        },
        [&](Index i, int k) {
          Vec<R, kEach> z;
          for (int j = 0; j < kEach; ++j) z.set(j, f(x[k].get(j), y[k].get(j)));
          store_vec(out + i * kEach, z);
        });
  }
  constexpr int kFlight = kWeight == Weight::Light ? 4 : 1;
  T x[kFlight] = {}, y[kFlight] = {};
  walk_tiles<kFlight>(
      how.vectors * kEach, how.count,
      [&](Index i, int k) {
        const Offsets<2> from = places<1>(at, how, i);
        x[k] = how.access[0] == Access::Value ? value : a[from.at[0]];
        y[k] = how.access[1] == Access::Value ? value : b[from.at[1]];
      },
      [&](Index i, int k) { out[i] = f(x[k], y[k]); });
}
