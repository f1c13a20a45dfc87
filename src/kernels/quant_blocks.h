// Blocks of numbers that share scales, as GGUF files hold them: what the numbers of a block are,
// written once for every device.
//
// A format is a struct with the number of elements and bytes of its blocks and decode8(block, g,
// y): elements 8 g to 8 g + 7 of a block, as f32. Every format codes at least eight neighbours with
// one scale, and the IQ formats code eight at once. A block may lie at any address. Products and
// sums round one by one, so values are the same bits everywhere; a scale that is infinite or NaN
// gives what the formula gives.
#pragma once

#include "elementary.h"
#include "quant_grids.h"
#include "tl/base/float_bits.h"

namespace tl::quant_blocks {

using float_bits::Bits16;
using float_bits::Bits32;
using float_bits::Bits8;
using primitive::mul;

TL_MATH_FN Bits32 word16(const Bits8* p) { return p[0] | static_cast<Bits32>(p[1]) << 8; }
TL_MATH_FN Bits32 word32(const Bits8* p) { return word16(p) | word16(p + 2) << 16; }
TL_MATH_FN float half(const Bits8* p) {
  return float_bits::f16_to_f32(static_cast<Bits16>(word16(p)));
}
TL_MATH_FN float number(Bits32 q) { return static_cast<float>(static_cast<int>(q)); }
TL_MATH_FN int signed8(Bits8 q) { return q < 128 ? q : q - 256; }
// `x` with its sign changed where `negative` is 1.
TL_MATH_FN float with_sign(float x, Bits32 negative) {
  return float_bits::float_of(float_bits::bits_of(x) ^ negative << 31);
}

// ---- pieces that several formats share

// Sixteen bytes hold 32 codes of four bits: the low halves first, then the high ones.
TL_MATH_FN Bits32 nibble(const Bits8* qs, int g, int j) {
  return static_cast<Bits32>(qs[8 * (g & 1) + j] >> (g >> 1) * 4) & 15u;
}
// The fifth bit of element 8 g + j.
TL_MATH_FN Bits32 fifth_bit(const Bits8* qh, int g, int j) {
  return static_cast<Bits32>(qh[g] >> j) & 1u;
}
// The values of four-bit codes in IQ4_NL and IQ4_XS.
TL_MATH_TABLE signed char kUneven[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
// Twice the values of the four-bit floats (E2M1) in MXFP4 and NVFP4.
TL_MATH_FN float twice_e2m1(Bits32 code) {
  const Bits32 c = code & 7u;
  const Bits32 doubled = c < 4 ? c : (c < 6 ? 2 * c - 4 : 4 * c - 16);
  return with_sign(number(doubled), code >> 3);
}
// The eight pairs of six bits, scale and minimum, in twelve bytes of Q4_K and Q5_K.
TL_MATH_FN Bits32 pair_scale(const Bits8* s, int j) {
  return j < 4 ? s[j] & 63u : (s[j + 4] & 15u) | static_cast<Bits32>(s[j - 4] >> 6) << 4;
}
TL_MATH_FN Bits32 pair_minimum(const Bits8* s, int j) {
  return j < 4 ? s[j + 4] & 63u
               : static_cast<Bits32>(s[j + 4] >> 4) | static_cast<Bits32>(s[j] >> 6) << 4;
}
// Eight signs in seven bits: the eighth makes their number even.
TL_MATH_FN Bits32 eight_signs(Bits32 seven) {
  Bits32 parity = seven ^ seven >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return seven | (parity & 1u) << 7;
}
// Eight values of an entry of the IQ2 codebooks, times `scale`, with signs.
TL_MATH_FN void decode_grid(Bits32 entry, Bits32 signs, float scale, float* y) {
  for (int j = 0; j < 8; ++j) {
    const Bits32 code = entry >> 2 * j & 3u;
    const float value = number(8u + 17u * code + (code >> 1));  // 8, 25, 43
    y[j] = with_sign(mul(scale, value), signs >> j & 1u);
  }
}
TL_MATH_FN float grid_scale(const Bits8* d, Bits32 scale, float part) {
  return mul(mul(half(d), 0.5f + number(scale)), part);
}
// Eight values of an entry of the IQ1 codebook (0, 1, -1), shifted by an eighth either way.
TL_MATH_FN void decode_ternary(Bits32 entry, Bits32 down, float scale, float* y) {
  for (int j = 0; j < 8; ++j) {
    const Bits32 code = entry >> 2 * j & 3u;
    const float value = code == 2u ? -1.0f : number(code);
    y[j] = mul(scale, value + with_sign(0.125f, down));
  }
}

// ---- blocks of 32

struct Q4_0 {
  static constexpr int kElements = 32, kBytes = 18;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b);
    for (int j = 0; j < 8; ++j) y[j] = mul(number(nibble(b + 2, g, j)) - 8.0f, d);
  }
};

struct Q4_1 {
  static constexpr int kElements = 32, kBytes = 20;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b), m = half(b + 2);
    for (int j = 0; j < 8; ++j) y[j] = mul(number(nibble(b + 4, g, j)), d) + m;
  }
};

struct Q5_0 {
  static constexpr int kElements = 32, kBytes = 22;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b);
    for (int j = 0; j < 8; ++j) {
      const Bits32 q = nibble(b + 6, g, j) | fifth_bit(b + 2, g, j) << 4;
      y[j] = mul(number(q) - 16.0f, d);
    }
  }
};

struct Q5_1 {
  static constexpr int kElements = 32, kBytes = 24;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b), m = half(b + 2);
    for (int j = 0; j < 8; ++j) {
      const Bits32 q = nibble(b + 8, g, j) | fifth_bit(b + 4, g, j) << 4;
      y[j] = mul(number(q), d) + m;
    }
  }
};

struct Q8_0 {
  static constexpr int kElements = 32, kBytes = 34;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b);
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(static_cast<float>(signed8(b[2 + 8 * g + j])), d);
    }
  }
};

struct Q8_1 {
  static constexpr int kElements = 32, kBytes = 36;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b);
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(static_cast<float>(signed8(b[4 + 8 * g + j])), d);
    }
  }
};

struct IQ4_NL {
  static constexpr int kElements = 32, kBytes = 18;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b);
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(static_cast<float>(kUneven[nibble(b + 2, g, j)]), d);
    }
  }
};

struct MXFP4 {
  static constexpr int kElements = 32, kBytes = 17;
  // 2^(e - 128): the codes' values are doubled.
  TL_MATH_FN static float scale(Bits32 e) {
    return float_bits::float_of(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  }
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = scale(b[0]);
    for (int j = 0; j < 8; ++j) y[j] = mul(twice_e2m1(nibble(b + 1, g, j)), d);
  }
};

// ---- blocks of 64 and 128

struct NVFP4 {
  static constexpr int kElements = 64, kBytes = 36;
  // Half of an unsigned E4M3: again because the codes' values are doubled.
  TL_MATH_FN static float half_scale(Bits32 e) {
    if (e == 0x7fu) return 0.0f;
    const Bits32 exponent = e >> 3 & 15u, mantissa = e & 7u;
    if (exponent == 0) return mul(number(mantissa), 0x1p-10f);
    return mul(number(8u + mantissa), float_bits::float_of((exponent + 116u) << 23));
  }
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const int part = g >> 1;  // of sixteen
    const float d = half_scale(b[part]);
    for (int j = 0; j < 8; ++j) {
      const Bits32 code = static_cast<Bits32>(b[4 + 8 * part + j] >> (g & 1) * 4) & 15u;
      y[j] = mul(twice_e2m1(code), d);
    }
  }
};

struct Q2_0 {
  static constexpr int kElements = 64, kBytes = 18;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b);
    const Bits32 codes = word16(b + 2 + 2 * g);
    for (int j = 0; j < 8; ++j) y[j] = mul(number(codes >> 2 * j & 3u) - 1.0f, d);
  }
};

struct Q1_0 {
  static constexpr int kElements = 128, kBytes = 18;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b);
    for (int j = 0; j < 8; ++j) y[j] = (b[2 + g] >> j & 1) != 0 ? d : -d;
  }
};

// ---- blocks of 256

struct Q2_K {
  static constexpr int kElements = 256, kBytes = 84;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const int part = g >> 1;  // of sixteen: half, shift and half of 32
    const float d = mul(half(b + 80), number(b[part] & 15u));
    const float m = mul(half(b + 82), number(static_cast<Bits32>(b[part] >> 4)));
    const Bits8* qs = b + 16 + 32 * (g >> 4) + 8 * (g & 3);
    const int shift = (g >> 2 & 3) * 2;
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(d, number(static_cast<Bits32>(qs[j] >> shift) & 3u)) - m;
    }
  }
};

struct Q3_K {
  static constexpr int kElements = 256, kBytes = 110;
  // Scale j of sixteen, -32 to 31.
  TL_MATH_FN static int scale(const Bits8* s, int j) {
    const Bits32 low = static_cast<Bits32>(s[j & 7] >> (j >> 3) * 4) & 15u;
    const Bits32 high = static_cast<Bits32>(s[8 + (j & 3)] >> (j >> 2) * 2) & 3u;
    return static_cast<int>(low | high << 4) - 32;
  }
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = mul(half(b + 108), static_cast<float>(scale(b + 96, g >> 1)));
    const Bits8* high = b + 8 * (g & 3);
    const Bits8* qs = b + 32 + 32 * (g >> 4) + 8 * (g & 3);
    const int shift = (g >> 2 & 3) * 2;
    for (int j = 0; j < 8; ++j) {
      const Bits32 q = (static_cast<Bits32>(qs[j] >> shift) & 3u) |
                       (static_cast<Bits32>(high[j] >> (g >> 2)) & 1u) << 2;
      y[j] = mul(d, number(q) - 4.0f);
    }
  }
};

struct Q4_K {
  static constexpr int kElements = 256, kBytes = 144;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const int pair = g >> 2;
    const float d = mul(half(b), number(pair_scale(b + 4, pair)));
    const float m = mul(half(b + 2), number(pair_minimum(b + 4, pair)));
    const Bits8* qs = b + 16 + 32 * (g >> 3) + 8 * (g & 3);
    const int shift = (g >> 2 & 1) * 4;
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(d, number(static_cast<Bits32>(qs[j] >> shift) & 15u)) - m;
    }
  }
};

struct Q5_K {
  static constexpr int kElements = 256, kBytes = 176;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const int pair = g >> 2;
    const float d = mul(half(b), number(pair_scale(b + 4, pair)));
    const float m = mul(half(b + 2), number(pair_minimum(b + 4, pair)));
    const Bits8* high = b + 16 + 8 * (g & 3);
    const Bits8* qs = b + 48 + 32 * (g >> 3) + 8 * (g & 3);
    const int shift = (g >> 2 & 1) * 4;
    for (int j = 0; j < 8; ++j) {
      const Bits32 q = (static_cast<Bits32>(qs[j] >> shift) & 15u) |
                       (static_cast<Bits32>(high[j] >> pair) & 1u) << 4;
      y[j] = mul(d, number(q)) - m;
    }
  }
};

struct Q6_K {
  static constexpr int kElements = 256, kBytes = 210;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const int side = g >> 4, quarter = g >> 2 & 3;
    const float d = mul(half(b + 208), static_cast<float>(signed8(b[192 + (g >> 1)])));
    const Bits8* low = b + 64 * side + 32 * (quarter & 1) + 8 * (g & 3);
    const Bits8* high = b + 128 + 32 * side + 8 * (g & 3);
    for (int j = 0; j < 8; ++j) {
      const Bits32 q = (static_cast<Bits32>(low[j] >> (quarter >> 1) * 4) & 15u) |
                       (static_cast<Bits32>(high[j] >> quarter * 2) & 3u) << 4;
      y[j] = mul(d, number(q) - 32.0f);
    }
  }
};

struct Q8_K {
  static constexpr int kElements = 256, kBytes = 292;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = float_bits::float_of(word32(b));
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(d, static_cast<float>(signed8(b[4 + 8 * g + j])));
    }
  }
};

struct IQ2_XXS {
  static constexpr int kElements = 256, kBytes = 66;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const Bits8* group = b + 2 + 8 * (g >> 2);
    const Bits32 word = word32(group + 4);
    decode_grid(kGrid256[group[g & 3]], eight_signs(word >> 7 * (g & 3) & 127u),
                grid_scale(b, word >> 28, 0.25f), y);
  }
};

struct IQ2_XS {
  static constexpr int kElements = 256, kBytes = 74;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const Bits32 q = word16(b + 2 + 2 * g);
    const Bits32 scale = static_cast<Bits32>(b[66 + (g >> 2)] >> (g >> 1 & 1) * 4) & 15u;
    decode_grid(kGrid512[q & 511u], eight_signs(q >> 9), grid_scale(b, scale, 0.25f), y);
  }
};

struct IQ2_S {
  static constexpr int kElements = 256, kBytes = 82;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const Bits32 high = static_cast<Bits32>(b[66 + (g >> 2)] >> 2 * (g & 3)) & 3u;
    const Bits32 scale = static_cast<Bits32>(b[74 + (g >> 2)] >> (g >> 1 & 1) * 4) & 15u;
    decode_grid(kGrid1024[b[2 + g] | high << 8], b[34 + g], grid_scale(b, scale, 0.25f), y);
  }
};

struct IQ3_XXS {
  static constexpr int kElements = 256, kBytes = 98;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const Bits32 word = word32(b + 66 + 4 * (g >> 2));
    const Bits32 signs = eight_signs(word >> 7 * (g & 3) & 127u);
    const float d = grid_scale(b, word >> 28, 0.5f);
    for (int j = 0; j < 8; ++j) {
      const Bits32 code =
          static_cast<Bits32>(kQuads256[b[2 + 2 * g + (j >> 2)]] >> 3 * (j & 3)) & 7u;
      const float value = number(4u + 8u * code + (code == 7u ? 2u : 0u));  // 4, 12, ..., 52, 62
      y[j] = with_sign(mul(d, value), signs >> j & 1u);
    }
  }
};

struct IQ3_S {
  static constexpr int kElements = 256, kBytes = 110;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const int group = g >> 2;
    const Bits32 high = static_cast<Bits32>(b[66 + group] >> 2 * (g & 3));
    const Bits32 scale = static_cast<Bits32>(b[106 + (group >> 1)] >> (group & 1) * 4) & 15u;
    const float d = mul(half(b), number(1u + 2u * scale));
    for (int j = 0; j < 8; ++j) {
      const Bits32 index = b[2 + 2 * g + (j >> 2)] | (high >> (j >> 2) & 1u) << 8;
      const Bits32 code = static_cast<Bits32>(kQuads512[index] >> 3 * (j & 3)) & 7u;
      y[j] = with_sign(mul(d, number(1u + 2u * code)), static_cast<Bits32>(b[74 + g] >> j) & 1u);
    }
  }
};

struct IQ1_S {
  static constexpr int kElements = 256, kBytes = 50;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const Bits32 word = word16(b + 34 + 2 * (g >> 2));
    const Bits32 index = b[2 + g] | (word >> 3 * (g & 3) & 7u) << 8;
    const float d = mul(half(b), number(2u * (word >> 12 & 7u) + 1u));
    decode_ternary(kGrid2048[index], word >> 15, d, y);
  }
};

struct IQ1_M {
  static constexpr int kElements = 256, kBytes = 56;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const Bits8* scales = b + 48;
    const Bits32 d_bits = word16(scales) >> 12 | (word16(scales + 2) >> 12) << 4 |
                          (word16(scales + 4) >> 12) << 8 | (word16(scales + 6) >> 12) << 12;
    const int group = g >> 2, l = g & 3;
    const Bits32 scale = word16(scales + 2 * (group >> 1)) >> (6 * (group & 1) + 3 * (l >> 1)) & 7u;
    const Bits32 high = static_cast<Bits32>(b[32 + (g >> 1)] >> 4 * (g & 1)) & 15u;
    const float d =
        mul(float_bits::f16_to_f32(static_cast<Bits16>(d_bits)), number(2u * scale + 1u));
    decode_ternary(kGrid2048[b[g] | (high & 7u) << 8], high >> 3, d, y);
  }
};

struct IQ4_XS {
  static constexpr int kElements = 256, kBytes = 136;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const int group = g >> 2;
    const Bits32 low = static_cast<Bits32>(b[4 + (group >> 1)] >> (group & 1) * 4) & 15u;
    const Bits32 high = word16(b + 2) >> 2 * group & 3u;
    const float d = mul(half(b), number(low | high << 4) - 32.0f);
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(d, static_cast<float>(kUneven[nibble(b + 8 + 16 * group, g & 3, j)]));
    }
  }
};

struct TQ1_0 {
  static constexpr int kElements = 256, kBytes = 54;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b + 52);
    for (int j = 0; j < 8; ++j) {
      const int e = 8 * g + j;
      // Five digits of 32 bytes, then of 16, then four of the last four bytes.
      const int digit = e < 160 ? e / 32 : (e < 240 ? (e - 160) / 16 : (e - 240) / 4);
      const int at = e < 160 ? e % 32 : (e < 240 ? 32 + e % 16 : 48 + e % 4);
      const Bits32 power = digit == 0   ? 1u
                           : digit == 1 ? 3u
                           : digit == 2 ? 9u
                           : digit == 3 ? 27u
                                        : 81u;
      const Bits32 rest = b[at] * power & 255u;
      y[j] = mul(number(rest * 3u >> 8) - 1.0f, d);
    }
  }
};

struct TQ2_0 {
  static constexpr int kElements = 256, kBytes = 66;
  TL_MATH_FN static void decode8(const Bits8* b, int g, float* y) {
    const float d = half(b + 64);
    const Bits8* qs = b + 32 * (g >> 4) + 8 * (g & 3);
    const int shift = (g >> 2 & 3) * 2;
    for (int j = 0; j < 8; ++j) {
      y[j] = mul(number(static_cast<Bits32>(qs[j] >> shift) & 3u) - 1.0f, d);
    }
  }
};

}  // namespace tl::quant_blocks
