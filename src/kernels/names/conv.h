// The kernels of module CONV, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/conv.h"

namespace tl::kernels {

inline constexpr std::array<std::string_view, 6> kConvFloatFamilies = {
    "conv_tiled", "transposed_conv_tiled", "conv_direct", "transposed_conv_direct", "avg_pool",
    "bilinear"};

inline constexpr auto kConvNames = [] {
  std::array<KernelName,
             kConvFloatFamilies.size() * kConvFloats + kConvNumbers + kElementSizes.size() + 1>
      names;
  std::size_t at = 0;
  for (const std::string_view family : kConvFloatFamilies) {
    for (const DType dtype : kDTypes) {
      if (is_float(dtype)) names[at++] = kernel_name(family, name(dtype));
    }
  }
  for (const DType dtype : kDTypes) {
    if (dtype != DType::Bool) names[at++] = kernel_name("max_pool", name(dtype));
  }
  for (const std::string_view size : kElementSizes) names[at++] = kernel_name("nearest", size);
  names[at++] = kernel_name("pixels", "2");
  return names;
}();
inline constexpr auto kConvViews = views(kConvNames);

static_assert(kConvViews[conv_float_kernel(ConvFamily::Bilinear, DType::F64).index] ==
              "bilinear_f64");
static_assert(kConvViews[max_pool_kernel(DType::F64).index] == "max_pool_f64");
static_assert(kConvViews[nearest_kernel(8).index] == "nearest_8");
static_assert(kConvViews[pixels_kernel().index] == "pixels_2");

}  // namespace tl::kernels
