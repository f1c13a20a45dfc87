// Attention on a GPU.
#pragma once

#include "ops/attention.h"

namespace tl::gpu {

void attention(const ops::AttentionArguments& arguments, Tensor& out);

// Heads with more elements than this, in keys or in values, have no kernel for their gradients.
inline constexpr std::int64_t kMostGradientDepth = 128;
void attention_gradient(const ops::AttentionGradientArguments& arguments,
                        ops::AttentionGradients& found);

}  // namespace tl::gpu
