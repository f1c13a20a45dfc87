// Weights of quantised rows as f16, for products on matrix units.
#pragma once

#include "gpu_mma.h"
#include "quant_words.h"

// What 32 weights need besides their codes.
template <class W>
struct Factors {
  Bits32 scale[W::kScales], minimum[W::kScales];
  // `there` is false for a group past the end of the row: all its weights are zero.
  GPU_INLINE void open(const W& w, bool there) {
    const Bits32 mask = 0u - static_cast<Bits32>(there);
    GPU_UNROLLED
    for (int i = 0; i < W::kScales; ++i) {
      scale[i] = pair_both(w.scale(i)) & mask;
      minimum[i] = W::kHasMinimum ? pair_both(-w.minimum(i)) & mask : 0u;
    }
  }
  // The codes of elements 4 j to 4 j + 3 as numbers. A byte behind 0x64 is 1024 and the byte, as a
  // half.
  GPU_INLINE static void numbers(const W& w, int j, Bits32* to) {
    constexpr Bits32 kOne = bits::f32_to_f16(-1024.0f - (W::kSigned ? 128.0f : W::kBias));
    constexpr Bits32 kOffset = kOne | kOne << 16;
    const Bits32 codes = W::kSigned ? w.codes(j) ^ 0x80808080u : w.codes(j);
    to[0] = pair_add(pick_bytes<0, 4, 1, 4>(codes, 0x64646464u), kOffset);
    to[1] = pair_add(pick_bytes<2, 4, 3, 4>(codes, 0x64646464u), kOffset);
  }
  // What they weigh.
  GPU_INLINE void scaled(const Bits32* numbers, int j, Bits32* to) const {
    const int which = W::kScales == 1 ? 0 : j / 4;
    to[0] = pair_fma(numbers[0], scale[which], minimum[which]);
    to[1] = pair_fma(numbers[1], scale[which], minimum[which]);
  }
  GPU_INLINE void weights(const W& w, int j, Bits32* to) const {
    Bits32 unscaled[2];
    numbers(w, j, unscaled);
    scaled(unscaled, j, to);
  }
};

// `sum` and the products of group `group` of a row with x(0) to x(31), for targets without matrix
// units.
template <class W, class X>
GPU_INLINE float add_group_of_halves(float sum, const Bits8* row, Index group, const X& x) {
  typename W::Raw raw;
  raw.load(row, group);
  W from;
  from.open(raw);
  Factors<W> factors;
  factors.open(from, true);
  GPU_UNROLLED
  for (int j = 0; j < 8; ++j) {
    Bits32 left[2];
    factors.weights(from, j, left);
    GPU_UNROLLED
    for (int e = 0; e < 4; ++e) {
      const auto half = static_cast<Bits16>(left[e / 2] >> 16 * (e % 2));
      sum = math::fma(f16_to_float(half), x(4 * j + e), sum);
    }
  }
  return sum;
}
