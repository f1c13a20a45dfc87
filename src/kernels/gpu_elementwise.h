// The walks of elementwise kernels: one operand, two or three, each read in vectors where the host
// found that it can be (tl/kernels/elementwise.h), else element by element through its strides. The
// output is contiguous.
//
// A thread takes a group of neighbours in the result at a time. However its operands are read, the
// function's code is there once for the group: what reads the operands is small beside it, and
// these modules are the largest of all.
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

// A thread's group, and where its elements lie in each operand: from `here` on in steps of the
// innermost stride and, where that dimension ends within the group, after `row` of them from `next`
// on (which counts as if the group had begun in the next row, before its start).
template <int kOperands>
struct Group {
  Index first;  // place in the result
  int count;    // elements that there are
  int row;
  Offsets<kOperands> here, next;
};

// body(group) for every group from `first` on.
template <int kEach, int kOperands, class Body>
GPU_INLINE void walk_groups(const Strided<kOperands>& at, const Reading& how, Body body,
                            Index first = 0) {
  const Index threads = block_threads();
  GPU_ROLLED
  for (Index g = first + block_index() * threads + thread_index(); g < how.groups;
       g += block_count() * threads) {
    Group<kOperands> group;
    group.first = kEach == 1 ? g : g * how.each;
    group.row = group.count = kEach;
    if (kEach > 1 && how.count - group.first < how.each) {
      group.count = static_cast<int>(how.count - group.first);
    } else if (kEach > 1) {
      group.count = how.each;
    }
    if (at.contiguous) {
      GPU_UNROLLED
      for (int k = 0; k < kOperands; ++k) {
        group.here.at[k] = how.access[k] == Access::Splat ? 0 : group.first;
      }
      group.next = group.here;
    } else if constexpr (kEach == 1) {
      group.here = group.next = offsets(at, group.first);
    } else {
      // Twice where there is a next row, which comes first, so that the code is there once.
      Index from = group.first;
      if (how.crosses) {
        const Index left = static_cast<Index>(at.dim[0].size) - inner_place(at, group.first);
        if (left < group.count) {
          group.row = static_cast<int>(left);
          from += left;
        }
      }
      group.here = {};
      GPU_ROLLED
      for (;;) {
        group.next = group.here;
        group.here = offsets(at, from);
        if (from == group.first) break;
        from = group.first;
      }
      GPU_UNROLLED
      for (int k = 0; k < kOperands; ++k) group.next.at[k] -= group.row * at.stride[k][0];
    }
    body(group);
  }
}

// The elements of operand k of a group. What is not there is not read, and whatever it is computed
// to is not written.
template <int kEach, int kOperands, class T>
GPU_INLINE Vec<T, kEach> fetch(const Strided<kOperands>& at, const Reading& how,
                               const Group<kOperands>& group, int k, const T* p, T value) {
  Vec<T, kEach> v;
  const Access access = how.access[k];
  if constexpr (kEach > 1) {
    if (access == Access::Vector && group.count == kEach) {
      return load_vec<kEach>(p + group.here.at[k]);
    }
    if (access == Access::Vector || access == Access::Strided) {
      const Index step = at.stride[k][0];
      GPU_UNROLLED
      for (int j = 0; j < kEach; ++j) {
        const Index from = j < group.row ? group.here.at[k] : group.next.at[k];
        T x = T{};
        if (j < group.count) x = p[from + j * step];
        v.set(j, x);
      }
      return v;
    }
  }
  T x = value;
  if (access != Access::Value) x = p[group.here.at[k]];
  GPU_UNROLLED
  for (int j = 0; j < kEach; ++j) v.set(j, x);
  return v;
}

template <int kEach, int kOperands, class T>
GPU_INLINE void put(const Group<kOperands>& group, T* out, const Vec<T, kEach>& v) {
  if constexpr (kEach == 1) {
    out[group.first] = v.get(0);
  } else if (group.count == kEach) {
    store_vec(out + group.first, v);
  } else {
    GPU_UNROLLED
    for (int j = 0; j < kEach; ++j) {
      if (j < group.count) out[group.first + j] = v.get(j);
    }
  }
}

// ---- one operand: out = f(x)

// Groups that lie one after another in memory, for functions so long that finding their places as
// above would make them slower than memory: a thread takes several and has the next on its way
// while it works on one. Gives the first group that is left to the walk.
template <int kEach, class T, class R, class F>
GPU_INLINE Index map_straight(const T* in, R* out, const Reading& how, F f) {
  using tl::kernels::kStraightRun;
  constexpr Index kTile = Index{kBlockThreads} * kStraightRun;  // groups of a block
  const Index whole = how.count / kEach / kTile * kTile;
  GPU_ROLLED
  for (Index tile = block_index() * kTile; tile < whole; tile += block_count() * kTile) {
    const T* from = in + (tile + thread_index()) * kEach;
    R* to = out + (tile + thread_index()) * kEach;
    Vec<T, kEach> next = load_vec<kEach>(from);
    GPU_ROLLED
    for (int u = 1;; ++u) {
      const Vec<T, kEach> x = next;
      from += kBlockThreads * kEach;
      if (u < kStraightRun) next = load_vec<kEach>(from);
      Vec<R, kEach> y;
      GPU_UNROLLED
      for (int j = 0; j < kEach; ++j) y.set(j, f(x.get(j)));
      store_vec(to, y);
      if (u == kStraightRun) break;
      to += kBlockThreads * kEach;
    }
  }
  return whole;
}

template <Weight kWeight, bool kStraight = false, class T, class R, class F>
GPU_INLINE void map_one(const T* in, R* out, const Strided<1>& at, const Reading& how, F f) {
  constexpr int kEach = vector_width(kWeight, sizeof(T) > sizeof(R) ? sizeof(T) : sizeof(R));
  Index first = 0;
  if constexpr (kStraight && kEach > 1) {
    if (how.straight) first = map_straight<kEach>(in, out, how, f);
  }
  const auto body = [&](const Group<1>& group) {
    const Vec<T, kEach> x = fetch<kEach>(at, how, group, 0, in, T{});
    Vec<R, kEach> y;
    GPU_UNROLLED
    for (int j = 0; j < kEach; ++j) y.set(j, f(x.get(j)));
    put(group, out, y);
  };
  walk_groups<kEach>(at, how, body, first);
}

// ---- two: out = f(x, y), either of which may be a number passed by value

template <Weight kWeight, class T, class R, class F>
GPU_INLINE void map_two(const T* a, const T* b, R* out, const Strided<2>& at, const Reading& how,
                        T value, F f) {
  constexpr int kEach = vector_width(kWeight, sizeof(T));
  walk_groups<kEach>(at, how, [&](const Group<2>& group) {
    const Vec<T, kEach> x = fetch<kEach>(at, how, group, 0, a, value);
    const Vec<T, kEach> y = fetch<kEach>(at, how, group, 1, b, value);
    Vec<R, kEach> z;
    GPU_UNROLLED
    for (int j = 0; j < kEach; ++j) z.set(j, f(x.get(j), y.get(j)));
    put(group, out, z);
  });
}
