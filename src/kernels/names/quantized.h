// The kernels of module QUANTIZED, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/quantized.h"

namespace tl::kernels {

inline constexpr auto kQuantizedNames = [] {
  std::array<KernelName, kBlockFormats.size() * kDecodedTypes.size() + kEncodedFormats.size()>
      names;
  std::size_t at = 0;
  for (const std::string_view format : kBlockFormats) {
    for (const DType to : kDecodedTypes) names[at++] = kernel_name("dequantize", format, name(to));
  }
  for (const std::string_view format : kEncodedFormats) {
    names[at++] = kernel_name("quantize", format);
  }
  return names;
}();
inline constexpr auto kQuantizedViews = views(kQuantizedNames);

static_assert(kQuantizedViews[dequantize_kernel(0, DType::F32).index] == "dequantize_q4_0_f32");
static_assert(kQuantizedViews[dequantize_kernel(8, DType::BF16).index] == "dequantize_q4_k_bf16");
static_assert(kQuantizedViews[quantize_kernel(5).index] == "quantize_q8_1");

}  // namespace tl::kernels
