// Sampling on the CPU: the same tokens as the kernels of module SAMPLE.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/gpu_sample.h"

namespace tl::cpu {

// One token of each row of logits (rows, vocabulary). Throws InvalidIndex when a row has none to
// choose; then no state has changed.
void sample(std::span<const kernels::SampleRow> rows, const float* logits, std::int64_t vocabulary,
            std::uint32_t* out);

// Counts tokens, which are not more than the window has.
void accept(kernels::SampleState* state, std::int64_t vocabulary,
            std::span<const std::uint32_t> tokens);

}  // namespace tl::cpu
