// ---- NORM: row ops of neural networks, by float dtype
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

enum class NormFamily : std::uint8_t {
  SoftmaxWarp,
  SoftmaxBlock,  // rows that a block keeps
  SoftmaxLong,
  SoftmaxColumn,
  NormWarp,
  NormBlock,  // rows that a block keeps
  NormLong,
  BatchNorm,
  Rope,
  Glu,
  CrossEntropy,
  CrossEntropyTotal
};

inline constexpr unsigned kFloatDTypes = 5;  // f8e4m3, f16, bf16, f32, f64 in the order of DType

constexpr unsigned float_index(DType t) {
  return static_cast<unsigned>(t) - static_cast<unsigned>(DType::F8E4M3);
}

constexpr KernelId norm_kernel(NormFamily family, DType t) {
  return {ModuleId::Norm, static_cast<std::uint16_t>(static_cast<unsigned>(family) * kFloatDTypes +
                                                     float_index(t))};
}

}  // namespace tl
