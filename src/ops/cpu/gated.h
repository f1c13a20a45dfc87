// Gates of feed-forward layers on the CPU.
#pragma once

#include "tl/kernels/elementwise.h"
#include "tl/tensor/tensor.h"

namespace tl::cpu {

// gate = activation(gate) * up, both of f32 and of one shape, `gate` contiguous.
void gate_in_place(UnaryOp activation, Tensor& gate, const Tensor& up);

}  // namespace tl::cpu
