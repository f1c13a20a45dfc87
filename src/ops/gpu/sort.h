// Sorting on a GPU.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::gpu {

// Sorts the last dimension of `x`, which is contiguous and not empty, and writes the first `keep`
// elements of each row to `values`, and to `indices` (u32) where they come from.
void sort(const Tensor& x, bool descending, std::int64_t keep, Tensor& values, Tensor& indices);

}  // namespace tl::gpu
