// Walking over strided tensors on the CPU: one loop for every op.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/gpu_args.h"
#include "tl/base/thread_pool.h"
#include "tl/tensor/layout.h"

namespace tl::cpu {

// Elements worth a thread of their own.
inline constexpr std::int64_t kGrain = 16384;

// Calls f(count, offsets, steps) for runs of `count` elements that together cover all positions of
// `shape` once. offsets[k] is where operand k's first element of the run lies (layout offsets not
// included) and steps[k] the distance between its elements. Runs are as long as the layouts allow:
// dimensions that every operand walks as one are merged first. Runs go to all threads of the pool.
template <int kOperands, class F>
void walk(const Shape& shape, const std::array<const Dims*, kOperands>& strides, F&& f) {
  // Innermost first, merged.
  std::array<std::int64_t, Dims::kMax> size{};
  std::array<std::array<std::int64_t, Dims::kMax>, kOperands> step{};
  int rank = 0;
  std::int64_t count = 1;
  for (int d = shape.size() - 1; d >= 0; --d) {
    count *= shape[d];
    if (shape[d] == 1) continue;
    bool merges = rank > 0;
    for (int k = 0; k < kOperands && merges; ++k) {
      merges = (*strides[k])[d] == step[k][rank - 1] * size[rank - 1];
    }
    if (merges) {
      size[rank - 1] *= shape[d];
      continue;
    }
    size[rank] = shape[d];
    for (int k = 0; k < kOperands; ++k) step[k][rank] = (*strides[k])[d];
    ++rank;
  }
  if (count == 0) return;
  if (rank == 0) {
    rank = 1;
    size[0] = 1;
    for (int k = 0; k < kOperands; ++k) step[k][0] = 1;
  }
  std::array<std::int64_t, kOperands> inner;
  for (int k = 0; k < kOperands; ++k) inner[k] = step[k][0];

  ThreadPool::shared().parallel_for(0, count, kGrain, [&](std::int64_t first, std::int64_t last) {
    // Takes `first` apart once, then counts.
    std::array<std::int64_t, Dims::kMax> at{};
    std::array<std::int64_t, kOperands> offset{};
    std::int64_t rest = first;
    for (int d = 0; d < rank; ++d) {
      at[d] = rest % size[d];
      rest /= size[d];
      for (int k = 0; k < kOperands; ++k) offset[k] += at[d] * step[k][d];
    }
    for (std::int64_t i = first; i < last;) {
      const std::int64_t run = std::min(last - i, size[0] - at[0]);
      f(run, offset, inner);
      i += run;
      at[0] += run;
      for (int k = 0; k < kOperands; ++k) offset[k] += run * step[k][0];
      for (int d = 0; d + 1 < rank && at[d] == size[d]; ++d) {
        at[d] = 0;
        ++at[d + 1];
        for (int k = 0; k < kOperands; ++k) offset[k] += step[k][d + 1] - size[d] * step[k][d];
      }
    }
  });
}

}  // namespace tl::cpu
