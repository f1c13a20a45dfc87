// What convolutions, pooling and unfold share: windows over a dimension, and their sum back.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::grad {

// `before` and `after` elements of `value` around dimension `dim`; itself when there are none.
Tensor padded(const Tensor& x, int dim, std::int64_t before, std::int64_t after, Scalar value = 0);

// The reverse of x.unfold(dim, width, step), where width is the last size of `windows`: a tensor
// with `size` elements along `dim` to which each window has added its elements.
Tensor fold(const Tensor& windows, int dim, std::int64_t step, std::int64_t size);

// x in a float type that sums can be kept in: small floats become f32.
Tensor widened(const Tensor& x);

}  // namespace tl::grad
