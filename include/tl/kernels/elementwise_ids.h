// The kernels of modules UNARY, BINARY, AFFINE and TERNARY.
#pragma once

#include <array>
#include <string_view>

#include "tl/kernels/elementwise.h"
#include "tl/kernels/modules.h"

namespace tl {

// ---- names, in the order of the ops

inline constexpr std::array<std::string_view, kUnaryOps> kUnaryNames = {
    "neg",        "abs",   "sqr",   "sign",       "relu",         "recip",      "exp",
    "exp2",       "expm1", "log",   "log2",       "log10",        "log1p",      "sin",
    "cos",        "tan",   "tanh",  "sinh",       "cosh",         "asin",       "acos",
    "atan",       "erf",   "erfc",  "normcdf",    "sqrt",         "rsqrt",      "floor",
    "ceil",       "trunc", "round", "round_even", "gelu",         "gelu_erf",   "relu6",
    "leaky_relu", "silu",  "mish",  "sigmoid",    "hard_sigmoid", "hard_swish", "softplus",
    "selu",       "elu",   "powf",  "isnan",      "isinf",        "isfinite",   "bitwise_not"};
inline constexpr std::array<std::string_view, kBinaryOps> kBinaryNames = {
    "add",         "sub",         "mul",        "div",         "maximum",     "minimum",
    "pow",         "rem",         "fmod",       "floor_div",   "atan2",       "bitwise_and",
    "bitwise_or",  "bitwise_xor", "shift_left", "shift_right", "logical_and", "logical_or",
    "logical_xor", "eq",          "ne",         "lt",          "le"};

constexpr std::string_view name(UnaryOp op) { return kUnaryNames[static_cast<std::size_t>(op)]; }
constexpr std::string_view name(BinaryOp op) { return kBinaryNames[static_cast<std::size_t>(op)]; }

// ---- which dtypes an op takes

constexpr bool takes(UnaryOp op, DType dtype) {
  if (is_int(dtype)) return op <= UnaryOp::Relu || op == UnaryOp::BitwiseNot;
  return is_float(dtype) && op != UnaryOp::BitwiseNot;
}
constexpr bool takes(BinaryOp op, DType dtype) {
  if (op == BinaryOp::Atan2) return is_float(dtype);
  if (op >= BinaryOp::BitwiseAnd && op <= BinaryOp::ShiftRight) return is_int(dtype);
  return is_float(dtype) || is_int(dtype);
}

// ---- kernels: an op's own run of dtypes, ops one after another

namespace detail {

template <class Op, int kCount>
inline constexpr auto kKernelIndices = [] {
  std::array<std::array<std::uint16_t, kDTypeCount>, kCount> table{};
  std::uint16_t count = 0;
  for (int op = 0; op < kCount; ++op) {
    for (const DType t : kDTypes) {
      table[static_cast<std::size_t>(op)][static_cast<std::size_t>(t)] = count;
      if (takes(static_cast<Op>(op), t)) ++count;
    }
  }
  return table;
}();

}  // namespace detail

// The op takes the dtype.
constexpr KernelId unary_kernel(UnaryOp op, DType dtype) {
  return {ModuleId::Unary, detail::kKernelIndices<UnaryOp, kUnaryOps>[static_cast<std::size_t>(
                               op)][static_cast<std::size_t>(dtype)]};
}
constexpr KernelId binary_kernel(BinaryOp op, DType dtype) {
  return {ModuleId::Binary, detail::kKernelIndices<BinaryOp, kBinaryOps>[static_cast<std::size_t>(
                                op)][static_cast<std::size_t>(dtype)]};
}

// Numbers only: dtypes from U8 to F64.
constexpr KernelId affine_kernel(DType dtype) {
  return {ModuleId::Affine, static_cast<std::uint16_t>(dtype)};
}
constexpr KernelId clamp_kernel(DType dtype) {
  return {ModuleId::Affine, static_cast<std::uint16_t>(static_cast<unsigned>(dtype) + 10)};
}

// By element sizes, 1, 2, 4 or 8 bytes.
constexpr KernelId where_kernel(std::size_t condition_size, std::size_t value_size) {
  const auto log2_size = [](std::size_t n) { return n == 1 ? 0U : n == 2 ? 1U : n == 4 ? 2U : 3U; };
  return {ModuleId::Ternary,
          static_cast<std::uint16_t>(log2_size(condition_size) * 4 + log2_size(value_size))};
}

}  // namespace tl
