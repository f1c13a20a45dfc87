// The vectorised loops of elementwise ops over contiguous elements, compiled for several
// instruction sets; each function gives the one for the CPU it runs on.
#pragma once

#include <cstdint>

#include "tl/base/dtype.h"
#include "tl/kernels/elementwise.h"

namespace tl::cpu {

// `parameter` points to one number of the type computed in.
using UnaryLoop = void (*)(const void* x, void* y, std::int64_t n, const void* parameter);
using BinaryLoop = void (*)(const void* a, const void* b, void* y, std::int64_t n);
// With two numbers of the type computed in.
using AffineLoop = void (*)(const void* x, void* y, std::int64_t n, const void* first,
                            const void* second);
using CastLoop = void (*)(const void* x, void* y, std::int64_t n);

// `computed` is compute_dtype() of a dtype that the op takes.
UnaryLoop unary_loop(UnaryOp op, DType computed);
BinaryLoop binary_loop(BinaryOp op, DType computed);
AffineLoop affine_loop(DType computed);
AffineLoop clamp_loop(DType computed);
// Any dtype to any other.
CastLoop cast_loop(DType from, DType to);

}  // namespace tl::cpu
