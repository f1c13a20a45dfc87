// The kernels of module SORT, by element size.
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

enum class SortFamily : std::uint8_t { Tile, Count, Scatter };

constexpr KernelId sort_module_kernel(SortFamily family, std::size_t element_size) {
  const unsigned log2_size = element_size == 1   ? 0
                             : element_size == 2 ? 1
                             : element_size == 4 ? 2
                                                 : 3;
  return {ModuleId::Sort,
          static_cast<std::uint16_t>(static_cast<unsigned>(family) * 4 + log2_size)};
}
constexpr KernelId sort_tile_kernel(std::size_t element_size) {
  return sort_module_kernel(SortFamily::Tile, element_size);
}
constexpr KernelId sort_count_kernel(std::size_t element_size) {
  return sort_module_kernel(SortFamily::Count, element_size);
}
constexpr KernelId sort_scatter_kernel(std::size_t element_size) {
  return sort_module_kernel(SortFamily::Scatter, element_size);
}
constexpr KernelId sort_offsets_kernel() { return {ModuleId::Sort, 12}; }

}  // namespace tl
