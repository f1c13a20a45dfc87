// Elementary functions, written once for every device: float and double results are the same bits
// on the CPU, on either vendor's GPUs and on the simulated one.
//
// That holds because nothing here is left to a library or a compiler: no libm, no device library,
// only operations that IEEE 754 defines to the bit (sums, products, division, square root, fma and
// integer work). A compiler may fuse a product and a sum unless told not to, so a product that
// feeds a sum is always written as fma() or mul(), never as `*` (but for powers of two, which round
// nothing). Errors are below 2 units in the last place over the whole range, subnormals and huge
// arguments of sin and cos included; the tests measure them. A NaN stays a NaN, with a payload that
// is not promised.
//
// Most functions have no branches (both sides are computed and one selected), so that host
// compilers turn loops over them into vector code. Where the argument of few elements needs much
// longer work (a huge angle), the function has a part for common arguments and a part for the
// others: needs_more(x), quick(x), thorough(x).
//
// Includes nothing of a system and is embedded as source for the run-time compilers. In kernels
// gpu.h comes first and brings TL_MATH_FN, TL_MATH_TABLE and the primitives; a host compiler gets
// both here.
#pragma once

#include "gpu_args.h"  // multiply_high

#ifndef TL_MATH_FN
#define TL_MATH_FN inline __attribute__((always_inline))
#define TL_MATH_TABLE inline constexpr

namespace tl::primitive {

TL_MATH_FN float mul(float a, float b) { return a * b; }
TL_MATH_FN double mul(double a, double b) { return a * b; }
TL_MATH_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TL_MATH_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
// 1 / x rounded to the nearest, for |x| from 2^-125 to 2^125
TL_MATH_FN float reciprocal(float x) { return 1.0f / x; }
TL_MATH_FN double reciprocal(double x) { return 1.0 / x; }
TL_MATH_FN float sqrt(float x) { return __builtin_sqrtf(x); }
TL_MATH_FN double sqrt(double x) { return __builtin_sqrt(x); }
TL_MATH_FN float abs(float x) { return __builtin_fabsf(x); }
TL_MATH_FN double abs(double x) { return __builtin_fabs(x); }
TL_MATH_FN float floor(float x) { return __builtin_floorf(x); }
TL_MATH_FN double floor(double x) { return __builtin_floor(x); }
TL_MATH_FN float ceil(float x) { return __builtin_ceilf(x); }
TL_MATH_FN double ceil(double x) { return __builtin_ceil(x); }
TL_MATH_FN float trunc(float x) { return __builtin_truncf(x); }
TL_MATH_FN double trunc(double x) { return __builtin_trunc(x); }
TL_MATH_FN float rint(float x) { return __builtin_rintf(x); }  // ties to even
TL_MATH_FN double rint(double x) { return __builtin_rint(x); }
TL_MATH_FN float copysign(float x, float sign) { return __builtin_copysignf(x, sign); }
TL_MATH_FN double copysign(double x, double sign) { return __builtin_copysign(x, sign); }

}  // namespace tl::primitive
#endif

namespace tl::elementary {

using float_bits::Bits32;
using float_bits::Bits64;
using primitive::abs;
using primitive::ceil;
using primitive::copysign;
using primitive::floor;
using primitive::fma;
using primitive::mul;
using primitive::reciprocal;
using primitive::rint;
using primitive::sqrt;
using primitive::trunc;

// ---- formats

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = Bits32;
  using Int = int;
  static constexpr int kMantissa = 23;
  static constexpr Int kBias = 127;
  static constexpr Bits kOne = 0x3f800000u;
  static constexpr Bits kSqrtHalf = 0x3f3504f3u;
  static constexpr Bits kInfinity = 0x7f800000u;
  static constexpr Bits kNaN = 0x7fc00000u;
  static constexpr float kRounder = 0x1.8p23f;  // adding it rounds to an integer
  static constexpr float kSmallestNormal = 0x1p-126f;
  static constexpr float kLog2E = 0x1.715476p+0f, kLog2ELow = 0x1.4ae0cp-26f;
  static constexpr float kLog10E = 0x1.bcb7bp-2f, kLog10ELow = 0x1.526e5p-26f;
  static constexpr float kLn2 = 0x1.62e43p-1f, kLn2Low = -0x1.05c61p-29f;
  static constexpr float kLog10Of2 = 0x1.344p-2f, kLog10Of2Low = 0x1.3509f8p-18f;
  static constexpr float kTwoOverPi = 0x1.45f306p-1f;
  static constexpr float kHalfPi = 0x1.921fb6p+0f, kHalfPiMiddle = -0x1.777a5cp-25f;
  static constexpr float kHalfPiLow = -0x1.ee59dap-50f;
  static constexpr float kExpStart = -104.0f, kExpEnd = 89.0f;  // beyond: 0, infinity
  static constexpr float kExp2Start = -151.0f, kExp2End = 129.0f;
  static constexpr float kExpm1Start = -18.0f;    // below: -1
  static constexpr float kQuickAngle = 65536.0f;  // angles up to here are reduced with kHalfPi
  static constexpr float kErfcCenter = 2.0f, kErfcEnd = 10.25f;  // erfc is 0 from the end on
  static constexpr float kErfcFirst = 0x1.46e80ep+0f;
};
template <>
struct Format<double> {
  using Bits = Bits64;
  using Int = long long;
  static constexpr int kMantissa = 52;
  static constexpr Int kBias = 1023;
  static constexpr Bits kOne = 0x3ff0000000000000ull;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e667f3bcdull;
  static constexpr Bits kInfinity = 0x7ff0000000000000ull;
  static constexpr Bits kNaN = 0x7ff8000000000000ull;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kSmallestNormal = 0x1p-1022;
  static constexpr double kLog2E = 0x1.71547652b82fep+0, kLog2ELow = 0x1.777d0ffda0d24p-56;
  static constexpr double kLog10E = 0x1.bcb7b1526e50ep-2, kLog10ELow = 0x1.95355baaafad3p-57;
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
  static constexpr double kLog10Of2 = 0x1.34413509f7p-2, kLog10Of2Low = 0x1.3fde623e2566bp-43;
  static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiMiddle = 0x1.1a62633145c07p-54;
  static constexpr double kHalfPiLow = -0x1.f1976b7ed8fbcp-110;
  static constexpr double kExpStart = -746.0, kExpEnd = 710.0;
  static constexpr double kExp2Start = -1076.0, kExp2End = 1025.0;
  static constexpr double kExpm1Start = -38.0;
  static constexpr double kQuickAngle = 1073741824.0;
  static constexpr double kErfcCenter = 4.0, kErfcEnd = 27.3;
  static constexpr double kErfcFirst = 0x1.3ba5916e9fd7fp+0;
};

template <class T>
using BitsOf = typename Format<T>::Bits;
template <class T>
using IntOf = typename Format<T>::Int;

template <class T>
TL_MATH_FN BitsOf<T> to_bits(T x) {
  return __builtin_bit_cast(BitsOf<T>, x);
}
template <class T>
TL_MATH_FN T of_bits(BitsOf<T> b) {
  return __builtin_bit_cast(T, b);
}
template <class T>
TL_MATH_FN T infinity() {
  return of_bits<T>(Format<T>::kInfinity);
}
template <class T>
TL_MATH_FN T not_a_number() {
  return of_bits<T>(Format<T>::kNaN);
}
// 2^k for k in the range of normal numbers
template <class T>
TL_MATH_FN T power_of_two(IntOf<T> k) {
  using Bits = BitsOf<T>;  // wraps: for NaN any k may come, and its result is not used
  return of_bits<T>((static_cast<Bits>(k) + static_cast<Bits>(Format<T>::kBias))
                    << Format<T>::kMantissa);
}
// x 2^k for results that may be subnormal or overflow: in two steps, of which one rounds. k is at
// least -2048. (A logical shift, since not every vector unit has the other one for 64 bits.)
template <class T>
TL_MATH_FN T scale(T x, IntOf<T> k) {
  using Int = IntOf<T>;
  using Bits = BitsOf<T>;
  const Bits half = ((static_cast<Bits>(k) + Bits{2048}) >> 1) - Bits{1024};
  return x * power_of_two<T>(static_cast<Int>(half)) *
         power_of_two<T>(static_cast<Int>(static_cast<Bits>(k) - half));
}
// The nearest integer of a number that is already one, as left by an addition of kRounder
template <class T>
TL_MATH_FN IntOf<T> integer_of(T rounded) {
  return static_cast<IntOf<T>>(to_bits(rounded) - to_bits(Format<T>::kRounder));
}

// c0 + x (c1 + x (c2 + ...))
template <class T>
TL_MATH_FN T poly(T /*x*/, T c0) {
  return c0;
}
template <class T, class... Rest>
TL_MATH_FN T poly(T x, T c0, Rest... rest) {
  return fma(x, poly(x, rest...), c0);
}

// ---- polynomials (fitted by tools/fit_elementary.py)

// e^r = 1 + r + r^2 exp_tail(r) for |r| <= ln(2) / 2
TL_MATH_FN float exp_tail(float r) {
  return poly(r, 0x1p-1f, 0x1.5554dcp-3f, 0x1.555518p-5f, 0x1.120cbap-7f, 0x1.6d1254p-10f);
}
TL_MATH_FN double exp_tail(double r) {
  return poly(r, 0x1.0000000000001p-1, 0x1.5555555555556p-3, 0x1.5555555553ce3p-5,
              0x1.111111111098cp-7, 0x1.6c16c178bd6bcp-10, 0x1.a01a01a7e29cdp-13,
              0x1.a019b84d17a8p-16, 0x1.71de0d383914ap-19, 0x1.28926932adb78p-22,
              0x1.af39c20098071p-26);
}
// log(1 + f) = 2s + s z log_tail(z) for s = f / (2 + f), z = s^2 and 1 + f in [sqrt(1/2), sqrt(2)]
TL_MATH_FN float log_tail(float z) {
  return poly(z, 0x1.555556p-1f, 0x1.9999ecp-2f, 0x1.245c38p-2f, 0x1.ddd172p-3f);
}
TL_MATH_FN double log_tail(double z) {
  return poly(z, 0x1.5555555555558p-1, 0x1.99999999952b2p-2, 0x1.2492492df6947p-2,
              0x1.c71c62debf86bp-3, 0x1.7462b69705382p-3, 0x1.39fe208c33457p-3,
              0x1.2b5b5fb2eac92p-3);
}
// the same as 2s (1 + z / 3 + z^2 log_tail2(z))
TL_MATH_FN double log_tail2(double z) {
  return poly(z, 0x1.999999999999ap-3, 0x1.2492492492491p-3, 0x1.c71c71c71cfdep-4,
              0x1.745d174512f5ep-4, 0x1.3b13b1bcae4fap-4, 0x1.1110df9bb9145p-4,
              0x1.e1f80050fe02dp-5, 0x1.ac4a0689e4f11p-5, 0x1.b8d8d83f51283p-5);
}
// sin r = r + r z sin_tail(z), cos r = 1 - z / 2 + z^2 cos_tail(z), tan r = r + r z tan_tail(z) for
// z = r^2, |r| <= pi / 4
TL_MATH_FN float sin_tail(float z) {
  return poly(z, -0x1.555556p-3f, 0x1.11110ep-7f, -0x1.a01362p-13f, 0x1.6da7a4p-19f);
}
TL_MATH_FN double sin_tail(double z) {
  return poly(z, -0x1.5555555555554p-3, 0x1.1111111110b1ap-7, -0x1.a01a019e5ff52p-13,
              0x1.71de3768b91acp-19, -0x1.ae5fdbc5929d5p-26, 0x1.5dfa4399a5f77p-33);
}
TL_MATH_FN float cos_tail(float z) {
  return poly(z, 0x1.555554p-5f, -0x1.6c12a8p-10f, 0x1.9bc182p-16f);
}
TL_MATH_FN double cos_tail(double z) {
  return poly(z, 0x1.5555555555555p-5, -0x1.6c16c16c1691ap-10, 0x1.a01a019f3cd0fp-16,
              -0x1.27e4fa00ec0bbp-22, 0x1.1eeb5144ec937p-29, -0x1.906cc8e9926ecp-37);
}
TL_MATH_FN float tan_tail(float z) {
  return poly(z, 0x1.555556p-2f, 0x1.111072p-3f, 0x1.ba5a2p-5f, 0x1.61c86p-6f, 0x1.499de8p-7f,
              0x1.0e8c36p-10f, 0x1.01c2ecp-8f);
}
TL_MATH_FN double tan_tail(double z) {
  return poly(z, 0x1.5555555555555p-2, 0x1.1111111111068p-3, 0x1.ba1ba1ba2f289p-5,
              0x1.664f487ba8027p-6, 0x1.226e36b758f8bp-7, 0x1.d6d382468714p-9,
              0x1.7da936fd9b4c9p-10, 0x1.350ccb7182aa3p-11, 0x1.fad6867f05d2ap-13,
              0x1.73e8c2f6a5b2fp-14, 0x1.e8bbd34c6d179p-15, -0x1.ee8bb9fce89e7p-17,
              0x1.4ebbcde3f7181p-15, -0x1.51a7bd56e08e2p-16, 0x1.2b20b3d44850fp-17);
}
// atan x = x + x z atan_tail(z) for z = x^2 <= 1
TL_MATH_FN float atan_tail(float z) {
  return poly(z, -0x1.555554p-2f, 0x1.99983cp-3f, -0x1.246cd2p-3f, 0x1.c3f168p-4f, -0x1.6295f8p-4f,
              0x1.0001c6p-4f, -0x1.25dc12p-5f, 0x1.ba9f66p-7f, -0x1.38de56p-9f);
}
TL_MATH_FN double atan_tail(double z) {
  return poly(z, -0x1.5555555555555p-2, 0x1.99999999998f9p-3, -0x1.249249248c7dap-3,
              0x1.c71c71c472843p-4, -0x1.745d16f26d0a3p-4, 0x1.3b13aaf4aba4ap-4,
              -0x1.1110bfea8ed5ep-4, 0x1.e1dc0d7679adcp-5, -0x1.af00bd568a3d2p-5,
              0x1.854a7b99af61dp-5, -0x1.60ebd1489b946p-5, 0x1.3d3f26d5ea7ffp-5,
              -0x1.147b2825d82f6p-5, 0x1.c3ac54a572735p-6, -0x1.4b974a27ac39fp-6,
              0x1.a1fe88baf72d4p-7, -0x1.aef1a8e977bf8p-8, 0x1.57cc888719aap-9,
              -0x1.8a2f3ae537bb1p-11, 0x1.1f0adb240a1fbp-13, -0x1.8d087295ab9f4p-17);
}
// asin x = x + x z asin_tail(z) for z = x^2 <= 1 / 4
TL_MATH_FN float asin_tail(float z) {
  return poly(z, 0x1.55555ep-3f, 0x1.33272cp-4f, 0x1.70a7dp-5f, 0x1.b3018ep-6f, 0x1.3810d4p-5f);
}
TL_MATH_FN double asin_tail(double z) {
  return poly(z, 0x1.5555555555556p-3, 0x1.3333333332ec4p-4, 0x1.6db6db6e3292ep-5,
              0x1.f1c71c1d4aa0dp-6, 0x1.6e8bb1d89492bp-6, 0x1.1c4d343fa57f6p-6,
              0x1.c9cf3759fd8ffp-7, 0x1.78246f32d075cp-7, 0x1.524ea8b3aad31p-7,
              0x1.653a8f8cfd43dp-8, 0x1.1d661531b222ep-6, -0x1.e7a24f548c99dp-7,
              0x1.d78189767524ep-6);
}
// tanh x = x + x z tanh_tail(z) for |x| <= 0.55, sinh x = x + x z sinh_tail(z) for |x| <= 1
TL_MATH_FN float tanh_tail(float z) {
  return poly(z, -0x1.555554p-2f, 0x1.110feap-3f, -0x1.b9a028p-5f, 0x1.5d20bp-6f, -0x1.b12aecp-8f);
}
TL_MATH_FN double tanh_tail(double z) {
  return poly(z, -0x1.5555555555555p-2, 0x1.1111111111109p-3, -0x1.ba1ba1ba1a723p-5,
              0x1.664f48822e32fp-6, -0x1.226e3539a2567p-7, 0x1.d6d3c5fa306d8p-9,
              -0x1.7da25d2dc94ddp-10, 0x1.3547b99663ef6p-11, -0x1.f41cac23a5451p-13,
              0x1.8c91aa027e00fp-14, -0x1.1ad8e00df097cp-15, 0x1.08286da59d447p-17);
}
TL_MATH_FN float sinh_tail(float z) {
  return poly(z, 0x1.555556p-3f, 0x1.11111ep-7f, 0x1.a009p-13f, 0x1.78a70ep-19f);
}
TL_MATH_FN double sinh_tail(double z) {
  return poly(z, 0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a01a001p-13,
              0x1.71de3a556f96cp-19, 0x1.ae6456792a77fp-26, 0x1.612467ccb226p-33,
              0x1.ae777c36fd5b6p-41, 0x1.99f0806c2628dp-49);
}
// erf x = x + x erf_tail(z) for |x| <= 1
TL_MATH_FN float erf_tail(float z) {
  return poly(z, 0x1.06eba8p-3f, -0x1.812746p-2f, 0x1.ce2f08p-4f, -0x1.b829c8p-6f, 0x1.562a6p-8f,
              -0x1.bccf66p-11f, 0x1.d8875p-14f, -0x1.445f48p-17f);
}
TL_MATH_FN double erf_tail(double z) {
  return poly(z, 0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdep-4,
              -0x1.b82ce312889bap-6, 0x1.565bcd0e6502dp-8, -0x1.c02db3feeb579p-11,
              0x1.f9a326c233146p-14, -0x1.f4d2561aeafd4p-17, 0x1.b9e6509b9867dp-20,
              -0x1.5f6d925a0bc7ap-23, 0x1.fc4356498c2d9p-27, -0x1.4e607b41a6416p-30,
              0x1.7f072188e194dp-34, -0x1.29b9f1b3df556p-38);
}
// e^(x^2) erfc(x) (1 + 2x) = kErfcFirst + t erfc_tail(t) for t = (x - c) / (x + c), x >= 0; c is 2
// for float, 4 for double
TL_MATH_FN float erfc_tail(float t) {
  return poly(t, -0x1.7bf5eap-4f, -0x1.5407ccp-3f, 0x1.4ff9eep-3f, -0x1.bc2818p-5f, -0x1.0720fp-7f,
              0x1.1d7a8cp-7f, 0x1.48007cp-10f, -0x1.766b3cp-10f, -0x1.a55ee6p-12f, 0x1.71181ep-13f,
              0x1.5beabap-14f);
}
TL_MATH_FN double erfc_tail(double t) {
  return poly(
      t, -0x1.1df1ad154a28fp-3, 0x1.f7f5df66fd6b6p-7, 0x1.16ecefcfa5426p-4, -0x1.9ddb23c3e88dep-4,
      0x1.7fee004e10f4ap-4, -0x1.0fb06dfe558bap-4, 0x1.3079edf6b1df5p-5, -0x1.09623882a098ap-6,
      0x1.49c67278b36a5p-8, -0x1.8d4a9c319f70bp-11, -0x1.a1df1c86a1ba7p-13, 0x1.3be0682c5341dp-13,
      -0x1.995a2469c2d03p-16, -0x1.788cbb5dfd554p-17, 0x1.7f2f095432ac6p-18, 0x1.3b80118fd6399p-22,
      -0x1.bb3da464a49f4p-21, 0x1.4070257da6effp-24, 0x1.d9122092779f2p-24, -0x1.334c684f30cadp-26,
      -0x1.e46ff4f7d53f8p-27, 0x1.f52bd4db827bcp-30, 0x1.57766c474bb72p-30);
}

// ---- exponentials

// e^r - 1 for |r| <= ln(2) / 2
template <class T>
TL_MATH_FN T small_expm1(T r) {
  return fma(mul(r, r), exp_tail(r), r);
}

template <class T>
TL_MATH_FN T exp(T x) {
  using F = Format<T>;
  T y = x < F::kExpStart ? F::kExpStart : x;
  y = y > F::kExpEnd ? F::kExpEnd : y;
  const T rounded = fma(y, F::kLog2E, F::kRounder);
  const T k = rounded - F::kRounder;
  const T high = fma(-k, F::kLn2, y);
  const T r = fma(-k, F::kLn2Low, high);
  return scale(T(1) + small_expm1(r), integer_of(rounded));
}

template <class T>
TL_MATH_FN T exp2(T x) {
  using F = Format<T>;
  T y = x < F::kExp2Start ? F::kExp2Start : x;
  y = y > F::kExp2End ? F::kExp2End : y;
  const T rounded = y + F::kRounder;
  const T part = y - (rounded - F::kRounder);  // exact
  const T r = mul(part, F::kLn2);
  return scale(T(1) + small_expm1(r), integer_of(rounded));
}

template <class T>
TL_MATH_FN T expm1(T x) {
  using F = Format<T>;
  T y = x < F::kExpm1Start ? F::kExpm1Start : x;
  y = y > F::kExpEnd ? F::kExpEnd : y;
  const T rounded = fma(y, F::kLog2E, F::kRounder);
  const T k = rounded - F::kRounder;
  const T high = fma(-k, F::kLn2, y);
  const T r = fma(-k, F::kLn2Low, high);
  const T low = fma(-k, F::kLn2Low, high - r);  // what the line above rounded away
  // With s = 2^(k - 1), which is finite for every k here: 2 (s (e^r - 1) + (s - 1/2))
  const T s = power_of_two<T>(integer_of(rounded) - 1);
  const T tail = fma(mul(r, r), exp_tail(r), fma(r, low, low));
  const T big = s - T(0.5);
  const T sum = fma(s, r, big);
  const T lost = fma(s, r, big - sum);  // exact where |big| >= |s r|, or big is 0
  const T result = T(2) * (sum + fma(s, tail, lost));
  // Where x^2 / 2 is below half of the last place; subnormals would lose a bit above.
  return abs(y) < power_of_two<T>(-F::kMantissa - 2) ? x : result;
}

// ---- logarithms

// log(x) = e ln(2) + f + t for positive x, subnormals included; |t| is well below |f|.
template <class T>
struct LogParts {
  T e, f, t;
};

template <class T>
TL_MATH_FN T log_tail_of(T f) {
  const T s = f / (T(2) + f);
  const T z = s * s;
  const T half_square = mul(T(0.5) * f, f);
  return fma(s, fma(z, log_tail(z), half_square), -half_square);
}

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2))
template <class T>
TL_MATH_FN LogParts<T> split_power(T x) {
  using F = Format<T>;
  using Bits = BitsOf<T>;
  const bool small = x < F::kSmallestNormal;
  constexpr int kLift = F::kMantissa + 2;
  const T normal = small ? x * power_of_two<T>(kLift) : x;
  const Bits shifted = to_bits(normal) + (F::kOne - F::kSqrtHalf);
  const auto e = static_cast<IntOf<T>>(shifted >> F::kMantissa) - F::kBias - (small ? kLift : 0);
  const Bits fraction = (shifted & ((Bits{1} << F::kMantissa) - 1)) + F::kSqrtHalf;
  // The sum and difference with kRounder turn a small integer into a float without a conversion
  // (not every vector unit converts 64-bit integers).
  const T exponent = of_bits<T>(to_bits(F::kRounder) + static_cast<Bits>(e)) - F::kRounder;
  return {exponent, of_bits<T>(fraction) - T(1), T(0)};
}

template <class T>
TL_MATH_FN LogParts<T> log_parts(T x) {
  LogParts<T> parts = split_power(x);
  parts.t = log_tail_of(parts.f);
  return parts;
}

// `result` for positive finite x, else what every logarithm is there.
template <class T>
TL_MATH_FN T log_or_special(T x, T result) {
  T y = x < infinity<T>() ? result : x;  // infinity and NaN
  y = x == T(0) ? -infinity<T>() : y;
  return x < T(0) ? not_a_number<T>() : y;
}

template <class T>
TL_MATH_FN T log(T x) {
  using F = Format<T>;
  const LogParts<T> p = log_parts(x);
  return log_or_special(x, fma(p.e, F::kLn2, p.f + fma(p.e, F::kLn2Low, p.t)));
}

template <class T>
TL_MATH_FN T log2(T x) {
  using F = Format<T>;
  const LogParts<T> p = log_parts(x);
  const T main = mul(p.f, F::kLog2E);
  const T low = fma(p.t, F::kLog2E, fma(p.f, F::kLog2ELow, fma(p.f, F::kLog2E, -main)));
  const T sum = p.e + main;
  return log_or_special(x, sum + (((p.e - sum) + main) + low));
}

template <class T>
TL_MATH_FN T log10(T x) {
  using F = Format<T>;
  const LogParts<T> p = log_parts(x);
  const T main = mul(p.f, F::kLog10E);
  const T low = fma(p.t, F::kLog10E, fma(p.f, F::kLog10ELow, fma(p.f, F::kLog10E, -main)));
  const T whole = mul(p.e, F::kLog10Of2);  // exact: kLog10Of2 is short
  const T sum = whole + main;
  return log_or_special(x, sum + (((whole - sum) + main) + fma(p.e, F::kLog10Of2Low, low)));
}

template <class T>
TL_MATH_FN T log1p(T x) {
  using F = Format<T>;
  const T u = T(1) + x;
  LogParts<T> p = split_power(u);
  // Near 0 the sum is not needed: 1 + x is in the range already.
  const bool near = x > T(-0.2928) && x < T(0.4142);
  p.e = near ? T(0) : p.e;
  p.f = near ? x : p.f;
  // What 1 + x lost; matters as long as u is not huge.
  const T lost = x < T(1) ? x - (u - T(1)) : T(1) - (u - x);
  const T correction = near || !(u < infinity<T>()) ? T(0) : lost / u;
  p.t = log_tail_of(p.f) + correction;
  const T y = fma(p.e, F::kLn2, p.f + fma(p.e, F::kLn2Low, p.t));
  return x == T(0) ? x : log_or_special(u, y);
}

// ---- angles

// x = quadrant pi / 2 + r + low
template <class T>
struct Angle {
  T r, low;
  IntOf<T> quadrant;
};

template <class T>
TL_MATH_FN bool is_huge_angle(T x) {
  return !(abs(x) < Format<T>::kQuickAngle);
}

// Cody and Waite, with fma. The first step is exact: x and the product are multiples of the last
// place of kHalfPi, and the difference is below 1.
template <class T>
TL_MATH_FN Angle<T> reduce_angle(T x) {
  using F = Format<T>;
  const T rounded = fma(x, F::kTwoOverPi, F::kRounder);
  const T n = rounded - F::kRounder;
  const T first = fma(-n, F::kHalfPi, x);
  // r + lost is first - product exactly, whichever of the two is larger.
  const T product = mul(n, F::kHalfPiMiddle);
  const T product_low = fma(n, F::kHalfPiMiddle, -product);
  const T r = first - product;
  const T taken = r - first;
  const T lost = (first - (r - taken)) - (product + taken);
  const T low = fma(-n, F::kHalfPiLow, lost - product_low);
  return {r, low, integer_of(rounded)};
}

// The bits of 2 / pi, after 64 that are 0
TL_MATH_TABLE Bits64 kTwoOverPiBits[20] = {0,
                                           0xa2f9836e4e441529ull,
                                           0xfc2757d1f534ddc0ull,
                                           0xdb6295993c439041ull,
                                           0xfe5163abdebbc561ull,
                                           0xb7246e3a424dd2e0ull,
                                           0x06492eea09d1921cull,
                                           0xfe1deb1cb129a73eull,
                                           0xe88235f52ebb4484ull,
                                           0xe99c7026b45f7e41ull,
                                           0x3991d639835339f4ull,
                                           0x9c845f8bbdf9283bull,
                                           0x1ff897ffde05980full,
                                           0xef2f118b5a0a6d1full,
                                           0x6d367ecf27cb09b7ull,
                                           0x4f463f669e5fea2dull,
                                           0x7527bac7ebe5f17bull,
                                           0x3d0739f78a5292eaull,
                                           0x6bfb5fb11f8d5d08ull,
                                           0x56033046fc7b6babull};

// Payne and Hanek for any finite |x| >= 2^16: x is M 2^s with an integer M below 2^53; of the bits
// of 2 / pi, those that M 2^s turns into multiples of 4 are left out and the next 192 are used. The
// low 192 bits of the product are then the angle in quadrants, modulo 4.
TL_MATH_FN Angle<double> reduce_huge_angle(double x) {
  const Bits64 b = to_bits(x);
  const int exponent = static_cast<int>(b >> 52 & 0x7ff) - 1023;
  const Bits64 mantissa = (b & 0xfffffffffffffull) | 0x10000000000000ull;
  const int first = exponent - 52 - 2 + 64;  // the first bit used; at least 26
  const int word = first >> 6, shift = first & 63;
  Bits64 window[3] = {};
  for (int k = 0; k < 3; ++k) {
    const Bits64 next = shift == 0 ? 0 : kTwoOverPiBits[word + k + 1] >> (64 - shift);
    window[k] = kTwoOverPiBits[word + k] << shift | next;
  }
  const Bits64 product_1 = mantissa * window[1];
  const Bits64 middle = product_1 + kernels::multiply_high(mantissa, window[2]);
  const Bits64 carry = middle < product_1 ? 1 : 0;
  const Bits64 top = mantissa * window[0] + kernels::multiply_high(mantissa, window[1]) + carry;
  // To the nearest quadrant: what is left is a signed fraction in units of 2^-62 and 2^-126.
  const Bits64 quadrant = (top + (1ull << 61)) >> 62;
  const auto fraction = static_cast<long long>(top - (quadrant << 62));
  const auto high = static_cast<double>(fraction);
  const auto left = static_cast<double>(fraction - static_cast<long long>(high));
  const double low = fma(static_cast<double>(middle), 0x1p-64, left);
  const double sum = high + low;
  const double rest = low - (sum - high);
  using F = Format<double>;
  const double r = mul(sum, F::kHalfPi);
  const double r_low = fma(sum, F::kHalfPi, -r) + fma(sum, F::kHalfPiMiddle, mul(rest, F::kHalfPi));
  const double sign = x < 0 ? -0x1p-62 : 0x1p-62;
  const auto q = static_cast<long long>(quadrant);
  return {r * sign, r_low * sign, x < 0 ? -q : q};
}
TL_MATH_FN Angle<float> reduce_huge_angle(float x) {
  const Angle<double> wide = reduce_huge_angle(static_cast<double>(x));
  const auto r = static_cast<float>(wide.r);
  return {r, static_cast<float>(wide.r - static_cast<double>(r)), static_cast<int>(wide.quadrant)};
}

template <class T>
TL_MATH_FN T sin_of(const Angle<T>& a) {
  const T z = a.r * a.r;
  return a.r + fma(mul(a.r, z), sin_tail(z), fma(mul(T(-0.5), z), a.low, a.low));
}
template <class T>
TL_MATH_FN T cos_of(const Angle<T>& a) {
  const T z = a.r * a.r;
  const T half = mul(T(0.5), z);
  const T main = T(1) - half;
  return main + (((T(1) - main) - half) + fma(mul(z, z), cos_tail(z), -mul(a.r, a.low)));
}
template <class T>
TL_MATH_FN T tan_of(const Angle<T>& a) {
  const T z = a.r * a.r;
  const T tail = fma(mul(a.r, z), tan_tail(z), fma(z, a.low, a.low));
  const T t = a.r + tail;
  const T t_low = tail - (t - a.r);
  // -1 / (t + t_low), with one step that takes up what the division rounded
  const T q = T(-1) / t;
  const T better = fma(q, fma(q, t, T(1)) + mul(q, t_low), q);
  return (a.quadrant & 1) != 0 ? better : t;
}

// sin of the angle, `ahead` quadrants further
template <class T>
TL_MATH_FN T sin_ahead(const Angle<T>& a, IntOf<T> ahead) {
  const IntOf<T> quadrant = a.quadrant + ahead;
  const T y = (quadrant & 1) != 0 ? cos_of(a) : sin_of(a);
  return (quadrant & 2) != 0 ? -y : y;
}

struct Sin {
  template <class T>
  TL_MATH_FN static bool needs_more(T x) {
    return is_huge_angle(x);
  }
  template <class T>
  TL_MATH_FN static T quick(T x) {
    const T y = sin_ahead(reduce_angle(x), 0);
    return x == T(0) ? x : y;
  }
  template <class T>
  TL_MATH_FN static T thorough(T x) {
    return abs(x) < infinity<T>() ? sin_ahead(reduce_huge_angle(x), 0) : not_a_number<T>();
  }
};
struct Cos {
  template <class T>
  TL_MATH_FN static bool needs_more(T x) {
    return is_huge_angle(x);
  }
  template <class T>
  TL_MATH_FN static T quick(T x) {
    return sin_ahead(reduce_angle(x), 1);
  }
  template <class T>
  TL_MATH_FN static T thorough(T x) {
    return abs(x) < infinity<T>() ? sin_ahead(reduce_huge_angle(x), 1) : not_a_number<T>();
  }
};
struct Tan {
  template <class T>
  TL_MATH_FN static bool needs_more(T x) {
    return is_huge_angle(x);
  }
  template <class T>
  TL_MATH_FN static T quick(T x) {
    const T y = tan_of(reduce_angle(x));
    return x == T(0) ? x : y;
  }
  template <class T>
  TL_MATH_FN static T thorough(T x) {
    return abs(x) < infinity<T>() ? tan_of(reduce_huge_angle(x)) : not_a_number<T>();
  }
};

// ---- inverses of angles

template <class T>
TL_MATH_FN T atan(T x) {
  using F = Format<T>;
  const T a = abs(x);
  const bool steep = a > T(1);
  const T q = steep ? T(1) / a : a;
  const T z = q * q;
  const T tail = mul(mul(q, z), atan_tail(z));
  // pi / 2 - atan(1 / a)
  const T other = F::kHalfPi - (q + (tail - F::kHalfPiMiddle));
  const T y = steep ? other : q + tail;
  return x == x ? copysign(y, x) : x;
}

// The angle of the point (x, y), in [-pi, pi], with the signs of zeros as in C.
template <class T>
TL_MATH_FN T atan2(T y, T x) {
  using F = Format<T>;
  const T ax = abs(x), ay = abs(y);
  const bool steep = ay > ax;
  const T most = steep ? ay : ax, least = steep ? ax : ay;
  T q = least / most;
  q = most == T(0) ? T(0) : q;                                     // 0 / 0
  q = least == infinity<T>() && most == infinity<T>() ? T(1) : q;  // infinity / infinity
  const T z = q * q;
  const T tail = mul(mul(q, z), atan_tail(z));
  const bool left = to_bits(x) >> (8 * sizeof(T) - 1) != 0;
  // Quarter turns from the nearest axis: 0, pi / 2 or pi, then the small angle either way.
  const T turns = steep ? T(1) : left ? T(2) : T(0);
  const bool back = steep != left;  // the small angle is taken away
  const T part = back ? -q : q, part_tail = back ? -tail : tail;
  const T base = mul(turns, F::kHalfPi), base_low = mul(turns, F::kHalfPiMiddle);
  const T flat = q + tail;
  const bool plain = !steep && !left;
  const T angle = plain ? flat : base + (part + (part_tail + base_low));
  const T result = copysign(angle, y);
  return x == x && y == y ? result : x + y;
}

template <class T>
TL_MATH_FN T asin(T x) {
  using F = Format<T>;
  const T a = abs(x);
  const bool steep = a > T(0.5);
  // asin a = pi / 2 - 2 asin(sqrt((1 - a) / 2))
  const T z = steep ? T(0.5) * (T(1) - a) : a * a;
  const T s = steep ? sqrt(z) : a;
  const T s_low = steep && s > T(0) ? fma(-s, s, z) / (s + s) : T(0);
  const T tail = mul(mul(s, z), asin_tail(z));
  const T other = F::kHalfPi - (T(2) * s + (T(2) * (tail + s_low) - F::kHalfPiMiddle));
  const T y = steep ? other : s + tail;
  return a <= T(1) ? copysign(y, x) : not_a_number<T>();
}

template <class T>
TL_MATH_FN T acos(T x) {
  using F = Format<T>;
  const T a = abs(x);
  const bool steep = a > T(0.5);
  const T z = steep ? T(0.5) * (T(1) - a) : a * a;
  const T s = steep ? sqrt(z) : x;
  const T s_low = steep && s > T(0) ? fma(-s, s, z) / (s + s) : T(0);
  const T tail = mul(mul(s, z), asin_tail(z));
  const T middle = F::kHalfPi - (s + (tail - F::kHalfPiMiddle));
  const T right = T(2) * (s + (tail + s_low));
  const T left = T(2) * F::kHalfPi - (T(2) * s + T(2) * ((tail + s_low) - F::kHalfPiMiddle));
  const T y = !steep ? middle : x > T(0) ? right : left;
  return a <= T(1) ? y : not_a_number<T>();
}

// ---- hyperbolic functions

template <class T>
TL_MATH_FN T tanh(T x) {
  const T a = abs(x);
  const T z = a * a;
  const T near = fma(mul(a, z), tanh_tail(z), a);
  const T far = T(1) - T(2) / (exp(a + a) + T(1));
  const T y = a < T(0.55) ? near : far;
  return x == x ? copysign(y, x) : x;
}

// e^x / 2 without overflow before sinh and cosh themselves do
template <class T>
TL_MATH_FN T half_exp(T x) {
  using F = Format<T>;
  constexpr T kEnd = F::kExpEnd + T(1);
  const T y = x > kEnd ? kEnd : x;
  const T rounded = fma(y, F::kLog2E, F::kRounder);
  const T k = rounded - F::kRounder;
  const T r = fma(-k, F::kLn2Low, fma(-k, F::kLn2, y));
  return scale(T(1) + small_expm1(r), integer_of(rounded) - 1);
}

template <class T>
TL_MATH_FN T sinh(T x) {
  const T a = abs(x);
  const T z = a * a;
  const T near = fma(mul(a, z), sinh_tail(z), a);
  const T e = half_exp(a);
  const T far = e - T(0.25) / e;
  const T y = a < T(1) ? near : far;
  return x == x ? copysign(y, x) : x;
}

template <class T>
TL_MATH_FN T cosh(T x) {
  const T e = half_exp(abs(x));
  return e + T(0.25) / e;
}

// ---- the error function

// factor erfc(a) for a >= 0.47, given square + square_low = a^2 to more than the precision of T.
// The power of two in it comes last: what is subnormal is rounded once.
template <class T>
TL_MATH_FN T positive_erfc(T a, T square, T square_low, T factor) {
  using F = Format<T>;
  // t = (a - c) / (a + c), with one step that takes up what was rounded
  const T inverse = T(1) / (a + F::kErfcCenter);
  const T first = mul(a - F::kErfcCenter, inverse);
  const T t = fma(inverse, fma(-first, a, fma(first + T(1), -F::kErfcCenter, a)), first);
  // (quotient + rest) (1 + 2a) is the polynomial
  const T product = mul(t, erfc_tail(t));
  const T p = F::kErfcFirst + product;
  const T p_low = product - (p - F::kErfcFirst);
  const T d = fma(T(2), a, T(1));
  const T d_low = T(1) - (d - T(2) * a);
  const T quotient = p / d;
  const T rest = (fma(-quotient, d_low, fma(-quotient, d, p)) + p_low) / d;
  // times e^-(square + square_low)
  const T rounded = fma(-square, F::kLog2E, F::kRounder);
  const T k = rounded - F::kRounder;
  const T high = fma(-k, F::kLn2, -square);
  const T r = fma(-k, F::kLn2Low, high);
  const T r_low = fma(-k, F::kLn2Low, high - r);
  const T grown = small_expm1(r);
  const T e = fma(r_low - square_low, T(1) + grown, grown);
  return scale(mul(factor, quotient + fma(quotient, e, rest)), integer_of(rounded));
}

// erf(a) for 0 <= a <= 1
template <class T>
TL_MATH_FN T near_erf(T a) {
  return fma(a, erf_tail(a * a), a);
}

template <class T>
TL_MATH_FN T far_erfc(T x) {
  const T a = x > Format<T>::kErfcEnd ? Format<T>::kErfcEnd : x;
  const T square = mul(a, a);
  return positive_erfc(a, square, fma(a, a, -square), T(1));
}

template <class T>
TL_MATH_FN T erfc(T x) {
  const T a = abs(x);
  const T y = a < T(0.625) ? T(1) - near_erf(a) : far_erfc(a);
  return x < T(0) ? T(2) - y : y;
}

template <class T>
TL_MATH_FN T erf(T x) {
  const T a = abs(x);
  const T y = a < T(1) ? near_erf(a) : T(1) - far_erfc(a);
  return x == x ? copysign(y, x) : x;
}

// factor times the share of a normal distribution below x, which is erfc(-x / sqrt(2)) / 2; the
// exponent x^2 / 2 in it is taken from x itself.
template <class T>
TL_MATH_FN T times_normcdf(T x, T factor) {
  constexpr T kSqrtHalf = static_cast<T>(0x1.6a09e667f3bcdp-1);
  constexpr T kEnd = Format<T>::kErfcEnd * T(1.4142);
  const bool above = x > T(0);
  T b = abs(x);
  const bool end = b > kEnd;
  b = end ? kEnd : b;
  const T a = mul(b, kSqrtHalf);
  const T square = mul(b, b);
  const T low = fma(b, b, -square);
  const T far = positive_erfc(a, T(0.5) * square, T(0.5) * low, T(0.5) * (above ? T(1) : factor));
  const T near = fma(T(-0.5), near_erf(a), T(0.5));
  const bool is_near = a < T(0.47);
  const T y_above = mul(factor, T(1) - (is_near ? near : far));
  const T y_below = is_near ? mul(factor, near) : far;
  const T y = above ? y_above : y_below;
  const bool none = end & !above;
  return none ? copysign(T(0), factor) : y;
}

template <class T>
TL_MATH_FN T normcdf(T x) {
  return times_normcdf(x, T(1));
}

// ---- powers

// What pow is beside the plain case, from its value for positive finite x and finite y. (`&` and
// `|` where both sides are cheap: no branch for a vector loop to stumble over.)
template <class T>
TL_MATH_FN T pow_or_special(T x, T y, T result) {
  const T a = abs(x);
  const T half = y * T(0.5);
  const bool whole = y == trunc(y);
  const bool odd = whole & (half != trunc(half));
  const bool rising = y > T(0);
  const T at_zero = rising ? T(0) : infinity<T>();
  const T at_infinity = rising ? infinity<T>() : T(0);
  const T far = (a > T(1)) == rising ? infinity<T>() : T(0);
  T r = a == T(0) ? at_zero : result;
  r = a == infinity<T>() ? at_infinity : r;
  r = abs(y) == infinity<T>() ? far : r;
  r = a == T(1) ? T(1) : r;
  // The sign of x for an odd power
  const T signed_r = copysign(r, x);
  r = odd ? signed_r : r;
  const bool none = (x < T(0)) & (a < infinity<T>()) & !whole;
  const bool numbers = (x == x) & (y == y);
  const bool one = (y == T(0)) | (x == T(1));
  r = none ? not_a_number<T>() : r;
  r = numbers ? r : x + y;
  return one ? T(1) : r;
}

// For float in double, which carries enough to round once.
TL_MATH_FN float pow(float x, float y) {
  using F = Format<double>;
  const LogParts<double> p = log_parts(static_cast<double>(abs(x)));
  double power = mul(static_cast<double>(y), fma(p.f + p.t, F::kLog2E, p.e));
  power = power > 1000.0 ? 1000.0 : power;
  power = power > -1000.0 ? power : -1000.0;  // NaN too: its cases are settled below
  const double rounded = power + F::kRounder;
  const double r = mul(power - (rounded - F::kRounder), F::kLn2);
  // e^r to float's precision; the exponent is far from the ends of double's range
  const double e = 1.0 + small_expm1(r);
  const double wide = e * power_of_two<double>(integer_of(rounded));
  return pow_or_special(x, y, static_cast<float>(wide));
}

// For double with the logarithm as a sum of two: its error is below 2^-64 of it, so that a product
// with y up to the ends of the range is still good to the last place.
TL_MATH_FN double pow(double x, double y) {
  using F = Format<double>;
  const LogParts<double> p = split_power(abs(x));
  // s = f / (2 + f)
  const double d = 2.0 + p.f, d_low = p.f - (d - 2.0);
  const double s = p.f / d;
  const double s_low = fma(-s, d_low, fma(-s, d, p.f)) / d;
  const double z = mul(s, s);
  const double z_low = fma(2.0 * s, s_low, fma(s, s, -z));
  // log(1 + f) = 2s + 2s (z / 3 + z^2 log_tail2(z))
  constexpr double kThird = 0x1.5555555555555p-2, kThirdLow = 0x1.5555555555555p-56;
  const double third = mul(z, kThird);
  const double third_low = fma(z_low, kThird, fma(z, kThirdLow, fma(z, kThird, -third)));
  const double rest = fma(mul(z, z), log_tail2(z), third_low);
  const double b = third + rest, b_low = rest - (b - third);
  const double a = 2.0 * s, a_low = 2.0 * s_low;
  const double product = mul(a, b);
  const double product_low = fma(a_low, b, fma(a, b_low, fma(a, b, -product)));
  const double log_high = a + product;
  const double log_low = ((a - log_high) + product) + (a_low + product_low);
  // in base 2, with the exponent
  const double g = mul(log_high, F::kLog2E);
  const double g_low =
      fma(log_low, F::kLog2E, fma(log_high, F::kLog2ELow, fma(log_high, F::kLog2E, -g)));
  const double t = p.e + g;
  const double t_low = ((p.e - t) + g) + g_low;
  const double power = mul(y, t);
  const double power_low = fma(y, t_low, fma(y, t, -power));
  const bool inside = (power > -1080.0) & (power < 1030.0);
  const double main = inside ? power : power > 0 ? 1030.0 : -1080.0;
  const double low = inside ? power_low : 0.0;
  const double rounded = main + F::kRounder;
  const double part = main - (rounded - F::kRounder);
  const double r = fma(part, F::kLn2, mul(low, F::kLn2));
  return pow_or_special(x, y, scale(1.0 + small_expm1(r), integer_of(rounded)));
}

// ---- remainders: exact, as C's fmod, the sign of x

struct Fmod {
  // Quotients below this are found by one division.
  template <class T>
  TL_MATH_FN static bool needs_more(T x, T y) {
    return !(abs(x) < mul(abs(y), T(1 << 20))) || !(abs(y) < infinity<T>()) ||
           abs(y) < Format<T>::kSmallestNormal * T(4);
  }
  template <class T>
  TL_MATH_FN static T quick(T x, T y) {
    const T a = abs(x), b = abs(y);
    const T q = trunc(a / b);
    T r = fma(-q, b, a);  // exact; the quotient may be one too large
    r = r < T(0) ? r + b : r;
    return copysign(r, x);
  }
  template <class T>
  TL_MATH_FN static T thorough(T x, T y) {
    const T b = abs(y);
    T a = abs(x);
    if (!(a < infinity<T>()) || b == T(0) || b != b) return not_a_number<T>();
    if (a < b) return x;
    // Numbers below kLow are lifted, which is exact and taken back at the end.
    constexpr T kLift = sizeof(T) == 4 ? T(0x1p40f) : static_cast<T>(0x1p100);
    const bool low = b < Format<T>::kSmallestNormal * kLift;
    if (low && a < T(1)) return copysign(reduced(a * kLift, b * kLift) / kLift, x);
    if (low) {
      // a is far above b: bring it near first, by a multiple of b that needs no lift.
      const T step = b * kLift;
      a = reduced(a, step);
      return copysign(reduced(a * kLift, step) / kLift, x);
    }
    return copysign(reduced(a, b), x);
  }

 private:
  // a modulo b for normal b: takes away multiples b 2^k whose quotient is small, so that every step
  // is exact.
  template <class T>
  TL_MATH_FN static T reduced(T a, T b) {
    using F = Format<T>;
    GPU_ROLLED
    while (a >= b) {
      const auto exponent_a = static_cast<IntOf<T>>(to_bits(a) >> F::kMantissa);
      const auto exponent_b = static_cast<IntOf<T>>(to_bits(b) >> F::kMantissa);
      const IntOf<T> gap = exponent_a - exponent_b - 20;
      const T step =
          gap > 0 ? of_bits<T>(to_bits(b) + (static_cast<BitsOf<T>>(gap) << F::kMantissa)) : b;
      const T r = fma(-trunc(a / step), step, a);
      a = r < T(0) ? r + step : r;
    }
    return a;
  }
};

}  // namespace tl::elementary
