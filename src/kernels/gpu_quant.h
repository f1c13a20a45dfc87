// What quantised products are told by value. Both sides include this file.
#pragma once

#include "gpu_args.h"

namespace tl::kernels {

// y = x * transpose(w): w has n rows of k elements, k a multiple of 32, x has m rows.
struct QuantProduct {
  Index n, k, m;
  Index row_bytes;  // of w
  Index x_row;      // elements from one row of x to the next, as the kernels have it
  int y_type;       // 0: f32, 1: f16, 2: bf16
  int parts;        // in how many a row's sum is cut (vector kernels)
};

// Vector kernels. Rows of x become bytes, 32 of them with one scale, in groups of 1024: first the
// former halves of all 32 parts, then the latter, so that a warp reads them without gaps. What does
// not fill a group is zero.
inline constexpr Index kQuantRowStep = 1024;
struct QuantScale {
  float d;       // an element is d times its byte
  float sum[2];  // d times the sum of the bytes of each half
  float both;    // d times the sum of all
};
inline constexpr int kQuantVectorThreads = 128;
inline constexpr int kQuantVectorMost = 8;  // rows of x
// Rows of w that a warp takes together.
template <int kVectors>
inline constexpr int kQuantVectorRows = kVectors == 1 ? 1 : 2;

// Matrix kernels. Rows of x become f16, divided by a power of two that brings the largest to
// between 2^8 and 2^9, padded with zeros to a multiple of kQuantDeep.
inline constexpr Index kQuantDeep = 512;
inline constexpr int kQuantMatrixWarps = 4;
struct QuantTile {
  int rows, tokens;  // of w and of x, in one block
};
inline constexpr QuantTile kQuantWide{128, 64};
inline constexpr QuantTile kQuantNarrow{32, 16};

}  // namespace tl::kernels
