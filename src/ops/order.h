// The order of a dtype's elements as kernels compare them.
#pragma once

#include "kernels/gpu_order.h"
#include "tl/base/dtype.h"

namespace tl::ops {

inline kernels::Order order_of(DType dtype, bool reversed, bool nan_last) {
  kernels::OrderBits infinity = 0;
  switch (dtype) {
    case DType::F8E4M3:
      infinity = 0x7e;  // the largest number: there is no infinity
      break;
    case DType::F16:
      infinity = 0x7c00;
      break;
    case DType::BF16:
      infinity = 0x7f80;
      break;
    case DType::F32:
      infinity = 0x7f800000;
      break;
    case DType::F64:
      infinity = 0x7ff0000000000000;
      break;
    default:
      break;
  }
  const bool is_signed = dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
  return kernels::make_order(static_cast<int>(size_of(dtype)), is_signed, infinity, reversed,
                             nan_last);
}

}  // namespace tl::ops
