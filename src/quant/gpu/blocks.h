#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

#include "tl/quant/format.h"
#include "tl/runtime/raw_memory.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// The place of a format in a list of kernels, which goes by names in lower case; the list's size
// when it is not there.
template <std::size_t kCount>
unsigned place_in(const std::array<std::string_view, kCount>& formats, QType type) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const std::string_view wanted = name(type);
  const auto found = std::find_if(formats.begin(), formats.end(), [&](std::string_view each) {
    return std::equal(wanted.begin(), wanted.end(), each.begin(), each.end(), same);
  });
  return static_cast<unsigned>(found - formats.begin());
}

// Whole blocks of `out.count()` elements; `out` is fresh and f32, f16 or bf16.
void dequantize(QType type, const RawMemory& blocks, Tensor& out);

// Whether quantize() below makes that type.
bool can_quantize(QType type);
// f32, contiguous, whole blocks.
RawMemory quantize(QType type, const Tensor& x);

}  // namespace tl::gpu
