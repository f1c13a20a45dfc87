// What a matrix product is told by value. Both sides include this file.
#pragma once

#include "gpu_args.h"

namespace tl::kernels {

// C[i] = A[i] * B[i] + bias for every i of a batch: A is m by k, B is k by n. Strides are counted
// in elements; any will do. bias may be null; it is the same for the whole batch.
struct Gemm {
  Index m, n, k;
  Index a_row, a_col;
  Index b_row, b_col;
  Index c_row, c_col, c_batch;
  Index bias_row, bias_col;
  Index first, first_item;  // of the tiles (or columns) and of the batch that this launch does
  Index vector;      // 1: rows of A and columns of B are contiguous and aligned for 16-byte loads
  Strided<2> batch;  // where A and B of each item of the batch lie
};

// At most so many rows of A for the kernels named gemv and gevm.
inline constexpr Index kGemvRows = 4;

// What one block of the kernels named gemm and gemm_wide computes: a square of C.
inline constexpr Index kGemmTile = 64;
inline constexpr Index kGemmWideTile = 128;
// Columns of C that one block of gevm computes.
inline constexpr Index kGevmColumns = 32;

}  // namespace tl::kernels
