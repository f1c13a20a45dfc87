// The kernels of module CACHE, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/cache.h"

namespace tl::kernels {

inline constexpr auto kCacheNames = [] {
  std::array<KernelName, 3 * kCacheTypes.size()> names;
  std::size_t at = 0;
  for (const std::string_view family : {"keep", "attend64", "attend128"}) {
    for (const std::string_view type : kCacheTypes) names[at++] = kernel_name(family, type);
  }
  return names;
}();
inline constexpr auto kCacheViews = views(kCacheNames);

static_assert(kCacheViews[cache_kernel(CacheFamily::Attend128, 2).index] == "attend128_q8");

}  // namespace tl::kernels
