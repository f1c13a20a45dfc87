// The kernels of module CACHE: keys and values of many tokens kept, and attention over them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tl/kernels/modules.h"

namespace tl {

namespace kernels {

// How keys and values may be kept, in the order of their kernels.
inline constexpr std::array<std::string_view, 4> kCacheTypes = {"f16", "bf16", "q8", "f32"};

}  // namespace kernels

// Attending kernels have 64 or 128 columns of the values per block.
enum class CacheFamily : std::uint8_t { Keep, Attend64, Attend128 };

// `type` is a place in kCacheTypes.
constexpr KernelId cache_kernel(CacheFamily family, unsigned type) {
  return {ModuleId::Cache, static_cast<std::uint16_t>(
                               static_cast<unsigned>(family) * kernels::kCacheTypes.size() + type)};
}

}  // namespace tl
