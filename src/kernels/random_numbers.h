// Random numbers that depend on nothing but a seed and a position: Philox 4x32-10 (Salmon, Moraes,
// Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"). The same on every device, bit for
// bit, since what turns bits into numbers is shared too (elementary.h).
//
// Position p of a seed is a block of four 32-bit words. Numbers of up to 32 bits take one word
// each, f64 and integers two.
#pragma once

#include "elementary.h"

namespace tl::random {

using float_bits::Bits32;
using float_bits::Bits64;

struct Block {
  Bits32 word[4];
};

TL_MATH_FN Block philox(Bits64 seed, Bits64 position) {
  Bits32 c0 = static_cast<Bits32>(position), c1 = static_cast<Bits32>(position >> 32);
  Bits32 c2 = 0, c3 = 0;
  Bits32 k0 = static_cast<Bits32>(seed), k1 = static_cast<Bits32>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Bits64 a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
    const Bits32 next0 = static_cast<Bits32>(b >> 32) ^ c1 ^ k0;
    const Bits32 next2 = static_cast<Bits32>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<Bits32>(b);
    c3 = static_cast<Bits32>(a);
    c0 = next0;
    c2 = next2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// How many numbers of the type computed in come from one block.
template <class C>
inline constexpr int kPerBlock = sizeof(C) == 8 ? 2 : 4;

TL_MATH_FN Bits64 pair(const Block& block, int k) {
  return static_cast<Bits64>(block.word[2 * k + 1]) << 32 | block.word[2 * k];
}

// In [0, 1), with all the bits the type has there
template <class C>
TL_MATH_FN C unit(const Block& block, int k) {
  if constexpr (sizeof(C) == 8) {
    return static_cast<double>(pair(block, k) >> 11) * 0x1p-53;
  } else {
    return static_cast<float>(block.word[k] >> 8) * 0x1p-24f;
  }
}

// In (0, 1]
template <class C>
TL_MATH_FN C positive_unit(const Block& block, int k) {
  if constexpr (sizeof(C) == 8) {
    return static_cast<double>((pair(block, k) >> 11) + 1) * 0x1p-53;
  } else {
    return elementary::fma(static_cast<float>(block.word[k]), 0x1p-32f, 0x1p-33f);
  }
}

// In [low, low + width)
template <class C>
TL_MATH_FN C uniform(const Block& block, int k, C low, C width) {
  return elementary::fma(unit<C>(block, k), width, low);
}

// Normal with that mean and standard deviation: Box and Muller, who make two of two, so an even k
// and the one after it belong together.
template <class C>
TL_MATH_FN C normal(const Block& block, int k, C mean, C deviation) {
  const int first = k & ~1;
  const C log = elementary::log(positive_unit<C>(block, first));
  const C radius = elementary::sqrt(C(-2) * log);
  const C angle = C(6.283185307179586476925) * unit<C>(block, first + 1);
  const C z = elementary::mul(
      radius, (k & 1) != 0 ? elementary::Sin::quick(angle) : elementary::Cos::quick(angle));
  return elementary::fma(z, deviation, mean);
}

// In [low, low + range); range 0 means 2^64.
TL_MATH_FN long long integer(const Block& block, int k, long long low, Bits64 range) {
  const Bits64 bits = pair(block, k);
  const Bits64 within = range == 0 ? bits : kernels::multiply_high(bits, range);
  return static_cast<long long>(static_cast<Bits64>(low) + within);
}

// ---- sequences

// start + i step in the type's own arithmetic, or in double
TL_MATH_FN double step_from(double start, double step, long long i) {
  return elementary::fma(static_cast<double>(i), step, start);
}
// `count` numbers from start to end, both included; counted from the nearer end, so that both are
// exact.
TL_MATH_FN double between(double start, double end, double step, long long i, long long count) {
  return i < count - i ? step_from(start, step, i) : step_from(end, -step, count - 1 - i);
}

}  // namespace tl::random
