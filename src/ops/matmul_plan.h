// A matrix product as both implementations take it: checked, and brought to one form.
#pragma once

#include <cstdint>
#include <optional>

#include "tl/tensor/tensor.h"

namespace tl::ops {

// C[i] = A[i] * B[i] + bias for every i of a batch. Nothing is empty and k is at least 1.
struct Product {
  // Shapes (batch..., m, k) and (batch..., k, n), the batch dimensions broadcast to `batch`, any
  // strides. The result is contiguous.
  Tensor a, b;
  Shape batch;
  std::int64_t m = 1, n = 1, k = 1;
  std::optional<Tensor> bias;  // shape (m, n), any strides, the same for the whole batch

  std::int64_t items() const { return a.count() / (m * k); }
  std::int64_t stride_of(const Tensor& x, int from_end) const {
    return x.strides()[x.rank() - from_end];
  }
  std::int64_t a_row() const { return stride_of(a, 2); }
  std::int64_t a_col() const { return stride_of(a, 1); }
  std::int64_t b_row() const { return stride_of(b, 2); }
  std::int64_t b_col() const { return stride_of(b, 1); }
  Dims batch_strides(const Tensor& x) const {
    Dims strides;
    for (int d = 0; d < batch.size(); ++d) strides.push_back(x.strides()[d]);
    return strides;
  }
};

}  // namespace tl::ops
