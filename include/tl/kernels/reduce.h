// The kernels of module REDUCE.
#pragma once

#include "tl/kernels/modules.h"

namespace tl {

enum class ReduceOp : std::uint8_t {
  Sum,
  Prod,
  Extreme,
  Place,
  Count,
  Var,
  LogSumExp,
  Norm,
  Power
};
inline constexpr unsigned kReduceOpCount = 9;
enum class ReduceForm : std::uint8_t { Rows, Strided };
enum class ScanOp : std::uint8_t { Sum, Prod };
enum class ScanForm : std::uint8_t { Rows, Lines };

namespace kernels {

// The kinds of elements a kernel is made for: integers by size (1, 2, 4, 8 bytes), then floats.
inline constexpr unsigned kSizeKinds = 4, kFloatKinds = 5;

constexpr unsigned size_kind(DType dtype) {
  const std::size_t size = size_of(dtype);
  return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
}
constexpr unsigned float_kind(DType dtype) {
  return static_cast<unsigned>(dtype) - static_cast<unsigned>(DType::F8E4M3);
}
constexpr unsigned number_kind(DType dtype) {
  return is_float(dtype) ? kSizeKinds + float_kind(dtype) : size_kind(dtype);
}

constexpr bool by_size(ReduceOp op) {
  return op == ReduceOp::Extreme || op == ReduceOp::Place || op == ReduceOp::Count;
}
constexpr bool by_number(ReduceOp op) { return op == ReduceOp::Sum || op == ReduceOp::Prod; }
constexpr unsigned reduce_kinds(ReduceOp op) {
  return by_number(op) ? kSizeKinds + kFloatKinds : by_size(op) ? kSizeKinds : kFloatKinds;
}
constexpr unsigned reduce_forms(ReduceOp op) { return op == ReduceOp::Power ? 1 : 2; }
constexpr unsigned reduce_start(ReduceOp op) {
  unsigned start = 0;
  for (unsigned o = 0; o < static_cast<unsigned>(op); ++o) {
    start += reduce_kinds(static_cast<ReduceOp>(o)) * reduce_forms(static_cast<ReduceOp>(o));
  }
  return start;
}
inline constexpr unsigned kReduceKernels =
    reduce_start(ReduceOp::Power) + reduce_forms(ReduceOp::Power) * reduce_kinds(ReduceOp::Power);

inline constexpr unsigned kScanKernels = 2 * 2 * (kSizeKinds + kFloatKinds);

}  // namespace kernels

// Power has no form for rows.
constexpr KernelId reduce_kernel(ReduceOp op, ReduceForm form, DType dtype) {
  const unsigned kind = kernels::by_number(op) ? kernels::number_kind(dtype)
                        : kernels::by_size(op) ? kernels::size_kind(dtype)
                                               : kernels::float_kind(dtype);
  const unsigned form_index = static_cast<unsigned>(form) - (op == ReduceOp::Power ? 1 : 0);
  return {ModuleId::Reduce,
          static_cast<std::uint16_t>(kernels::reduce_start(op) +
                                     form_index * kernels::reduce_kinds(op) + kind)};
}

constexpr KernelId scan_kernel(ScanOp op, ScanForm form, DType dtype) {
  const unsigned family = static_cast<unsigned>(op) * 2 + static_cast<unsigned>(form);
  return {ModuleId::Reduce,
          static_cast<std::uint16_t>(kernels::kReduceKernels +
                                     family * (kernels::kSizeKinds + kernels::kFloatKinds) +
                                     kernels::number_kind(dtype))};
}

}  // namespace tl
