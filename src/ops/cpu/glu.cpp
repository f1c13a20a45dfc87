#include "ops/cpu/glu.h"

#include <algorithm>
#include <utility>

#include "ops/cpu/row_walk.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/glu.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

// Elements taken at a time: a, b and the result stay in the first cache.
inline constexpr std::int64_t kGluPiece = 512;

// a becomes a * sigmoid(a) * b or a * sigmoid(b).
template <class W>
void gate(W* a, const W* b, std::int64_t n, bool swiglu) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, W(1));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto x = load_some(d, a + i, n - i, W(0)), y = load_some(d, b + i, n - i, W(0));
    const auto sigmoid = hn::Div(one, hn::Add(one, exp(d, hn::Neg(swiglu ? x : y))));
    const auto gated = hn::Mul(x, sigmoid);
    store_some(d, swiglu ? hn::Mul(gated, y) : gated, a + i, n - i);
  }
}

void glu_rows(const Tensor& in, Tensor& out, bool swiglu) {
  const Stream stream = out.device().stream();
  const int last = in.rank() - 1;
  const std::int64_t n = out.shape()[last], step = in.strides()[last];
  const ops::RowLayout rows = ops::row_layout(in.layout().narrow(last, 0, n), out.layout(), last);
  visit_float("glu", in.dtype(), [&]<class T> {
    const T* x = in.read<T>(stream);
    T* y = out.write<T>(stream);
    for_rows(rows, n, [&] {
      return [=](std::int64_t, std::int64_t from, std::int64_t to) {
        Wide<T> a[kGluPiece], b[kGluPiece];
        for (std::int64_t i = 0; i < n; i += kGluPiece) {
          const std::int64_t count = std::min(kGluPiece, n - i);
          widen_row(x + from + i * step, step, count, a);
          widen_row(x + from + (n + i) * step, step, count, b);
          gate(a, b, count, swiglu);
          narrow_row(a, count, y + to + i, 1);
        }
      };
    });
  });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(glu_rows);

void glu(const Tensor& in, Tensor& out, bool swiglu) {
  HWY_DYNAMIC_DISPATCH(glu_rows)(in, out, swiglu);
}

}  // namespace tl::cpu
#endif
