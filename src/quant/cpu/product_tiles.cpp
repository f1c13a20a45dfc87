// Quantised products with AMX by numbers of bf16: rows of the weight are decoded a few hundred
// columns at a time, and the rows of x rounded, to bf16; the matrix unit multiplies and adds to
// f32.
//
// That is about three times the speed of vectors of integers. Integers in tiles (product_amx.cpp)
// are slower, because their sums must leave the unit for every scale. And it is nearer to the truth
// than rounding x to bytes: both sides are within 1/256 of each number, where bytes are within
// 1/254 of the largest of 32 (on random numbers the usual error is 0.24 % of a term's size, not
// 0.54 to 0.7).
#include "quant/cpu/product.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "ops/cpu/amx.h"
#include "ops/cpu/gemm_tiles.h"
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
    __attribute__((                                                                         \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,f16c,avx2,fma"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,f16c,avx2,fma")
#endif

namespace tl::cpu {

namespace {

using qb::Bits8;

// clang-format off: each builds on those before it
#include "quant/cpu/vectors-inl.h"
#include "quant/cpu/avx512-inl.h"
#include "quant/cpu/codes-inl.h"
// clang-format on

constexpr std::int64_t kLines = 2 * kTile;  // of x and of the weight that go together
constexpr std::int64_t kPiece = 256;        // columns that are decoded at a time
constexpr int kRowsTogether = 4;            // whose headers are decoded together

// Sixteen numbers as bf16. Subnormals become zero, as they are for the products.
TL_VECTOR void put16(std::uint16_t* to, Floats numbers) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(numbers)));
}
// Sixteen codes, less their offset, of a lane.
template <int kLane>
TL_VECTOR Floats numbers_of(Ints codes) {
  return floats(_mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(codes, kLane)));
}
template <class F>
TL_VECTOR void each_lane(const F& f) {
  f(std::integral_constant<int, 0>{});
  f(std::integral_constant<int, 1>{});
  f(std::integral_constant<int, 2>{});
  f(std::integral_constant<int, 3>{});
}
template <class Format>
TL_VECTOR Ints less_offset(Ints codes) {
  if constexpr (Integers<Format>::kOffset == 0) return codes;
  return add8(codes, set8(-Integers<Format>::kOffset));
}

// ---- rows of blocks of 32

template <class Format>
TL_VECTOR void decode_row32(const Bits8* w, std::int64_t blocks, std::uint16_t* to) {
  using Type = Integers<Format>;
  for (std::int64_t b = 0; b < blocks; b += kLanes) {
    const int last = static_cast<int>(std::min<std::int64_t>(blocks - b, kLanes)) - 1;
    const auto block = [&](int l) { return w + Format::kBytes * (b + std::min(l, last)); };
    Halved codes = Lanes32<Format, false>::codes(block);
    codes = {less_offset<Format>(codes.low), less_offset<Format>(codes.high)};
    each_lane([&]<int kLane>(std::integral_constant<int, kLane>) {
      if (kLane > last) return;
      std::uint32_t head;
      std::memcpy(&head, block(kLane), sizeof head);
      const Ints words = set32(static_cast<int>(head));
      const Floats d = scales_of<Format>(words);
      Floats low = mul(numbers_of<kLane>(codes.low), d);
      Floats high = mul(numbers_of<kLane>(codes.high), d);
      if constexpr (Type::kMinimum) {
        const Floats m = from_halves(right32(words, 16));
        low = add(low, m);
        high = add(high, m);
      }
      put16(to + 32 * (b + kLane), low);
      put16(to + 32 * (b + kLane) + 16, high);
    });
  }
}

// ---- rows of blocks of 256

// Of four rows `step` apart, of which the last ones may be the same, into rows of kPiece numbers.
template <class Format>
TL_VECTOR void decode_rows256(const Bits8* const (&w)[kRowsTogether], std::int64_t blocks,
                              std::uint16_t* to, int rows) {
  using Layout = Super<Format, false>;
  using Type = Integers<Format>;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t at = b * Format::kBytes;
    alignas(64) Bits8 scales[kRowsTogether][16], minimums[kRowsTogether][16];
    const Ints header = lanes([&](int l) { return w[l] + at + Layout::kHeader; });
    const Ints bytes = Layout::scales(header);
    if constexpr (Layout::kPairs) {
      alignas(16) static constexpr Bits8 kTwice[16] = {0, 0, 1, 1, 2, 2, 3, 3,
                                                       4, 4, 5, 5, 6, 6, 7, 7};
      const Ints twice = broadcast16(kTwice);
      store(scales[0], shuffle8(bytes, twice));
      store(minimums[0], shuffle8(bytes, add8(twice, set8(8))));
    } else {
      store(scales[0], bytes);
      if constexpr (Type::kMinimum) store(minimums[0], Layout::minimums(header));
    }
    for (int r = 0; r < rows; ++r) {
      const Bits8* block = w[r] + at;
      std::uint32_t head;
      std::memcpy(&head, block + Layout::kD, sizeof head);
      const Ints words = set32(static_cast<int>(head));
      const Floats d = from_halves(Layout::kUpper ? right32(words, 16) : words);
      alignas(64) float scale[16], minimum[16];
      store_floats(scale, mul(floats(_mm512_cvtepi8_epi32(load16(scales[r]))), d));
      if constexpr (Type::kMinimum) {
        const Floats m = from_halves(right32(words, 16));
        store_floats(minimum, mul(floats(_mm512_cvtepi8_epi32(load16(minimums[r]))), m));
      }
      Ints codes[kVectors];
      Layout::codes(block, codes);
      std::uint16_t* row = to + r * kPiece + 256 * b;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const Ints signed_codes = less_offset<Format>(codes[v]);
        each_lane([&]<int kLane>(std::integral_constant<int, kLane>) {
          const int unit = unit16<Layout>(v, kLane);
          Floats numbers = mul(numbers_of<kLane>(signed_codes), set_floats(scale[unit]));
          if constexpr (Type::kMinimum) numbers = sub(numbers, set_floats(minimum[unit]));
          put16(row + 16 * unit, numbers);
        });
      }
    }
  }
}

// ---- the product

template <class Format>
struct QuantKernel {
  using InA = float;
  using Out = float;
  using Sum = float;
  using PackedA = std::uint16_t;
  using PackedB = std::uint16_t;
  static constexpr std::int64_t kRows = kLines, kColumns = kLines;
  static constexpr std::int64_t kDepth = kPiece;
  static constexpr std::int64_t kGroup = kTileChunk;

  // A row of the weight is b_col bytes.
  static const Bits8* b_at(const Gemm& g, std::int64_t p, std::int64_t j) {
    return static_cast<const Bits8*>(g.b) + j * g.b_col + p / Format::kElements * Format::kBytes;
  }

  // [p / 32][row][p % 32]
  static void pack_a(PackedA* to, const float* from, std::int64_t line, std::int64_t /*deep*/,
                     std::int64_t lines, std::int64_t depth) {
    for (std::int64_t p = 0; p < depth; p += kTileChunk, to += kLines * kTileChunk) {
      for (std::int64_t i = 0; i < lines; ++i) {
        const float* at = from + i * line + p;
        put16(to + i * kTileChunk, _mm512_loadu_ps(at));
        put16(to + i * kTileChunk + 16, _mm512_loadu_ps(at + 16));
      }
      std::memset(to + lines * kTileChunk, 0,
                  static_cast<std::size_t>(kLines - lines) * kTileChunk * sizeof(*to));
    }
  }
  static void pack_b(PackedB* to, const Bits8* from, std::int64_t step, std::int64_t /*deep*/,
                     std::int64_t lines, std::int64_t depth) {
    alignas(64) std::uint16_t rows[kLines * kPiece];
    if constexpr (Integers<Format>::kBlock == 32) {
      for (std::int64_t i = 0; i < lines; ++i) {
        decode_row32<Format>(from + i * step, depth / 32, rows + i * kPiece);
      }
    } else {
      for (std::int64_t i = 0; i < lines; i += kRowsTogether) {
        const auto count = static_cast<int>(std::min<std::int64_t>(kRowsTogether, lines - i));
        const Bits8* each[kRowsTogether];
        for (int r = 0; r < kRowsTogether; ++r)
          each[r] = from + (i + std::min(r, count - 1)) * step;
        decode_rows256<Format>(each, depth / 256, rows + i * kPiece, count);
      }
    }
    pack_tile_columns(to, rows, kPiece, 1, lines, depth);
  }
  static void multiply(std::int64_t depth, const PackedA* a, const PackedB* b, float* c,
                       std::int64_t c_row, bool add) {
    multiply_tiles<1, 1>(depth, a, b, c, c_row, add);
  }
  static void store(const float* from, float* to, std::int64_t count) {
    std::copy_n(from, count, to);
  }
};

struct TilesOf {
  template <class Format>
  detail::GemmProduct operator()(std::type_identity<Format>) const {
    if constexpr (HasIntegers<Format>) {
      return &gemm_tiles<QuantKernel<Format>>;
    } else {
      return nullptr;
    }
  }
};

}  // namespace

}  // namespace tl::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#pragma GCC diagnostic pop

namespace tl::cpu {

// Batches between few and many go through tiles of bytes, so those must be there too.
bool detail::has_tiles() {
  return has_amx() && has_amx_bf16() && __builtin_cpu_supports("avx512bf16") != 0;
}
detail::GemmProduct detail::tiles_product(QType type) { return with_blocks(type, TilesOf{}); }

}  // namespace tl::cpu

#else

namespace tl::cpu {

bool detail::has_tiles() { return false; }
detail::GemmProduct detail::tiles_product(QType) { return nullptr; }

}  // namespace tl::cpu

#endif
