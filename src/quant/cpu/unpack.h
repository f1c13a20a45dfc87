// Formats whose products with bytes are sums of integers: their blocks as codes and whole-number
// scales. A number is d scale (code - kOffset) - dmin minimum, or d code + m in blocks of 32.
#pragma once

#include "kernels/quant_blocks.h"

namespace tl::cpu {

namespace qb = quant_blocks;

struct UnpackedBlock {
  alignas(64) qb::Bits8 code[256];
  int scale[16], minimum[16];  // of sixteen numbers each; blocks of 32 have none
  float d, m;
};

template <class Format>
struct Integers;  // kBlock, kOffset, kMost (the largest code), kMinimum and unpack()

template <class Format>
concept HasIntegers = requires { Integers<Format>::kBlock; };

template <class Codes>
void fill_codes(UnpackedBlock& out, int count, Codes code) {
  for (int e = 0; e < count; ++e) out.code[e] = static_cast<qb::Bits8>(code(e));
}

inline qb::Bits32 nibble_of(const qb::Bits8* qs, int e) {
  return static_cast<qb::Bits32>(qs[e & 15] >> (e >> 4) * 4) & 15u;
}
inline qb::Bits32 bit_of(const qb::Bits8* qh, int e) {
  return static_cast<qb::Bits32>(qh[e >> 3] >> (e & 7)) & 1u;
}
// Planes of 32 numbers in the bits of 32 bytes, `bits` each; in each half of 128 for two bits.
inline qb::Bits32 two_bits_of(const qb::Bits8* qs, int e) {
  return static_cast<qb::Bits32>(qs[32 * (e >> 7) + (e & 31)] >> (e >> 5 & 3) * 2) & 3u;
}

template <>
struct Integers<qb::Q4_0> {
  static constexpr int kBlock = 32, kOffset = 8, kMost = 15;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    fill_codes(out, 32, [&](int e) { return nibble_of(b + 2, e); });
  }
};
template <>
struct Integers<qb::Q4_1> {
  static constexpr int kBlock = 32, kOffset = 0, kMost = 15;
  static constexpr bool kMinimum = true;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    out.m = qb::half(b + 2);
    fill_codes(out, 32, [&](int e) { return nibble_of(b + 4, e); });
  }
};
template <>
struct Integers<qb::Q5_0> {
  static constexpr int kBlock = 32, kOffset = 16, kMost = 31;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    fill_codes(out, 32, [&](int e) { return nibble_of(b + 6, e) | bit_of(b + 2, e) << 4; });
  }
};
template <>
struct Integers<qb::Q5_1> {
  static constexpr int kBlock = 32, kOffset = 0, kMost = 31;
  static constexpr bool kMinimum = true;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    out.m = qb::half(b + 2);
    fill_codes(out, 32, [&](int e) { return nibble_of(b + 8, e) | bit_of(b + 4, e) << 4; });
  }
};
template <>
struct Integers<qb::Q8_0> {
  static constexpr int kBlock = 32, kOffset = 128, kMost = 255;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    fill_codes(out, 32, [&](int e) { return b[2 + e] ^ 128u; });
  }
};
template <>
struct Integers<qb::IQ4_NL> {
  static constexpr int kBlock = 32, kOffset = 128, kMost = 241;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    fill_codes(out, 32, [&](int e) { return qb::kUneven[nibble_of(b + 2, e)] + 128; });
  }
};
// The values of MXFP4's codes with 12 added.
inline constexpr qb::Bits8 kE2M1[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
template <>
struct Integers<qb::MXFP4> {
  static constexpr int kBlock = 32, kOffset = 12, kMost = 24;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::MXFP4::scale(b[0]);
    fill_codes(out, 32, [&](int e) { return kE2M1[nibble_of(b + 1, e)]; });
  }
};

template <>
struct Integers<qb::Q2_K> {
  static constexpr int kBlock = 256, kOffset = 0, kMost = 3;
  static constexpr bool kMinimum = true;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b + 80);
    out.m = qb::half(b + 82);
    for (int p = 0; p < 16; ++p) {
      out.scale[p] = b[p] & 15;
      out.minimum[p] = b[p] >> 4;
    }
    fill_codes(out, 256, [&](int e) { return two_bits_of(b + 16, e); });
  }
};
template <>
struct Integers<qb::Q3_K> {
  static constexpr int kBlock = 256, kOffset = 4, kMost = 7;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b + 108);
    for (int p = 0; p < 16; ++p) out.scale[p] = qb::Q3_K::scale(b + 96, p);
    fill_codes(out, 256, [&](int e) {
      return two_bits_of(b + 32, e) | (static_cast<qb::Bits32>(b[e & 31] >> (e >> 5)) & 1u) << 2;
    });
  }
};
template <>
struct Integers<qb::Q4_K> {
  static constexpr int kBlock = 256, kOffset = 0, kMost = 15;
  static constexpr bool kMinimum = true;
  static void pairs(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    out.m = qb::half(b + 2);
    for (int p = 0; p < 16; ++p) {
      out.scale[p] = static_cast<int>(qb::pair_scale(b + 4, p >> 1));
      out.minimum[p] = static_cast<int>(qb::pair_minimum(b + 4, p >> 1));
    }
  }
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    pairs(b, out);
    fill_codes(out, 256, [&](int e) {
      return static_cast<qb::Bits32>(b[16 + 32 * (e >> 6) + (e & 31)] >> (e >> 5 & 1) * 4) & 15u;
    });
  }
};
template <>
struct Integers<qb::Q5_K> {
  static constexpr int kBlock = 256, kOffset = 0, kMost = 31;
  static constexpr bool kMinimum = true;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    Integers<qb::Q4_K>::pairs(b, out);
    fill_codes(out, 256, [&](int e) {
      const auto low =
          static_cast<qb::Bits32>(b[48 + 32 * (e >> 6) + (e & 31)] >> (e >> 5 & 1) * 4);
      return (low & 15u) | (static_cast<qb::Bits32>(b[16 + (e & 31)] >> (e >> 5)) & 1u) << 4;
    });
  }
};
template <>
struct Integers<qb::Q6_K> {
  static constexpr int kBlock = 256, kOffset = 32, kMost = 63;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b + 208);
    for (int p = 0; p < 16; ++p) out.scale[p] = qb::signed8(b[192 + p]);
    fill_codes(out, 256, [&](int e) {
      const int side = e >> 7, quarter = e >> 5 & 3, l = e & 31;
      const auto low =
          static_cast<qb::Bits32>(b[64 * side + 32 * (quarter & 1) + l] >> (quarter >> 1) * 4);
      const auto high = static_cast<qb::Bits32>(b[128 + 32 * side + l] >> quarter * 2);
      return (low & 15u) | (high & 3u) << 4;
    });
  }
};
template <>
struct Integers<qb::IQ4_XS> {
  static constexpr int kBlock = 256, kOffset = 128, kMost = 241;
  static constexpr bool kMinimum = false;
  static void unpack(const qb::Bits8* b, UnpackedBlock& out) {
    out.d = qb::half(b);
    for (int p = 0; p < 16; ++p) {
      const int group = p >> 1;
      const auto low = static_cast<qb::Bits32>(b[4 + (group >> 1)] >> (group & 1) * 4) & 15u;
      const qb::Bits32 high = qb::word16(b + 2) >> 2 * group & 3u;
      out.scale[p] = static_cast<int>(low | high << 4) - 32;
    }
    fill_codes(out, 256,
               [&](int e) { return qb::kUneven[nibble_of(b + 8 + 16 * (e >> 5), e & 31)] + 128; });
  }
};

}  // namespace tl::cpu
