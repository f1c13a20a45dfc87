#pragma once

#include "tl/quant/format.h"
#include "tl/runtime/raw_memory.h"
#include "tl/tensor/tensor.h"

namespace tl::gpu {

// Whole blocks of `out.count()` elements; `out` is fresh and f32, f16 or bf16.
void dequantize(QType type, const RawMemory& blocks, Tensor& out);

// Whether quantize() below makes that type.
bool can_quantize(QType type);
// f32, contiguous, whole blocks.
RawMemory quantize(QType type, const Tensor& x);

}  // namespace tl::gpu
