// Choosing between elements by a condition: an integer or bool tensor, where anything but 0 is yes.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// Shapes broadcast. The values have one dtype; a number takes the other side's.
Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no);
Tensor where(const Tensor& condition, const Tensor& yes, Scalar no);
Tensor where(const Tensor& condition, Scalar yes, const Tensor& no);

// x, and `value` where the mask says so. The mask broadcasts to x's shape.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);

}  // namespace tl
