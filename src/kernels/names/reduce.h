// The kernels of module REDUCE, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/reduce.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, kReduceOpCount> kReduceOps = {
    "sum", "prod", "extreme", "place", "count", "var", "logsumexp", "norm", "power"};
inline constexpr std::array<std::string_view, 2> kReduceForms = {"rows", "strided"};
inline constexpr std::array<std::string_view, kSizeKinds + kFloatKinds> kNumberKinds = {
    "1", "2", "4", "8", "f8e4m3", "f16", "bf16", "f32", "f64"};

inline constexpr auto kReduceNames = [] {
  std::array<KernelName, kReduceKernels + kScanKernels> names;
  std::size_t at = 0;
  for (unsigned o = 0; o < kReduceOpCount; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    for (unsigned form = 2 - reduce_forms(op); form < 2; ++form) {
      for (unsigned kind = 0; kind < reduce_kinds(op); ++kind) {
        const bool floats_only = !by_number(op) && !by_size(op);
        names[at++] = kernel_name(kReduceOps[o], kReduceForms[form],
                                  kNumberKinds[kind + (floats_only ? kSizeKinds : 0)]);
      }
    }
  }
  for (const std::string_view family :
       {"cumsum_rows", "cumsum_lines", "cumprod_rows", "cumprod_lines"}) {
    for (const std::string_view kind : kNumberKinds) names[at++] = kernel_name(family, kind);
  }
  return names;
}();
inline constexpr auto kReduceViews = views(kReduceNames);

static_assert(kReduceViews[reduce_kernel(ReduceOp::Power, ReduceForm::Strided, DType::F64).index] ==
              "power_strided_f64");
static_assert(kReduceViews[reduce_kernel(ReduceOp::Sum, ReduceForm::Strided, DType::I16).index] ==
              "sum_strided_2");
static_assert(kReduceViews[scan_kernel(ScanOp::Prod, ScanForm::Lines, DType::I32).index] ==
              "cumprod_lines_4");

}  // namespace tl::kernels
