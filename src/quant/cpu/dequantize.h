#pragma once

#include <cstddef>
#include <cstdint>

#include "tl/base/dtype.h"
#include "tl/quant/format.h"

namespace tl::cpu {

// `count` elements, whole blocks of them, to f32, f16 or bf16. On all threads of the pool.
void dequantize(QType type, const std::byte* blocks, std::int64_t count, DType to, std::byte* out);

// The same on the calling thread, to f32.
void decode_blocks(QType type, const std::byte* blocks, std::int64_t count, float* out);

}  // namespace tl::cpu
