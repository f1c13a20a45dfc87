// How elementwise kernels are given their operands: in vectors where the layouts allow it.
#pragma once

#include <array>

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
  Strided<kInputs> walk;
  Reading reading;
  LaunchShape shape;
};

namespace detail {

inline bool is_aligned(const std::byte* address, std::size_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) == 0;
}

// Positions a thread has in hand at a time: what the kernels were written with.
inline constexpr int kVectorFlight = 2;

inline LaunchShape tiles(const Device& device, std::int64_t positions, int flight) {
  const std::int64_t each = std::int64_t{kThreads} * flight;
  const std::int64_t wanted = (positions + each - 1) / each;
  const std::int64_t most = std::int64_t{device.properties().multiprocessors} * 32;
  return {.grid = {static_cast<std::uint64_t>(std::min(wanted, std::max<std::int64_t>(most, 1)))},
          .block = {kThreads}};
}

}  // namespace detail

// `out` is contiguous, with elements of `out_size` bytes; count is not 0.
template <int kInputs>
Plan<kInputs> make_plan(const Device& device, const Shape& shape, std::int64_t count,
                        const std::array<Input, kInputs>& inputs, const std::byte* out,
                        std::size_t out_size, Weight weight) {
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
    plan.walk = kernels::make_contiguous<kInputs>(count);
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

  // Innermost strides of 1 or 0 can be read in vectors.
  Strided<kInputs>& walk = plan.walk;
  bool vectors = width > 1;
  bool flat = walk.rank == 1;  // nothing but contiguous operands and single elements
  for (int k = 0; k < kInputs; ++k) {
    const Input& input = inputs[static_cast<std::size_t>(k)];
    Access& access = plan.reading.access[k];
    const Index inner = input.layout == nullptr ? 0 : walk.stride[k][0];
    access = input.layout == nullptr ? Access::Value : inner == 0 ? Access::Splat : Access::Vector;
    vectors = vectors && inner <= 1 &&
              (inner == 0 ||
               detail::is_aligned(input.address, input.size * static_cast<std::size_t>(width)));
    flat = flat && inner <= 1;
  }
  vectors = vectors && detail::is_aligned(out, out_size * static_cast<std::size_t>(width));
  walk.contiguous = flat ? 1 : 0;

  if (vectors && flat) {
    plan.reading.vectors = count / width;
  } else if (vectors && walk.dim[0].size % static_cast<unsigned>(width) == 0) {
    // The same walk with a vector as its smallest step.
    bool whole = true;
    Index dims[Dims::kMax];
    Index steps[kInputs][Dims::kMax];
    const Index* strides[kInputs];
    const int rank = static_cast<int>(walk.rank);
    for (int d = 0; d < rank; ++d) {
      dims[rank - 1 - d] = static_cast<Index>(walk.dim[d].size) / (d == 0 ? width : 1);
    }
    for (int k = 0; k < kInputs; ++k) {
      for (int d = 0; d < rank; ++d) {
        const Index stride = walk.stride[k][d];
        steps[k][rank - 1 - d] = d == 0 ? stride * width : stride;
        whole = whole && (walk.stride[k][0] == 0 || d == 0 || stride % width == 0);
      }
      strides[k] = steps[k];
    }
    if (whole) {
      plan.walk = kernels::make_strided<kInputs>(rank, dims, strides);
      plan.walk.contiguous = 0;
      plan.reading.vectors = count / width;
    }
  }
  const bool by_vector = plan.reading.vectors > 0;
  plan.shape = detail::tiles(device, by_vector ? plan.reading.vectors : count,
                             by_vector                 ? detail::kVectorFlight
                             : weight == Weight::Light ? 4
                                                       : 1);
  return plan;
}

}  // namespace tl::gpu
