// A scan with everything checked and decided but how to run it.
#pragma once

#include "kernels/gpu_reduce.h"
#include "tl/kernels/reduce.h"
#include "tl/tensor/tensor.h"

namespace tl::ops {

// Each position of `lines` (its operands are input and output) is a line of `count` elements that
// lie in_step and out_step apart.
struct ScanPlan {
  ScanOp op = ScanOp::Sum;
  kernels::Strided<2> lines{};
  kernels::Strided<1> in_lines{};  // the input alone
  std::int64_t count = 0;
  std::int64_t in_step = 1;
  std::int64_t out_step = 1;
};

}  // namespace tl::ops
