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

// A shape with the strides of several operands, innermost dimension first; dimensions that every
// operand walks as one are merged.
template <int kOperands>
struct MergedDims {
  std::array<std::int64_t, Dims::kMax> size{};
  std::array<std::array<std::int64_t, Dims::kMax>, kOperands> step{};
  int rank = 0;
  std::int64_t count = 1;

  MergedDims(const Shape& shape, const std::array<const Dims*, kOperands>& strides) {
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
    if (rank == 0) {
      rank = 1;
      size[0] = 1;
      for (int k = 0; k < kOperands; ++k) step[k][0] = 1;
    }
  }
};

// A place in such a walk that moves from run to run. Offsets are counted in elements from the first
// one (layout offsets not included).
template <int kOperands>
class Walker {
 public:
  Walker(const MergedDims<kOperands>& dims, std::int64_t first, std::int64_t last)
      : dims_(&dims), position_(first), last_(last) {
    // Takes `first` apart once, then counts.
    std::int64_t rest = first;
    for (int d = 0; d < dims.rank; ++d) {
      at_[d] = rest % dims.size[d];
      rest /= dims.size[d];
      for (int k = 0; k < kOperands; ++k) offset_[k] += at_[d] * dims.step[k][d];
    }
  }
  bool done() const { return position_ >= last_; }
  std::int64_t position() const { return position_; }
  std::int64_t left() const { return last_ - position_; }
  // Elements from here that lie step() apart in every operand.
  std::int64_t run() const { return std::min(last_ - position_, dims_->size[0] - at_[0]); }
  std::int64_t offset(int k) const { return offset_[k]; }
  std::int64_t step(int k) const { return dims_->step[k][0]; }
  const std::array<std::int64_t, kOperands>& offsets() const { return offset_; }
  void advance(std::int64_t n) {  // at most run()
    position_ += n;
    at_[0] += n;
    for (int k = 0; k < kOperands; ++k) offset_[k] += n * dims_->step[k][0];
    for (int d = 0; d + 1 < dims_->rank && at_[d] == dims_->size[d]; ++d) {
      at_[d] = 0;
      ++at_[d + 1];
      for (int k = 0; k < kOperands; ++k) {
        offset_[k] += dims_->step[k][d + 1] - dims_->size[d] * dims_->step[k][d];
      }
    }
  }

 private:
  const MergedDims<kOperands>* dims_;
  std::array<std::int64_t, Dims::kMax> at_{};
  std::array<std::int64_t, kOperands> offset_{};
  std::int64_t position_;
  std::int64_t last_;
};

// Calls f(walker) for ranges that together cover all positions of `shape` once, on all threads of
// the pool.
template <int kOperands, class F>
void walk_ranges(const Shape& shape, const std::array<const Dims*, kOperands>& strides, F&& f) {
  const MergedDims<kOperands> dims(shape, strides);
  if (dims.count == 0) return;
  ThreadPool::shared().parallel_for(
      0, dims.count, kGrain,
      [&](std::int64_t first, std::int64_t last) { f(Walker<kOperands>(dims, first, last)); });
}

// Calls f(count, offsets, steps) for runs of `count` elements that together cover all positions of
// `shape` once. offsets[k] is where operand k's first element of the run lies (layout offsets not
// included) and steps[k] the distance between its elements. Runs are as long as the layouts allow.
// Runs go to all threads of the pool.
template <int kOperands, class F>
void walk(const Shape& shape, const std::array<const Dims*, kOperands>& strides, F&& f) {
  walk_ranges<kOperands>(shape, strides, [&](Walker<kOperands> walker) {
    std::array<std::int64_t, kOperands> steps{};
    for (int k = 0; k < kOperands; ++k) steps[k] = walker.step(k);
    while (!walker.done()) {
      const std::int64_t run = walker.run();
      f(run, walker.offsets(), steps);
      walker.advance(run);
    }
  });
}

}  // namespace tl::cpu
