// The kernels of module QUANTIZED.
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
inline constexpr std::array<DType, 3> kDecodedTypes = {DType::F32, DType::F16, DType::BF16};

}  // namespace kernels

// `format` is a place in kBlockFormats, `to` one of kDecodedTypes.
constexpr KernelId dequantize_kernel(unsigned format, DType to) {
  const unsigned place = to == DType::F32 ? 0 : to == DType::F16 ? 1 : 2;
  return {ModuleId::Quantized, static_cast<std::uint16_t>(3 * format + place)};
}

// `format` is a place in kEncodedFormats.
constexpr KernelId quantize_kernel(unsigned format) {
  return {ModuleId::Quantized,
          static_cast<std::uint16_t>(3 * kernels::kBlockFormats.size() + format)};
}

}  // namespace tl
