// Scans on the CPU.
#pragma once

#include "ops/scan_plan.h"

namespace tl::cpu {

// `out` is contiguous, of the shape of `x`, and not empty.
void scan(const ops::ScanPlan& plan, const Tensor& x, Tensor& out);

}  // namespace tl::cpu
