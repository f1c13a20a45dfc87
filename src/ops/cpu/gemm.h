// One matrix product on the CPU: C = A * B + bias, with C contiguous.
#pragma once

#include <cstdint>

#include "ops/cpu/row_order.h"
#include "tl/base/dtype.h"

namespace tl::cpu {

// Strides are counted in elements; any will do. bias may be null.
struct Gemm {
  DType dtype = DType::F32;  // of all
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  std::int64_t a_row = 0, a_col = 0;
  const void* b = nullptr;
  std::int64_t b_row = 0, b_col = 0;
  const void* bias = nullptr;
  std::int64_t bias_row = 0, bias_col = 0;
  void* c = nullptr;
  std::int64_t c_row = 0, c_col = 0;
  RowOrder order = best_row_order();  // of columns of B, where they are contiguous and m is 1
};

// Floats, by vector code for whatever this CPU has (gemm_simd.cpp).
void gemm_float(const Gemm& g);
// The same with B of another dtype, f16 or bf16, where A, the bias and C are f32 and the columns of
// B contiguous. B is never made f32 as a whole.
void gemm_float(const Gemm& g, DType b);
// bf16 by the CPU's own products of bf16 pairs (gemm_bf16.cpp); false where it has none.
bool gemm_bf16(const Gemm& g);
// bf16, f16, and f32 times either, by the CPU's matrix unit (gemm_amx.cpp); `b` is B's dtype. False
// where it has none, A has too few rows to pay, or a product was not finite: what is in C then does
// not count.
bool gemm_amx(const Gemm& g, DType b);

}  // namespace tl::cpu
