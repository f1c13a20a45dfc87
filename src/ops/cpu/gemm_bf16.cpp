// Matrix products of bf16 by the instruction that multiplies pairs of them and adds to f32
// (AVX512-BF16): twice the speed of f32. It rounds like f32 does but takes subnormals for zero.
#include "ops/cpu/gemm.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "ops/cpu/gemm_driver.h"
#include "ops/cpu/gemm_pairs.h"

namespace tl::cpu {

namespace {

#define TL_BF16_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

struct PairKernel : PlainB<bfloat16> {
  using InA = bfloat16;
  using Out = bfloat16;
  using Sum = float;
  using PackedA = std::uint16_t;
  using PackedB = std::uint16_t;
  static constexpr std::int64_t kRows = 12;
  static constexpr std::int64_t kColumns = 32;
  static constexpr std::int64_t kDepth = 512;
  static constexpr std::int64_t kGroup = 2;

  static const std::uint16_t* bits_of(const bfloat16* from) {
    return reinterpret_cast<const std::uint16_t*>(from);
  }
  static void pack_a(PackedA* to, const bfloat16* from, std::int64_t line, std::int64_t deep,
                     std::int64_t lines, std::int64_t depth) {
    pack_pairs<kRows>(to, bits_of(from), line, deep, lines, depth);
  }
  static void pack_b(PackedB* to, const bfloat16* from, std::int64_t line, std::int64_t deep,
                     std::int64_t lines, std::int64_t depth) {
    pack_pairs<kColumns>(to, bits_of(from), line, deep, lines, depth);
  }

  TL_BF16_TARGET static void multiply(std::int64_t depth, const PackedA* __restrict a,
                                      const PackedB* __restrict b, float* __restrict c,
                                      std::int64_t c_row, bool add) {
    __m512 sum[kRows][2];
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      sum[i][0] = sum[i][1] = _mm512_setzero_ps();
      // Sums of a large product have long left the near caches by the time they are added to.
      _mm_prefetch(reinterpret_cast<const char*>(c + i * c_row), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(c + i * c_row + 16), _MM_HINT_T0);
    }
    for (std::int64_t p = 0; p < depth; p += 2) {
      const auto b0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
      const auto b1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + 32));
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kRows; ++i) {
        int pair;
        std::memcpy(&pair, a + 2 * i, sizeof pair);
        const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
        sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, b0);
        sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, b1);
      }
      a += 2 * kRows;
      b += 2 * kColumns;
    }
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
      float* to = c + i * c_row;
      if (add) {
        sum[i][0] = _mm512_add_ps(sum[i][0], _mm512_loadu_ps(to));
        sum[i][1] = _mm512_add_ps(sum[i][1], _mm512_loadu_ps(to + 16));
      }
      _mm512_storeu_ps(to, sum[i][0]);
      _mm512_storeu_ps(to + 16, sum[i][1]);
    }
  }

  static void store(const float* from, bfloat16* to, std::int64_t count) {
    store_bf16(from, to, count);
  }
};

}  // namespace

bool gemm_bf16(const Gemm& g) {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  if (!has) return false;
  gemm_blocks<PairKernel>(g);
  return true;
}

}  // namespace tl::cpu

#else

namespace tl::cpu {

bool gemm_bf16(const Gemm& /*g*/) { return false; }

}  // namespace tl::cpu

#endif
