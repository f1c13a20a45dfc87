// The kernels of module INDEXING, in the order of their indices.
#pragma once

#include <span>

#include "kernels/kernel_name.h"
#include "tl/kernels/indexing.h"

namespace tl::kernels {

inline constexpr auto kIndexingNames = [] {
  constexpr std::array<std::string_view, 5> kUnits = {"1", "2", "4", "8", "16"};
  constexpr std::array<std::string_view, 7> kAdds = {"1",    "2",   "f8e4m3", "f16",
                                                     "bf16", "f32", "f64"};
  constexpr std::array<std::string_view, 4> kBinned = {"f8e4m3", "f16", "bf16", "f32"};
  constexpr std::array<std::string_view, 2> kAtomic = {"4", "8"};
  std::array<KernelName, indexing_kernel(IndexingFamily::Unravel).index + 1> names;
  std::size_t at = 0;
  const auto each = [&](std::string_view family, std::span<const std::string_view> kinds) {
    for (const std::string_view kind : kinds) names[at++] = kernel_name(family, kind);
  };
  for (const std::string_view family : {"gather", "flip"}) each(family, kUnits);
  for (const std::string_view family :
       {"put", "put_walk", "gather_lines", "mask_count", "mask_positions"}) {
    each(family, kElementSizes);
  }
  for (const std::string_view family : {"add_walk", "add_lines", "add_sorted", "add_tails"})
    each(family, kAdds);
  for (const std::string_view family : {"add_bins", "settle_bins"}) each(family, kBinned);
  each("add_atomic", kAtomic);
  for (const std::string_view family : {"claim", "make_keys", "radix_count", "radix_scan",
                                        "radix_move", "mask_offsets", "unravel"}) {
    names[at++] = kernel_name(family);
  }
  return names;
}();
inline constexpr auto kIndexingViews = views(kIndexingNames);

static_assert(kIndexingViews[indexing_move_kernel(IndexingFamily::Gather, 16).index] ==
              "gather_16");
static_assert(kIndexingViews[indexing_add_kernel(IndexingFamily::AddSorted, DType::I16).index] ==
              "add_sorted_2");
static_assert(kIndexingViews[indexing_add_kernel(IndexingFamily::AddTails, DType::F64).index] ==
              "add_tails_f64");
static_assert(kIndexingViews[indexing_bins_kernel(IndexingFamily::SettleBins, DType::F32).index] ==
              "settle_bins_f32");
static_assert(kIndexingViews[add_atomic_kernel(8).index] == "add_atomic_8");
static_assert(kIndexingViews[indexing_kernel(IndexingFamily::Unravel).index] == "unravel");

}  // namespace tl::kernels
