// A reduction with everything checked and decided but how to run it.
#pragma once

#include "kernels/gpu_reduce.h"
#include "tl/kernels/reduce.h"
#include "tl/tensor/tensor.h"

namespace tl::ops {

// Outputs are the positions of `kept`, each of which reduces the positions of `reduced`.
struct ReducePlan {
  ReduceOp op = ReduceOp::Sum;
  kernels::ReduceMode mode = kernels::ReduceMode::Plain;
  bool smallest = false;  // Extreme and Place: the smallest element instead of the largest
  double scalar = 1;      // what a sum is divided by, the correction of a variance, the p of a norm
  kernels::Strided<1> kept{};
  kernels::Strided<1> reduced{};
};

}  // namespace tl::ops
