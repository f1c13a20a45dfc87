// The kernels of module SAMPLE.
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

enum class SampleKernel : std::uint8_t { Greedy, Drawn, Accept };

constexpr KernelId sample_kernel(SampleKernel kernel) {
  return {ModuleId::Sample, static_cast<std::uint16_t>(kernel)};
}

}  // namespace tl
