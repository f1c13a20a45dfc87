#include "ops/cpu/loops.h"
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/unary_loops.cpp"
#include <hwy/foreach_target.h>  // this file once more for each instruction set
#include <hwy/highway.h>

#include "kernels/functors.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

template <UnaryOp kOp, class C>
void run_unary(const void* from, void* to, std::int64_t n, const void* parameter) {
  const C* HWY_RESTRICT x = static_cast<const C*>(from);
  if constexpr (gives_flag(kOp)) {
    std::uint8_t* HWY_RESTRICT y = static_cast<std::uint8_t*>(to);
    for (std::int64_t i = 0; i < n; ++i) y[i] = functors::unary_flag<kOp>(x[i]) ? 1 : 0;
  } else if constexpr (functors::kHasMore<kOp>) {
    using More = functors::MoreOf<kOp>;
    C* HWY_RESTRICT y = static_cast<C*>(to);
    int more = 0;
    for (std::int64_t i = 0; i < n; ++i) more |= More::needs_more(x[i]) ? 1 : 0;
    for (std::int64_t i = 0; i < n; ++i) y[i] = More::quick(x[i]);
    if (more == 0) return;
    for (std::int64_t i = 0; i < n; ++i) {
      if (More::needs_more(x[i])) y[i] = More::thorough(x[i]);
    }
  } else {
    C* HWY_RESTRICT y = static_cast<C*>(to);
    const C p = *static_cast<const C*>(parameter);
    for (std::int64_t i = 0; i < n; ++i) y[i] = functors::unary<kOp>(x[i], p);
  }
}

// A table over the ops, filled where `kTakes` says that the op takes the type.
template <class C, class Indices>
struct UnaryTable;
template <class C, std::size_t... kIndex>
struct UnaryTable<C, std::index_sequence<kIndex...>> {
  template <UnaryOp kOp>
  static constexpr UnaryLoop entry() {
    constexpr bool kInteger = !functors::kIsReal<C>;
    if constexpr (kInteger ? kOp <= UnaryOp::Relu || kOp == UnaryOp::BitwiseNot
                           : kOp != UnaryOp::BitwiseNot) {
      return &run_unary<kOp, C>;
    } else {
      return nullptr;
    }
  }
  static constexpr UnaryLoop kLoops[] = {entry<static_cast<UnaryOp>(kIndex)>()...};
};

template <class C>
UnaryLoop find_in(UnaryOp op) {
  return UnaryTable<C, std::make_index_sequence<kUnaryOps>>::kLoops[static_cast<std::size_t>(op)];
}

UnaryLoop find_unary(UnaryOp op, DType computed) {
  switch (computed) {
    case DType::U8:
      return find_in<std::uint8_t>(op);
    case DType::U32:
      return find_in<std::uint32_t>(op);
    case DType::I16:
      return find_in<std::int16_t>(op);
    case DType::I32:
      return find_in<std::int32_t>(op);
    case DType::I64:
      return find_in<std::int64_t>(op);
    case DType::F32:
      return find_in<float>(op);
    default:
      return find_in<double>(op);
  }
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {
HWY_EXPORT(find_unary);
UnaryLoop unary_loop(UnaryOp op, DType computed) {
  return HWY_DYNAMIC_DISPATCH(find_unary)(op, computed);
}
}  // namespace tl::cpu
#endif
