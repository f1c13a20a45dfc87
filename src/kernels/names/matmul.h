// The kernels of module MATMUL, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/matmul.h"

namespace tl::kernels {

inline constexpr auto kMatmulNames = [] {
  std::array<KernelName, 3 * kMatmulDTypes + 4> names;
  for (const DType dtype : kDTypes) {
    if (dtype == DType::Bool) continue;
    names[matmul_kernel(MatmulFamily::Gemm, dtype).index] = kernel_name("gemm", name(dtype));
    names[matmul_kernel(MatmulFamily::Gemv, dtype).index] = kernel_name("gemv", name(dtype));
    names[matmul_kernel(MatmulFamily::Gevm, dtype).index] = kernel_name("gevm", name(dtype));
    if (has_wide_gemm(dtype)) {
      names[matmul_kernel(MatmulFamily::GemmWide, dtype).index] =
          kernel_name("gemm_wide", name(dtype));
    }
  }
  return names;
}();
inline constexpr auto kMatmulViews = views(kMatmulNames);

static_assert(kMatmulViews[matmul_kernel(MatmulFamily::Gemv, DType::BF16).index] == "gemv_bf16");
static_assert(kMatmulViews.back() == "gemm_wide_f32");

}  // namespace tl::kernels
