// A tensor seen as rows along one dimension: where each row starts in the input and in the output,
// and how far apart its elements are.
#pragma once

#include <cstdint>

#include "tl/tensor/tensor.h"

namespace tl::ops {

struct RowLayout {
  Shape outer;  // every dimension but the row's; each index of it is a row
  Dims in_strides;
  Dims out_strides;
  std::int64_t rows = 1;
  std::int64_t n = 0;  // elements of a row
  std::int64_t in_step = 1;
  std::int64_t out_step = 1;
};

// Both have the same shape.
inline RowLayout row_layout(const Layout& in, const Layout& out, int dim) {
  RowLayout result;
  for (int d = 0; d < in.rank(); ++d) {
    if (d == dim) continue;
    result.outer.push_back(in.shape()[d]);
    result.in_strides.push_back(in.strides()[d]);
    result.out_strides.push_back(out.strides()[d]);
    result.rows *= in.shape()[d];
  }
  result.n = in.shape()[dim];
  result.in_step = in.strides()[dim];
  result.out_step = out.strides()[dim];
  return result;
}

}  // namespace tl::ops
