// Convolutions on the CPU.
#pragma once

#include <optional>

#include "runtime/driver/dnn.h"
#include "tl/tensor/tensor.h"

namespace tl::cpu {

using driver::Convolution;
using driver::ConvolutionAxis;

// Sizes are checked; no tensor is empty and `out` is contiguous.
void convolve(const Convolution& c, const Tensor& x, const Tensor& kernel,
              const std::optional<Tensor>& bias, Tensor& out);

// The parts. x and kernel are contiguous.

// oneDNN, for f32 and bf16; false when it has nothing fast for this convolution.
bool convolve_by_onednn(const Convolution& c, const Tensor& x, const Tensor& kernel,
                        const std::optional<Tensor>& bias, Tensor& out);
// Loops of our own, for f32 and f64.
void convolve_by_loops(const Convolution& c, const Tensor& x, const Tensor& kernel,
                       const std::optional<Tensor>& bias, Tensor& out);

}  // namespace tl::cpu
