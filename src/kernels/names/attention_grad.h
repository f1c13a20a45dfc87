// The kernels of module ATTENTION_GRAD, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/attention_grad.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 6> kAttentionGradFamilies = {
    "attention_grad_queries32", "attention_grad_queries64", "attention_grad_queries128",
    "attention_grad_keys32",    "attention_grad_keys64",    "attention_grad_keys128"};

inline constexpr auto kAttentionGradNames = [] {
  std::array<KernelName, kAttentionGradFamilies.size() * kAttentionGradDTypes> names;
  for (std::size_t f = 0; f < kAttentionGradFamilies.size(); ++f) {
    for (const DType t : {DType::F16, DType::BF16, DType::F32}) {
      names[attention_grad_kernel(static_cast<AttentionGradFamily>(f), t).index] =
          kernel_name(kAttentionGradFamilies[f], name(t));
    }
  }
  return names;
}();
inline constexpr auto kAttentionGradViews = views(kAttentionGradNames);

static_assert(
    kAttentionGradViews[attention_grad_kernel(AttentionGradFamily::Keys64, DType::F32).index] ==
    "attention_grad_keys64_f32");

}  // namespace tl::kernels
