// The kernels of module NORM, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/norm.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 12> kNormFamilies = {
    "softmax_warp", "softmax_block", "softmax_long",  "softmax_column",
    "norm_warp",    "norm_block",    "norm_long",     "batch_norm",
    "rope",         "glu",           "cross_entropy", "cross_entropy_total"};

inline constexpr auto kNormNames = [] {
  std::array<KernelName, kNormFamilies.size() * kFloatDTypes> names;
  for (std::size_t f = 0; f < kNormFamilies.size(); ++f) {
    for (const DType t : {DType::F8E4M3, DType::F16, DType::BF16, DType::F32, DType::F64}) {
      names[norm_kernel(static_cast<NormFamily>(f), t).index] =
          kernel_name(kNormFamilies[f], name(t));
    }
  }
  return names;
}();
inline constexpr auto kNormViews = views(kNormNames);

static_assert(kNormViews[norm_kernel(NormFamily::Rope, DType::BF16).index] == "rope_bf16");

}  // namespace tl::kernels
