// Rows of a tensor, handed to the threads of the pool.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/row_layout.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

// Elements worth a thread of their own, in ops that do some arithmetic on each.
inline constexpr std::int64_t kRowGrain = 8192;

// Calls f(row, in, out) for rows [first, last) with where each starts.
template <class F>
void walk_rows(const ops::RowLayout& rows, std::int64_t first, std::int64_t last, F&& f) {
  const int rank = rows.outer.size();
  std::array<std::int64_t, Dims::kMax> at{};
  std::int64_t in = 0, out = 0, rest = first;
  for (int d = rank - 1; d >= 0; --d) {
    at[static_cast<std::size_t>(d)] = rest % rows.outer[d];
    rest /= rows.outer[d];
    in += at[static_cast<std::size_t>(d)] * rows.in_strides[d];
    out += at[static_cast<std::size_t>(d)] * rows.out_strides[d];
  }
  for (std::int64_t row = first; row < last; ++row) {
    f(row, in, out);
    for (int d = rank - 1; d >= 0; --d) {
      auto& index = at[static_cast<std::size_t>(d)];
      in += rows.in_strides[d];
      out += rows.out_strides[d];
      if (++index < rows.outer[d]) break;
      in -= index * rows.in_strides[d];
      out -= index * rows.out_strides[d];
      index = 0;
    }
  }
}

// The same for all rows on all threads; `work` is the number of elements each stands for. `make`
// is called once per range and gives the f of that range, which may own scratch memory.
template <class Make>
void for_rows(const ops::RowLayout& rows, std::int64_t work, Make&& make) {
  const std::int64_t grain = std::max<std::int64_t>(1, kRowGrain / std::max<std::int64_t>(1, work));
  ThreadPool::shared().parallel_for(
      0, rows.rows, grain,
      [&](std::int64_t first, std::int64_t last) { walk_rows(rows, first, last, make()); });
}

}  // namespace tl::cpu
