// Products of quantised rows with vectors that became bytes: the making of the bytes, and what 32
// elements add up to.
#pragma once

#include "gpu.h"
#include "gpu_quant.h"
#include "quant_words.h"

// How much is loaded before the first of it is used, as a type for a generic lambda to take.
template <int kNumber>
struct Ahead {
  static constexpr int kCount = kNumber;
};

// kCount neighbours, 4 or 8, of 32 numbers that neighbouring lanes hold, as bytes.
template <int kCount>
struct PackedBytes {
  Bits32 words[kCount / 4];
  tl::kernels::QuantScale scale;  // of the 32, for the lane with the first of them
};

template <int kCount>
GPU_INLINE PackedBytes<kCount> pack_bytes(const float (&value)[kCount]) {
  constexpr unsigned kLanes = 32 / kCount;
  float largest = 0.0f;
  GPU_UNROLLED
  for (int i = 0; i < kCount; ++i) largest = math::max(largest, math::abs(value[i]));
  GPU_UNROLLED
  for (unsigned mask = kLanes / 2; mask > 0; mask /= 2) {
    largest = math::max(largest, shuffle_xor(largest, mask));
  }
  const float d = largest / 127.0f;
  // An infinite or NaN element makes the scale so, and with it every sum it is part of.
  const float inverse = d > 0.0f && d < math::kInfinity ? 1.0f / d : 0.0f;
  PackedBytes<kCount> packed = {};
  int sum = 0;
  GPU_UNROLLED
  for (int i = 0; i < kCount; ++i) {
    const int q = static_cast<int>(math::rint(inverse == 0.0f ? 0.0f : value[i] * inverse));
    const int kept = q > 127 ? 127 : q < -127 ? -127 : q;  // 1/d may be a little too large
    packed.words[i / 4] |= (static_cast<Bits32>(kept) & 255u) << 8 * (i % 4);
    sum += kept;
  }
  GPU_UNROLLED
  for (unsigned mask = kLanes / 4; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  const int other = shuffle_xor(sum, kLanes / 2);
  packed.scale = {d,
                  {d * static_cast<float>(sum), d * static_cast<float>(other)},
                  d * static_cast<float>(sum + other)};
  return packed;
}

// Bytes and scales of 32 elements of a vector.
struct PackedGroup {
  Vec<Bits8, 16> low, high;
  Vec<float, 4> scale;
  GPU_INLINE void load(const Bits8* low_half, const Bits8* high_half,
                       const tl::kernels::QuantScale* with) {
    low = load_vec<16>(low_half);
    high = load_vec<16>(high_half);
    scale = load_vec<4>(&with->d);
  }
  // `sum` with what they and 32 elements of w add up to.
  template <class W>
  GPU_INLINE float add(float sum, const W& w) const;
};

// 2^(8 - e) for a largest of 2^e up to 2^(e+1), which brings it to where f16 has its best; 1 for
// zero, infinity and NaN.
GPU_INLINE float half_factor(float largest) {
  const auto exponent = static_cast<int>(bits::bits_of(largest) >> 23 & 255u);
  const bool usual = exponent > 8 && exponent < 255;
  return usual ? bits::float_of(static_cast<Bits32>(exponent > 261 ? 1 : 262 - exponent) << 23)
               : 1.0f;
}

// 1 / x for a power of two that is neither very large nor very small.
GPU_INLINE float inverse_power(float x) { return bits::float_of((254u << 23) - bits::bits_of(x)); }

// `sum` with what 32 elements of w and of x add up to.
template <class W>
GPU_INLINE float add_group(float sum, const W& w, const Bits32 (&x)[8],
                           const tl::kernels::QuantScale& s) {
  if constexpr (W::kScales == 1) {
    int dot = 0;
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) {
      dot = dot4(static_cast<int>(w.codes(j)), static_cast<int>(x[j]), dot);
    }
    const float d = w.scale(0);
    sum = math::fma(d * s.d, static_cast<float>(dot), sum);
    if constexpr (W::kHasMinimum) {
      sum = math::fma(-w.minimum(0), s.both, sum);
    } else if constexpr (W::kBias != 0) {
      sum = math::fma(d * static_cast<float>(-W::kBias), s.both, sum);
    }
  } else {
    GPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
      int dot = 0;
      GPU_UNROLLED
      for (int j = 4 * half; j < 4 * half + 4; ++j) {
        dot = dot4(static_cast<int>(w.codes(j)), static_cast<int>(x[j]), dot);
      }
      const float d = w.scale(half);
      sum = math::fma(d * s.d, static_cast<float>(dot), sum);
      if constexpr (W::kHasMinimum) {
        sum = math::fma(-w.minimum(half), s.sum[half], sum);
      } else if constexpr (W::kBias != 0) {
        sum = math::fma(d * static_cast<float>(-W::kBias), s.sum[half], sum);
      }
    }
  }
  return sum;
}

template <class W>
GPU_INLINE float PackedGroup::add(float sum, const W& w) const {
  Bits32 bytes[8];
  GPU_UNROLLED
  for (int j = 0; j < 4; ++j) {
    bytes[j] = low.words.at[j];
    bytes[4 + j] = high.words.at[j];
  }
  return add_group(sum, w, bytes, {scale.get(0), {scale.get(1), scale.get(2)}, scale.get(3)});
}
