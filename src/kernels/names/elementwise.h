// The kernels of modules UNARY, BINARY, AFFINE and TERNARY, in the order of their indices.
#pragma once

#include "kernels/kernel_name.h"
#include "tl/kernels/elementwise_ids.h"

namespace tl::kernels {

namespace detail {

template <class Op>
constexpr std::size_t count_kernels(int ops) {
  std::size_t count = 0;
  for (int op = 0; op < ops; ++op) {
    for (const DType t : kDTypes) count += takes(static_cast<Op>(op), t) ? 1 : 0;
  }
  return count;
}

// A letter for the module before the op, since the bare names are those of C's functions.
// Comparisons stand bare.
constexpr KernelName prefixed(UnaryOp op, DType t) {
  KernelName result = kernel_name("u");
  for (const char c : name(op)) result.text[result.length++] = c;
  result.append(name(t));
  return result;
}
constexpr KernelName prefixed(BinaryOp op, DType t) {
  KernelName result = op >= BinaryOp::Eq ? KernelName{} : kernel_name("b");
  for (const char c : name(op)) result.text[result.length++] = c;
  result.append(name(t));
  return result;
}

template <class Op, int kOps>
constexpr auto make_names() {
  std::array<KernelName, count_kernels<Op>(kOps)> names;
  std::size_t at = 0;
  for (int op = 0; op < kOps; ++op) {
    for (const DType t : kDTypes) {
      if (takes(static_cast<Op>(op), t)) names[at++] = prefixed(static_cast<Op>(op), t);
    }
  }
  return names;
}

}  // namespace detail

inline constexpr auto kUnaryKernelNames = detail::make_names<UnaryOp, kUnaryOps>();
inline constexpr auto kUnaryViews = views(kUnaryKernelNames);
inline constexpr auto kBinaryKernelNames = detail::make_names<BinaryOp, kBinaryOps>();
inline constexpr auto kBinaryViews = views(kBinaryKernelNames);

inline constexpr auto kAffineNames = [] {
  std::array<KernelName, 20> names;
  std::size_t at = 0;
  for (const std::string_view family : {"affine", "clamp"}) {
    for (const DType t : kDTypes) {
      if (t != DType::Bool) names[at++] = kernel_name(family, name(t));
    }
  }
  return names;
}();
inline constexpr auto kAffineViews = views(kAffineNames);

inline constexpr auto kTernaryNames = [] {
  std::array<KernelName, 16> names;
  std::size_t at = 0;
  for (const std::string_view condition : kElementSizes) {
    for (const std::string_view value : kElementSizes) {
      names[at++] = kernel_name("where", condition, value);
    }
  }
  return names;
}();
inline constexpr auto kTernaryViews = views(kTernaryNames);

static_assert(kUnaryViews[unary_kernel(UnaryOp::GeluErf, DType::BF16).index] == "ugelu_erf_bf16");
static_assert(kBinaryViews[binary_kernel(BinaryOp::Add, DType::U8).index] == "badd_u8");
static_assert(kBinaryViews[binary_kernel(BinaryOp::Le, DType::F64).index] == "le_f64");
static_assert(kAffineViews[clamp_kernel(DType::F64).index] == "clamp_f64");
static_assert(kTernaryViews[where_kernel(8, 2).index] == "where_8_2");

}  // namespace tl::kernels
