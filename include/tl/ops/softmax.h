// Softmax and its logarithm along any dimension.
//
// Floats of every width; f8, f16, bf16 and f32 are computed in f32 and rounded once. A row with a
// NaN or +infinity, or with nothing but -infinity, comes out as NaN throughout.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

// exp(x) / sum of exp(x)
Tensor softmax(const Tensor& x, std::int64_t dim = -1);
// log(softmax(x)), without the loss of taking the logarithm of a small number
Tensor log_softmax(const Tensor& x, std::int64_t dim = -1);

}  // namespace tl
