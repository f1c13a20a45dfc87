// How a number of one type becomes a number of another, bit for bit the same on every device.
//
// One text for everyone: dtype.h uses it on the CPU, gpu.h in kernels, and it is embedded as source
// for the run-time compilers, so it includes nothing and uses only what all of them have
// (__builtin_bit_cast and
// __builtin_is_constant_evaluated: gcc 11+, clang 9+, nvcc and NVRTC 13, hipRTC 5.2 which is LLVM
// 15).
//
// The rules, for any pair of types:
//   to f16, bf16, f32   nearest, ties to even, one rounding; too large becomes infinity
//   to f8e4m3           the same, but too large (infinities too) becomes +-448, as NVIDIA's
//   satfinite conversion and
//                       candle do (PyTorch gives NaN); the format is OCP e4m3fn: no infinity, NaN
//                       is 0x7f and 0xff
//   NaN                 stays a quiet NaN among floats; its payload is not promised
//   float to integer    truncates toward zero, saturates at the ends, NaN gives 0
//   integer to integer  keeps the low bits (wraps modulo 2^n)
//   to bool             x != 0, so NaN is true; bool to number is 0 or 1
//
// All arithmetic here assumes the default rounding mode; no step needs f32 subnormals except where
// the value itself is one, so it is right with "denormals are zero" switched on as well.
#pragma once

// What marks a function: a device compiler's header defines it before including this file.
#ifndef TL_FN
#define TL_FN constexpr inline
#endif

namespace tl::float_bits {

using Bits8 = unsigned char;
using Bits16 = unsigned short;
using Bits32 = unsigned int;
using Bits64 = unsigned long long;

static_assert(sizeof(Bits16) == 2 && sizeof(Bits32) == 4 && sizeof(Bits64) == 8);

TL_FN Bits32 bits_of(float x) { return __builtin_bit_cast(Bits32, x); }
TL_FN float float_of(Bits32 b) { return __builtin_bit_cast(float, b); }

inline constexpr Bits32 kF32Infinity = 0x7f800000u;
inline constexpr Bits32 kF32Magnitude = 0x7fffffffu;  // all but the sign

// ---- small formats to f32: always exact

// f16 is sign, 5 exponent bits (bias 15), 10 mantissa bits.
TL_FN float f16_to_f32(Bits16 h) {
  const Bits32 sign = (h & 0x8000u) << 16;
  const Bits32 magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity or NaN; a NaN is made quiet
    const Bits32 quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return float_of(sign | kF32Infinity | quiet | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude >= 0x400u) return float_of(sign | ((magnitude << 13) + (112u << 23)));
  // 0.m * 2^-14 is 1.m * 2^-14 less 2^-14: two normal numbers
  const float value = float_of((magnitude << 13) + (113u << 23)) - float_of(113u << 23);
  return float_of(sign | bits_of(value));
}

// bf16 is the upper half of an f32.
TL_FN float bf16_to_f32(Bits16 h) {
  const Bits32 b = static_cast<Bits32>(h) << 16;
  return float_of((b & kF32Magnitude) > kF32Infinity ? b | 0x400000u : b);
}

// f8e4m3 is sign, 4 exponent bits (bias 7), 3 mantissa bits; only 0x7f (and 0xff) is special.
TL_FN float f8e4m3_to_f32(Bits8 h) {
  const Bits32 sign = (h & 0x80u) << 24;
  const Bits32 magnitude = h & 0x7fu;
  if (magnitude == 0x7fu) return float_of(sign | 0x7fc00000u);
  if (magnitude >= 8u) return float_of(sign | ((magnitude << 20) + (120u << 23)));
  const float value = float_of((magnitude << 20) + (121u << 23)) - float_of(121u << 23);
  return float_of(sign | bits_of(value));
}

// ---- f32 to small formats: nearest, ties to even
//
// Normal results: add just under half of what is dropped (half when the kept part is odd), then
// shift; a carry runs into the exponent as it should. Subnormal results: adding a float whose last
// place is the format's smallest step lets the addition do the rounding.

TL_FN Bits16 f32_to_f16(float x) {
  const Bits32 b = bits_of(x);
  const Bits32 sign = (b >> 16) & 0x8000u;
  Bits32 magnitude = b & kF32Magnitude;
  if (magnitude >= (143u << 23)) {  // 65536 and up, NaN
    return static_cast<Bits16>(sign | (magnitude > kF32Infinity ? 0x7e00u : 0x7c00u));
  }
  if (magnitude < (113u << 23)) {  // below 2^-14; 0.5 has steps of 2^-24
    return static_cast<Bits16>(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<Bits16>(sign | ((magnitude - (112u << 23)) >> 13));
}

TL_FN Bits16 f32_to_bf16(float x) {
  const Bits32 b = bits_of(x);
  if ((b & kF32Magnitude) > kF32Infinity) return static_cast<Bits16>((b >> 16) | 0x40u);
  return static_cast<Bits16>((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}

TL_FN Bits8 f32_to_f8e4m3(float x) {
  const Bits32 b = bits_of(x);
  const Bits32 sign = (b >> 24) & 0x80u;
  Bits32 magnitude = b & kF32Magnitude;
  if (magnitude >= 0x43e00000u) {  // 448 and up, NaN
    return static_cast<Bits8>(sign | (magnitude > kF32Infinity ? 0x7fu : 0x7eu));
  }
  if (magnitude < (121u << 23)) {  // below 2^-6; 2^14 has steps of 2^-9
    return static_cast<Bits8>(sign | (bits_of(float_of(magnitude) + 16384.0f) - bits_of(16384.0f)));
  }
  magnitude += 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<Bits8>(sign | ((magnitude - (120u << 23)) >> 20));
}

// ---- wide types to small formats with a single rounding
//
// Rounding twice (f64 -> f32 -> f16) can go wrong: the first rounding may land on a tie that the
// second then breaks the wrong way. round_ready(x) is a float that rounds to each small format as x
// itself does, because whenever it is not exact its last bit is set: it is never a tie and lies on
// the same side of every tie as x. That holds for formats with at least two bits less than the
// value returned here has; f16, the widest, needs 13.

// f64 to f32. A conversion that overflows is not a constant expression, so the compile-time path
// decides by range.
TL_FN float f64_to_f32(double x) {
  if (__builtin_is_constant_evaluated()) {
    const double magnitude = x < 0 ? -x : x;
    if (magnitude > 0x1.fffffep+127) {  // halfway to 2^128 and up is infinity, ties included
      const float end = float_of(magnitude < 0x1.ffffffp+127 ? kF32Infinity - 1 : kF32Infinity);
      return x < 0 ? -end : end;
    }
  }
  return static_cast<float>(x);
}

// Round to odd: of the two floats around x, the one whose last bit is set.
TL_FN float round_ready(double x) {
  const float nearest = f64_to_f32(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  const Bits32 b = bits_of(nearest);
  if (b & 1u) return nearest;
  const bool below =
      x < 0 ? back > x : back < x;  // in magnitude; an overflow steps back to the largest finite
  return float_of(below ? b + 1 : b - 1);
}

TL_FN float round_ready(float x) { return x; }
TL_FN float round_ready(bool x) { return x ? 1.0f : 0.0f; }
TL_FN float round_ready(unsigned char x) { return x; }
TL_FN float round_ready(short x) { return x; }

// Integers: bits that are shifted out leave a mark in the last bit that is kept.
TL_FN float round_ready(unsigned int x) {
  if (x < (1u << 24)) return static_cast<float>(x);
  return static_cast<float>(x >> 8 | ((x & 0xffu) != 0 ? 1u : 0u)) * 256.0f;
}

TL_FN float round_ready(unsigned long long x) {
  const Bits32 low = static_cast<Bits32>(x);
  if (x >> 45) {
    const Bits32 high = static_cast<Bits32>(x >> 32) | (low != 0 ? 1u : 0u);  // at least 2^13
    return round_ready(high) * 4294967296.0f;
  }
  if (x >> 32) {
    const Bits32 middle = static_cast<Bits32>(x >> 13) | ((low & 0x1fffu) != 0 ? 1u : 0u);
    return round_ready(middle) * 8192.0f;
  }
  return round_ready(low);
}

TL_FN float round_ready(int x) {
  const float magnitude = round_ready(x < 0 ? 0u - static_cast<Bits32>(x) : static_cast<Bits32>(x));
  return x < 0 ? -magnitude : magnitude;
}

TL_FN float round_ready(long long x) {
  const float magnitude =
      round_ready(x < 0 ? 0ull - static_cast<Bits64>(x) : static_cast<Bits64>(x));
  return x < 0 ? -magnitude : magnitude;
}

// int64_t is `long` on the hosts we build for.
TL_FN float round_ready(long x) { return round_ready(static_cast<long long>(x)); }
TL_FN float round_ready(unsigned long x) { return round_ready(static_cast<unsigned long long>(x)); }

// ---- the types a compiler knows: bool, integers, float, double

template <class T>
inline constexpr bool kIsFloat = false;
template <>
inline constexpr bool kIsFloat<float> = true;
template <>
inline constexpr bool kIsFloat<double> = true;
template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

template <class To, class From>
TL_FN To truncate(From x) {
  constexpr bool kSigned = static_cast<To>(-1) < static_cast<To>(0);
  constexpr int kBits = static_cast<int>(sizeof(To)) * 8 - (kSigned ? 1 : 0);
  constexpr To kMax = static_cast<To>(~0ull >> (64 - kBits));
  constexpr To kMin = kSigned ? static_cast<To>(-kMax - 1) : static_cast<To>(0);
  constexpr From kEnd = static_cast<From>(1ull << (kBits - 1)) * 2;  // one past kMax, exact
  if (!(x > (kSigned ? -kEnd : From(0)))) return x != x ? static_cast<To>(0) : kMin;
  if (x >= kEnd) return kMax;
  return static_cast<To>(x);
}

// The rules at the top of this file, for every pair of built-in types.
template <class To, class From>
TL_FN To convert_number(From x) {
  if constexpr (kSame<To, From>) {
    return x;
  } else if constexpr (kSame<To, bool>) {
    return x != 0;
  } else if constexpr (kSame<To, float> && kSame<From, double>) {
    return f64_to_f32(x);
  } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    return truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace tl::float_bits
