// Normalisation on a GPU.
#pragma once

#include <optional>

#include "ops/norm.h"

namespace tl::gpu {

void norm(const Tensor& in, Tensor& out, const ops::NormArguments& arguments);
// The same to an address, for a result of that layout.
void norm(const Tensor& in, const Layout& layout, std::byte* out,
          const ops::NormArguments& arguments);
void batch_norm(const Tensor& in, Tensor& out, const ops::BatchNormArguments& arguments);

}  // namespace tl::gpu
