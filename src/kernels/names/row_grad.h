// The kernels of module ROW_GRAD, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/row_grad.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 4> kRowGradFamilies = {
    "softmax_grad", "norm_grad", "norm_weight_grad", "cross_entropy_grad"};

inline constexpr auto kRowGradNames = [] {
  std::array<KernelName, kRowGradFamilies.size() * kFloatDTypes> names;
  for (std::size_t f = 0; f < kRowGradFamilies.size(); ++f) {
    for (const DType t : {DType::F8E4M3, DType::F16, DType::BF16, DType::F32, DType::F64}) {
      names[row_grad_kernel(static_cast<RowGradFamily>(f), t).index] =
          kernel_name(kRowGradFamilies[f], name(t));
    }
  }
  return names;
}();
inline constexpr auto kRowGradViews = views(kRowGradNames);

static_assert(kRowGradViews[row_grad_kernel(RowGradFamily::Norm, DType::F16).index] ==
              "norm_grad_f16");

}  // namespace tl::kernels
