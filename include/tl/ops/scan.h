// Running totals along a dimension: element i of the result has taken in elements 0 to i.
//
// Small floats accumulate in f32 and round each result once; integers wrap in their dtype.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

Tensor cumsum(const Tensor& x, std::int64_t dim);
Tensor cumprod(const Tensor& x, std::int64_t dim);

}  // namespace tl
