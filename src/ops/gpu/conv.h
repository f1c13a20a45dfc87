// Convolutions on a GPU.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/driver/dnn.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// Sizes are checked; `out` is contiguous and not empty.
void convolve(std::string_view op, const driver::Convolution& c, const Tensor& x,
              const Tensor& kernel, const std::optional<Tensor>& bias, Tensor& out);

}  // namespace tl::gpu
