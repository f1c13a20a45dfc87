// Matrix products by AMX, whose instruction multiplies tiles of bf16 and adds to f32: products of
// bf16 as they are, and those of f16 and f32 taken apart into numbers of bf16.
//
// A number is the sum of its terms: its upper sixteen bits, those of the rest, and so on. Two hold
// an f16, three an f32. Of the products of terms those are left out that are below the last bit of
// an f32, so five tile instructions do what one would for bf16; by the rates of both units that is
// still a third of what f32 vectors take. Terms of what is infinite or NaN are NaN: gemm_amx() says
// so, and vectors do it again. Like the vector instruction for bf16, this one takes subnormals for
// zero.
#include "ops/cpu/gemm.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/cpu/amx.h"
#include "ops/cpu/gemm_tiles.h"

namespace tl::cpu {

namespace {

template <class T>
constexpr int kTerms = std::is_same_v<T, bfloat16> ? 1
                       : std::is_same_v<T, half>   ? 2
                                                   : 3;

// The terms of 32 numbers, one after the other `apart` from each other.
TL_AMX_TARGET inline void split(const float* from, std::uint16_t* to, std::int64_t apart,
                                int terms) {
  constexpr __mmask16 kAll = 0xffff;
  __m512 rest[2] = {_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16)};
  for (int t = 0; t < terms; ++t) {
    for (int h = 0; h < 2; ++h) {
      const __m512i bits = _mm512_castps_si512(rest[h]);
      const __m512i upper = _mm512_and_si512(bits, _mm512_set1_epi32(-0x10000));
      rest[h] = _mm512_sub_ps(rest[h], _mm512_castsi512_ps(upper));
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(to + t * apart + 16 * h),
          _mm512_maskz_cvtepi32_epi16(kAll, _mm512_maskz_srli_epi32(kAll, bits, 16)));
    }
  }
}

// 32 numbers, `deep` apart, of which only `count` are there.
template <class T>
TL_AMX_TARGET inline void widen(const T* from, std::int64_t deep, std::int64_t count, float* to) {
  if constexpr (std::is_same_v<T, half>) {
    if (deep == 1 && count == kTileChunk) {
      for (int h = 0; h < 2; ++h) {
        const auto* at = reinterpret_cast<const __m256i*>(from + 16 * h);
        _mm512_storeu_ps(to + 16 * h, _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(at)));
      }
      return;
    }
  }
  for (std::int64_t p = 0; p < count; ++p) to[p] = static_cast<float>(from[p * deep]);
  for (std::int64_t p = count; p < kTileChunk; ++p) to[p] = 0;
}

template <class A, class B, class C>
struct TileKernel : PlainB<B> {
  using InA = A;
  using Out = C;
  using Sum = float;
  static constexpr int kTermsA = kTerms<A>, kTermsB = kTerms<B>;
  struct PackedA {
    std::uint16_t bits[kTermsA];
  };
  struct PackedB {
    std::uint16_t bits[kTermsB];
  };
  static constexpr std::int64_t kRows = 2 * kTile;
  static constexpr std::int64_t kColumns = 2 * kTile;
  static constexpr std::int64_t kDepth = kTermsB == 1 ? 512 : 256;  // of B in the first cache
  static constexpr std::int64_t kGroup = kTileChunk;

  // [p / 32][term][row][p % 32]
  TL_AMX_TARGET static void pack_a(PackedA* to, const A* from, std::int64_t line, std::int64_t deep,
                                   std::int64_t lines, std::int64_t depth) {
    auto* bits = reinterpret_cast<std::uint16_t*>(to);
    constexpr std::int64_t kTerm = kRows * kTileChunk;
    for (std::int64_t p = 0; p < depth; p += kTileChunk, bits += kTermsA * kTerm) {
      const std::int64_t count = std::min<std::int64_t>(kTileChunk, depth - p);
      for (std::int64_t i = 0; i < lines; ++i) {
        const A* at = from + i * line + p * deep;
        if constexpr (kTermsA == 1) {
          if (deep == 1 && count == kTileChunk) {
            std::memcpy(bits + i * kTileChunk, at, kTileChunk * sizeof(A));
            continue;
          }
          std::memset(bits + i * kTileChunk, 0, kTileChunk * sizeof(A));
          for (std::int64_t q = 0; q < count; ++q) {
            std::memcpy(bits + i * kTileChunk + q, at + q * deep, sizeof(A));
          }
        } else {
          alignas(64) float numbers[kTileChunk];
          widen(at, deep, count, numbers);
          split(numbers, bits + i * kTileChunk, kTerm, kTermsA);
        }
      }
      for (int t = 0; t < kTermsA; ++t) {
        std::memset(bits + t * kTerm + lines * kTileChunk, 0,
                    static_cast<std::size_t>(kRows - lines) * kTileChunk * sizeof(std::uint16_t));
      }
    }
  }

  // Terms one after the other, each [p / 2][column][p % 2].
  TL_AMX_TARGET static void pack_b(PackedB* to, const B* from, std::int64_t line, std::int64_t deep,
                                   std::int64_t lines, std::int64_t depth) {
    auto* bits = reinterpret_cast<std::uint16_t*>(to);
    const std::int64_t padded = round_up(depth, kGroup);
    if constexpr (kTermsB == 1) {
      pack_tile_columns(bits, reinterpret_cast<const std::uint16_t*>(from), line, deep, lines,
                        depth);
    } else {
      alignas(64) std::uint16_t terms[kTermsB][kColumns * kDepth];
      for (std::int64_t i = 0; i < lines; ++i) {
        for (std::int64_t p = 0; p < depth; p += kTileChunk) {
          alignas(64) float numbers[kTileChunk];
          widen(from + i * line + p * deep, deep, std::min<std::int64_t>(kTileChunk, depth - p),
                numbers);
          split(numbers, terms[0] + i * kDepth + p, kColumns * kDepth, kTermsB);
        }
      }
      for (int t = 0; t < kTermsB; ++t) {
        pack_tile_columns(bits + t * kColumns * padded, terms[t], kDepth, 1, lines, depth);
      }
    }
  }

  static void multiply(std::int64_t depth, const PackedA* a, const PackedB* b, float* c,
                       std::int64_t c_row, bool add) {
    multiply_tiles<kTermsA, kTermsB>(depth, reinterpret_cast<const std::uint16_t*>(a),
                                     reinterpret_cast<const std::uint16_t*>(b), c, c_row, add);
  }

  static void store(const float* from, C* to, std::int64_t count) {
    if constexpr (std::is_same_v<C, bfloat16>) {
      store_bf16(from, to, count);
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = convert<C>(from[i]);
    }
  }
};

// Rows of A from which on a tile is full enough.
constexpr std::int64_t kTileRows = 16;

template <class C>
bool has_nan(const Gemm& g) {
  const auto* c = static_cast<const C*>(g.c);
  for (std::int64_t i = 0; i < g.m; ++i) {
    bool found = false;
    for (std::int64_t j = 0; j < g.n; ++j) {
      const auto x = static_cast<float>(c[i * g.c_row + j * g.c_col]);
      found |= x != x;
    }
    if (found) return true;
  }
  return false;
}

template <class A, class B>
bool multiply(const Gemm& g) {
  gemm_tiles<TileKernel<A, B, A>>(g);
  return (kTerms<A> == 1 && kTerms<B> == 1) || !has_nan<A>(g);
}

}  // namespace

bool gemm_amx(const Gemm& g, DType b) {
  static const bool has = has_amx_bf16() && __builtin_cpu_supports("avx512bw") != 0;
  if (!has || g.m < kTileRows) return false;
  if (g.dtype == DType::BF16 && b == DType::BF16) return multiply<bfloat16, bfloat16>(g);
  if (g.dtype == DType::F16 && b == DType::F16) return multiply<half, half>(g);
  if (g.dtype == DType::F32 && b == DType::F16) return multiply<float, half>(g);
  if (g.dtype == DType::F32 && b == DType::BF16) return multiply<float, bfloat16>(g);
  return false;
}

}  // namespace tl::cpu

#else

namespace tl::cpu {

bool gemm_amx(const Gemm& /*g*/, DType /*b*/) { return false; }

}  // namespace tl::cpu

#endif
