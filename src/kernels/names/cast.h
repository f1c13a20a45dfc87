// The kernels of module CAST, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/modules.h"

namespace tl::kernels {

inline constexpr auto kCastNames = [] {
  std::array<KernelName, kDTypeCount * kDTypeCount> names;
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      names[cast_kernel(from, to).index] = kernel_name("cast", name(from), name(to));
    }
  }
  return names;
}();
inline constexpr auto kCastViews = views(kCastNames);

static_assert(kCastViews[cast_kernel(DType::F8E4M3, DType::Bool).index] == "cast_f8e4m3_bool");

}  // namespace tl::kernels
