// Tiles of bf16 for the matrix unit: the innermost step of its products, whatever was packed.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ops/cpu/amx.h"
#include "ops/cpu/gemm_driver.h"
#include "ops/cpu/gemm_pairs.h"

namespace tl::cpu {

#define TL_AMX_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

constexpr int kTile = 16;       // rows, and numbers of f32 in one
constexpr int kTileChunk = 32;  // numbers of bf16 in a row

// What a thread holds while it multiplies tiles.
class TileScope {
 public:
  TileScope() : tiles_(kWhole) {}

 private:
  static constexpr TileShapes kWhole = [] {
    TileShapes shapes;
    for (int t = 0; t < 8; ++t) shapes.set(t, kTile, 64);
    return shapes;
  }();
  Tiles tiles_;
};

// Two tiles by two: c (32 rows, c_row apart, of 32) = or += a b. A is packed as
// [p / 32][term][row][p % 32], B as [term][p / 2][column][p % 2]. Terms whose numbers add up to
// more than two are left out: their products are below the last bit of an f32.
template <int kTermsA, int kTermsB>
TL_AMX_TARGET void multiply_tiles(std::int64_t depth, const std::uint16_t* a,
                                  const std::uint16_t* b, float* c, std::int64_t c_row, bool add) {
  constexpr std::int64_t kLines = 2 * kTile;
  const auto row = static_cast<std::size_t>(c_row) * sizeof(float);
  float* below = c + kTile * c_row;
  before_tile_loads();
  if (add) {
    _tile_loadd(0, c, row);
    _tile_loadd(1, c + kTile, row);
    _tile_loadd(2, below, row);
    _tile_loadd(3, below + kTile, row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const std::int64_t term_b = kLines * depth;
  for (std::int64_t p = 0; p < depth; p += kTileChunk) {
#pragma GCC unroll 4
    for (int i = 0; i < kTermsA; ++i) {
      const std::uint16_t* at = a + i * kLines * kTileChunk;
      _tile_loadd(4, at, 64);
      _tile_loadd(5, at + kTile * kTileChunk, 64);
      // There and back, so that a term of B that is loaded serves two of A.
      const int last = std::min(kTermsB - 1, 2 - i);
#pragma GCC unroll 4
      for (int step = 0; step <= last; ++step) {
        const int j = i % 2 == 0 ? step : last - step;
        if (i == 0 || step > 0) {
          const std::uint16_t* column = b + j * term_b;
          _tile_loadd(6, column, 4 * kLines);
          _tile_loadd(7, column + 2 * kTile, 4 * kLines);
        }
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    a += kTermsA * kLines * kTileChunk;
    b += kLines * kTileChunk;
  }
  _tile_stored(0, c, row);
  _tile_stored(1, c + kTile, row);
  _tile_stored(2, below, row);
  _tile_stored(3, below + kTile, row);
}

// The pairs of 32 columns (gemm_pairs.h), with zeros up to a whole number of tiles.
inline void pack_tile_columns(std::uint16_t* to, const std::uint16_t* from, std::int64_t line,
                              std::int64_t deep, std::int64_t lines, std::int64_t depth) {
  constexpr std::int64_t kLines = 2 * kTile;
  pack_pairs<kLines>(to, from, line, deep, lines, depth);
  const std::int64_t packed = round_up(depth, 2), padded = round_up(depth, kTileChunk);
  std::memset(to + kLines * packed, 0,
              static_cast<std::size_t>(kLines * (padded - packed)) * sizeof(std::uint16_t));
}

// The loops around multiply_tiles(), for a Kernel as gemm_driver.h describes it. A is packed whole,
// a few hundred rows of it at a time. A task is a block of columns of C, whose sums stay in the
// core's second cache while k is walked through; B is packed 32 columns by kDepth at a time, right
// before it is used.
template <class Kernel>
void gemm_tiles(const Gemm& g) {
  using PackedA = typename Kernel::PackedA;
  using PackedB = typename Kernel::PackedB;
  using Out = typename Kernel::Out;
  constexpr std::int64_t kLines = 2 * kTile, kMostRows = 512, kMostColumns = 512;
  constexpr std::int64_t kMostPacked = 16 << 20;  // bytes of A that a thread keeps for good
  constexpr std::int64_t kDepth = Kernel::kDepth;
  const GemmThreads share(g);
  const auto* a = static_cast<const typename Kernel::InA*>(g.a);
  const auto* bias = static_cast<const Out*>(g.bias);
  auto* c = static_cast<Out*>(g.c);
  const std::int64_t depths = (g.k + kDepth - 1) / kDepth;
  // Two tasks for each thread at least, where there are columns enough.
  const std::int64_t columns = std::clamp(
      round_up((g.n + 2 * share.count() - 1) / (2 * share.count()), kLines), kLines, kMostColumns);
  const std::int64_t deep = std::min(round_up(g.k, Kernel::kGroup), kDepth);
  const std::int64_t row_bytes = depths * deep * std::int64_t{sizeof(PackedA)};
  const std::int64_t most_rows = std::clamp(kMostPacked / row_bytes / kLines * kLines, kLines,
                                            std::min(kMostRows, round_up(g.m, kLines)));
  thread_local Scratch packed;
  auto* const packed_a =
      static_cast<PackedA*>(packed.take(static_cast<std::size_t>(most_rows * row_bytes)));

  for (std::int64_t i0 = 0; i0 < g.m; i0 += most_rows) {
    const std::int64_t m = std::min(most_rows, g.m - i0);
    const std::int64_t groups = (m + kLines - 1) / kLines;
    const auto depth_of = [&](std::int64_t d) { return std::min(kDepth, g.k - d * kDepth); };
    const auto group_of_a = [&](std::int64_t d, std::int64_t group) {
      return packed_a + (d * groups + group) * kLines * deep;
    };
    share(depths * groups, [&](std::int64_t task) {
      const std::int64_t d = task / groups, i = task % groups * kLines;
      Kernel::pack_a(group_of_a(d, task % groups), a + (i0 + i) * g.a_row + d * kDepth * g.a_col,
                     g.a_row, g.a_col, std::min(kLines, m - i), depth_of(d));
    });
    share((g.n + columns - 1) / columns, [&](std::int64_t task) {
      const TileScope scope;
      thread_local Scratch own;
      const std::int64_t j0 = task * columns, n = std::min(columns, g.n - j0);
      const std::int64_t panels = (n + kLines - 1) / kLines;
      const auto size_b =
          static_cast<std::size_t>(round_up(kLines * deep * std::int64_t{sizeof(PackedB)}, 64));
      auto* const room = static_cast<std::byte*>(own.take(
          size_b + static_cast<std::size_t>(panels * groups * kLines * kLines) * sizeof(float)));
      auto* const packed_b = reinterpret_cast<PackedB*>(room);
      auto* const sums = reinterpret_cast<float*>(room + size_b);
      for (std::int64_t d = 0; d < depths; ++d) {
        const std::int64_t depth = depth_of(d), padded = round_up(depth, Kernel::kGroup);
        for (std::int64_t panel = 0; panel < panels; ++panel) {
          const std::int64_t j = panel * kLines, tile_columns = std::min(kLines, n - j);
          Kernel::pack_b(packed_b, Kernel::b_at(g, d * kDepth, j0 + j), g.b_col, g.b_row,
                         tile_columns, depth);
          for (std::int64_t group = 0; group < groups; ++group) {
            float* tile = sums + (panel * groups + group) * kLines * kLines;
            Kernel::multiply(padded, group_of_a(d, group), packed_b, tile, kLines, d > 0);
            if (d + 1 < depths) continue;
            const std::int64_t i = group * kLines, tile_rows = std::min(kLines, m - i);
            finish_tile<Kernel>(g, tile, kLines, i0 + i, j0 + j, tile_rows, tile_columns, bias, c);
          }
        }
      }
    });
  }
}

}  // namespace tl::cpu

#endif
