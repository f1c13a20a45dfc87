// Attention on the CPU.
#pragma once

#include "ops/attention.h"

namespace tl::cpu {

void attention(const ops::AttentionArguments& arguments, Tensor& out);

}  // namespace tl::cpu
