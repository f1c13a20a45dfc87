// The loops around a micro-kernel: blocks of A and B are copied ("packed") in the order in which
// the micro-kernel reads them, and tiles of C are shared out among the threads.
//
// A Kernel says how its tiles look and works on one at a time:
//   InA                    element type as given
//   PackedA, PackedB       as packed
//   Sum, Out               as summed and as stored
//   kRows, kColumns        of a tile
//   kDepth                 of k in one block; a panel of B of that depth fits the first cache
//   kGroup                 elements along k that are packed side by side; k is padded with zeros
//   b_at                   where element (p, j) of B is
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

// For kernels whose B is an array of elements.
template <class InB>
struct PlainB {
  static const InB* b_at(const Gemm& g, std::int64_t p, std::int64_t j) {
    return static_cast<const InB*>(g.b) + p * g.b_row + j * g.b_col;
  }
};

// Shares out the tasks of a product: to each thread a part of them in a row, which it takes one at
// a time, and then what is left of the others' parts. So threads seldom read the same panels at the
// same time, which holds both up, and none waits for one that wakes late.
class GemmThreads {
 public:
  explicit GemmThreads(const Gemm& g)
      : threads_(static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) >
                         kThreadWork
                     ? ThreadPool::shared().threads()
                     : 1) {}
  int count() const { return threads_; }
  template <class F>
  void operator()(std::int64_t tasks, F&& f) const {
    struct alignas(64) Part {
      std::atomic<std::int64_t> next{0};
      std::int64_t end = 0;
    };
    const std::int64_t parts = std::min<std::int64_t>(tasks, threads_);
    if (parts <= 1) {
      for (std::int64_t i = 0; i < tasks; ++i) f(i);
      return;
    }
    const auto left = std::make_unique<Part[]>(static_cast<std::size_t>(parts));
    for (std::int64_t p = 0; p < parts; ++p) {
      Part& part = left[static_cast<std::size_t>(p)];
      part.next = tasks * p / parts;
      part.end = tasks * (p + 1) / parts;
    }
    ThreadPool::shared().parallel_for(0, parts, 1, [&](std::int64_t own, std::int64_t) {
      for (std::int64_t p = 0; p < parts; ++p) {
        Part& part = left[static_cast<std::size_t>((own + p) % parts)];
        for (std::int64_t i = part.next++; i < part.end; i = part.next++) f(i);
      }
    });
  }

 private:
  int threads_;
};

// Sums of a tile, from row i and column j of C on, as elements of it. The bias may be null.
template <class Kernel, class Sum, class Out>
void finish_tile(const Gemm& g, Sum* tile, std::int64_t tile_row, std::int64_t i, std::int64_t j,
                 std::int64_t rows, std::int64_t columns, const Out* bias, Out* c) {
  for (std::int64_t r = 0; r < rows; ++r) {
    Out* to = c + (i + r) * g.c_row + j * g.c_col;
    Sum* from = tile + r * tile_row;
    if (bias != nullptr) {
      const Out* add = bias + (i + r) * g.bias_row + j * g.bias_col;
      for (std::int64_t t = 0; t < columns; ++t) from[t] += static_cast<Sum>(add[t * g.bias_col]);
    }
    if (g.c_col == 1) {
      Kernel::store(from, to, columns);
    } else {
      for (std::int64_t t = 0; t < columns; ++t) to[t * g.c_col] = convert<Out>(from[t]);
    }
  }
}

template <class Kernel>
void gemm_blocks(const Gemm& g) {
  using InA = typename Kernel::InA;
  using PackedA = typename Kernel::PackedA;
  using PackedB = typename Kernel::PackedB;
  using Sum = typename Kernel::Sum;
  using Out = typename Kernel::Out;
  constexpr std::int64_t kRows = Kernel::kRows, kColumns = Kernel::kColumns;
  constexpr std::int64_t kDepth = Kernel::kDepth;
  constexpr bool kDirect = std::is_same_v<Sum, Out>;  // C itself holds the sums
  constexpr std::int64_t kMostRows = round_up(1024, kRows);
  constexpr std::int64_t kMostColumns = round_up(2048, kColumns);
  constexpr std::int64_t kTaskRows = kRows * 4;
  constexpr std::int64_t kTaskColumns = round_up(256, kColumns);

  const GemmThreads share(g);
  const auto* a = static_cast<const InA*>(g.a);
  const auto* bias = static_cast<const Out*>(g.bias);
  auto* c = static_cast<Out*>(g.c);

  thread_local Scratch scratch;
  const std::int64_t rows = std::min(round_up(g.m, kRows), kMostRows);
  const std::int64_t columns = std::min(round_up(g.n, kColumns), kMostColumns);
  const std::int64_t deep = std::min(round_up(g.k, Kernel::kGroup), kDepth);
  const auto size_a =
      static_cast<std::size_t>(round_up(rows * deep * std::int64_t{sizeof(PackedA)}, 64));
  const auto size_b =
      static_cast<std::size_t>(round_up(columns * deep * std::int64_t{sizeof(PackedB)}, 64));
  const auto size_c = !kDirect && g.k > kDepth
                          ? static_cast<std::size_t>(rows * columns) * sizeof(Sum)
                          : std::size_t{0};
  auto* const room = static_cast<std::byte*>(scratch.take(size_a + size_b + size_c));
  auto* const packed_a = reinterpret_cast<PackedA*>(room);
  auto* const packed_b = reinterpret_cast<PackedB*>(room + size_a);
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
        // Each thread packs some of A, and of B what it will multiply with: A's and B's panels in
        // turn, as many of each as there are.
        const std::int64_t panels = panels_a + panels_b;
        share(panels, [&](std::int64_t panel) {
          const std::int64_t of_b = panel * panels_b / panels;
          if (of_b == (panel + 1) * panels_b / panels) {
            const std::int64_t i = (panel - of_b) * kRows;
            Kernel::pack_a(packed_a + i * padded, a + (i0 + i) * g.a_row + p0 * g.a_col, g.a_row,
                           g.a_col, std::min(kRows, m - i), depth);
          } else {
            const std::int64_t j = of_b * kColumns;
            Kernel::pack_b(packed_b + j * padded, Kernel::b_at(g, p0, j0 + j), g.b_col, g.b_row,
                           std::min(kColumns, n - j), depth);
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
              const PackedA* from_a = packed_a + i * padded;
              const PackedB* from_b = packed_b + j * padded;
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
              if constexpr (kDirect) {
                for (std::int64_t r = 0; !first && r < tile_rows; ++r) {
                  const Out* before = c + (i0 + i + r) * g.c_row + (j0 + j) * g.c_col;
                  for (std::int64_t t = 0; t < tile_columns; ++t) {
                    tile[r * kColumns + t] += before[t * g.c_col];
                  }
                }
              }
              finish_tile<Kernel>(g, tile, kColumns, i0 + i, j0 + j, tile_rows, tile_columns,
                                  last ? bias : nullptr, c);
            }
          }
        });
      }
    }
  }
}

}  // namespace tl::cpu
