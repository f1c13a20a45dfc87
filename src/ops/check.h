// What ops check of their operands, always in this order: shapes, then devices, then dtypes.
#pragma once

#include <string_view>

#include "tl/base/error.h"
#include "tl/tensor/tensor.h"

namespace tl::ops {

// The same handle, or another handle of the same place (whose memory the runtime orders by itself).
inline void expect_same_device(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.location() != b.location()) {
    throw Error(ErrorKind::WrongDevice, op, "one operand is on ", a.location(), ", another on ",
                b.location());
  }
}

inline void expect_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) {
    throw Error(ErrorKind::DTypeMismatch, op, "one operand is ", a.dtype(), ", another ",
                b.dtype());
  }
}

inline void expect_rank(std::string_view op, std::string_view what, const Tensor& x, int rank) {
  if (x.rank() != rank) {
    throw Error(ErrorKind::ShapeMismatch, op, what, " must have ", rank,
                " dimensions, and has shape ", x.shape());
  }
}

inline void expect_float(std::string_view op, const Tensor& x) {
  if (!is_float(x.dtype())) {
    throw Error(ErrorKind::Unsupported, op, "needs a float tensor, got ", x.dtype());
  }
}

// Index tensors hold u8, u32, i16, i32 or i64.
inline void expect_index_dtype(std::string_view op, const Tensor& ids) {
  if (!is_int(ids.dtype())) {
    throw Error(ErrorKind::Unsupported, op, "needs an integer tensor of indices, got ",
                ids.dtype());
  }
}

}  // namespace tl::ops
