// The kernels of module ATTENTION_GRAD, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/attention_grad.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 6> kAttentionGradViews = {
    "attention_grad_queries32_f32", "attention_grad_queries64_f32", "attention_grad_queries128_f32",
    "attention_grad_keys32_f32",    "attention_grad_keys64_f32",    "attention_grad_keys128_f32"};

static_assert(kAttentionGradViews[attention_grad_kernel(AttentionGradFamily::Keys64).index] ==
              "attention_grad_keys64_f32");

}  // namespace tl::kernels
