// The kernels of module MATMUL.
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

// By dtype: the ten that have arithmetic come before bool in DType.
enum class MatmulFamily : std::uint8_t {
  Gemm,     // tiles of 64 by 64
  Gemv,     // few rows of A, columns of B contiguous: a warp for each column of C
  Gevm,     // few rows of A, B in any layout: threads side by side along a row of B
  GemmWide  // tiles of 128 by 128; f8e4m3, f16, bf16 and f32 only
};

inline constexpr unsigned kMatmulDTypes = static_cast<unsigned>(kDTypeCount) - 1;

constexpr bool has_wide_gemm(DType dtype) { return is_float(dtype) && dtype != DType::F64; }

constexpr KernelId matmul_kernel(MatmulFamily family, DType dtype) {
  const unsigned row = static_cast<unsigned>(family) * kMatmulDTypes;
  const unsigned first =
      family == MatmulFamily::GemmWide ? static_cast<unsigned>(DType::F8E4M3) : 0;
  return {ModuleId::Matmul, static_cast<std::uint16_t>(row + static_cast<unsigned>(dtype) - first)};
}

}  // namespace tl
