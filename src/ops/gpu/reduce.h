// Reductions on a GPU.
#pragma once

#include "ops/reduce_plan.h"

namespace tl::gpu {

// `out` is contiguous and has plan.kept.count elements, at least one.
void reduce(const ops::ReducePlan& plan, const Tensor& x, Tensor& out);

}  // namespace tl::gpu
