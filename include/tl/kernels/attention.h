// ---- ATTENTION: by float dtype
#pragma once

#include "tl/kernels/norm.h"

namespace tl {

// The tiled kernels are for all but f64, which comes last in a family of its own.
enum class AttentionFamily : std::uint8_t { Split, Merge, Tile64, Tile128 };

constexpr KernelId attention_kernel(AttentionFamily family, DType t) {
  const unsigned tile64 = static_cast<unsigned>(AttentionFamily::Tile64);
  const unsigned f = static_cast<unsigned>(family);
  const unsigned start =
      f <= tile64 ? f * kFloatDTypes : tile64 * kFloatDTypes + (f - tile64) * (kFloatDTypes - 1);
  return {ModuleId::Attention, static_cast<std::uint16_t>(start + float_index(t))};
}

}  // namespace tl
