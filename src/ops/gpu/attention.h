// Attention on a GPU.
#pragma once

#include "ops/attention.h"

namespace tl::gpu {

void attention(const ops::AttentionArguments& arguments, Tensor& out);

}  // namespace tl::gpu
