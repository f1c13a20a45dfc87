#include "ops/cpu/loops.h"
#include "ops/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/cast_loops.cpp"
#include <hwy/foreach_target.h>  // this file once more for each instruction set
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

template <class From, class To>
void run_cast(const void* from, void* to, std::int64_t n) {
  const From* HWY_RESTRICT x = static_cast<const From*>(from);
  To* HWY_RESTRICT y = static_cast<To*>(to);
  for (std::int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
}

CastLoop find_cast(DType from, DType to) {
  return visit_dtype("to_dtype", from, [&]<class From> {
    return visit_dtype("to_dtype", to, []<class To> { return CastLoop{&run_cast<From, To>}; });
  });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {
HWY_EXPORT(find_cast);
CastLoop cast_loop(DType from, DType to) { return HWY_DYNAMIC_DISPATCH(find_cast)(from, to); }
}  // namespace tl::cpu
#endif
