// What the row kernels compute in, and exponential and logarithm for doubles, which the AMD back
// end does not have. Included by kernels after gpu.h.
#pragma once

// The type that values of T are computed and accumulated in.
template <class T>
struct AccumulatorOf {
  using Type = float;
};
template <>
struct AccumulatorOf<double> {
  using Type = double;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::Type;

template <class T>
GPU_INLINE Accumulator<T> widen(T x) {
  if constexpr (sizeof(T) == 8) {
    return x;
  } else {
    return to_float(x);
  }
}
template <class T>
GPU_INLINE T narrow(Accumulator<T> x) {
  if constexpr (sizeof(T) == 8) {
    return x;
  } else {
    return from_float<T>(x);
  }
}

namespace math {

template <class A>
GPU_INLINE A infinity() {
  return static_cast<A>(kInfinity);
}

// 2^n for n in [-1022, 1023].
GPU_INLINE double power_of_two(int n) {
  return __builtin_bit_cast(double, static_cast<Bits64>(n + 1023) << 52);
}

// x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its series, whose first term left out is below
// 2^-57; then times 2^n in two steps, so that subnormal results come out too. Within 1 ulp.
GPU_INLINE double exp(double x) {
  if (x != x) return x;
  if (x > 710.0) return infinity<double>();
  if (x < -746.0) return 0.0;
  const double n = rint(x * 0x1.71547652b82fep+0);
  const double r = fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, x));
  constexpr double kSeries[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                                1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
                                1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
                                1.0 / 24.0,         1.0 / 6.0,         0.5};
  double p = kSeries[0];
  for (int i = 1; i < 12; ++i) p = fma(p, r, kSeries[i]);
  p = fma(p * r, r, r) + 1.0;
  const int whole = static_cast<int>(n), half = whole / 2;
  return p * power_of_two(half) * power_of_two(whole - half);
}

// x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f), log(1 + f) =
// f - s (f - R), where R = 2 (s^2 / 3 + s^4 / 5 + ...). Within 1 ulp.
GPU_INLINE double log(double x) {
  if (x != x || x < 0.0) return infinity<double>() - infinity<double>();
  if (x == 0.0) return -infinity<double>();
  if (x == infinity<double>()) return x;
  int n = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    n = -54;
  }
  Bits64 b = __builtin_bit_cast(Bits64, x);
  b += 0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull;
  n += static_cast<int>(b >> 52) - 1023;
  const double m = __builtin_bit_cast(double, (b & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const double f = m - 1.0, s = f / (2.0 + f), z = s * s;
  double series = 0.0;
  for (int k = 23; k >= 3; k -= 2) series = fma(series, z, 2.0 / k);
  const double high = n * 0x1.62e42fee00000p-1, low = n * 0x1.a39ef35793c76p-33;
  return high - ((s * (f - z * series) - low) - f);
}

// tanh for |x| up to anything; the quotient loses digits near 0, where the series takes over.
template <class A>
GPU_INLINE A tanh(A x) {
  const A size = abs(x);
  if (size < A(0.0625)) {
    const A z = x * x;
    A p = A(21844.0 / 6081075.0);
    p = fma(p, z, A(-1382.0 / 155925.0));
    p = fma(p, z, A(62.0 / 2835.0));
    p = fma(p, z, A(-17.0 / 315.0));
    p = fma(p, z, A(2.0 / 15.0));
    p = fma(p, z, A(-1.0 / 3.0));
    return fma(p * z, x, x);
  }
  const A e = exp(A(-2) * size);
  return copysign((A(1) - e) / (A(1) + e), x);
}

}  // namespace math

// ---- softmax sums that can be built in pieces

// The largest of some numbers, and the sum of exp(x - most) over them. Where all are -infinity the
// sum is 0, so that a piece without anything does not spoil the others.
template <class A>
struct SoftSum {
  A most = -math::infinity<A>();
  A sum = A(0);

  GPU_INLINE static A reference(A most) { return most == -math::infinity<A>() ? A(0) : most; }
  template <int kCount>
  GPU_INLINE void add(const A (&values)[kCount]) {
    A next = most;
    GPU_UNROLLED
    for (int k = 0; k < kCount; ++k) next = math::max(next, values[k]);
    const A shift = reference(next);
    sum *= math::exp(most - shift);
    GPU_UNROLLED
    for (int k = 0; k < kCount; ++k) sum += math::exp(values[k] - shift);
    most = next;
  }
  // This piece's sum as a part of one whose largest is `all`.
  GPU_INLINE A part_of(A all) const { return sum * math::exp(most - reference(all)); }
};
