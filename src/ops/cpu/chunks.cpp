#include "ops/cpu/chunks.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/chunks.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four vectors at a time, so that additions need not wait for each other; then single ones; then
// elements. `term` gives what an element adds, `join` puts two together.
template <class T, class Term, class Join>
HWY_INLINE T fold(const T* x, std::int64_t n, T start, const Term& term, const Join& join) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Set(d, start), b = a, c = a, e = a;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = join(a, term(hn::LoadU(d, x + i)));
    b = join(b, term(hn::LoadU(d, x + i + lanes)));
    c = join(c, term(hn::LoadU(d, x + i + 2 * lanes)));
    e = join(e, term(hn::LoadU(d, x + i + 3 * lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = join(a, term(hn::LoadU(d, x + i)));
  const auto all = join(join(a, b), join(c, e));
  HWY_ALIGN T room[hn::MaxLanes(d)];
  hn::Store(all, d, room);
  for (std::int64_t width = lanes / 2; width > 0; width /= 2) {
    for (std::int64_t k = 0; k < width; ++k) {
      const hn::CappedTag<T, 1> one;
      room[k] = hn::GetLane(join(hn::Set(one, room[k]), hn::Set(one, room[k + width])));
    }
  }
  const hn::CappedTag<T, 1> one;
  auto total = hn::Set(one, room[0]);
  for (; i < n; ++i) total = join(total, term(hn::Set(one, x[i])));
  return hn::GetLane(total);
}

struct Same {
  template <class V>
  HWY_INLINE V operator()(V v) const {
    return v;
  }
};
struct Add {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct Multiply {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
};
// A NaN stays once it is there.
struct Larger {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
};
struct Smaller {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  }
};
struct Absolute {
  template <class V>
  HWY_INLINE V operator()(V v) const {
    return hn::Abs(v);
  }
};
template <class T>
struct Square {
  T center;
  template <class V>
  HWY_INLINE V operator()(V v) const {
    const auto distance = hn::Sub(v, hn::Set(hn::DFromV<V>(), center));
    return hn::Mul(distance, distance);
  }
};
template <class T>
struct Exponential {
  T shift;
  template <class V>
  HWY_INLINE V operator()(V v) const {
    const hn::DFromV<V> d;
    const auto y = hn::Sub(v, hn::Set(d, shift));
    return hn::IfThenElse(hn::IsNaN(y), y, hn::Exp(d, y));  // NaN stays
  }
};

template <class T>
T sum_of(const T* x, std::int64_t n) {
  return fold(x, n, T(0), Same(), Add());
}
template <class T>
T product_of(const T* x, std::int64_t n) {
  return fold(x, n, T(1), Same(), Multiply());
}
template <class T>
T largest_of(const T* x, std::int64_t n) {
  return fold(x, n, -std::numeric_limits<T>::infinity(), Same(), Larger());
}
template <class T>
T smallest_of(const T* x, std::int64_t n) {
  return fold(x, n, std::numeric_limits<T>::infinity(), Same(), Smaller());
}
template <class T>
T squares_of(const T* x, std::int64_t n, T center) {
  return fold(x, n, T(0), Square<T>{center}, Add());
}
template <class T>
T absolute_of(const T* x, std::int64_t n) {
  return fold(x, n, T(0), Absolute(), Add());
}
template <class T>
T exp_sum_of(const T* x, std::int64_t n, T shift) {
  return fold(x, n, T(0), Exponential<T>{shift}, Add());
}

float sum_f32(const float* x, std::int64_t n) { return sum_of(x, n); }
double sum_f64(const double* x, std::int64_t n) { return sum_of(x, n); }
float product_f32(const float* x, std::int64_t n) { return product_of(x, n); }
double product_f64(const double* x, std::int64_t n) { return product_of(x, n); }
float largest_f32(const float* x, std::int64_t n) { return largest_of(x, n); }
double largest_f64(const double* x, std::int64_t n) { return largest_of(x, n); }
float smallest_f32(const float* x, std::int64_t n) { return smallest_of(x, n); }
double smallest_f64(const double* x, std::int64_t n) { return smallest_of(x, n); }
float squares_f32(const float* x, std::int64_t n, float center) { return squares_of(x, n, center); }
double squares_f64(const double* x, std::int64_t n, double center) {
  return squares_of(x, n, center);
}
float absolute_f32(const float* x, std::int64_t n) { return absolute_of(x, n); }
double absolute_f64(const double* x, std::int64_t n) { return absolute_of(x, n); }
float exp_sum_f32(const float* x, std::int64_t n, float shift) { return exp_sum_of(x, n, shift); }
double exp_sum_f64(const double* x, std::int64_t n, double shift) {
  return exp_sum_of(x, n, shift);
}

template <class Raw, class T>
HWY_INLINE void widen_all(const T* from, std::int64_t n, float* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<Raw, decltype(d)> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* raw = reinterpret_cast<const Raw*>(from);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, raw + i)), d, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}
void widen_f16(const half* from, std::int64_t n, float* to) {
  widen_all<hwy::float16_t>(from, n, to);
}
void widen_bf16(const bfloat16* from, std::int64_t n, float* to) {
  widen_all<hwy::bfloat16_t>(from, n, to);
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);
HWY_EXPORT(product_f32);
HWY_EXPORT(product_f64);
HWY_EXPORT(largest_f32);
HWY_EXPORT(largest_f64);
HWY_EXPORT(smallest_f32);
HWY_EXPORT(smallest_f64);
HWY_EXPORT(squares_f32);
HWY_EXPORT(squares_f64);
HWY_EXPORT(absolute_f32);
HWY_EXPORT(absolute_f64);
HWY_EXPORT(exp_sum_f32);
HWY_EXPORT(exp_sum_f64);
HWY_EXPORT(widen_f16);
HWY_EXPORT(widen_bf16);

namespace chunks {

float sum(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f32)(x, n); }
double sum(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_f64)(x, n); }
float product(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(product_f32)(x, n); }
double product(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(product_f64)(x, n); }
float largest(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(largest_f32)(x, n); }
double largest(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(largest_f64)(x, n); }
float smallest(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(smallest_f32)(x, n); }
double smallest(const double* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(smallest_f64)(x, n);
}
float squares(const float* x, std::int64_t n, float center) {
  return HWY_DYNAMIC_DISPATCH(squares_f32)(x, n, center);
}
double squares(const double* x, std::int64_t n, double center) {
  return HWY_DYNAMIC_DISPATCH(squares_f64)(x, n, center);
}
float absolute_sum(const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(absolute_f32)(x, n);
}
double absolute_sum(const double* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(absolute_f64)(x, n);
}
float exp_sum(const float* x, std::int64_t n, float shift) {
  return HWY_DYNAMIC_DISPATCH(exp_sum_f32)(x, n, shift);
}
double exp_sum(const double* x, std::int64_t n, double shift) {
  return HWY_DYNAMIC_DISPATCH(exp_sum_f64)(x, n, shift);
}
void widen(const half* from, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_f16)(from, n, to);
}
void widen(const bfloat16* from, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(from, n, to);
}

}  // namespace chunks

}  // namespace tl::cpu
#endif
