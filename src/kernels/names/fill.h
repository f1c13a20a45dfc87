// The kernels of module FILL, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/modules.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 5> kFillFamilies = {"fill", "copy2d", "const_set",
                                                                  "copy_strided", "copy_between"};

inline constexpr auto kFillNames = [] {
  std::array<KernelName, kFillFamilies.size() * kElementSizes.size()> names;
  std::size_t at = 0;
  for (const std::string_view family : kFillFamilies) {
    for (const std::string_view size : kElementSizes) names[at++] = kernel_name(family, size);
  }
  return names;
}();
inline constexpr auto kFillViews = views(kFillNames);

static_assert(kFillViews[copy_strided_kernel(2).index] == "copy_strided_2");

}  // namespace tl::kernels
