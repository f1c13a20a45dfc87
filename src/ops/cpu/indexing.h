// Indexing on the CPU. Operands are checked; there is something to do.
#pragma once

#include "ops/indexing.h"

namespace tl::cpu {

void gather(const ops::Pick& p, Tensor& out);  // `out` is contiguous
void scatter(const ops::Place& p, Tensor& out);
void scatter_add(const ops::Place& p, Tensor& out);
Tensor nonzero_positions(const Tensor& x);
void unravel(const Tensor& positions, const Shape& shape, Tensor& out);
// The elements of x with the order along some dimensions reversed, to a contiguous `out`.
void flip(const Tensor& x, const Dims& dims, Tensor& out);

}  // namespace tl::cpu
