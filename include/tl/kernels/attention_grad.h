// ---- ATTENTION_GRAD: by how many columns a thread block has, and float dtype
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

enum class AttentionGradFamily : std::uint8_t {
  Queries32,
  Queries64,
  Queries128,
  Keys32,
  Keys64,
  Keys128
};

inline constexpr unsigned kAttentionGradDTypes = 3;  // f16, bf16, f32 in the order of DType

constexpr bool has_attention_grad(DType t) {
  return t == DType::F16 || t == DType::BF16 || t == DType::F32;
}

constexpr KernelId attention_grad_kernel(AttentionGradFamily family, DType t) {
  const unsigned dtype = static_cast<unsigned>(t) - static_cast<unsigned>(DType::F16);
  return {ModuleId::AttentionGrad,
          static_cast<std::uint16_t>(static_cast<unsigned>(family) * kAttentionGradDTypes + dtype)};
}

}  // namespace tl
