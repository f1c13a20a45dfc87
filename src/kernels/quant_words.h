// 32 neighbours of a row of blocks, in words: what products of quantised rows are made of. And how
// their results are stored.
//
// For a format F of quant_blocks.h, Words<F>::Raw is loaded with what the 32 elements of number
// `group` of a row are made of, and nothing is done with it; Words<F> made of that has them ready.
// (So loads can be under way while others' numbers are worked on.) Element e of the 32 is
// scale(e / 16) * (code - kBias) - minimum(e / 16), and codes(j) has the codes of elements 4 j to
// 4 j + 3 as bytes, all below 128 unless kSigned says that they have a sign. Where kScales is 1,
// one scale serves all 32. Blocks lie at addresses that the largest power of two in their size (16
// at most) divides; nothing outside the words that hold a block's bytes is read.
#pragma once

#include "gpu_mma.h"
#include "quant_blocks.h"

namespace words {

namespace blocks = tl::quant_blocks;

GPU_INLINE Bits32 word_at(const Bits8* p) { return load_vec<4>(p).words.at[0]; }
GPU_INLINE float half_of(Bits32 low_bits) { return f16_to_float(static_cast<Bits16>(low_bits)); }

// Element `at` of a result of type QuantProduct::y_type.
GPU_INLINE void store(void* y, int type, Index at, float value) {
  if (type == 0) {
    static_cast<float*>(y)[at] = value;
  } else if (type == 1) {
    static_cast<Half*>(y)[at] = from_float<Half>(value);
  } else {
    static_cast<BFloat16*>(y)[at] = from_float<BFloat16>(value);
  }
}

// kCount words from an address that kAlign, at least 4, divides.
template <int kAlign, int kCount>
struct Aligned {
  Bits32 at[kCount];
  GPU_INLINE void load(const Bits8* p) {
    if constexpr (kAlign >= 16 && kCount % 4 == 0) {
      GPU_UNROLLED
      for (int i = 0; i < kCount; i += 4) {
        const auto vec = load_vec<16>(p + 4 * i);
        GPU_UNROLLED
        for (int j = 0; j < 4; ++j) at[i + j] = vec.words.at[j];
      }
    } else if constexpr (kAlign >= 8 && kCount % 2 == 0) {
      GPU_UNROLLED
      for (int i = 0; i < kCount; i += 2) {
        const auto vec = load_vec<8>(p + 4 * i);
        at[i] = vec.words.at[0];
        at[i + 1] = vec.words.at[1];
      }
    } else {
      GPU_UNROLLED
      for (int i = 0; i < kCount; ++i) at[i] = word_at(p + 4 * i);
    }
  }
};

// kBytes bytes from an even address (or any, when kBytes is odd): the words they lie in.
template <int kBytes>
struct Unaligned {
  static constexpr int kMostPast = kBytes % 2 == 0 ? 2 : 3;
  static constexpr int kCount = (kBytes + kMostPast + 3) / 4;
  Bits32 at[kCount];
  Bits32 past;  // bytes of the first word that are not ours
  GPU_INLINE void load(const Bits8* p) {
    past = static_cast<Bits32>(reinterpret_cast<Bits64>(p) & 3u);
    const Bits8* from = p - past;
    GPU_UNROLLED
    for (int i = 0; i < kCount; ++i) {
      // Where the bytes start at a word, the last word may be one too many.
      const bool needed = 4 * (i + 1) <= kBytes || past + kBytes > static_cast<Bits32>(4 * i);
      at[i] = word_at(from + 4 * (needed ? i : i - 1));
    }
  }
  // Four bytes from byte `first`, 0 to 2 (and past the first word's end no more than that), of the
  // word number `i` on.
  GPU_INLINE Bits32 word(int i, Bits32 first = 0) const {
    return bytes_from(at[i], at[i + 1 < kCount ? i + 1 : i], past + first);
  }
};

constexpr Bits32 kNibbles = 0x0f0f0f0fu;

// Codes in halves of bytes, the low halves first.
GPU_INLINE Bits32 nibbles(const Bits32* qs, int j) {
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
// Two scales, one for each half of the 32.
struct ScaledTwice {
  static constexpr int kScales = 2, kBias = 0;
  static constexpr bool kSigned = false, kHasMinimum = false;
  float d[2];
  GPU_INLINE float scale(int half) const { return d[half]; }
  GPU_INLINE float minimum(int) const { return 0.0f; }
};

// A scale of two bytes, and kWords words.
template <class Format, int kWords>
struct HalfAndWords : Scaled {
  struct Raw {
    Unaligned<Format::kBytes> block;
    GPU_INLINE void load(const Bits8* row, Index group) {
      block.load(row + group * Format::kBytes);
    }
  };
  Bits32 q[kWords];
  GPU_INLINE void open(const Raw& raw) {
    d = half_of(raw.block.word(0));
    GPU_UNROLLED
    for (int i = 0; i < kWords; ++i) q[i] = raw.block.word(i, 2);
  }
};

template <>
struct Words<blocks::Q4_0> : HalfAndWords<blocks::Q4_0, 4> {
  static constexpr int kBias = 8;
  GPU_INLINE Bits32 codes(int j) const { return nibbles(q, j); }
};

template <>
struct Words<blocks::Q5_0> : HalfAndWords<blocks::Q5_0, 5> {
  static constexpr int kBias = 16;
  GPU_INLINE Bits32 codes(int j) const { return nibbles(q + 1, j) | fifth_bits(q[0], j); }
};

template <>
struct Words<blocks::Q8_0> : HalfAndWords<blocks::Q8_0, 8> {
  static constexpr bool kSigned = true;
  GPU_INLINE Bits32 codes(int j) const { return q[j]; }
};

template <>
struct Words<blocks::IQ4_NL> : HalfAndWords<blocks::IQ4_NL, 4> {
  static constexpr bool kSigned = true;
  GPU_INLINE Bits32 codes(int j) const { return uneven(nibbles(q, j)); }
};

template <>
struct Words<blocks::MXFP4> : Scaled {
  static constexpr bool kSigned = true;
  struct Raw {
    Unaligned<blocks::MXFP4::kBytes> block;
    GPU_INLINE void load(const Bits8* row, Index group) {
      block.load(row + group * blocks::MXFP4::kBytes);
    }
  };
  Bits32 q[4];
  GPU_INLINE void open(const Raw& raw) {
    d = blocks::MXFP4::scale(raw.block.word(0) & 255u);
    GPU_UNROLLED
    for (int i = 0; i < 4; ++i) q[i] = raw.block.word(i, 1);
  }
  GPU_INLINE Bits32 codes(int j) const { return twice_e2m1(nibbles(q, j)); }
};

// A scale and a minimum of two bytes each, and words.
template <class Format, int kAlign>
struct PairAndWords : Shifted {
  static constexpr int kWords = Format::kBytes / 4;
  struct Raw {
    Aligned<kAlign, kWords> block;
    GPU_INLINE void load(const Bits8* row, Index group) {
      block.load(row + group * Format::kBytes);
    }
  };
  Bits32 q[kWords - 1];
  GPU_INLINE void open(const Raw& raw) {
    d = half_of(raw.block.at[0]);
    m = -half_of(raw.block.at[0] >> 16);
    GPU_UNROLLED
    for (int i = 0; i + 1 < kWords; ++i) q[i] = raw.block.at[i + 1];
  }
};

template <>
struct Words<blocks::Q4_1> : PairAndWords<blocks::Q4_1, 4> {
  GPU_INLINE Bits32 codes(int j) const { return nibbles(q, j); }
};

template <>
struct Words<blocks::Q5_1> : PairAndWords<blocks::Q5_1, 8> {
  GPU_INLINE Bits32 codes(int j) const { return nibbles(q + 1, j) | fifth_bits(q[0], j); }
};

// ---- blocks of 256: 32 elements are one of eight groups, whose codes share words with others'

// Where group `group` of a row lies.
template <class Format>
struct GroupOf {
  const Bits8* block;
  int g;
  GPU_INLINE GroupOf(const Bits8* row, Index group)
      : block(row + (group >> 3) * Format::kBytes), g(static_cast<int>(group & 7)) {}
};

template <>
struct Words<blocks::Q2_K> {
  static constexpr int kScales = 2, kBias = 0;
  static constexpr bool kSigned = false, kHasMinimum = true;
  struct Raw {
    int g;
    Bits32 pair, scales;
    Aligned<4, 8> low;
    GPU_INLINE void load(const Bits8* row, Index group) {
      const GroupOf<blocks::Q2_K> of(row, group);
      g = of.g;
      pair = word_at(of.block + 80);
      scales = load_vec<2>(of.block + 2 * g).words.at[0];
      low.load(of.block + 16 + 32 * (g >> 2));
    }
  };
  float d[2], m[2];
  Bits32 q[8];
  GPU_INLINE void open(const Raw& raw) {
    GPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
      d[half] = half_of(raw.pair) * blocks::number(raw.scales >> 8 * half & 15u);
      m[half] = half_of(raw.pair >> 16) * blocks::number(raw.scales >> (8 * half + 4) & 15u);
    }
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) q[j] = raw.low.at[j] >> 2 * (raw.g & 3) & 0x03030303u;
  }
  GPU_INLINE float scale(int half) const { return d[half]; }
  GPU_INLINE float minimum(int half) const { return m[half]; }
  GPU_INLINE Bits32 codes(int j) const { return q[j]; }
};

template <>
struct Words<blocks::Q3_K> : ScaledTwice {
  static constexpr int kBias = 4;
  struct Raw {
    int g;
    Bits32 whole, fours, twos;  // two bytes each: d, and where the two scales' bits are
    Unaligned<32> low, high;
    GPU_INLINE void load(const Bits8* row, Index group) {
      const GroupOf<blocks::Q3_K> of(row, group);
      g = of.g;
      whole = load_vec<2>(of.block + 108).words.at[0];
      fours = load_vec<2>(of.block + 96 + 2 * (g & 3)).words.at[0];
      twos = load_vec<2>(of.block + 104 + 2 * (g & 1)).words.at[0];
      high.load(of.block);
      low.load(of.block + 32 + 32 * (g >> 2));
    }
  };
  Bits32 q[8];
  GPU_INLINE void open(const Raw& raw) {
    GPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
      const Bits32 four = raw.fours >> 8 * half >> 4 * (raw.g >> 2) & 15u;
      const Bits32 two = raw.twos >> 8 * half >> 2 * (raw.g >> 1) & 3u;
      d[half] = half_of(raw.whole) * static_cast<float>(static_cast<int>(four | two << 4) - 32);
    }
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) {
      q[j] = (raw.low.word(j) >> 2 * (raw.g & 3) & 0x03030303u) |
             (raw.high.word(j) >> raw.g & 0x01010101u) << 2;
    }
  }
  GPU_INLINE Bits32 codes(int j) const { return q[j]; }
};

// Scale and minimum of group g of Q4_K and Q5_K, from the sixteen bytes at the start of a block:
// six bits each. The second four have their upper two bits with the first.
GPU_INLINE void open_pair(const Bits32 (&head)[4], int g, float* d, float* m) {
  const int shift = 8 * (g & 3);
  const Bits32 first = head[1] >> shift, second = head[2] >> shift, third = head[3] >> shift;
  const Bits32 sc = g < 4 ? first & 63u : (third & 15u) | (first >> 6 & 3u) << 4;
  const Bits32 mn = g < 4 ? second & 63u : (third >> 4 & 15u) | (second >> 6 & 3u) << 4;
  *d = half_of(head[0]) * blocks::number(sc);
  *m = half_of(head[0] >> 16) * blocks::number(mn);
}

template <>
struct Words<blocks::Q4_K> : Shifted {
  struct Raw {
    int g;
    Aligned<16, 4> head;
    Aligned<16, 8> low;
    GPU_INLINE void load(const Bits8* row, Index group) {
      const GroupOf<blocks::Q4_K> of(row, group);
      g = of.g;
      head.load(of.block);
      low.load(of.block + 16 + 32 * (g >> 1));
    }
  };
  Bits32 q[8];
  GPU_INLINE void open(const Raw& raw) {
    open_pair(raw.head.at, raw.g, &d, &m);
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) q[j] = raw.low.at[j] >> 4 * (raw.g & 1) & kNibbles;
  }
  GPU_INLINE Bits32 codes(int j) const { return q[j]; }
};

template <>
struct Words<blocks::Q5_K> : Shifted {
  struct Raw {
    int g;
    Aligned<16, 4> head;
    Aligned<16, 8> high, low;
    GPU_INLINE void load(const Bits8* row, Index group) {
      const GroupOf<blocks::Q5_K> of(row, group);
      g = of.g;
      head.load(of.block);
      high.load(of.block + 16);
      low.load(of.block + 48 + 32 * (g >> 1));
    }
  };
  Bits32 q[8];
  GPU_INLINE void open(const Raw& raw) {
    open_pair(raw.head.at, raw.g, &d, &m);
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) {
      q[j] = (raw.low.at[j] >> 4 * (raw.g & 1) & kNibbles) | (raw.high.at[j] >> raw.g & 0x01010101u)
                                                                 << 4;
    }
  }
  GPU_INLINE Bits32 codes(int j) const { return q[j]; }
};

template <>
struct Words<blocks::Q6_K> : ScaledTwice {
  static constexpr int kBias = 32;
  struct Raw {
    int g;
    Bits32 whole, scales;
    Unaligned<32> low, high;
    GPU_INLINE void load(const Bits8* row, Index group) {
      const GroupOf<blocks::Q6_K> of(row, group);
      g = of.g;
      const int side = g >> 2, quarter = g & 3;
      whole = load_vec<2>(of.block + 208).words.at[0];
      scales = load_vec<2>(of.block + 192 + 2 * g).words.at[0];
      low.load(of.block + 64 * side + 32 * (quarter & 1));
      high.load(of.block + 128 + 32 * side);
    }
  };
  Bits32 q[8];
  GPU_INLINE void open(const Raw& raw) {
    const float d0 = half_of(raw.whole);
    d[0] = d0 * static_cast<float>(static_cast<signed char>(raw.scales));
    d[1] = d0 * static_cast<float>(static_cast<signed char>(raw.scales >> 8));
    const int quarter = raw.g & 3;
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) {
      q[j] = (raw.low.word(j) >> 4 * (quarter >> 1) & kNibbles) |
             (raw.high.word(j) >> 2 * quarter & 0x03030303u) << 4;
    }
  }
  GPU_INLINE Bits32 codes(int j) const { return q[j]; }
};

template <>
struct Words<blocks::IQ4_XS> : Scaled {
  static constexpr bool kSigned = true;
  struct Raw {
    int g;
    Aligned<8, 2> head;
    Aligned<8, 4> low;
    GPU_INLINE void load(const Bits8* row, Index group) {
      const GroupOf<blocks::IQ4_XS> of(row, group);
      g = of.g;
      head.load(of.block);
      low.load(of.block + 8 + 16 * g);
    }
  };
  Bits32 q[4];
  GPU_INLINE void open(const Raw& raw) {
    const Bits32 four = raw.head.at[1] >> 4 * raw.g & 15u;
    const Bits32 two = raw.head.at[0] >> (16 + 2 * raw.g) & 3u;
    d = half_of(raw.head.at[0]) * (blocks::number(four | two << 4) - 32.0f);
    GPU_UNROLLED
    for (int i = 0; i < 4; ++i) q[i] = raw.low.at[i];
  }
  GPU_INLINE Bits32 codes(int j) const { return uneven(nibbles(q, j)); }
};

}  // namespace words
