// ---- ROW_GRAD: gradients of row ops, by float dtype
#pragma once

#include "tl/kernels/norm.h"

namespace tl {

enum class RowGradFamily : std::uint8_t { Softmax, Norm, NormWeight, CrossEntropy };

constexpr KernelId row_grad_kernel(RowGradFamily family, DType t) {
  return {ModuleId::RowGrad, static_cast<std::uint16_t>(
                                 static_cast<unsigned>(family) * kFloatDTypes + float_index(t))};
}

}  // namespace tl
