// 32 neighbours of a row of blocks, in words: what products of quantised rows are made of.
//
// For a format F of quant_blocks.h, Words<F> is loaded with the 32 elements of number `group` of a
// row. Element e of them is scale(e / 16) * (code - kBias) - minimum(e / 16), and codes(j) has the
// codes of elements 4 j to 4 j + 3 as bytes, all below 128 unless kSigned says that they have a
// sign. Where kScales is 1, one scale serves all 32. Rows may start at any address that kAlign
// divides; nothing outside the words that hold a block's bytes is read.
#pragma once

#include "gpu_mma.h"
#include "quant_blocks.h"

namespace words {

namespace blocks = tl::quant_blocks;

// kCount words from an address that kAlign divides.
template <int kAlign, int kCount>
GPU_INLINE void load(const Bits8* p, Bits32 (&to)[kCount]) {
  if constexpr (kAlign >= 16 && kCount % 4 == 0) {
    GPU_UNROLLED
    for (int i = 0; i < kCount; i += 4) {
      const auto vec = load_vec<16>(p + 4 * i);
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) to[i + j] = vec.words.at[j];
    }
  } else if constexpr (kAlign >= 8 && kCount % 2 == 0) {
    GPU_UNROLLED
    for (int i = 0; i < kCount; i += 2) {
      const auto vec = load_vec<8>(p + 4 * i);
      to[i] = vec.words.at[0];
      to[i + 1] = vec.words.at[1];
    }
  } else if constexpr (kAlign >= 4) {
    GPU_UNROLLED
    for (int i = 0; i < kCount; ++i) to[i] = load_vec<4>(p + 4 * i).words.at[0];
  } else {
    // The words that the bytes lie in, moved into place. When they are in place already there is
    // no word after the last.
    const auto past = static_cast<Bits32>(reinterpret_cast<Bits64>(p) & 3u);
    const Bits8* from = p - past;
    Bits32 word = load_vec<4>(from).words.at[0];
    GPU_UNROLLED
    for (int i = 0; i < kCount; ++i) {
      const int next = i + 1 < kCount ? i + 1 : (past != 0 ? kCount : kCount - 1);
      const Bits32 after = load_vec<4>(from + 4 * next).words.at[0];
      to[i] = shift_right(word, after, 8 * past);
      word = after;
    }
  }
}

GPU_INLINE float half_of(Bits32 low_bits) { return f16_to_float(static_cast<Bits16>(low_bits)); }
GPU_INLINE float half_at(const Bits8* p) { return half_of(load_vec<2>(p).words.at[0]); }

constexpr Bits32 kNibbles = 0x0f0f0f0fu;

// Codes in halves of bytes, the low halves first.
template <int kCount>
GPU_INLINE Bits32 nibbles(const Bits32 (&qs)[kCount], int j) {
  return (j < 4 ? qs[j & 3] : qs[j & 3] >> 4) & kNibbles;
}
// Bits 4 j to 4 j + 3 as bit 4 of four bytes.
GPU_INLINE Bits32 fifth_bits(Bits32 high, int j) {
  return ((high >> 4 * j & 15u) * 0x00204081u & 0x01010101u) << 4;
}
// The entries of a table of sixteen bytes that the bytes of `q`, 0 to 15, name.
GPU_INLINE Bits32 entries(Bits32 t0, Bits32 t1, Bits32 t2, Bits32 t3, Bits32 q) {
  const Bits32 within = q & 0x07070707u;
  const Bits32 upper = (q >> 3 & 0x01010101u) * 0xffu;
  return (pick_bytes(t2, t3, within) & upper) | (pick_bytes(t0, t1, within) & ~upper);
}
GPU_INLINE Bits32 uneven(Bits32 q) {  // kUneven of quant_blocks.h
  return entries(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u, q);
}
GPU_INLINE Bits32 twice_e2m1(Bits32 q) {
  return entries(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu, q);
}

template <class Format>
struct Words;

// ---- blocks of 32

// One scale, no minimum.
struct Scaled {
  static constexpr int kScales = 1, kBias = 0;
  static constexpr bool kSigned = false, kHasMinimum = false;
  float d;
  GPU_INLINE float scale(int) const { return d; }
  GPU_INLINE float minimum(int) const { return 0.0f; }
};
// And a minimum.
struct Shifted {
  static constexpr int kScales = 1, kBias = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  float d, m;
  GPU_INLINE float scale(int) const { return d; }
  GPU_INLINE float minimum(int) const { return m; }
};

template <>
struct Words<blocks::Q4_0> : Scaled {
  static constexpr int kAlign = 2, kBias = 8;
  Bits32 qs[4];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + group * blocks::Q4_0::kBytes;
    d = half_at(b);
    words::load<2>(b + 2, qs);
  }
  GPU_INLINE Bits32 codes(int j) const { return nibbles(qs, j); }
};

template <>
struct Words<blocks::Q4_1> : Shifted {
  static constexpr int kAlign = 4;
  Bits32 qs[4];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + group * blocks::Q4_1::kBytes;
    const Bits32 dm = load_vec<4>(b).words.at[0];
    d = half_of(dm);
    m = -half_of(dm >> 16);
    words::load<4>(b + 4, qs);
  }
  GPU_INLINE Bits32 codes(int j) const { return nibbles(qs, j); }
};

template <>
struct Words<blocks::Q5_0> : Scaled {
  static constexpr int kAlign = 2, kBias = 16;
  Bits32 q[5];  // the fifth bits first
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + group * blocks::Q5_0::kBytes;
    d = half_at(b);
    words::load<2>(b + 2, q);
  }
  GPU_INLINE Bits32 codes(int j) const {
    return ((j < 4 ? q[1 + (j & 3)] : q[1 + (j & 3)] >> 4) & kNibbles) | fifth_bits(q[0], j);
  }
};

template <>
struct Words<blocks::Q5_1> : Shifted {
  static constexpr int kAlign = 8;
  Bits32 q[6];  // scale and minimum, the fifth bits, and the others
  GPU_INLINE void load(const Bits8* row, Index group) {
    words::load<8>(row + group * blocks::Q5_1::kBytes, q);
    d = half_of(q[0]);
    m = -half_of(q[0] >> 16);
  }
  GPU_INLINE Bits32 codes(int j) const {
    return ((j < 4 ? q[2 + (j & 3)] : q[2 + (j & 3)] >> 4) & kNibbles) | fifth_bits(q[1], j);
  }
};

template <>
struct Words<blocks::Q8_0> : Scaled {
  static constexpr int kAlign = 2;
  static constexpr bool kSigned = true;
  Bits32 qs[8];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + group * blocks::Q8_0::kBytes;
    d = half_at(b);
    words::load<2>(b + 2, qs);
  }
  GPU_INLINE Bits32 codes(int j) const { return qs[j]; }
};

template <>
struct Words<blocks::IQ4_NL> : Scaled {
  static constexpr int kAlign = 2;
  static constexpr bool kSigned = true;
  Bits32 qs[4];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + group * blocks::IQ4_NL::kBytes;
    d = half_at(b);
    words::load<2>(b + 2, qs);
  }
  GPU_INLINE Bits32 codes(int j) const { return uneven(nibbles(qs, j)); }
};

template <>
struct Words<blocks::MXFP4> : Scaled {
  static constexpr int kAlign = 1;
  static constexpr bool kSigned = true;
  Bits32 qs[4];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + group * blocks::MXFP4::kBytes;
    d = blocks::MXFP4::scale(b[0]);
    words::load<1>(b + 1, qs);
  }
  GPU_INLINE Bits32 codes(int j) const { return twice_e2m1(nibbles(qs, j)); }
};

// ---- blocks of 256

// A scale for each half of the 32.
struct ScaledTwice {
  static constexpr int kScales = 2, kBias = 0;
  static constexpr bool kSigned = false, kHasMinimum = false;
  float d[2];
  GPU_INLINE float scale(int half) const { return d[half]; }
  GPU_INLINE float minimum(int) const { return 0.0f; }
};

template <>
struct Words<blocks::Q2_K> {
  static constexpr int kAlign = 4, kScales = 2, kBias = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  float d[2], m[2];
  Bits32 qs[8];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + (group >> 3) * blocks::Q2_K::kBytes;
    const int g = static_cast<int>(group & 7);
    const Bits32 dm = load_vec<4>(b + 80).words.at[0];
    const Bits32 scales = load_vec<2>(b + 2 * g).words.at[0];
    GPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
      d[half] = half_of(dm) * blocks::number(scales >> 8 * half & 15u);
      m[half] = half_of(dm >> 16) * blocks::number(scales >> (8 * half + 4) & 15u);
    }
    words::load<4>(b + 16 + 32 * (g >> 2), qs);
    GPU_UNROLLED
    for (Bits32& each : qs) each = each >> 2 * (g & 3) & 0x03030303u;
  }
  GPU_INLINE float scale(int half) const { return d[half]; }
  GPU_INLINE float minimum(int half) const { return m[half]; }
  GPU_INLINE Bits32 codes(int j) const { return qs[j]; }
};

template <>
struct Words<blocks::Q3_K> : ScaledTwice {
  static constexpr int kAlign = 2, kBias = 4;
  Bits32 qs[8];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + (group >> 3) * blocks::Q3_K::kBytes;
    const int g = static_cast<int>(group & 7);
    const float whole = half_at(b + 108);
    GPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
      d[half] = whole * static_cast<float>(blocks::Q3_K::scale(b + 96, 2 * g + half));
    }
    Bits32 high[8];
    words::load<2>(b, high);
    words::load<2>(b + 32 + 32 * (g >> 2), qs);
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) {
      qs[j] = (qs[j] >> 2 * (g & 3) & 0x03030303u) | (high[j] >> g & 0x01010101u) << 2;
    }
  }
  GPU_INLINE Bits32 codes(int j) const { return qs[j]; }
};

// Scale and minimum of a group of Q4_K and Q5_K: sixteen bytes at the start of a block.
GPU_INLINE void load_pair(const Bits8* b, int g, float* d, float* m) {
  Bits32 head[4];
  load<16>(b, head);
  // Pair g: six bits each. The second four have their upper two bits with the first.
  const int shift = 8 * (g & 3);
  const Bits32 first = head[1] >> shift, second = head[2] >> shift, third = head[3] >> shift;
  const Bits32 sc = g < 4 ? first & 63u : (third & 15u) | (first >> 6 & 3u) << 4;
  const Bits32 mn = g < 4 ? second & 63u : (third >> 4 & 15u) | (second >> 6 & 3u) << 4;
  *d = half_of(head[0]) * blocks::number(sc);
  *m = half_of(head[0] >> 16) * blocks::number(mn);
}

template <>
struct Words<blocks::Q4_K> : Shifted {
  static constexpr int kAlign = 16;
  Bits32 qs[8];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + (group >> 3) * blocks::Q4_K::kBytes;
    const int g = static_cast<int>(group & 7);
    load_pair(b, g, &d, &m);
    words::load<16>(b + 16 + 32 * (g >> 1), qs);
    GPU_UNROLLED
    for (Bits32& each : qs) each = each >> 4 * (g & 1) & kNibbles;
  }
  GPU_INLINE Bits32 codes(int j) const { return qs[j]; }
};

template <>
struct Words<blocks::Q5_K> : Shifted {
  static constexpr int kAlign = 16;
  Bits32 qs[8];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + (group >> 3) * blocks::Q5_K::kBytes;
    const int g = static_cast<int>(group & 7);
    load_pair(b, g, &d, &m);
    Bits32 high[8];
    words::load<16>(b + 16, high);
    words::load<16>(b + 48 + 32 * (g >> 1), qs);
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) {
      qs[j] = (qs[j] >> 4 * (g & 1) & kNibbles) | (high[j] >> g & 0x01010101u) << 4;
    }
  }
  GPU_INLINE Bits32 codes(int j) const { return qs[j]; }
};

template <>
struct Words<blocks::Q6_K> : ScaledTwice {
  static constexpr int kAlign = 2, kBias = 32;
  Bits32 qs[8];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + (group >> 3) * blocks::Q6_K::kBytes;
    const int g = static_cast<int>(group & 7);
    const int side = g >> 2, quarter = g & 3;
    const float whole = half_at(b + 208);
    const Bits32 scales = load_vec<2>(b + 192 + 2 * g).words.at[0];
    d[0] = whole * static_cast<float>(blocks::signed8(static_cast<Bits8>(scales)));
    d[1] = whole * static_cast<float>(blocks::signed8(static_cast<Bits8>(scales >> 8)));
    Bits32 high[8];
    words::load<2>(b + 64 * side + 32 * (quarter & 1), qs);
    words::load<2>(b + 128 + 32 * side, high);
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) {
      qs[j] = (qs[j] >> 4 * (quarter >> 1) & kNibbles) | (high[j] >> 2 * quarter & 0x03030303u)
                                                             << 4;
    }
  }
  GPU_INLINE Bits32 codes(int j) const { return qs[j]; }
};

template <>
struct Words<blocks::IQ4_XS> : Scaled {
  static constexpr int kAlign = 8;
  static constexpr bool kSigned = true;
  Bits32 qs[4];
  GPU_INLINE void load(const Bits8* row, Index group) {
    const Bits8* b = row + (group >> 3) * blocks::IQ4_XS::kBytes;
    const int g = static_cast<int>(group & 7);
    Bits32 head[2];
    words::load<8>(b, head);
    const Bits32 low = head[1] >> 4 * g & 15u, high = head[0] >> (16 + 2 * g) & 3u;
    d = half_of(head[0]) * (blocks::number(low | high << 4) - 32.0f);
    words::load<8>(b + 8 + 16 * g, qs);
  }
  GPU_INLINE Bits32 codes(int j) const { return uneven(nibbles(qs, j)); }
};

}  // namespace words
