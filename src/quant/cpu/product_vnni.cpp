// Quantised products with AVX-512 VNNI, whose instruction adds up products of bytes in groups of
// four: the same integers as the portable path, and the same sums of floats after them.
//
// Few rows of x: eight rows of w at a time, each block unpacked in registers and multiplied at
// once; the lanes of eight rows are then added across together. Many rows of x: sixteen rows of w
// are unpacked once into a panel where a vector holds four codes of each row, and one lane is one
// row.
#include "quant/cpu/product.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "quant/cpu/unpack.h"
#include "quant/formats.h"
#include "tl/base/float_bits.h"

// GCC 12 takes the undefined vectors in its own intrinsics for mistakes (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
// Everything from here on, and nothing that the headers above define, is compiled for it.
#if defined(__clang__)
#pragma clang attribute push(                                                               \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,avx2,fma"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,avx2,fma")
#endif

namespace tl::cpu {

namespace {

using qb::Bits8;

#include "quant/cpu/encode-inl.h"

#define TL_VECTOR inline __attribute__((always_inline))

TL_VECTOR __m256i load32(const Bits8* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
TL_VECTOR __m128i load16(const Bits8* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
TL_VECTOR __m512i join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
TL_VECTOR std::uint32_t word(const Bits8* p) {
  std::uint32_t value;
  std::memcpy(&value, p, 4);
  return value;
}

// ---- blocks of 32: the codes of two of them, in order

// Sixteen bytes of nibbles from each, as four times sixteen codes.
TL_VECTOR __m512i nibbles(const Bits8* a, const Bits8* b) {
  const __m512i both =
      join(_mm256_broadcastsi128_si256(load16(a)), _mm256_broadcastsi128_si256(load16(b)));
  const __m512i shift = _mm512_set_epi64(4, 4, 0, 0, 4, 4, 0, 0);
  return _mm512_and_si512(_mm512_srlv_epi64(both, shift), _mm512_set1_epi8(15));
}
TL_VECTOR __m512i with_fifth(__m512i codes, const Bits8* a, const Bits8* b) {
  const __mmask64 bits = static_cast<__mmask64>(word(a)) | static_cast<__mmask64>(word(b)) << 32;
  return _mm512_mask_add_epi8(codes, bits, codes, _mm512_set1_epi8(16));
}
TL_VECTOR __m512i from_table(__m512i codes, __m128i table) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), codes);
}
TL_VECTOR __m128i uneven_table() {
  return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(qb::kUneven)),
                       _mm_set1_epi8(-128));
}

template <class Format>
struct Pair;  // codes(a, b) of two blocks
template <>
struct Pair<qb::Q4_0> {
  TL_VECTOR static __m512i codes(const Bits8* a, const Bits8* b) { return nibbles(a + 2, b + 2); }
};
template <>
struct Pair<qb::Q4_1> {
  TL_VECTOR static __m512i codes(const Bits8* a, const Bits8* b) { return nibbles(a + 4, b + 4); }
};
template <>
struct Pair<qb::Q5_0> {
  TL_VECTOR static __m512i codes(const Bits8* a, const Bits8* b) {
    return with_fifth(nibbles(a + 6, b + 6), a + 2, b + 2);
  }
};
template <>
struct Pair<qb::Q5_1> {
  TL_VECTOR static __m512i codes(const Bits8* a, const Bits8* b) {
    return with_fifth(nibbles(a + 8, b + 8), a + 4, b + 4);
  }
};
template <>
struct Pair<qb::Q8_0> {
  TL_VECTOR static __m512i codes(const Bits8* a, const Bits8* b) {
    return _mm512_xor_si512(join(load32(a + 2), load32(b + 2)), _mm512_set1_epi8(-128));
  }
};
template <>
struct Pair<qb::IQ4_NL> {
  TL_VECTOR static __m512i codes(const Bits8* a, const Bits8* b) {
    return from_table(nibbles(a + 2, b + 2), uneven_table());
  }
};
template <>
struct Pair<qb::MXFP4> {
  TL_VECTOR static __m512i codes(const Bits8* a, const Bits8* b) {
    return from_table(nibbles(a + 1, b + 1), load16(kE2M1));
  }
};

// ---- blocks of 256: codes in four vectors, sixteen scales (and minimums) as bytes

TL_VECTOR __m512i planes(__m256i bytes, int low, int high) {  // two shifts of the same 32 bytes
  return join(_mm256_srli_epi16(bytes, low), _mm256_srli_epi16(bytes, high));
}
TL_VECTOR __m512i two_bits(__m256i bytes, int low) {
  return _mm512_and_si512(planes(bytes, low, low + 2), _mm512_set1_epi8(3));
}
TL_VECTOR __m512i four_bits(__m256i bytes) {
  return _mm512_and_si512(planes(bytes, 0, 4), _mm512_set1_epi8(15));
}
// Bytes 0 to 7, each twice.
TL_VECTOR __m128i twice(std::uint64_t eight) {
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(eight));
  return _mm_unpacklo_epi8(bytes, bytes);
}
TL_VECTOR __m128i four_words(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return _mm_set_epi32(static_cast<int>(d), static_cast<int>(c), static_cast<int>(b),
                       static_cast<int>(a));
}
// The pairs of six bits of Q4_K and Q5_K.
TL_VECTOR __m128i pair_scales(const Bits8* s) {
  const std::uint32_t a = word(s), c = word(s + 8);
  const std::uint64_t high = (c & 0x0f0f0f0fu) | (a >> 6 & 0x03030303u) << 4;
  return twice((a & 0x3f3f3f3fu) | high << 32);
}
TL_VECTOR __m128i pair_minimums(const Bits8* s) {
  const std::uint32_t b = word(s + 4), c = word(s + 8);
  const std::uint64_t high = (c >> 4 & 0x0f0f0f0fu) | (b >> 6 & 0x03030303u) << 4;
  return twice((b & 0x3f3f3f3fu) | high << 32);
}

template <class Format>
struct Super;
template <>
struct Super<qb::Q2_K> {
  TL_VECTOR static void codes(const Bits8* b, __m512i (&c)[4]) {
    for (int h = 0; h < 2; ++h) {
      const __m256i bytes = load32(b + 16 + 32 * h);
      c[2 * h] = two_bits(bytes, 0);
      c[2 * h + 1] = two_bits(bytes, 4);
    }
  }
  TL_VECTOR static __m128i scales(const Bits8* b) {
    return _mm_and_si128(load16(b), _mm_set1_epi8(15));
  }
  TL_VECTOR static __m128i minimums(const Bits8* b) {
    return _mm_and_si128(_mm_srli_epi16(load16(b), 4), _mm_set1_epi8(15));
  }
  TL_VECTOR static const Bits8* d(const Bits8* b) { return b + 80; }
};
template <>
struct Super<qb::Q3_K> {
  TL_VECTOR static void codes(const Bits8* b, __m512i (&c)[4]) {
    const __m512i high = join(load32(b), load32(b));
    for (int i = 0; i < 4; ++i) {
      const __m512i low = two_bits(load32(b + 32 + 32 * (i >> 1)), (i & 1) * 4);
      const __m512i bit = join(_mm256_set1_epi8(static_cast<char>(1 << 2 * i)),
                               _mm256_set1_epi8(static_cast<char>(2 << 2 * i)));
      c[i] = _mm512_mask_add_epi8(low, _mm512_test_epi8_mask(high, bit), low, _mm512_set1_epi8(4));
    }
  }
  TL_VECTOR static __m128i scales(const Bits8* b) {
    const std::uint32_t x = word(b + 96), y = word(b + 100), z = word(b + 104);
    constexpr std::uint32_t kLow = 0x0f0f0f0fu, kHigh = 0x03030303u;
    const __m128i bits = four_words(
        (x & kLow) | (z & kHigh) << 4, (y & kLow) | (z >> 2 & kHigh) << 4,
        (x >> 4 & kLow) | (z >> 4 & kHigh) << 4, (y >> 4 & kLow) | (z >> 6 & kHigh) << 4);
    return _mm_sub_epi8(bits, _mm_set1_epi8(32));
  }
  TL_VECTOR static const Bits8* d(const Bits8* b) { return b + 108; }
};
template <>
struct Super<qb::Q4_K> {
  TL_VECTOR static void codes(const Bits8* b, __m512i (&c)[4]) {
    for (int i = 0; i < 4; ++i) c[i] = four_bits(load32(b + 16 + 32 * i));
  }
  TL_VECTOR static __m128i scales(const Bits8* b) { return pair_scales(b + 4); }
  TL_VECTOR static __m128i minimums(const Bits8* b) { return pair_minimums(b + 4); }
  TL_VECTOR static const Bits8* d(const Bits8* b) { return b; }
};
template <>
struct Super<qb::Q5_K> {
  TL_VECTOR static void codes(const Bits8* b, __m512i (&c)[4]) {
    const __m512i high = join(load32(b + 16), load32(b + 16));
    for (int i = 0; i < 4; ++i) {
      const __m512i low = four_bits(load32(b + 48 + 32 * i));
      const __m512i bit = join(_mm256_set1_epi8(static_cast<char>(1 << 2 * i)),
                               _mm256_set1_epi8(static_cast<char>(2 << 2 * i)));
      c[i] = _mm512_mask_add_epi8(low, _mm512_test_epi8_mask(high, bit), low, _mm512_set1_epi8(16));
    }
  }
  TL_VECTOR static __m128i scales(const Bits8* b) { return pair_scales(b + 4); }
  TL_VECTOR static __m128i minimums(const Bits8* b) { return pair_minimums(b + 4); }
  TL_VECTOR static const Bits8* d(const Bits8* b) { return b; }
};
template <>
struct Super<qb::Q6_K> {
  TL_VECTOR static void codes(const Bits8* b, __m512i (&c)[4]) {
    const __m512i top = _mm512_set1_epi8(0x30);
    for (int h = 0; h < 2; ++h) {
      const __m512i low = join(load32(b + 64 * h), load32(b + 64 * h + 32));
      const __m256i high = load32(b + 128 + 32 * h);
      const __m512i first = join(_mm256_slli_epi16(high, 4), _mm256_slli_epi16(high, 2));
      const __m512i second = join(high, _mm256_srli_epi16(high, 2));
      const __m512i fifteen = _mm512_set1_epi8(15);
      c[2 * h] = _mm512_or_si512(_mm512_and_si512(low, fifteen), _mm512_and_si512(first, top));
      c[2 * h + 1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(low, 4), fifteen),
                                     _mm512_and_si512(second, top));
    }
  }
  TL_VECTOR static __m128i scales(const Bits8* b) { return load16(b + 192); }
  TL_VECTOR static const Bits8* d(const Bits8* b) { return b + 208; }
};
template <>
struct Super<qb::IQ4_XS> {
  TL_VECTOR static void codes(const Bits8* b, __m512i (&c)[4]) {
    const __m128i table = uneven_table();
    for (int i = 0; i < 4; ++i) {
      c[i] = from_table(nibbles(b + 8 + 32 * i, b + 8 + 32 * i + 16), table);
    }
  }
  TL_VECTOR static __m128i scales(const Bits8* b) {
    const std::uint64_t low = word(b + 4);
    const std::uint64_t high = qb::word16(b + 2);
    std::uint64_t bytes = 0;
    for (int g = 0; g < 8; ++g) {
      bytes |= ((low >> 4 * g & 15u) | (high >> 2 * g & 3u) << 4) << 8 * g;
    }
    return _mm_sub_epi8(twice(bytes), _mm_set1_epi8(32));
  }
  TL_VECTOR static const Bits8* d(const Bits8* b) { return b; }
};

// ---- adding lanes across

// For each of four rows the sum of each 128 bits: in every 128 bits one number per row.
TL_VECTOR __m512i across4(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}
// Eight rows: their sums over the lower half of the vector, then over the upper half.
TL_VECTOR __m512i across8_halves(const __m512i (&row)[8]) {
  const __m512i a = across4(row[0], row[1], row[2], row[3]);
  const __m512i b = across4(row[4], row[5], row[6], row[7]);
  // a and b hold parts 0 1 2 3; the halves are 0 + 1 and 2 + 3.
  const __m512i even = _mm512_shuffle_i32x4(a, b, 0x88);  // a0 a2 b0 b2
  const __m512i odd = _mm512_shuffle_i32x4(a, b, 0xdd);   // a1 a3 b1 b3
  const __m512i sum = _mm512_add_epi32(even, odd);        // a lower, a upper, b lower, b upper
  return _mm512_shuffle_i32x4(sum, sum, 0xd8);
}
// Eight numbers of two bytes, `step` bytes apart, as floats.
TL_VECTOR __m256 eight_halves(const Bits8* p, std::int64_t step) {
  const auto at = [&](int r) { return static_cast<int>(qb::word16(p + r * step)); };
  __m128i low = _mm_cvtsi32_si128(at(0)), high = _mm_cvtsi32_si128(at(4));
  low = _mm_insert_epi16(low, at(1), 1);
  high = _mm_insert_epi16(high, at(5), 1);
  low = _mm_insert_epi16(low, at(2), 2);
  high = _mm_insert_epi16(high, at(6), 2);
  low = _mm_insert_epi16(low, at(3), 3);
  high = _mm_insert_epi16(high, at(7), 3);
  return _mm256_cvtph_ps(_mm_unpacklo_epi64(low, high));
}
template <class Format>
TL_VECTOR __m256 eight_scales(const Bits8* block, std::int64_t step) {
  if constexpr (std::is_same_v<Format, qb::MXFP4>) {
    alignas(32) float d[8];
    for (int r = 0; r < 8; ++r) d[r] = qb::MXFP4::scale(block[r * step]);
    return _mm256_load_ps(d);
  } else {
    return eight_halves(block, step);
  }
}

TL_VECTOR __m256 add_scaled(__m256 y, __m256 d, float dx, __m256i whole) {
  const __m256 both = _mm256_mul_ps(d, _mm256_set1_ps(dx));
  return _mm256_add_ps(y, _mm256_mul_ps(both, _mm256_cvtepi32_ps(whole)));
}

// ---- few rows of x: eight rows of w and one of x

constexpr int kAhead = 768;  // bytes that each of the eight streams is read ahead

template <class Format>
TL_VECTOR __m256 eight_rows32(const Bits8* w, std::int64_t step, const Activations& x,
                              std::int64_t i) {
  using Type = Integers<Format>;
  const std::int64_t blocks = x.columns() / 32;
  const std::int8_t* bytes = x.bytes(i);
  const float* dx = x.scales(i);
  const std::int32_t* sums = x.sums(i);
  __m256 y = _mm256_setzero_ps();
  const auto finish = [&](const Bits8* block, std::int64_t b, __m256i whole) {
    if constexpr (Type::kOffset != 0) {
      whole = _mm256_sub_epi32(whole, _mm256_set1_epi32(Type::kOffset * sums[b]));
    }
    y = add_scaled(y, eight_scales<Format>(block, step), dx[b], whole);
    if constexpr (Type::kMinimum) {
      y = add_scaled(y, eight_halves(block + 2, step), dx[b], _mm256_set1_epi32(sums[b]));
    }
  };
  std::int64_t b = 0;
  for (; b + 1 < blocks; b += 2) {
    const Bits8* at = w + b * Format::kBytes;
    const __m512i values = _mm512_loadu_si512(bytes + 32 * b);
    __m512i row[8];
    for (int r = 0; r < 8; ++r) {
      const Bits8* block = at + r * step;
      _mm_prefetch(reinterpret_cast<const char*>(block + kAhead), _MM_HINT_T0);
      row[r] = _mm512_dpbusd_epi32(_mm512_setzero_si512(),
                                   Pair<Format>::codes(block, block + Format::kBytes), values);
    }
    const __m512i whole = across8_halves(row);
    finish(at, b, _mm512_castsi512_si256(whole));
    finish(at + Format::kBytes, b + 1, _mm512_extracti64x4_epi64(whole, 1));
  }
  if (b < blocks) {
    const Bits8* at = w + b * Format::kBytes;
    const __m512i values = _mm512_castsi256_si512(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32 * b)));
    __m512i row[8];
    for (int r = 0; r < 8; ++r) {
      const Bits8* block = at + r * step;
      row[r] =
          _mm512_dpbusd_epi32(_mm512_setzero_si512(), Pair<Format>::codes(block, block), values);
    }
    finish(at, b, _mm512_castsi512_si256(across8_halves(row)));
  }
  return y;
}

// Eight rows of eight lanes: their sums.
TL_VECTOR __m256i across8(const __m256i (&row)[8]) {
  __m256i pair[4], four[2];
  for (int p = 0; p < 4; ++p) {
    pair[p] = _mm256_add_epi32(_mm256_unpacklo_epi32(row[2 * p], row[2 * p + 1]),
                               _mm256_unpackhi_epi32(row[2 * p], row[2 * p + 1]));
  }
  for (int p = 0; p < 2; ++p) {
    four[p] = _mm256_add_epi32(_mm256_unpacklo_epi64(pair[2 * p], pair[2 * p + 1]),
                               _mm256_unpackhi_epi64(pair[2 * p], pair[2 * p + 1]));
  }
  return _mm256_add_epi32(_mm256_permute2x128_si256(four[0], four[1], 0x20),
                          _mm256_permute2x128_si256(four[0], four[1], 0x31));
}

// The scale of each of 64 codes, sixteen at a time, as words for pairs of codes: `eight` holds
// eight scales in every 128 bits, of which the four from `first` on are meant.
TL_VECTOR __m512i scale_words(__m512i eight, int first) {
  const __m512i word = _mm512_set_epi64(0x0706070607060706, 0x0706070607060706, 0x0504050405040504,
                                        0x0504050405040504, 0x0302030203020302, 0x0302030203020302,
                                        0x0100010001000100, 0x0100010001000100);
  const __m512i control = _mm512_add_epi8(word, _mm512_set1_epi8(static_cast<char>(2 * first)));
  return _mm512_shuffle_epi8(eight, control);
}

template <class Format>
TL_VECTOR __m256 eight_rows256(const Bits8* w, std::int64_t step, const Activations& x,
                               std::int64_t i) {
  using Type = Integers<Format>;
  // Two products of bytes fit a word for codes up to 128.
  constexpr bool kFitsWords = !std::is_same_v<Format, qb::IQ4_XS>;
  const std::int64_t blocks = x.columns() / 256;
  const std::int8_t* bytes = x.bytes(i);
  const float* dx = x.scales(i);
  __m256 y = _mm256_setzero_ps();
  for (std::int64_t b = 0; b < blocks; ++b) {
    const Bits8* at = w + b * Format::kBytes;
    const __m256i sums = _mm512_cvtepi32_epi16(_mm512_loadu_si512(x.sums(i) + 16 * b));
    __m512i values[4];
    for (int v = 0; v < 4; ++v) values[v] = _mm512_loadu_si512(bytes + 256 * b + 64 * v);
    __m256i row[8], below[8];
    for (int r = 0; r < 8; ++r) {
      const Bits8* block = at + r * step;
      for (int line = 0; line < Format::kBytes; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(block + kAhead + line), _MM_HINT_T0);
      }
      __m512i codes[4];
      Super<Format>::codes(block, codes);
      const __m256i scales = _mm256_cvtepi8_epi16(Super<Format>::scales(block));
      const __m512i low = _mm512_broadcast_i32x4(_mm256_castsi256_si128(scales));
      const __m512i high = _mm512_broadcast_i32x4(_mm256_extracti128_si256(scales, 1));
      __m512i total = _mm512_setzero_si512();
      for (int v = 0; v < 4; ++v) {
        const __m512i scale = scale_words(v < 2 ? low : high, 4 * (v & 1));
        if constexpr (kFitsWords) {
          total = _mm512_dpwssd_epi32(total, _mm512_maddubs_epi16(codes[v], values[v]), scale);
        } else {
          // A word twice is four bytes of which the lower half, with its sign, is meant.
          const __m512i part = _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes[v], values[v]);
          const __m512i wide = _mm512_srai_epi32(_mm512_slli_epi32(scale, 16), 16);
          total = _mm512_add_epi32(total, _mm512_mullo_epi32(part, wide));
        }
      }
      row[r] = _mm256_add_epi32(_mm512_castsi512_si256(total), _mm512_extracti64x4_epi64(total, 1));
      if constexpr (Type::kOffset != 0) {
        const __m256i offset = _mm256_set1_epi32(Type::kOffset);
        row[r] =
            _mm256_sub_epi32(row[r], _mm256_mullo_epi32(_mm256_madd_epi16(scales, sums), offset));
      }
      if constexpr (Type::kMinimum) {
        below[r] = _mm256_madd_epi16(_mm256_cvtepi8_epi16(Super<Format>::minimums(block)), sums);
      }
    }
    const Bits8* d = Super<Format>::d(at);
    y = add_scaled(y, eight_halves(d, step), dx[b], across8(row));
    if constexpr (Type::kMinimum) {
      const __m256 dmin = eight_halves(d + 2, step);
      const __m256 both = _mm256_mul_ps(dmin, _mm256_set1_ps(dx[b]));
      y = _mm256_sub_ps(y, _mm256_mul_ps(both, _mm256_cvtepi32_ps(across8(below))));
    }
  }
  return y;
}

// ---- many rows of x: sixteen rows of w in a panel

constexpr int kPanelRows = 16;
constexpr int kColumns = 6;  // rows of x at a time

// Codes in groups of four: group g of row r at 64 g + 4 r. Then what the blocks have beside codes,
// sixteen rows side by side.
struct Panel {
  Panel(std::int64_t columns, int block)
      : codes(aligned<Bits8>(static_cast<std::size_t>(columns) * kPanelRows)),
        d(aligned<float>(static_cast<std::size_t>(columns / block) * kPanelRows)),
        m(aligned<float>(static_cast<std::size_t>(columns / block) * kPanelRows)) {
    if (block == 256) {
      scales = aligned<std::int32_t>(static_cast<std::size_t>(columns));
      minimums = aligned<std::int32_t>(static_cast<std::size_t>(columns));
    }
  }
  Aligned<Bits8> codes;
  Aligned<float> d, m;
  Aligned<std::int32_t> scales, minimums;  // part p of sixteen numbers, row r: 16 p + r
};

TL_VECTOR void put_codes(Panel& panel, std::int64_t group, int row, __m512i codes) {
  alignas(64) std::uint32_t words[16];
  _mm512_store_si512(words, codes);
  for (int j = 0; j < 16; ++j) {
    std::memcpy(panel.codes.get() + 64 * (group + j) + 4 * row, &words[j], 4);
  }
}

// Sixteen scales of block `b` of a row.
TL_VECTOR void put_beside(std::int32_t* to, std::int64_t b, int row, __m128i bytes) {
  alignas(64) std::int32_t numbers[16];
  _mm512_store_si512(numbers, _mm512_cvtepi8_epi32(bytes));
  for (int p = 0; p < 16; ++p) to[16 * (16 * b + p) + row] = numbers[p];
}

template <class Format>
void unpack_panel(const Bits8* w, std::int64_t step, std::int64_t columns, Panel& panel) {
  using Type = Integers<Format>;
  const std::int64_t blocks = columns / Type::kBlock;
  for (int r = 0; r < kPanelRows; ++r) {
    const Bits8* at = w + r * step;
    for (std::int64_t b = 0; b < blocks; ++b, at += Format::kBytes) {
      const auto beside = static_cast<std::size_t>(b * kPanelRows + r);
      if constexpr (Type::kBlock == 32) {
        // Two blocks of codes, of which one is kept: the second may be past the end.
        const __m512i codes = Pair<Format>::codes(at, at);
        alignas(64) std::uint32_t words[16];
        _mm512_store_si512(words, codes);
        for (int j = 0; j < 8; ++j) {
          std::memcpy(panel.codes.get() + 64 * (8 * b + j) + 4 * r, &words[j], 4);
        }
        if constexpr (std::is_same_v<Format, qb::MXFP4>) {
          panel.d[beside] = qb::MXFP4::scale(at[0]);
        } else {
          panel.d[beside] = qb::half(at);
        }
        if constexpr (Type::kMinimum) panel.m[beside] = qb::half(at + 2);
      } else {
        __m512i codes[4];
        Super<Format>::codes(at, codes);
        for (int v = 0; v < 4; ++v) put_codes(panel, 64 * b + 16 * v, r, codes[v]);
        put_beside(panel.scales.get(), b, r, Super<Format>::scales(at));
        panel.d[beside] = qb::half(Super<Format>::d(at));
        if constexpr (Type::kMinimum) {
          put_beside(panel.minimums.get(), b, r, Super<Format>::minimums(at));
          panel.m[beside] = qb::half(Super<Format>::d(at) + 2);
        }
      }
    }
  }
}

TL_VECTOR __m512i four_bytes(const std::int8_t* p) {
  int value;
  std::memcpy(&value, p, 4);
  return _mm512_set1_epi32(value);
}
TL_VECTOR __m512 add_scaled(__m512 y, const float* d, float dx, __m512i whole) {
  const __m512 both = _mm512_mul_ps(_mm512_load_ps(d), _mm512_set1_ps(dx));
  return _mm512_add_ps(y, _mm512_mul_ps(both, _mm512_cvtepi32_ps(whole)));
}

// A panel times kCount rows of x from row i on.
template <class Format, int kCount>
void panel_product(const Panel& panel, const Activations& x, std::int64_t i, float* y,
                   std::int64_t n) {
  using Type = Integers<Format>;
  const std::int64_t blocks = x.columns() / Type::kBlock;
  const std::int8_t* bytes[kCount];
  const float* dx[kCount];
  const std::int32_t* sums[kCount];
  __m512 out[kCount];
  for (int c = 0; c < kCount; ++c) {
    bytes[c] = x.bytes(i + c);
    dx[c] = x.scales(i + c);
    sums[c] = x.sums(i + c);
    out[c] = _mm512_setzero_ps();
  }
  const Bits8* codes = panel.codes.get();
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t beside = b * kPanelRows;
    if constexpr (Type::kBlock == 32) {
      __m512i whole[kCount];
      for (int c = 0; c < kCount; ++c) whole[c] = _mm512_set1_epi32(-Type::kOffset * sums[c][b]);
      for (int g = 0; g < 8; ++g) {
        const __m512i w = _mm512_load_si512(codes + 64 * (8 * b + g));
        for (int c = 0; c < kCount; ++c) {
          whole[c] = _mm512_dpbusd_epi32(whole[c], w, four_bytes(bytes[c] + 32 * b + 4 * g));
        }
      }
      for (int c = 0; c < kCount; ++c) {
        out[c] = add_scaled(out[c], panel.d.get() + beside, dx[c][b], whole[c]);
        if constexpr (Type::kMinimum) {
          out[c] =
              add_scaled(out[c], panel.m.get() + beside, dx[c][b], _mm512_set1_epi32(sums[c][b]));
        }
      }
    } else {
      __m512i whole[kCount], below[kCount];
      for (int c = 0; c < kCount; ++c) whole[c] = below[c] = _mm512_setzero_si512();
      for (std::int64_t p = 16 * b; p < 16 * b + 16; ++p) {
        const __m512i scale = _mm512_load_si512(panel.scales.get() + 16 * p);
        __m512i part[kCount];
        for (int c = 0; c < kCount; ++c) part[c] = _mm512_set1_epi32(-Type::kOffset * sums[c][p]);
        for (int g = 0; g < 4; ++g) {
          const __m512i w = _mm512_load_si512(codes + 64 * (4 * p + g));
          for (int c = 0; c < kCount; ++c) {
            part[c] = _mm512_dpbusd_epi32(part[c], w, four_bytes(bytes[c] + 16 * p + 4 * g));
          }
        }
        for (int c = 0; c < kCount; ++c) {
          whole[c] = _mm512_add_epi32(whole[c], _mm512_mullo_epi32(part[c], scale));
        }
        if constexpr (Type::kMinimum) {
          const __m512i minimum = _mm512_load_si512(panel.minimums.get() + 16 * p);
          for (int c = 0; c < kCount; ++c) {
            below[c] = _mm512_add_epi32(below[c],
                                        _mm512_mullo_epi32(minimum, _mm512_set1_epi32(sums[c][p])));
          }
        }
      }
      for (int c = 0; c < kCount; ++c) {
        out[c] = add_scaled(out[c], panel.d.get() + beside, dx[c][b], whole[c]);
        if constexpr (Type::kMinimum) {
          const __m512 both =
              _mm512_mul_ps(_mm512_load_ps(panel.m.get() + beside), _mm512_set1_ps(dx[c][b]));
          out[c] = _mm512_sub_ps(out[c], _mm512_mul_ps(both, _mm512_cvtepi32_ps(below[c])));
        }
      }
    }
  }
  for (int c = 0; c < kCount; ++c) _mm512_storeu_ps(y + (i + c) * n, out[c]);
}

// Rows of x from which on unpacking into a panel pays.
constexpr std::int64_t kManyRows = 4;

// Rows that do not fill a vector go to `rest`.
template <class Format>
void rows_product(const std::byte* w, std::int64_t first, std::int64_t last, const Activations& x,
                  float* y, std::int64_t n, detail::RowsProduct rest) {
  const std::int64_t step = x.columns() / Format::kElements * Format::kBytes;
  const auto* weights = reinterpret_cast<const Bits8*>(w);
  std::int64_t row = first;
  if (x.rows() >= kManyRows && last - row >= kPanelRows) {
    Panel panel(x.columns(), Integers<Format>::kBlock);
    for (; row + kPanelRows <= last; row += kPanelRows) {
      unpack_panel<Format>(weights + row * step, step, x.columns(), panel);
      std::int64_t i = 0;
      for (; i + kColumns <= x.rows(); i += kColumns) {
        panel_product<Format, kColumns>(panel, x, i, y + row, n);
      }
      for (; i + 2 <= x.rows(); i += 2) panel_product<Format, 2>(panel, x, i, y + row, n);
      for (; i < x.rows(); ++i) panel_product<Format, 1>(panel, x, i, y + row, n);
    }
  }
  // Eight streams through memory, each of rows one after the other.
  const std::int64_t each = (last - row) / 8;
  for (std::int64_t end = row + each; row < end; ++row) {
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      alignas(32) float sums[8];
      if constexpr (Integers<Format>::kBlock == 32) {
        _mm256_store_ps(sums, eight_rows32<Format>(weights + row * step, each * step, x, i));
      } else {
        _mm256_store_ps(sums, eight_rows256<Format>(weights + row * step, each * step, x, i));
      }
      for (int r = 0; r < 8; ++r) y[i * n + row + r * each] = sums[r];
    }
  }
  row += 7 * each;
  if (row < last) rest(w, row, last, x, y, n);
}

#undef TL_VECTOR

}  // namespace

Activations::EncodeBlocks detail::vnni_encode() { return &encode_blocks; }

bool detail::has_vnni() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

}  // namespace tl::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop

namespace tl::cpu {

detail::RowsProduct detail::vnni_product(QType type) {
  return with_blocks(type, []<class Format>(std::type_identity<Format>) -> RowsProduct {
    if constexpr (requires { Integers<Format>::kBlock; }) {
      return [](const std::byte* w, std::int64_t first, std::int64_t last, const Activations& x,
                float* y, std::int64_t n) {
        rows_product<Format>(w, first, last, x, y, n, portable_rows<Format>);
      };
    } else {
      return nullptr;
    }
  });
}

}  // namespace tl::cpu

#else

namespace tl::cpu {

bool detail::has_vnni() { return false; }
Activations::EncodeBlocks detail::vnni_encode() { return nullptr; }
detail::RowsProduct detail::vnni_product(QType) { return nullptr; }

}  // namespace tl::cpu

#endif
