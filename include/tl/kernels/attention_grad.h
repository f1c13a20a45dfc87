// ---- ATTENTION_GRAD: by how many columns a thread block has; f32. Narrow floats have products on
// matrix units, which kernels like these would be slower than.
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

constexpr bool has_attention_grad(DType t) { return t == DType::F32; }

constexpr KernelId attention_grad_kernel(AttentionGradFamily family) {
  return {ModuleId::AttentionGrad, static_cast<std::uint16_t>(family)};
}

}  // namespace tl
