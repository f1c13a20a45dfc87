// The gradient of attention on the CPU.
#pragma once

#include "ops/attention.h"

namespace tl::cpu {

void attention_gradient(const ops::AttentionGradientArguments& arguments,
                        ops::AttentionGradients& found);

}  // namespace tl::cpu
