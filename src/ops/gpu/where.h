// Choosing between elements on a GPU. Operands are checked; `out` is contiguous.
#pragma once

#include "ops/choice.h"

namespace tl::gpu {

void where(const ops::Choice& choice, Tensor& out);

}  // namespace tl::gpu
