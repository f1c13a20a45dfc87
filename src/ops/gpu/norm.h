// Normalisation on a GPU.
#pragma once

#include <optional>

#include "ops/norm.h"

namespace tl::gpu {

void norm(const Tensor& in, Tensor& out, const ops::NormArguments& arguments);
void batch_norm(const Tensor& in, Tensor& out, const ops::BatchNormArguments& arguments);

}  // namespace tl::gpu
