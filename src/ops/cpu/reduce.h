// Reductions on the CPU.
#pragma once

#include "ops/reduce_plan.h"

namespace tl::cpu {

// `out` is contiguous and has plan.kept.count elements, at least one.
void reduce(const ops::ReducePlan& plan, const Tensor& x, Tensor& out);

}  // namespace tl::cpu
