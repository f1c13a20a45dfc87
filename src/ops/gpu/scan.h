// Scans on a GPU.
#pragma once

#include "ops/scan_plan.h"

namespace tl::gpu {

// `out` is contiguous, of the shape of `x`, and not empty.
void scan(const ops::ScanPlan& plan, const Tensor& x, Tensor& out);

}  // namespace tl::gpu
