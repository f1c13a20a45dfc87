// Tensors from a rule. On a GPU they are made there; nothing is uploaded.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl {

Tensor full(const Shape& shape, Scalar value, DType dtype, const Device& device = Device::cpu());
Tensor ones(const Shape& shape, DType dtype, const Device& device = Device::cpu());
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor full_like(const Tensor& x, Scalar value);

// start, start + step, ... up to but without `end`; empty when the step leads away from it. Element
// i is start + i step, computed in double or 64-bit integers. Integer dtypes take whole numbers.
Tensor arange(Scalar start, Scalar end, Scalar step, DType dtype,
              const Device& device = Device::cpu());
inline Tensor arange(Scalar end, DType dtype, const Device& device = Device::cpu()) {
  return arange(0, end, 1, dtype, device);
}
// `count` numbers at equal distances, both ends included; floats.
Tensor linspace(double start, double end, std::int64_t count, DType dtype,
                const Device& device = Device::cpu());

// (n, n) matrices of 0 and 1: the diagonal, what is on or below it, on or above it.
Tensor eye(std::int64_t n, DType dtype, const Device& device = Device::cpu());
Tensor tril2(std::int64_t n, DType dtype, const Device& device = Device::cpu());
Tensor triu2(std::int64_t n, DType dtype, const Device& device = Device::cpu());
// The matrices in the last two dimensions, with 0 above (below) the given diagonal.
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);

// A dimension of size `depth` is appended; it is `on` at the index and `off` elsewhere. The
// sentinel of the indices' dtype gives `off` everywhere; any other index outside 0 ... depth - 1 is
// an error.
Tensor one_hot(const Tensor& ids, std::int64_t depth, DType dtype, Scalar on = 1, Scalar off = 0);

}  // namespace tl
