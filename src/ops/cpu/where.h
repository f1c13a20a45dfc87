// Choosing between elements on the CPU. Operands are checked; `out` is contiguous.
#pragma once

#include "ops/choice.h"

namespace tl::cpu {

void where(const ops::Choice& choice, Tensor& out);

}  // namespace tl::cpu
