// The kernels of modules QUANTIZED, QUANT_VECTOR, QUANT_MATRIX, QUANT_GROUP and QUANT_ROW.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tl/base/dtype.h"
#include "tl/kernels/modules.h"

namespace tl {

namespace kernels {

// The block formats in the order of their kernels, named as in GGUF but in lower case.
inline constexpr std::array<std::string_view, 27> kBlockFormats = {
    "q4_0",  "q4_1",   "q5_0",  "q5_1",    "q8_0",   "q8_1",    "q2_k",  "q3_k",   "q4_k",
    "q5_k",  "q6_k",   "q8_k",  "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s",
    "iq2_s", "iq4_xs", "iq1_m", "tq1_0",   "tq2_0",  "mxfp4",   "nvfp4", "q1_0",   "q2_0"};
// Those whose blocks follow from 32 (or 256) numbers by a fixed rule.
inline constexpr std::array<std::string_view, 7> kEncodedFormats = {"q4_0", "q4_1", "q5_0", "q5_1",
                                                                    "q8_0", "q8_1", "q8_k"};
// Those whose products are made of their codes; the others' of decoded numbers.
inline constexpr std::array<std::string_view, 13> kProductFormats = {
    "q4_0", "q4_1", "q5_0", "q5_1",   "q8_0",   "q2_k", "q3_k",
    "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"};
// Neighbours among these, from a place on, of which a lane may have 64 columns.
inline constexpr unsigned kFirstPieceFormat = 7;
inline constexpr std::array<std::string_view, 3> kPieceFormats = {"q4_k", "q5_k", "q6_k"};
inline constexpr std::array<int, 4> kProductVectors = {1, 2, 4, 8};
inline constexpr std::array<DType, 3> kDecodedTypes = {DType::F32, DType::F16, DType::BF16};

}  // namespace kernels

constexpr unsigned decoded_place(DType dtype) {
  return dtype == DType::F32 ? 0 : dtype == DType::F16 ? 1 : 2;
}

// `format` is a place in kBlockFormats, `to` one of kDecodedTypes.
constexpr KernelId dequantize_kernel(unsigned format, DType to) {
  return {ModuleId::Quantized, static_cast<std::uint16_t>(3 * format + decoded_place(to))};
}

// `format` is a place in kEncodedFormats.
constexpr KernelId quantize_kernel(unsigned format) {
  return {ModuleId::Quantized,
          static_cast<std::uint16_t>(3 * kernels::kBlockFormats.size() + format)};
}

// QUANT_VECTOR: rows of x as bytes; products with 1, 2, 4 or 8 of them (`vectors` is a place in
// kProductVectors); products of decoded numbers.
constexpr KernelId pack_kernel(DType x) {
  return {ModuleId::QuantVector, static_cast<std::uint16_t>(decoded_place(x))};
}
constexpr KernelId dot_kernel(unsigned product_format, unsigned vectors) {
  return {
      ModuleId::QuantVector,
      static_cast<std::uint16_t>(3 + kernels::kProductVectors.size() * product_format + vectors)};
}
constexpr KernelId decoded_kernel(unsigned format) {
  return {ModuleId::QuantVector,
          static_cast<std::uint16_t>(
              3 + kernels::kProductVectors.size() * kernels::kProductFormats.size() + format)};
}

// Rows of x as f16, for QUANT_MATRIX.
constexpr KernelId halve_kernel(DType x) {
  return {ModuleId::QuantVector,
          static_cast<std::uint16_t>(decoded_kernel(kernels::kBlockFormats.size()).index +
                                     decoded_place(x))};
}

// The same, cut into tiles, for QUANT_GROUP.
constexpr KernelId tile_kernel(DType x) {
  return {ModuleId::QuantVector,
          static_cast<std::uint16_t>(halve_kernel(x).index + kernels::kDecodedTypes.size())};
}

// QUANT_ROW: products with one row of x.
constexpr KernelId row_kernel(unsigned product_format) {
  return {ModuleId::QuantRow, static_cast<std::uint16_t>(product_format)};
}

// The same with a lane for every 64 columns, for kPieceFormats.
constexpr KernelId piece_kernel(unsigned product_format) {
  return {ModuleId::QuantRow,
          static_cast<std::uint16_t>(kernels::kProductFormats.size() + product_format -
                                     kernels::kFirstPieceFormat)};
}

// QUANT_GROUP: products of tiles by matrix units of four warps.
constexpr KernelId group_kernel(unsigned product_format) {
  return {ModuleId::QuantGroup, static_cast<std::uint16_t>(product_format)};
}

// QUANT_MATRIX: products of large and of small tiles.
constexpr KernelId matrix_kernel(bool wide, unsigned product_format) {
  return {
      ModuleId::QuantMatrix,
      static_cast<std::uint16_t>((wide ? 0 : kernels::kProductFormats.size()) + product_format)};
}

}  // namespace tl
