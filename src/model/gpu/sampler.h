// Sampling on a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/gpu_sample.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// One token of each row of logits (rows, vocabulary), which are contiguous; `greedy`: all rows take
// the largest. Addresses are for the stream of the device of `out`.
void sample(std::span<const kernels::SampleRow> rows, bool greedy, const Tensor& logits,
            Tensor& out);

// Counts tokens (u32), which are not more than the window has.
void accept(kernels::SampleState* state, std::int64_t vocabulary, const Tensor& tokens);

}  // namespace tl::gpu
