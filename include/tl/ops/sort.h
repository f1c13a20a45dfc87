// Sorting along a dimension, and the largest few.
//
// Sorts are stable and total: equal elements keep their order (-0 equals 0), NaN comes after every
// number, so it is last in ascending order and first in descending order. Indices are u32 along the
// dimension; Overflow when they do not fit. All dtypes, bool too (false before true).
#pragma once

#include <utility>

#include "tl/tensor/tensor.h"

namespace tl {

// (values, indices), both of the shape of `x`.
std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t dim = -1, bool descending = false);
Tensor argsort(const Tensor& x, std::int64_t dim = -1, bool descending = false);

// (values, indices) of the k largest, or smallest, elements along `dim`, best first; of equals
// those with the lower index. NaN counts as largest.
std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1,
                               bool largest = true);

std::pair<Tensor, Tensor> sort_last_dim(const Tensor& x, bool ascending = true);
Tensor arg_sort_last_dim(const Tensor& x, bool ascending = true);

}  // namespace tl
