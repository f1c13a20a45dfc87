// Normalisation on the CPU.
#pragma once

#include <optional>

#include "ops/norm.h"

namespace tl::cpu {

void norm(const Tensor& in, Tensor& out, const ops::NormArguments& arguments);
void batch_norm(const Tensor& in, Tensor& out, const ops::BatchNormArguments& arguments);

}  // namespace tl::cpu
