// The kernels of module INDEXING.
#pragma once

#include <cstddef>

#include "tl/base/dtype.h"
#include "tl/kernels/modules.h"

namespace tl {

// Families in the order of their kernels; each is specialised for what its comment says.
enum class IndexingFamily : std::uint8_t {
  Gather,         // what is moved at a time: 1, 2, 4, 8, 16 bytes
  Flip,           // the same
  Put,            // element size: 1, 2, 4, 8
  PutWalk,        // the same
  GatherLines,    // the same
  MaskCount,      // the same
  MaskPositions,  // the same
  AddWalk,        // what is added: 1 and 2 bytes of integer, f8e4m3, f16, bf16, f32, f64
  AddLines,       // the same
  AddSorted,      // the same
  AddTails,       // the same
  AddBins,        // f8e4m3, f16, bf16, f32
  SettleBins,     // the same
  AddAtomic,      // element size: 4, 8
  Claim,          // one kernel, from here on
  MakeKeys,
  RadixCount,
  RadixScan,
  RadixMove,
  MaskOffsets,
  Unravel
};
inline constexpr int kIndexingFamilyCount = 21;

namespace detail {

inline constexpr int kIndexingKernels[kIndexingFamilyCount] = {5, 5, 4, 4, 4, 4, 4, 7, 7, 7, 7,
                                                               4, 4, 2, 1, 1, 1, 1, 1, 1, 1};

constexpr unsigned log2_of(std::size_t size) {
  unsigned log2 = 0;
  while ((std::size_t{1} << log2) < size) ++log2;
  return log2;
}

constexpr KernelId indexing_kernel(IndexingFamily family, unsigned place) {
  unsigned index = place;
  for (int f = 0; f < static_cast<int>(family); ++f) {
    index += static_cast<unsigned>(kIndexingKernels[f]);
  }
  return {ModuleId::Indexing, static_cast<std::uint16_t>(index)};
}

}  // namespace detail

// Families that go by size.
constexpr KernelId indexing_move_kernel(IndexingFamily family, std::size_t bytes) {
  return detail::indexing_kernel(family, detail::log2_of(bytes));
}
// AddWalk, AddLines, AddSorted, AddTails: u8, i16 and the floats.
constexpr KernelId indexing_add_kernel(IndexingFamily family, DType dtype) {
  const unsigned place =
      is_float(dtype) ? 2 + static_cast<unsigned>(dtype) - static_cast<unsigned>(DType::F8E4M3)
                      : detail::log2_of(size_of(dtype));
  return detail::indexing_kernel(family, place);
}
// AddBins, SettleBins: floats of at most four bytes.
constexpr KernelId indexing_bins_kernel(IndexingFamily family, DType dtype) {
  return detail::indexing_kernel(
      family, static_cast<unsigned>(dtype) - static_cast<unsigned>(DType::F8E4M3));
}
constexpr KernelId add_atomic_kernel(std::size_t element_size) {
  return detail::indexing_kernel(IndexingFamily::AddAtomic, detail::log2_of(element_size) - 2);
}
constexpr KernelId indexing_kernel(IndexingFamily family) {  // families of one
  return detail::indexing_kernel(family, 0);
}

}  // namespace tl
