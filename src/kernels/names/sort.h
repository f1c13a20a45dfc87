// The kernels of module SORT, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/sort.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 3> kSortFamilies = {"sort_tile", "sort_count",
                                                                  "sort_scatter"};

inline constexpr auto kSortNames = [] {
  std::array<KernelName, kSortFamilies.size() * kElementSizes.size() + 1> names;
  std::size_t at = 0;
  for (const std::string_view family : kSortFamilies) {
    for (const std::string_view size : kElementSizes) names[at++] = kernel_name(family, size);
  }
  names[at] = kernel_name("sort_offsets");
  return names;
}();
inline constexpr auto kSortViews = views(kSortNames);

static_assert(kSortViews[sort_offsets_kernel().index] == "sort_offsets");
static_assert(kSortViews[sort_scatter_kernel(2).index] == "sort_scatter_2");

}  // namespace tl::kernels
