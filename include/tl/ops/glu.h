// Gated linear units: the last dimension holds a and b side by side.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// a * sigmoid(b) for x = (a, b); the last dimension must be even.
Tensor glu(const Tensor& x);
// silu(a) * b for x = (a, b), where silu(a) = a * sigmoid(a).
Tensor swiglu(const Tensor& x);

}  // namespace tl
