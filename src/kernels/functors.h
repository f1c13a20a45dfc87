// What the elementwise ops do to their elements: one definition for every device.
//
// Floats of fewer bits are computed in float and rounded once by whoever stores them; C stands for
// the type computed in: float, double or an integer. Integers wrap. See elementary.h for why
// results are the same bits everywhere and for the rule about products that feed sums.
#pragma once

#include "elementary.h"
#include "tl/kernels/elementwise.h"

namespace tl::functors {

using elementary::abs;
using elementary::ceil;
using elementary::copysign;
using elementary::floor;
using elementary::fma;
using elementary::infinity;
using elementary::mul;
using elementary::sqrt;
using elementary::trunc;

template <class C>
inline constexpr bool kIsReal = float_bits::kIsFloat<C>;

// The unsigned type in which an integer's arithmetic wraps.
template <class C>
struct Wrapping {
  using Type = unsigned;
};
template <>
struct Wrapping<long long> {
  using Type = unsigned long long;
};
template <>
struct Wrapping<long> {
  using Type = unsigned long;
};
template <class C>
using WrappingOf = typename Wrapping<C>::Type;
template <class C>
inline constexpr bool kIsSigned = static_cast<C>(-1) < static_cast<C>(0);

template <class C>
TL_MATH_FN bool is_negative([[maybe_unused]] C x) {
  if constexpr (kIsSigned<C>) {
    return x < C{0};
  } else {
    return false;
  }
}

// ---- activations

// x / (1 + e^-t) for t = high + low, computed with the exponential z of -|t|: x / (1 + z), or
// x z / (1 + z). There the power of two of z comes last, since z alone may be subnormal and short
// of bits.
template <class C>
TL_MATH_FN C times_sigmoid(C x, C high, C low) {
  using F = elementary::Format<C>;
  constexpr C kStart = F::kExpStart - C(8);  // x may be some hundreds
  const bool below = high < C(0);
  C a = -abs(high);
  const bool end = a < kStart;
  a = end ? kStart : a;
  const C a_low = end ? C(0) : (below ? low : -low);
  const C rounded = fma(a, F::kLog2E, F::kRounder);
  const C k = rounded - F::kRounder;
  const C r = fma(-k, F::kLn2Low, fma(-k, F::kLn2, a));
  const C grown = elementary::small_expm1(r);
  const C m = fma(a_low, C(1) + grown, grown);
  const auto power = elementary::integer_of(rounded);
  // Below 2^-100 it is nothing beside 1. (Compared as a float, which every vector unit can.)
  constexpr C kLeast = F::kRounder - C(100);
  const C near = rounded < kLeast ? kLeast : rounded;
  const C z = (C(1) + m) * elementary::power_of_two<C>(elementary::integer_of(near));
  const C top = below ? fma(x, m, x) : x;
  const C y = elementary::scale(top / (C(1) + z), below ? power : 0);
  const bool none = end & below;
  return none ? copysign(C(0), x) : y;  // -infinity too
}

// x / (1 + 2^q) with q = -2u / ln(2) and u = sqrt(2 / pi) (x + 0.044715 x^3), which is the tanh
// form.
//
// The error of q becomes the relative error of the result, and q may be 150 (1080 for double). So
// q = b (w + w_low), a sum of two in the bracket, of which only the distance from the nearest
// integer is ever rounded. Both sides of 0 are one formula: the divisor is kept times 2^-kShift, so
// that it is finite where the result is as small as numbers get, and the result is multiplied by
// 2^-kShift last, where what is subnormal is rounded.
template <class C>
TL_MATH_FN C gelu(C x) {
  using F = elementary::Format<C>;
  constexpr bool kWide = sizeof(C) == 8;
  // -2 sqrt(2 / pi) / ln(2), cut so that differences from w are exact, and that times 0.044715
  constexpr C kOne = kWide ? C(-0x1.26aec21bce76p+1) : C(-0x1.26aecp+1);
  constexpr C kOneLow = kWide ? C(0x1.ad12d7a64bcebp-49) : C(-0x1.0de73ap-22);
  constexpr C kThree = kWide ? C(-0x1.a5a7cf7572a98p-4) : C(-0x1.a5a7dp-4);
  constexpr C kThreeLow = kWide ? C(0x1.b91c940e4cfcfp-58) : C(0x1.151aaep-29);
  constexpr C kStart = kWide ? C(-21.5625) : C(-10.875);  // from there down it is 0
  constexpr C kEnd = C(7.25);                             // from there up it is x
  constexpr int kShift = 64;
  // Adding it rounds to an integer, whose low bits are then the exponent field of 2^(q - kShift).
  constexpr C kRounder = F::kRounder + C(F::kBias - kShift);

  const C b = x > kStart ? x : kStart;
  const C square = mul(b, b);
  const C square_low = fma(b, b, -square);
  const C w = fma(kThree, square, kOne);
  const C w_lost = fma(kThree, square, kOne - w);
  const C w_low = w_lost + fma(kThree, square_low, fma(kThreeLow, square, kOneLow));
  const C rounded = fma(b, w, kRounder);
  const C part = fma(b, w_low, fma(b, w, kRounder - rounded));
  const C grown = elementary::small_expm1(mul(part, F::kLn2));
  const C power = elementary::of_bits<C>(elementary::to_bits(rounded) << F::kMantissa);
  const C divisor = power + fma(grown, power, elementary::power_of_two<C>(-kShift));
  const C inverse = elementary::reciprocal(divisor);
  const C first = mul(b, inverse);
  const C y = fma(first, fma(-divisor, inverse, C(1)), first);
  // NaN too: the choice above made it a number
  return x < kEnd ? y * elementary::power_of_two<C>(-kShift) : x;
}

template <class C>
TL_MATH_FN C softplus(C x) {
  const C z = elementary::exp(-abs(x));
  return (x < C(0) ? C(0) : x) + elementary::log1p(z);
}

// x tanh(log(1 + e^x)) = x e^x (e^x + 2) / (e^x (e^x + 2) + 2), where the power of two of the first
// e^x comes last, as above
template <class C>
TL_MATH_FN C mish(C x) {
  using F = elementary::Format<C>;
  constexpr C kStart = F::kExpStart - C(8);
  const bool end = x < kStart;
  C a = end ? kStart : x;
  a = a > C(40) ? C(40) : a;  // from there on it is x
  const C rounded = fma(a, F::kLog2E, F::kRounder);
  const C k = rounded - F::kRounder;
  const C grown = elementary::small_expm1(fma(-k, F::kLn2Low, fma(-k, F::kLn2, a)));
  const auto power = elementary::integer_of(rounded);
  const C e = elementary::scale(C(1) + grown, power);
  const C two_more = e + C(2);
  const C ratio = two_more / fma(e, two_more, C(2));
  const C y = elementary::scale(mul(fma(x, grown, x), ratio), power);
  const C far = x > C(40) ? x : y;
  return end ? copysign(C(0), x) : far;
}

template <class C>
TL_MATH_FN C between(C x, C low, C high) {
  const C y = x < low ? low : x;
  return y > high ? high : y;
}

// Half away from zero.
template <class C>
TL_MATH_FN C round(C x) {
  const C whole = trunc(x);
  return abs(x - whole) >= C(0.5) ? whole + copysign(C(1), x) : whole;
}

// ---- unary

// Few arguments need the long way (elementary.h): loops over many elements take it for those only.
template <UnaryOp kOp>
inline constexpr bool kHasMore = kOp == UnaryOp::Sin || kOp == UnaryOp::Cos || kOp == UnaryOp::Tan;

template <UnaryOp kOp>
struct MoreOf {};
template <>
struct MoreOf<UnaryOp::Sin> : elementary::Sin {};
template <>
struct MoreOf<UnaryOp::Cos> : elementary::Cos {};
template <>
struct MoreOf<UnaryOp::Tan> : elementary::Tan {};

template <UnaryOp kOp, class C>
TL_MATH_FN C unary_integer(C x) {
  using U = WrappingOf<C>;
  if constexpr (kOp == UnaryOp::Neg) {
    return static_cast<C>(U{0} - static_cast<U>(x));
  } else if constexpr (kOp == UnaryOp::Abs) {
    return is_negative(x) ? static_cast<C>(U{0} - static_cast<U>(x)) : x;
  } else if constexpr (kOp == UnaryOp::Sqr) {
    return static_cast<C>(static_cast<U>(x) * static_cast<U>(x));
  } else if constexpr (kOp == UnaryOp::Sign) {
    return is_negative(x) ? static_cast<C>(-1) : static_cast<C>(x != C{0} ? 1 : 0);
  } else if constexpr (kOp == UnaryOp::Relu) {
    return is_negative(x) ? C{0} : x;
  } else {
    static_assert(kOp == UnaryOp::BitwiseNot);
    return static_cast<C>(~static_cast<U>(x));
  }
}

// `p` is the parameter of the three ops that have one.
template <UnaryOp kOp, class C>
TL_MATH_FN C unary_real(C x, [[maybe_unused]] C p) {
  using enum UnaryOp;
  namespace e = elementary;
  if constexpr (kHasMore<kOp>) {
    return MoreOf<kOp>::needs_more(x) ? MoreOf<kOp>::thorough(x) : MoreOf<kOp>::quick(x);
  } else if constexpr (kOp == Neg) {
    return -x;
  } else if constexpr (kOp == Abs) {
    return abs(x);
  } else if constexpr (kOp == Sqr) {
    return x * x;
  } else if constexpr (kOp == Sign) {
    const C y = x > C(0) ? C(1) : x < C(0) ? C(-1) : C(0);
    return x == x ? y : x;
  } else if constexpr (kOp == Relu) {
    return x <= C(0) ? C(0) : x;
  } else if constexpr (kOp == Recip) {
    return C(1) / x;
  } else if constexpr (kOp == Exp) {
    return e::exp(x);
  } else if constexpr (kOp == Exp2) {
    return e::exp2(x);
  } else if constexpr (kOp == Expm1) {
    return e::expm1(x);
  } else if constexpr (kOp == Log) {
    return e::log(x);
  } else if constexpr (kOp == Log2) {
    return e::log2(x);
  } else if constexpr (kOp == Log10) {
    return e::log10(x);
  } else if constexpr (kOp == Log1p) {
    return e::log1p(x);
  } else if constexpr (kOp == Tanh) {
    return e::tanh(x);
  } else if constexpr (kOp == Sinh) {
    return e::sinh(x);
  } else if constexpr (kOp == Cosh) {
    return e::cosh(x);
  } else if constexpr (kOp == Asin) {
    return e::asin(x);
  } else if constexpr (kOp == Acos) {
    return e::acos(x);
  } else if constexpr (kOp == Atan) {
    return e::atan(x);
  } else if constexpr (kOp == Erf) {
    return e::erf(x);
  } else if constexpr (kOp == Erfc) {
    return e::erfc(x);
  } else if constexpr (kOp == Normcdf) {
    return e::normcdf(x);
  } else if constexpr (kOp == Sqrt) {
    return sqrt(x);
  } else if constexpr (kOp == Rsqrt) {
    return C(1) / sqrt(x);
  } else if constexpr (kOp == Floor) {
    return floor(x);
  } else if constexpr (kOp == Ceil) {
    return ceil(x);
  } else if constexpr (kOp == Trunc) {
    return trunc(x);
  } else if constexpr (kOp == Round) {
    return round(x);
  } else if constexpr (kOp == RoundEven) {
    return e::rint(x);
  } else if constexpr (kOp == Gelu) {
    return gelu(x);
  } else if constexpr (kOp == GeluErf) {
    return e::times_normcdf(x, x);
  } else if constexpr (kOp == Relu6) {
    return between(x, C(0), C(6));
  } else if constexpr (kOp == LeakyRelu) {
    return x > C(0) ? x : x * p;
  } else if constexpr (kOp == Silu) {
    return times_sigmoid(x, x, C(0));
  } else if constexpr (kOp == Mish) {
    return mish(x);
  } else if constexpr (kOp == Sigmoid) {
    return times_sigmoid(C(1), x, C(0));
  } else if constexpr (kOp == HardSigmoid) {
    return between(x + C(3), C(0), C(6)) / C(6);
  } else if constexpr (kOp == HardSwish) {
    const C gate = between(x + C(3), C(0), C(6)) / C(6);
    return gate == C(0) ? copysign(C(0), x) : x * gate;  // -infinity too
  } else if constexpr (kOp == Softplus) {
    return softplus(x);
  } else if constexpr (kOp == Selu) {
    constexpr C kScale = C(1.0507009873554804934193349852946);
    constexpr C kBelow = C(1.7580993408473768599402175208123);  // kScale times alpha
    return x > C(0) ? kScale * x : kBelow * e::expm1(x);
  } else if constexpr (kOp == Elu) {
    return x > C(0) ? x : p * e::expm1(x);
  } else {
    static_assert(kOp == Powf);
    return e::pow(x, p);
  }
}

template <UnaryOp kOp, class C>
TL_MATH_FN C unary(C x, [[maybe_unused]] C p) {
  if constexpr (kIsReal<C>) {
    return unary_real<kOp>(x, p);
  } else {
    return unary_integer<kOp>(x);
  }
}

template <UnaryOp kOp, class C>
TL_MATH_FN bool unary_flag(C x) {
  if constexpr (kOp == UnaryOp::IsNan) {
    return x != x;
  } else if constexpr (kOp == UnaryOp::IsInf) {
    return abs(x) == infinity<C>();
  } else {
    static_assert(kOp == UnaryOp::IsFinite);
    return abs(x) < infinity<C>();
  }
}

// ---- binary

// Integer division: x / 0 is 0, and so is x modulo 0; the most negative number over -1 wraps.
template <class C>
TL_MATH_FN C divide_integer(C a, C b) {
  if constexpr (kIsSigned<C>) {
    const bool opposite = b == C(-1);  // also keeps the overflow away
    const C safe = b == C{0} || opposite ? C{1} : b;
    const C q = static_cast<C>(a / safe);
    const C turned = unary_integer<UnaryOp::Neg>(a);
    return b == C{0} ? C{0} : opposite ? turned : q;
  } else {
    return b == C{0} ? C{0} : static_cast<C>(a / b);
  }
}
template <class C>
TL_MATH_FN C modulo_integer(C a, C b) {
  const C safe = b == C{0} || b == static_cast<C>(-1) ? C{1} : b;
  const C r = static_cast<C>(a % safe);
  if constexpr (kIsSigned<C>) {
    return r;
  } else {
    return b == static_cast<C>(-1) && a != b ? a : r;  // -1 is the largest number here
  }
}

template <class C>
TL_MATH_FN C pow_integer(C base, C exponent) {
  using U = WrappingOf<C>;
  if (is_negative(exponent)) {
    // 1 and -1 have a whole inverse; of the others the quotient 1 / x^n is 0.
    if (base == C{1}) return C{1};
    if (base == static_cast<C>(-1)) return (exponent & 1) != 0 ? base : C{1};
    return C{0};
  }
  U result = 1, square = static_cast<U>(base);
  GPU_ROLLED
  for (auto n = static_cast<U>(exponent); n != 0; n >>= 1) {
    if ((n & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<C>(result);
}

// The remainder with the sign of b, and the quotient that goes with it, from fmod(a, b).
template <class C>
TL_MATH_FN C floor_remainder(C b, C r) {
  return r != C(0) && (r < C(0)) != (b < C(0)) ? r + b : r == C(0) ? copysign(r, b) : r;
}
template <class C>
TL_MATH_FN C floor_quotient(C a, C b, C r) {
  const C below = r != C(0) && (r < C(0)) != (b < C(0)) ? C(1) : C(0);
  const C q = (a - r) / b - below;
  C whole = floor(q);
  whole = q - whole > C(0.5) ? whole + C(1) : whole;
  const C exact = a / b;
  whole = q == C(0) ? copysign(C(0), exact) : whole;
  return b == C(0) || !(abs(a) < infinity<C>()) ? exact : whole;
}

template <BinaryOp kOp>
inline constexpr bool kBinaryHasMore =
    kOp == BinaryOp::Rem || kOp == BinaryOp::Fmod || kOp == BinaryOp::FloorDiv;

template <BinaryOp kOp, class C>
TL_MATH_FN C finish_remainder(C a, C b, C r) {
  if constexpr (kOp == BinaryOp::Rem) {
    return floor_remainder(b, r);
  } else if constexpr (kOp == BinaryOp::FloorDiv) {
    return floor_quotient(a, b, r);
  } else {
    return r;
  }
}

template <BinaryOp kOp, class C>
TL_MATH_FN C binary_real(C a, C b) {
  using enum BinaryOp;
  if constexpr (kBinaryHasMore<kOp>) {
    using elementary::Fmod;
    const C r = Fmod::needs_more(a, b) ? Fmod::thorough(a, b) : Fmod::quick(a, b);
    return finish_remainder<kOp>(a, b, r);
  } else if constexpr (kOp == Add) {
    return a + b;
  } else if constexpr (kOp == Sub) {
    return a - b;
  } else if constexpr (kOp == Mul) {
    return a * b;
  } else if constexpr (kOp == Div) {
    return a / b;
  } else if constexpr (kOp == Maximum) {
    return a > b || a != a ? a : b;
  } else if constexpr (kOp == Minimum) {
    return a < b || a != a ? a : b;
  } else if constexpr (kOp == Pow) {
    return elementary::pow(a, b);
  } else {
    static_assert(kOp == Atan2);
    return elementary::atan2(a, b);
  }
}

template <BinaryOp kOp, class C>
TL_MATH_FN C binary_integer(C a, C b) {
  using enum BinaryOp;
  using U = WrappingOf<C>;
  const U x = static_cast<U>(a), y = static_cast<U>(b);
  if constexpr (kOp == Add) {
    return static_cast<C>(x + y);
  } else if constexpr (kOp == Sub) {
    return static_cast<C>(x - y);
  } else if constexpr (kOp == Mul) {
    return static_cast<C>(x * y);
  } else if constexpr (kOp == Div) {
    return divide_integer(a, b);
  } else if constexpr (kOp == Maximum) {
    return a > b ? a : b;
  } else if constexpr (kOp == Minimum) {
    return a < b ? a : b;
  } else if constexpr (kOp == Pow) {
    return pow_integer(a, b);
  } else if constexpr (kOp == Fmod) {
    return modulo_integer(a, b);
  } else if constexpr (kOp == Rem) {
    const C r = modulo_integer(a, b);
    const bool turn = b != C{0} && r != C{0} && is_negative(r) != is_negative(b);
    return turn ? static_cast<C>(r + b) : r;
  } else if constexpr (kOp == FloorDiv) {
    const C r = modulo_integer(a, b);
    const C q = divide_integer(a, b);
    const bool turn = b != C{0} && r != C{0} && is_negative(r) != is_negative(b);
    return turn ? static_cast<C>(q - C{1}) : q;
  } else if constexpr (kOp == BitwiseAnd) {
    return static_cast<C>(x & y);
  } else if constexpr (kOp == BitwiseOr) {
    return static_cast<C>(x | y);
  } else if constexpr (kOp == BitwiseXor) {
    return static_cast<C>(x ^ y);
  } else {
    // A distance outside the type (negative ones too) shifts everything out.
    constexpr U kBits = 8 * sizeof(C);
    const bool far = is_negative(b) || y >= kBits;
    if constexpr (kOp == ShiftLeft) {
      return far ? C{0} : static_cast<C>(x << (y & (kBits - 1)));
    } else {
      static_assert(kOp == ShiftRight);
      return static_cast<C>(a >> (far ? kBits - 1 : y) >> (far && !kIsSigned<C> ? 1 : 0));
    }
  }
}

template <BinaryOp kOp, class C>
TL_MATH_FN C binary(C a, C b) {
  if constexpr (kIsReal<C>) {
    return binary_real<kOp>(a, b);
  } else {
    return binary_integer<kOp>(a, b);
  }
}

template <BinaryOp kOp, class C>
TL_MATH_FN bool binary_flag(C a, C b) {
  using enum BinaryOp;
  if constexpr (kOp == Eq) {
    return a == b;
  } else if constexpr (kOp == Ne) {
    return a != b;
  } else if constexpr (kOp == Lt) {
    return a < b;
  } else if constexpr (kOp == Le) {
    return a <= b;
  } else {
    const bool x = a != C(0), y = b != C(0);
    if constexpr (kOp == LogicalAnd) {
      return x & y;
    } else if constexpr (kOp == LogicalOr) {
      return x | y;
    } else {
      static_assert(kOp == LogicalXor);
      return x != y;
    }
  }
}

// ---- with two numbers

// x m + a, rounded once
template <class C>
TL_MATH_FN C affine(C x, C m, C a) {
  if constexpr (kIsReal<C>) {
    return fma(x, m, a);
  } else {
    return binary_integer<BinaryOp::Add>(binary_integer<BinaryOp::Mul>(x, m), a);
  }
}
// max(x, low), then min with high: high where low is above it. NaN stays, and a NaN bound gives
// NaN.
template <class C>
TL_MATH_FN C clamp(C x, C low, C high) {
  return binary<BinaryOp::Minimum>(binary<BinaryOp::Maximum>(x, low), high);
}

}  // namespace tl::functors
