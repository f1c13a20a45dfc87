// What every GPU op does to launch a kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/gpu_args.h"
#include "tl/kernels/modules.h"
#include "tl/runtime/launch.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

using kernels::Index;
using kernels::Strided;

inline constexpr std::uint32_t kThreads = 256;

// How many `b` it takes to reach `a`.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Launches a kernel on the device's own stream. Arguments have the exact types of the kernel's
// parameters; pointers come from Tensor::read/write/update on the same stream. Nothing to do when
// the grid is empty.
template <class... Arguments>
void run(const Device& device, KernelId id, const LaunchShape& shape,
         const Arguments&... arguments) {
  const Function& function = device.modules().function(module_spec(id.module), id.index);
  launch(function, device.stream(), shape, arguments...);
}

// Blocks for kernels that loop over the grid. Memory is read best in one pass by blocks that come
// and go in order, so there are as many as there is work for, up to what every driver takes in one
// launch.
inline LaunchShape elementwise_shape(std::int64_t count, int per_thread) {
  constexpr std::int64_t kMostBlocks = 1 << 22;
  const std::int64_t each = std::int64_t{kThreads} * per_thread;
  const std::int64_t wanted = (count + each - 1) / each;
  return {.grid = {static_cast<std::uint64_t>(std::min(wanted, kMostBlocks))}, .block = {kThreads}};
}

// Blocks that fill the device and no more, for kernels with much to do before their first element.
inline LaunchShape resident_shape(const Device& device, std::int64_t count, int per_thread) {
  const std::int64_t full = std::int64_t{device.properties().multiprocessors} * 8;
  const std::int64_t most = std::max<std::int64_t>(full, 1) * kThreads * per_thread;
  return elementwise_shape(std::min(count, most), per_thread);
}

// The walk over operands that all have `shape` (broadcast them first).
template <int kOperands>
Strided<kOperands> walk(const Shape& shape, const Layout* const (&layouts)[kOperands]) {
  static_assert(sizeof(Index) == sizeof(std::int64_t));
  Index dims[Dims::kMax];
  Index steps[kOperands][Dims::kMax];
  const Index* strides[kOperands];
  for (int d = 0; d < shape.size(); ++d) dims[d] = shape[d];
  for (int k = 0; k < kOperands; ++k) {
    for (int d = 0; d < shape.size(); ++d) steps[k][d] = layouts[k]->strides()[d];
    strides[k] = steps[k];
  }
  return kernels::make_strided<kOperands>(shape.size(), dims, strides);
}

}  // namespace tl::gpu
