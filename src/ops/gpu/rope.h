// Rotary embeddings on a GPU.
#pragma once

#include "ops/rope.h"

namespace tl::gpu {

void rope(const Tensor& in, Tensor& out, const ops::RopeArguments& arguments);

}  // namespace tl::gpu
