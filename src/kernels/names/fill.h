// The kernels of module FILL, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/modules.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 7> kFillFamilies = {
    "fill", "copy2d", "const_set", "copy_strided", "copy_between", "transpose", "band"};

inline constexpr auto kFillNames = [] {
  std::array<KernelName, kFillFamilies.size() * kElementSizes.size() + 30> names;
  std::size_t at = 0;
  for (const std::string_view family : kFillFamilies) {
    for (const std::string_view size : kElementSizes) names[at++] = kernel_name(family, size);
  }
  const auto add = [&](std::string_view family, bool ints, bool floats) {
    for (const DType t : kDTypes) {
      if ((ints && is_int(t)) || (floats && is_float(t))) {
        names[at++] = kernel_name(family, name(t));
      }
    }
  };
  add("arange", true, true);
  add("linspace", false, true);
  add("rand_uniform", false, true);
  add("rand_normal", false, true);
  add("randint", true, false);
  return names;
}();
inline constexpr auto kFillViews = views(kFillNames);

static_assert(kFillViews[make_kernel(MakeFamily::Arange, DType::F64).index] == "arange_f64");
static_assert(kFillViews[make_kernel(MakeFamily::Linspace, DType::F16).index] == "linspace_f16");
static_assert(kFillViews[make_kernel(MakeFamily::RandNormal, DType::F32).index] ==
              "rand_normal_f32");
static_assert(kFillViews[make_kernel(MakeFamily::Randint, DType::U32).index] == "randint_u32");
static_assert(kFillViews[copy_strided_kernel(2).index] == "copy_strided_2");

}  // namespace tl::kernels
