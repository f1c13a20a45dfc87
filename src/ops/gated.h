// The middle of a gated feed-forward layer, for models.
#pragma once

#include "tl/kernels/elementwise.h"
#include "tl/tensor/tensor.h"

namespace tl::ops {

// activation(gate) * up, as those two ops compute it. It is written over `gate` where that is a
// whole tensor of f32 that nobody shares, so that no third tensor of this size, the largest of a
// model's work, is ever needed.
Tensor gated(UnaryOp activation, Tensor gate, const Tensor& up);

}  // namespace tl::ops
