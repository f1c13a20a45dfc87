#include "ops/cpu/loops.h"
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/binary_loops.cpp"
#include <hwy/foreach_target.h>  // this file once more for each instruction set
#include <hwy/highway.h>

#include "kernels/functors.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

template <BinaryOp kOp, class C>
void run_binary(const void* left, const void* right, void* to, std::int64_t n) {
  const C* HWY_RESTRICT a = static_cast<const C*>(left);
  const C* HWY_RESTRICT b = static_cast<const C*>(right);
  if constexpr (gives_flag(kOp)) {
    std::uint8_t* HWY_RESTRICT y = static_cast<std::uint8_t*>(to);
    for (std::int64_t i = 0; i < n; ++i) y[i] = functors::binary_flag<kOp>(a[i], b[i]) ? 1 : 0;
  } else if constexpr (functors::kBinaryHasMore<kOp> && functors::kIsReal<C>) {
    using elementary::Fmod;
    C* HWY_RESTRICT y = static_cast<C*>(to);
    int more = 0;
    for (std::int64_t i = 0; i < n; ++i) more |= Fmod::needs_more(a[i], b[i]) ? 1 : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = functors::finish_remainder<kOp>(a[i], b[i], Fmod::quick(a[i], b[i]));
    }
    if (more == 0) return;
    for (std::int64_t i = 0; i < n; ++i) {
      if (Fmod::needs_more(a[i], b[i])) y[i] = functors::binary<kOp>(a[i], b[i]);
    }
  } else {
    C* HWY_RESTRICT y = static_cast<C*>(to);
    for (std::int64_t i = 0; i < n; ++i) y[i] = functors::binary<kOp>(a[i], b[i]);
  }
}

template <class C>
void run_affine(const void* from, void* to, std::int64_t n, const void* first, const void* second) {
  const C* HWY_RESTRICT x = static_cast<const C*>(from);
  C* HWY_RESTRICT y = static_cast<C*>(to);
  const C m = *static_cast<const C*>(first), a = *static_cast<const C*>(second);
  for (std::int64_t i = 0; i < n; ++i) y[i] = functors::affine(x[i], m, a);
}
template <class C>
void run_clamp(const void* from, void* to, std::int64_t n, const void* first, const void* second) {
  const C* HWY_RESTRICT x = static_cast<const C*>(from);
  C* HWY_RESTRICT y = static_cast<C*>(to);
  const C low = *static_cast<const C*>(first), high = *static_cast<const C*>(second);
  for (std::int64_t i = 0; i < n; ++i) y[i] = functors::clamp(x[i], low, high);
}

template <class C, class Indices>
struct BinaryTable;
template <class C, std::size_t... kIndex>
struct BinaryTable<C, std::index_sequence<kIndex...>> {
  template <BinaryOp kOp>
  static constexpr BinaryLoop entry() {
    constexpr bool kBits = kOp >= BinaryOp::BitwiseAnd && kOp <= BinaryOp::ShiftRight;
    if constexpr (functors::kIsReal<C> ? !kBits : kOp != BinaryOp::Atan2) {
      return &run_binary<kOp, C>;
    } else {
      return nullptr;
    }
  }
  static constexpr BinaryLoop kLoops[] = {entry<static_cast<BinaryOp>(kIndex)>()...};
};

template <class F>
auto with_computed(DType computed, F&& f) {
  switch (computed) {
    case DType::U8:
      return f.template operator()<std::uint8_t>();
    case DType::U32:
      return f.template operator()<std::uint32_t>();
    case DType::I16:
      return f.template operator()<std::int16_t>();
    case DType::I32:
      return f.template operator()<std::int32_t>();
    case DType::I64:
      return f.template operator()<std::int64_t>();
    case DType::F32:
      return f.template operator()<float>();
    default:
      return f.template operator()<double>();
  }
}

BinaryLoop find_binary(BinaryOp op, DType computed) {
  return with_computed(computed, [&]<class C> {
    using Table = BinaryTable<C, std::make_index_sequence<kBinaryOps>>;
    return Table::kLoops[static_cast<std::size_t>(op)];
  });
}
AffineLoop find_affine(DType computed) {
  return with_computed(computed, []<class C> { return AffineLoop{&run_affine<C>}; });
}
AffineLoop find_clamp(DType computed) {
  return with_computed(computed, []<class C> { return AffineLoop{&run_clamp<C>}; });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {
HWY_EXPORT(find_binary);
BinaryLoop binary_loop(BinaryOp op, DType computed) {
  return HWY_DYNAMIC_DISPATCH(find_binary)(op, computed);
}
HWY_EXPORT(find_affine);
AffineLoop affine_loop(DType computed) { return HWY_DYNAMIC_DISPATCH(find_affine)(computed); }
HWY_EXPORT(find_clamp);
AffineLoop clamp_loop(DType computed) { return HWY_DYNAMIC_DISPATCH(find_clamp)(computed); }
}  // namespace tl::cpu
#endif
