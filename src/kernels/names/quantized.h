// The kernels of modules QUANTIZED, QUANT_VECTOR, QUANT_MATRIX, QUANT_GROUP and QUANT_ROW, in the
// order of their indices.
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

inline constexpr auto kQuantVectorNames = [] {
  std::array<KernelName, 3 * kDecodedTypes.size() +
                             kProductFormats.size() * kProductVectors.size() + kBlockFormats.size()>
      names;
  constexpr std::array<std::string_view, kProductVectors.size()> kCounts = {"1", "2", "4", "8"};
  std::size_t at = 0;
  for (const DType from : kDecodedTypes) names[at++] = kernel_name("pack", name(from));
  for (const std::string_view format : kProductFormats) {
    for (const std::string_view count : kCounts) names[at++] = kernel_name("dot", format, count);
  }
  for (const std::string_view format : kBlockFormats) names[at++] = kernel_name("decoded", format);
  for (const std::string_view family : {"halve", "tile"}) {
    for (const DType from : kDecodedTypes) names[at++] = kernel_name(family, name(from));
  }
  return names;
}();
inline constexpr auto kQuantVectorViews = views(kQuantVectorNames);

static_assert(kQuantVectorViews[pack_kernel(DType::BF16).index] == "pack_bf16");
static_assert(kQuantVectorViews[dot_kernel(7, 3).index] == "dot_q4_k_8");
static_assert(kQuantVectorViews[decoded_kernel(26).index] == "decoded_q2_0");
static_assert(kQuantVectorViews[halve_kernel(DType::F16).index] == "halve_f16");
static_assert(kQuantVectorViews[tile_kernel(DType::BF16).index] == "tile_bf16");

inline constexpr auto kQuantMatrixNames = [] {
  std::array<KernelName, 2 * kProductFormats.size()> names;
  std::size_t at = 0;
  for (const std::string_view family : {"wide", "narrow"}) {
    for (const std::string_view format : kProductFormats) names[at++] = kernel_name(family, format);
  }
  return names;
}();
inline constexpr auto kQuantMatrixViews = views(kQuantMatrixNames);

static_assert(kQuantMatrixViews[matrix_kernel(true, 9).index] == "wide_q6_k");
static_assert(kQuantMatrixViews[matrix_kernel(false, 12).index] == "narrow_mxfp4");

// One for each format.
constexpr auto product_names(std::string_view family) {
  std::array<KernelName, kProductFormats.size()> names;
  std::size_t at = 0;
  for (const std::string_view format : kProductFormats) names[at++] = kernel_name(family, format);
  return names;
}
inline constexpr auto kQuantGroupNames = product_names("group");
inline constexpr auto kQuantGroupViews = views(kQuantGroupNames);
inline constexpr auto kQuantRowNames = [] {
  std::array<KernelName, kProductFormats.size() + kPieceFormats.size()> names;
  std::size_t at = 0;
  for (const std::string_view format : kProductFormats) names[at++] = kernel_name("row", format);
  for (const std::string_view format : kPieceFormats) names[at++] = kernel_name("piece", format);
  return names;
}();
inline constexpr auto kQuantRowViews = views(kQuantRowNames);

static_assert(kQuantGroupViews[group_kernel(9).index] == "group_q6_k");
static_assert(kQuantRowViews[row_kernel(0).index] == "row_q4_0");
static_assert(kQuantRowViews[piece_kernel(9).index] == "piece_q6_k");

}  // namespace tl::kernels
