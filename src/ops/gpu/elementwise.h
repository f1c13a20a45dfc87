// How elementwise kernels are given their operands: in vectors where the layouts allow it.
#pragma once

#include <array>
#include <optional>

#include "ops/gpu/copy.h"
#include "ops/gpu/launcher.h"
#include "tl/kernels/elementwise_ids.h"

namespace tl::gpu {

using kernels::Access;
using kernels::Reading;
using kernels::Weight;

// One operand as a kernel sees it. `layout` has the shape of the result; null: a number passed by
// value.
struct Input {
  const Layout* layout;
  const std::byte* address;
  std::size_t size;  // bytes per element
};

template <int kInputs>
struct Plan {
  Strided<kInputs> walk{};
  Reading reading{};
  LaunchShape shape;
};

namespace detail {

inline bool is_aligned(const std::byte* address, std::size_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) == 0;
}

}  // namespace detail

// An operand and its layout, or what to read instead: where neighbours of the result lie apart in a
// large operand, and its own neighbours elsewhere, a transposing copy and the op on it take less
// time than the op alone. The copy is gone when the op is.
class Readable {
 public:
  // A null layout: a number passed by value, and no tensor is read.
  Readable(const Tensor& x, const Layout* layout) : tensor_(&x), layout_(layout) {
    if (layout == nullptr || !is_turned(*layout)) return;
    copy_ = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
    gpu::copy(x, *copy_);
    straight_ = Layout(layout->shape());
    tensor_ = &*copy_;
    layout_ = &*straight_;
  }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;

  const Layout* layout() const { return layout_; }
  const std::byte* read(const Stream& stream) const {
    return layout_ == nullptr ? nullptr : tensor_->read(stream);
  }

 private:
  // Without broadcast dimensions, so that a copy has the elements of the result and no others.
  static bool is_turned(const Layout& layout) {
    constexpr std::int64_t kLeast = 1 << 18;  // elements; below it a launch costs more
    std::int64_t inner = 0;                   // stride of the innermost dimension
    bool turned = false;
    for (int d = layout.shape().size() - 1; d >= 0; --d) {
      if (layout.shape()[d] == 1) continue;
      const std::int64_t stride = layout.strides()[d];
      if (stride <= 0) return false;
      if (inner == 0) {
        inner = stride;
      } else if (stride == 1) {
        turned = inner > 1;
      }
    }
    return turned && layout.count() >= kLeast;
  }

  const Tensor* tensor_;
  const Layout* layout_;
  std::optional<Tensor> copy_;  // seldom there: to make an empty one takes as long as the rest
  std::optional<Layout> straight_;
};

// `out` is contiguous, with elements of `out_size` bytes; count is not 0. `may_go_straight`: the
// kernel has a shorter way over contiguous operands (goes_straight()).
template <int kInputs>
Plan<kInputs> make_plan(const Shape& shape, std::int64_t count,
                        const std::array<Input, kInputs>& inputs, const std::byte* out,
                        std::size_t out_size, Weight weight, bool may_go_straight = false) {
  Plan<kInputs> plan{};
  plan.reading.count = count;
  std::size_t widest = out_size;
  bool contiguous = true;
  for (const Input& input : inputs) {
    widest = std::max(widest, input.size);
    contiguous = contiguous && (input.layout == nullptr || input.layout->is_contiguous());
  }
  const int width = kernels::vector_width(weight, static_cast<int>(widest));

  if (contiguous) {
    kernels::set_contiguous(plan.walk, count);
  } else {
    const Dims none = Dims::repeated(shape.size(), 0);
    Index dims[Dims::kMax];
    Index steps[kInputs][Dims::kMax];
    const Index* strides[kInputs];
    for (int d = 0; d < shape.size(); ++d) dims[d] = shape[d];
    for (int k = 0; k < kInputs; ++k) {
      const Layout* layout = inputs[static_cast<std::size_t>(k)].layout;
      const Dims& from = layout == nullptr ? none : layout->strides();
      for (int d = 0; d < shape.size(); ++d) steps[k][d] = from[d];
      strides[k] = steps[k];
    }
    plan.walk = kernels::make_strided<kInputs>(shape.size(), dims, strides);
  }

  // Each operand is read in the widest way its innermost stride and its alignment allow.
  Strided<kInputs>& walk = plan.walk;
  Reading& reading = plan.reading;
  const auto inner_size = static_cast<std::int64_t>(walk.dim[0].size);
  const bool single = walk.rank > 1 && inner_size < width;
  const bool crosses = !single && walk.rank > 1 && inner_size % width != 0;
  bool flat = walk.rank == 1;  // nothing but contiguous operands and single elements
  for (int k = 0; k < kInputs; ++k) {
    const Input& input = inputs[static_cast<std::size_t>(k)];
    Access& access = reading.access[k];
    if (input.layout == nullptr) {
      access = Access::Value;
      continue;
    }
    const Index inner = walk.stride[k][0];
    flat = flat && (inner == 0 || inner == 1);
    bool aligned = detail::is_aligned(input.address, input.size * static_cast<std::size_t>(width));
    for (unsigned d = 1; d < walk.rank; ++d) aligned = aligned && walk.stride[k][d] % width == 0;
    access = single || crosses       ? Access::Strided
             : inner == 0            ? Access::Splat
             : inner == 1 && aligned ? Access::Vector
                                     : Access::Strided;
  }
  walk.contiguous = flat ? 1 : 0;
  const bool whole = detail::is_aligned(out, out_size * static_cast<std::size_t>(width));
  reading.each = single || !whole ? 1 : width;
  reading.crosses = crosses ? 1 : 0;
  reading.groups = (count + reading.each - 1) / reading.each;
  // A thread has several groups there: with fewer than these some multiprocessors would have none.
  constexpr Index kLeastGroups = 1 << 21;
  const bool straight = may_go_straight && flat && reading.groups >= kLeastGroups &&
                        reading.each > 1 && reading.access[0] == Access::Vector;
  reading.straight = straight ? 1 : 0;
  plan.shape = elementwise_shape(reading.groups, straight ? kernels::kStraightRun : 1);
  return plan;
}

}  // namespace tl::gpu
