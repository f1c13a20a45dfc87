// Copies: to a contiguous layout, another shape, another dtype, another device; and writing into a
// part of a tensor.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// Itself when it is contiguous already (it then shares memory), else a copy that is.
Tensor contiguous(const Tensor& x);
// A copy of its own, contiguous, in new memory.
Tensor copy(const Tensor& x);

// Another shape over the same elements in the same order; one entry may be -1. A view where the
// strides allow it, else a copy.
Tensor reshape(const Tensor& x, const Shape& shape);
// Dimensions `first` to `last`, both included, become one.
Tensor flatten(const Tensor& x, std::int64_t first = 0, std::int64_t last = -1);

// By the rules of tl/base/float_bits.h: rounds once, saturates, wraps. Itself for its own dtype.
Tensor to_dtype(const Tensor& x, DType dtype);

// Itself when it is there already. Moves only what the view addresses.
Tensor to(const Tensor& x, const Device& device);

// Writes `from`, broadcast to the shape of `to`, into the elements that `to` addresses. Only `to`
// changes: tensors that shared its memory keep it and their values, and `to` goes to new memory,
// contiguous and no larger than itself. Same dtype and device.
void assign(Tensor& to, const Tensor& from);
// The same into a part of `x`: part = x.layout().narrow(0, 2, 3). The layout of a view of x does as
// well, but a view that still lives shares the memory, and the write then goes to new memory. That
// holds what lies between the first and the last element of `x`. A broadcast `x` has too few places
// for this; write to its copy().
void assign_at(Tensor& x, const Layout& part, const Tensor& from);
void fill(Tensor& x, Scalar value);
void fill_at(Tensor& x, const Layout& part, Scalar value);

}  // namespace tl
