// What the vectorised row ops of the CPU share, compiled once per instruction set (Highway's
// foreach_target): rows of any float dtype to and from f32, sums, and the exponential.
//
// A file that uses it is included again for every target; this header goes along.
#if defined(TL_OPS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TL_OPS_CPU_SIMD_INL_H_
#undef TL_OPS_CPU_SIMD_INL_H_
#else
#define TL_OPS_CPU_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "tl/base/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// What elements of T are computed in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// ---- between a row of T and Wide<T>

template <class T>
void widen_row(const T* from, std::int64_t step, std::int64_t n, Wide<T>* to) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, half>) {
    if (step == 1) {
      const hn::ScalableTag<float> df;
      using Raw = std::conditional_t<std::is_same_v<T, half>, hwy::float16_t, hwy::bfloat16_t>;
      const hn::Rebind<Raw, decltype(df)> dt;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
      for (; i + lanes <= n; i += lanes) {
        hn::StoreU(hn::PromoteTo(df, hn::LoadU(dt, reinterpret_cast<const Raw*>(from + i))), df,
                   to + i);
      }
    }
  }
  for (; i < n; ++i) to[i] = convert<Wide<T>>(from[i * step]);
}

template <class T>
void narrow_row(const Wide<T>* from, std::int64_t n, T* to, std::int64_t step) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (step == 1) {  // as float_bits.h rounds
      const hn::ScalableTag<float> df;
      const hn::RebindToUnsigned<decltype(df)> du;
      const hn::Rebind<std::uint16_t, decltype(df)> dt;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
      for (; i + lanes <= n; i += lanes) {
        const auto x = hn::LoadU(df, from + i);
        const auto bits = hn::BitCast(du, x);
        const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
        const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff))));
        const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
        const auto is_nan = hn::RebindMask(du, hn::IsNaN(x));
        const hn::RebindToSigned<decltype(du)> di;
        hn::StoreU(hn::DemoteTo(dt, hn::BitCast(di, hn::IfThenElse(is_nan, quiet, rounded))), dt,
                   reinterpret_cast<std::uint16_t*>(to + i));
      }
    }
  }
#if HWY_TARGET <= HWY_AVX2  // has the conversion in hardware
  if constexpr (std::is_same_v<T, half>) {
    if (step == 1) {
      const hn::ScalableTag<float> df;
      const hn::Rebind<hwy::float16_t, decltype(df)> dt;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
      for (; i + lanes <= n; i += lanes) {
        hn::StoreU(hn::DemoteTo(dt, hn::LoadU(df, from + i)), dt,
                   reinterpret_cast<hwy::float16_t*>(to + i));
      }
    }
  }
#endif
  for (; i < n; ++i) to[i * step] = convert<T>(from[i]);
}

// ---- exp, for any argument: within 1 ulp, NaN stays NaN
//
// x = k ln 2 + r with |r| <= ln 2 / 2; exp(r) by its series; then times 2^k in two steps, so that
// subnormal results come out too.

template <class D, class V>
HWY_INLINE V power_of_two(D d, V k) {  // k whole, in the range of normal exponents
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  const auto biased = hn::Add(k, hn::Set(d, static_cast<T>(sizeof(T) == 4 ? 127 : 1023)));
  return hn::BitCast(d, hn::ShiftLeft<kMantissa>(hn::ConvertTo(di, biased)));
}

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr T kEnd = kSingle ? T(150) : T(1000);  // beyond, results are 0 or infinity
  V y = hn::IfThenElse(hn::Lt(x, hn::Set(d, -kEnd)), hn::Set(d, -kEnd), x);
  y = hn::IfThenElse(hn::Gt(y, hn::Set(d, kEnd)), hn::Set(d, kEnd), y);
  const V k = hn::Round(hn::Mul(y, hn::Set(d, static_cast<T>(0x1.71547652b82fep+0))));
  constexpr T kHigh = kSingle ? T(0x1.62e400p-1) : T(0x1.62e42fefa39efp-1);
  constexpr T kLow = kSingle ? T(0x1.7f7d1cp-20) : T(0x1.abc9e3b39803fp-56);
  const V r = hn::NegMulAdd(k, hn::Set(d, kLow), hn::NegMulAdd(k, hn::Set(d, kHigh), y));
  constexpr double kSeries[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                                1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
                                1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
                                1.0 / 24.0,         1.0 / 6.0,         0.5};
  constexpr int kFirst = kSingle ? 6 : 0;
  V p = hn::Set(d, static_cast<T>(kSeries[kFirst]));
  for (int i = kFirst + 1; i < 12; ++i)
    p = hn::MulAdd(p, r, hn::Set(d, static_cast<T>(kSeries[i])));
  p = hn::Add(hn::MulAdd(hn::Mul(p, r), r, r), hn::Set(d, T(1)));
  const V half = hn::Round(hn::Mul(k, hn::Set(d, T(0.5))));
  const V result = hn::Mul(hn::Mul(p, power_of_two(d, half)), power_of_two(d, hn::Sub(k, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, result);  // the powers above mean nothing for NaN
}

// ---- the ends of rows: `count` elements, at least 1, into a vector, and out of one

template <class D>
HWY_INLINE hn::VFromD<D> load_some(D d, const hn::TFromD<D>* from, std::int64_t count,
                                   hn::TFromD<D> missing) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN hn::TFromD<D> room[hn::MaxLanes(d)];
  hn::Store(hn::Set(d, missing), d, room);
  std::copy_n(from, count, room);
  return hn::Load(d, room);
}
template <class D>
HWY_INLINE void store_some(D d, hn::VFromD<D> v, hn::TFromD<D>* to, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
  HWY_ALIGN hn::TFromD<D> room[hn::MaxLanes(d)];
  hn::Store(v, d, room);
  std::copy_n(room, count, to);
}

// ---- sums
//
// Lanes add up blocks of this many elements, and doubles the blocks: the error does not grow with
// the length of a row.

inline constexpr std::int64_t kSumBlock = 4096;

// The sum of x - shift, or of its squares.
template <bool kSquares, class T>
HWY_INLINE double sum_row(const T* x, std::int64_t n, T shift) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto away = hn::Set(d, shift);
  double total = 0;
  for (std::int64_t block = 0; block < n; block += kSumBlock) {
    const std::int64_t end = std::min(n, block + kSumBlock);
    auto a = hn::Zero(d), b = a, c = a, e = a;
    std::int64_t i = block;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      const auto p = hn::Sub(hn::LoadU(d, x + i), away);
      const auto q = hn::Sub(hn::LoadU(d, x + i + lanes), away);
      const auto r = hn::Sub(hn::LoadU(d, x + i + 2 * lanes), away);
      const auto s = hn::Sub(hn::LoadU(d, x + i + 3 * lanes), away);
      if constexpr (kSquares) {
        a = hn::MulAdd(p, p, a);
        b = hn::MulAdd(q, q, b);
        c = hn::MulAdd(r, r, c);
        e = hn::MulAdd(s, s, e);
      } else {
        a = hn::Add(a, p);
        b = hn::Add(b, q);
        c = hn::Add(c, r);
        e = hn::Add(e, s);
      }
    }
    for (; i < end; i += lanes) {
      const auto p = hn::Sub(load_some(d, x + i, end - i, shift), away);
      a = kSquares ? hn::MulAdd(p, p, a) : hn::Add(a, p);
    }
    const auto all = hn::Add(hn::Add(a, b), hn::Add(c, e));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
  }
  return total;
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard that opens again for every target
