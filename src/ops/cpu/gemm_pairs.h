// What the kernels for products of bf16 have in common: numbers in pairs, which their instructions
// multiply, and sums as bf16.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "ops/cpu/gemm_driver.h"
#include "tl/base/dtype.h"

namespace tl::cpu {

// GCC spells targets so; the driver's loops stay code for any CPU.
#define TL_PAIRS_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

// Lines of bf16, `line` apart, of which number p is p * deep further on, as [p / 2][line][p % 2].
// Lines that are not there, and the second of a last pair, are zero.
template <std::int64_t kLines>
TL_PAIRS_TARGET void pack_pairs(std::uint16_t* to, const std::uint16_t* bits, std::int64_t line,
                                std::int64_t deep, std::int64_t lines, std::int64_t depth) {
  if (lines < kLines || depth % 2 != 0) {
    std::memset(to, 0, static_cast<std::size_t>(kLines * round_up(depth, 2)) * sizeof(*to));
  }
  if (line == 1 && lines == kLines && kLines == 32) {  // two rows become one of pairs
    // Positions 0 ... 15 of both rows, then 16 ... 31.
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    for (std::int64_t p = 0; p < depth; p += 2) {
      const __m512i even = _mm512_loadu_si512(bits + p * deep);
      const __m512i odd =
          p + 1 < depth ? _mm512_loadu_si512(bits + (p + 1) * deep) : _mm512_setzero_si512();
      _mm512_storeu_si512(to + p * kLines, _mm512_permutex2var_epi16(even, low, odd));
      _mm512_storeu_si512(to + p * kLines + 32, _mm512_permutex2var_epi16(even, high, odd));
    }
    return;
  }
  std::int64_t done = 0;
  if (deep == 1) {  // four lines of four pairs at a time
    for (; done + 4 <= lines; done += 4) {
      const std::uint16_t* at = bits + done * line;
      std::int64_t p = 0;
      for (; p + 8 <= depth; p += 8) {
        const auto row = [&](std::int64_t i) {
          return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i * line + p));
        };
        const __m128i r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
        const __m128i low01 = _mm_unpacklo_epi32(r0, r1), low23 = _mm_unpacklo_epi32(r2, r3);
        const __m128i high01 = _mm_unpackhi_epi32(r0, r1), high23 = _mm_unpackhi_epi32(r2, r3);
        const auto put = [&](std::int64_t pair, __m128i x) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (p + 2 * pair) * kLines + 2 * done), x);
        };
        put(0, _mm_unpacklo_epi64(low01, low23));
        put(1, _mm_unpackhi_epi64(low01, low23));
        put(2, _mm_unpacklo_epi64(high01, high23));
        put(3, _mm_unpackhi_epi64(high01, high23));
      }
      for (; p < depth; ++p) {
        for (std::int64_t i = 0; i < 4; ++i) {
          to[p / 2 * 2 * kLines + 2 * (done + i) + p % 2] = at[i * line + p];
        }
      }
    }
  }
  for (std::int64_t p = 0; p < depth; ++p) {
    for (std::int64_t i = done; i < lines; ++i) {
      to[p / 2 * 2 * kLines + 2 * i + p % 2] = bits[i * line + p * deep];
    }
  }
}

// As convert() rounds: the CPU's own conversion would lose subnormals.
TL_PAIRS_TARGET inline void store_bf16(const float* from, bfloat16* to, std::int64_t count) {
  // The forms with a mask: GCC 12 takes the plain ones for uses of what was never set.
  constexpr __mmask16 kAll = 0xffff;
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512 x = _mm512_loadu_ps(from + i);
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i high = _mm512_maskz_srli_epi32(kAll, bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i half_step = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_maskz_srli_epi32(kAll, _mm512_add_epi32(bits, half_step), 16);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(to + i),
        _mm512_maskz_cvtepi32_epi16(kAll, _mm512_mask_mov_epi32(rounded, is_nan, quiet)));
  }
  for (; i < count; ++i) to[i] = bfloat16(from[i]);
}

}  // namespace tl::cpu

#endif
