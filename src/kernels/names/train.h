// The kernels of module TRAIN, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/train.h"

namespace tl::kernels {

inline constexpr auto kTrainNames = [] {
  std::array<KernelName, 14> names;
  for (const DType t : {DType::F32, DType::F64}) {
    names[adam_kernel(t).index] = kernel_name("adam", name(t));
  }
  constexpr std::string_view kFunctions[] = {"gelu", "gelu_erf", "silu"};
  for (unsigned f = 0; f < 3; ++f) {
    for (const DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
      names[slope_kernel(static_cast<SlopeOf>(f), t).index] =
          kernel_name("slope", kFunctions[f], name(t));
    }
  }
  return names;
}();
inline constexpr auto kTrainViews = views(kTrainNames);

static_assert(kTrainViews[slope_kernel(SlopeOf::Silu, DType::F64).index] == "slope_silu_f64");

}  // namespace tl::kernels
