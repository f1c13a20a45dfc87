// The loops around a micro-kernel: blocks of A and B are copied ("packed") in the order in which
// the micro-kernel reads them, and tiles of C are shared out among the threads.
//
// A Kernel says how its tiles look and works on one at a time:
//   InA, InB               element types as given,
//   Packed, Sum, Out       as packed, as summed and as stored
//   kRows, kColumns        of a tile
//   kDepth                 of k in one block; a panel of B of that depth fits the first cache
//   kGroup                 elements along k that are packed side by side; k is padded with zeros
//   pack_a, pack_b         one panel: kRows (kColumns) lines by `depth`; lines that are not there
//   are
//                          zero
//   multiply               one tile: stores (or adds) kRows by kColumns sums
//   store                  sums as elements of C, rounded
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "ops/cpu/aligned.h"
#include "ops/cpu/gemm.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

// Memory of a thread that is kept from product to product.
class Scratch {
 public:
  // At least `bytes`, aligned for any vector; what was there is lost.
  void* take(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_ = aligned<std::byte>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  Aligned<std::byte> memory_;
  std::size_t size_ = 0;
};

// Products below this are not worth waking a thread for.
inline constexpr double kThreadWork = 2e6;

constexpr std::int64_t round_up(std::int64_t x, std::int64_t to) { return (x + to - 1) / to * to; }

template <class Kernel>
void gemm_blocks(const Gemm& g) {
  using InA = typename Kernel::InA;
  using InB = typename Kernel::InB;
  using Packed = typename Kernel::Packed;
  using Sum = typename Kernel::Sum;
  using Out = typename Kernel::Out;
  constexpr std::int64_t kRows = Kernel::kRows, kColumns = Kernel::kColumns;
  constexpr std::int64_t kDepth = Kernel::kDepth;
  constexpr std::int64_t kBytes = sizeof(Packed);
  constexpr bool kDirect = std::is_same_v<Sum, Out>;  // C itself holds the sums
  constexpr std::int64_t kMostRows = round_up(1024, kRows);
  constexpr std::int64_t kMostColumns = round_up(2048, kColumns);
  constexpr std::int64_t kTaskRows = kRows * 4;
  constexpr std::int64_t kTaskColumns = round_up(256, kColumns);

  ThreadPool& pool = ThreadPool::shared();
  const bool threads =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) > kThreadWork;
  // One task at a time for each thread, not ranges of them: tasks are long, and a thread that wakes
  // late would leave the last range to wait for.
  const auto share = [&](std::int64_t count, auto&& f) {
    std::atomic<std::int64_t> next{0};
    const std::int64_t takers = threads ? std::min<std::int64_t>(count, pool.threads()) : 1;
    pool.parallel_for(0, takers, 1, [&](std::int64_t, std::int64_t) {
      for (std::int64_t i = next++; i < count; i = next++) f(i);
    });
  };

  const auto* a = static_cast<const InA*>(g.a);
  const auto* b = static_cast<const InB*>(g.b);
  const auto* bias = static_cast<const Out*>(g.bias);
  auto* c = static_cast<Out*>(g.c);

  thread_local Scratch scratch;
  const std::int64_t rows = std::min(round_up(g.m, kRows), kMostRows);
  const std::int64_t columns = std::min(round_up(g.n, kColumns), kMostColumns);
  const std::int64_t deep = std::min(round_up(g.k, Kernel::kGroup), kDepth);
  const auto size_a = static_cast<std::size_t>(round_up(rows * deep * kBytes, 64));
  const auto size_b = static_cast<std::size_t>(round_up(columns * deep * kBytes, 64));
  const auto size_c = !kDirect && g.k > kDepth
                          ? static_cast<std::size_t>(rows * columns) * sizeof(Sum)
                          : std::size_t{0};
  auto* const room = static_cast<std::byte*>(scratch.take(size_a + size_b + size_c));
  auto* const packed_a = reinterpret_cast<Packed*>(room);
  auto* const packed_b = reinterpret_cast<Packed*>(room + size_a);
  auto* const sums = reinterpret_cast<Sum*>(room + size_a + size_b);

  for (std::int64_t j0 = 0; j0 < g.n; j0 += kMostColumns) {
    const std::int64_t n = std::min(kMostColumns, g.n - j0);
    for (std::int64_t i0 = 0; i0 < g.m; i0 += kMostRows) {
      const std::int64_t m = std::min(kMostRows, g.m - i0);
      for (std::int64_t p0 = 0; p0 < g.k; p0 += kDepth) {
        const std::int64_t depth = std::min(kDepth, g.k - p0);
        const std::int64_t padded = round_up(depth, Kernel::kGroup);
        const bool first = p0 == 0, last = p0 + kDepth >= g.k;
        const std::int64_t panels_a = (m + kRows - 1) / kRows;
        const std::int64_t panels_b = (n + kColumns - 1) / kColumns;
        share(panels_a + panels_b, [&](std::int64_t panel) {
          if (panel < panels_a) {
            const std::int64_t i = panel * kRows;
            Kernel::pack_a(packed_a + i * padded, a + (i0 + i) * g.a_row + p0 * g.a_col, g.a_row,
                           g.a_col, std::min(kRows, m - i), depth);
          } else {
            const std::int64_t j = (panel - panels_a) * kColumns;
            Kernel::pack_b(packed_b + j * padded, b + (j0 + j) * g.b_col + p0 * g.b_row, g.b_col,
                           g.b_row, std::min(kColumns, n - j), depth);
          }
        });
        const std::int64_t down = (m + kTaskRows - 1) / kTaskRows;
        const std::int64_t across = (n + kTaskColumns - 1) / kTaskColumns;
        share(down * across, [&](std::int64_t task) {
          const std::int64_t i_begin = task % down * kTaskRows;
          const std::int64_t i_end = std::min(m, i_begin + kTaskRows);
          const std::int64_t j_begin = task / down * kTaskColumns;
          const std::int64_t j_end = std::min(n, j_begin + kTaskColumns);
          alignas(64) Sum tile[kRows * kColumns];
          for (std::int64_t j = j_begin; j < j_end; j += kColumns) {
            for (std::int64_t i = i_begin; i < i_end; i += kRows) {
              const Packed* from_a = packed_a + i * padded;
              const Packed* from_b = packed_b + j * padded;
              if constexpr (!kDirect) {
                if (first && last) {
                  Kernel::multiply(padded, from_a, from_b, tile, kColumns, false);
                } else {
                  Sum* to = sums + i * columns + j * kRows;
                  Kernel::multiply(padded, from_a, from_b, to, kColumns, !first);
                  if (last) std::copy_n(to, kRows * kColumns, tile);
                }
                if (!last) continue;
              } else {
                const bool whole = i + kRows <= m && j + kColumns <= n && g.c_col == 1;
                if (whole && (bias == nullptr || !last)) {
                  Kernel::multiply(padded, from_a, from_b, c + (i0 + i) * g.c_row + j0 + j, g.c_row,
                                   !first);
                  continue;
                }
                Kernel::multiply(padded, from_a, from_b, tile, kColumns, false);
              }
              const std::int64_t tile_rows = std::min(kRows, m - i);
              const std::int64_t tile_columns = std::min(kColumns, n - j);
              for (std::int64_t r = 0; r < tile_rows; ++r) {
                Out* to = c + (i0 + i + r) * g.c_row + (j0 + j) * g.c_col;
                Sum* from = tile + r * kColumns;
                if constexpr (kDirect) {
                  if (!first) {
                    for (std::int64_t t = 0; t < tile_columns; ++t) from[t] += to[t * g.c_col];
                  }
                }
                if (bias != nullptr && last) {
                  const Out* add = bias + (i0 + i + r) * g.bias_row + (j0 + j) * g.bias_col;
                  for (std::int64_t t = 0; t < tile_columns; ++t) {
                    from[t] += static_cast<Sum>(add[t * g.bias_col]);
                  }
                }
                if (g.c_col == 1) {
                  Kernel::store(from, to, tile_columns);
                } else {
                  for (std::int64_t t = 0; t < tile_columns; ++t) {
                    to[t * g.c_col] = convert<Out>(from[t]);
                  }
                }
              }
            }
          }
        });
      }
    }
  }
}

}  // namespace tl::cpu
