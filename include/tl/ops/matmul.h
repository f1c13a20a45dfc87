// Matrix products.
//
// f8, f16 and bf16 are summed in f32 and rounded once; f32 in f32 (true f32: no shorter format
// unless asked for with set_allow_tf32) and f64 in f64; integers wrap. Operands may lie in memory
// in any way. Results are contiguous.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "tl/tensor/tensor.h"

namespace tl {

// (..., m, k) times (..., k, n) gives (..., m, n); the dimensions in front broadcast. A vector on
// the left counts as a row and one on the right as a column, and the result then has no such
// dimension. k = 0 gives zeros.
Tensor matmul(const Tensor& a, const Tensor& b);
// (batch, m, k) times (batch, k, n), both of rank 3, nothing broadcast.
Tensor bmm(const Tensor& a, const Tensor& b);
// The sum of the products of two vectors, of rank 0.
Tensor dot(const Tensor& a, const Tensor& b);
// (m, k) times (k).
Tensor mv(const Tensor& a, const Tensor& b);
// (m) and (n) give (m, n): every product.
Tensor outer(const Tensor& a, const Tensor& b);
// x * transpose(weight) + bias: (..., k), (n, k) and (n) give (..., n).
Tensor linear(const Tensor& x, const Tensor& weight,
              const std::optional<Tensor>& bias = std::nullopt);
// bias + a * b: the bias broadcasts to (m, n), and the sum is rounded once.
Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b);

// A sum of products named by indices: "ij,jk->ik" is a matrix product, "ii" the trace, "bhqd,bhkd"
// with "->bhqk" the scores of attention. Letters are indices; one that the output does not name is
// summed over, and one that an operand names twice means its diagonal. Without "->" the output has
// every letter that occurs once, in alphabetical order. "..." stands for the dimensions in front,
// which broadcast.
Tensor einsum(std::string_view equation, std::span<const Tensor> tensors);
inline Tensor einsum(std::string_view equation, std::initializer_list<Tensor> tensors) {
  return einsum(equation, std::span<const Tensor>(tensors.begin(), tensors.size()));
}

// Lets f32 products on that device round their operands to 10 bits of mantissa, where the device is
// faster so. Off at first.
void set_allow_tf32(const Device& device, bool allow);
bool allow_tf32(const Device& device);

}  // namespace tl
