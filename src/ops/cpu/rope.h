// Rotary embeddings on the CPU.
#pragma once

#include "ops/rope.h"

namespace tl::cpu {

void rope(const Tensor& in, Tensor& out, const ops::RopeArguments& arguments);

}  // namespace tl::cpu
