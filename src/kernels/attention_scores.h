// What the kernels of attention and those of its gradient share: what they are told, which keys a
// query sees, and what becomes of a product of the two. Included by kernels in place of
// gpu.h.
#pragma once

#include "gpu.h"
#include "row_math.h"

enum MaskKind : unsigned { kNoMask, kByteMask, kFloatMask };

// Strides are those of (batch, head, position, element).
struct Attention {
  Index batch, heads, kv_heads, group;  // group: heads that share keys
  Index queries, keys, depth, value_depth;
  Index q[4], k[4], v[4], out[4], mask[4];
  const void* mask_at;
  const void* slopes;  // one per head, of the dtype of q; may be null
  double scale;
  double softcap;  // 0: none
  Index window;    // keys before its own that a query sees; negative: all
  unsigned mask_kind;
  unsigned causal;
  // (batch, heads, queries): the logarithm of the sum of each query's exponentials, which its
  // gradient starts from; infinity where it sees nothing, so that weights come out as 0. Null: not
  // kept.
  float* logs;
};

// The keys that query i may see: [first, last).
struct Sight {
  Index first, last;
};
GPU_INLINE Sight sight_of(const Attention& a, Index i) {
  const Index own = i + a.keys - a.queries;  // sequences end together
  Sight sight = {0, a.keys};
  if (a.causal && own + 1 < sight.last) sight.last = own + 1;
  if (a.window >= 0 && own - a.window > 0) sight.first = own - a.window;
  return sight;
}

// The product of a query and a key, scaled and bent.
template <class A>
GPU_INLINE A bent(const Attention& a, A product) {
  const A x = product * static_cast<A>(a.scale);
  if (a.softcap == 0) return x;
  const A cap = static_cast<A>(a.softcap);
  return cap * math::tanh(x / cap);
}
// With what slopes and the mask add to it for query i and key j of a head.
template <class T, class A = Accumulator<T>>
GPU_INLINE A biased(const Attention& a, A x, Index b, Index h, Index i, Index j) {
  if (a.slopes != nullptr) {
    x += widen(static_cast<const T*>(a.slopes)[h]) * static_cast<A>(j - (i + a.keys - a.queries));
  }
  if (a.mask_kind != kNoMask) {
    const Index at = b * a.mask[0] + h * a.mask[1] + i * a.mask[2] + j * a.mask[3];
    if (a.mask_kind == kFloatMask) {
      x += widen(static_cast<const T*>(a.mask_at)[at]);
    } else if (static_cast<const Bits8*>(a.mask_at)[at] == 0) {
      x = -math::infinity<A>();
    }
  }
  return x;
}

// The score of query i and key j of a head, from their product; -infinity where i does not see j.
template <class T, class A = Accumulator<T>>
GPU_INLINE A score(const Attention& a, A product, Index b, Index h, Index i, Index j) {
  const Sight sight = sight_of(a, i);
  if (j < sight.first || j >= sight.last) return -math::infinity<A>();
  return biased<T>(a, bent(a, product), b, h, i, j);
}

// kCount elements of a row from `first` on, as many as there are before `limit`; zeros after them.
template <int kCount, class T, class A = Accumulator<T>>
GPU_INLINE void load_piece(A (&to)[kCount], const T* row, Index step, Index first, Index limit) {
  constexpr int kFull = 16 / sizeof(T);
  constexpr int kEach = kFull < kCount ? kFull : kCount;
  if (step == 1 && first + kCount <= limit && is_vec_aligned<kEach>(row + first)) {
    GPU_UNROLLED
    for (int k = 0; k < kCount; k += kEach) {
      const Vec<T, kEach> vec = load_vec<kEach>(row + first + k);
      GPU_UNROLLED
      for (int j = 0; j < kEach; ++j) to[k + j] = widen(vec.get(j));
    }
    return;
  }
  const T* at = row + first * step;
  GPU_UNROLLED
  for (int k = 0; k < kCount; ++k, at += step) {
    to[k] = first + k < limit ? widen(*at) : A(0);
  }
}

// Four floats that shared memory gives at once.
struct alignas(16) Float4 {
  float at[4];
};
GPU_INLINE Float4 float4_at(const float* p) { return *reinterpret_cast<const Float4*>(p); }
GPU_INLINE void set_float4(float* p, const Float4& x) { *reinterpret_cast<Float4*>(p) = x; }
