// What ops check of their operands, always in this order: shapes, then devices, then dtypes.
#pragma once

#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>

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

// A number beside an integer tensor: 0.5 would silently become 0.
inline void expect_whole(std::string_view op, Scalar number, DType dtype) {
  if (is_int(dtype) && !number.is_integral()) {
    throw Error(ErrorKind::BadArgument, op, number, " is not a whole number, and the tensor is ",
                dtype);
  }
}

// The number of an integer dtype that is closest to a whole number: for ops that order elements,
// which a number outside the range must not enter by its low bits. Floats stay as they are.
inline Scalar saturated(Scalar number, DType dtype) {
  return visit_dtype("saturated", dtype, [&]<class T>() -> Scalar {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) < 8) {
      const std::int64_t whole = number.integer();
      return std::clamp<std::int64_t>(whole, std::numeric_limits<T>::min(),
                                      std::numeric_limits<T>::max());
    } else {
      return number;
    }
  });
}

// Index tensors hold u8, u32, i16, i32 or i64.
inline void expect_index_dtype(std::string_view op, const Tensor& ids) {
  if (!is_int(ids.dtype())) {
    throw Error(ErrorKind::Unsupported, op, "needs an integer tensor of indices, got ",
                ids.dtype());
  }
}

}  // namespace tl::ops
