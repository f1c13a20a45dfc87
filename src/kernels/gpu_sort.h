// What the host tells the kernels of module SORT. Both sides include this file; it is embedded as
// source for the run-time compilers.
#pragma once

#include "gpu_args.h"
#include "gpu_order.h"

namespace tl::kernels {

// Elements that a block sorts.
TL_FN Index sort_tile(int bytes) { return bytes == 8 ? 2048 : 4096; }

// So few in all need not be spread over as many places.
inline constexpr int kFewSorted = 1024;

// Digits by which keys are sorted: one per thread of a block.
inline constexpr int kSortDigits = 256;

struct SortArgs {
  Order order;
  Index rows;
  Index cols;
  Index source_cols;  // of the tensor that the indices point into
  Index pieces;       // blocks per row; 1 when a block has whole rows
  Index keep;         // elements of each row, or piece, that are written
  Index out_cols;     // distance between the rows of the output
  FastDiv by_cols;    // where a block has several rows
  unsigned rows_per_tile;
  unsigned few;       // 1: no block has more than kFewSorted elements
  unsigned in_keys;   // 1: the input is keys with their indices, else elements
  unsigned out_keys;  // 1: so is the output
  unsigned shift;     // of the digit, where digits have a launch each
};

}  // namespace tl::kernels
