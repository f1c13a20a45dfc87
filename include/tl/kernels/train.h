// ---- TRAIN: steps of optimisers, and slopes of activations
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

enum class SlopeOf : std::uint8_t { Gelu, GeluErf, Silu };

constexpr KernelId adam_kernel(DType dtype) {
  return {ModuleId::Train, static_cast<std::uint16_t>(dtype == DType::F64 ? 1 : 0)};
}
// dtype is f16, bf16, f32 or f64.
constexpr KernelId slope_kernel(SlopeOf function, DType dtype) {
  const unsigned place = static_cast<unsigned>(dtype) - static_cast<unsigned>(DType::F16);
  return {ModuleId::Train,
          static_cast<std::uint16_t>(2 + static_cast<unsigned>(function) * 4 + place)};
}

}  // namespace tl
