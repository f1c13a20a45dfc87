// The kernels of module ATTENTION, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/attention.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 4> kAttentionFamilies = {
    "attention_split", "attention_merge", "attention_tile64", "attention_tile128"};

inline constexpr auto kAttentionNames = [] {
  std::array<KernelName, 2 * kFloatDTypes + 2 * (kFloatDTypes - 1)> names;
  for (std::size_t f = 0; f < kAttentionFamilies.size(); ++f) {
    const auto family = static_cast<AttentionFamily>(f);
    for (const DType t : {DType::F8E4M3, DType::F16, DType::BF16, DType::F32, DType::F64}) {
      if (family >= AttentionFamily::Tile64 && t == DType::F64) continue;
      names[attention_kernel(family, t).index] = kernel_name(kAttentionFamilies[f], name(t));
    }
  }
  return names;
}();
inline constexpr auto kAttentionViews = views(kAttentionNames);

static_assert(kAttentionViews[attention_kernel(AttentionFamily::Tile128, DType::F32).index] ==
              "attention_tile128_f32");

}  // namespace tl::kernels
