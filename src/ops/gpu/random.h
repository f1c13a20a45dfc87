// Random numbers on a GPU: `out` is contiguous, new and not empty; arguments are checked.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::gpu {

// `last` is the largest number of the dtype that may come out.
void rand_uniform(Tensor& out, std::uint64_t seed, std::uint64_t position, double low, double width,
                  double last);
void rand_normal(Tensor& out, std::uint64_t seed, std::uint64_t position, double mean,
                 double deviation);
// A range of 0 stands for 2^64.
void randint(Tensor& out, std::uint64_t seed, std::uint64_t position, std::int64_t low,
             std::uint64_t range);

}  // namespace tl::gpu
