// Numbers into blocks of 32 (and Q8_K's of 256): the rules by which every program that writes GGUF
// makes them, so that the bytes are the same. The formats with searched scales are in
// src/quant/cpu.
//
// encode(x, block) writes one block. The inverse of a scale is taken before the scale is rounded to
// half. A number that is no number becomes the smallest code; the rules say nothing of it.
#pragma once

#include "elementary.h"
#include "quant_blocks.h"

namespace tl::quant_blocks {

TL_MATH_FN void put_half(Bits8* p, float x) {
  const Bits32 bits = float_bits::f32_to_f16(x);
  p[0] = static_cast<Bits8>(bits & 255u);
  p[1] = static_cast<Bits8>(bits >> 8);
}
TL_MATH_FN float inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }
// Towards zero, and within the bounds whatever x is.
TL_MATH_FN int code_of(float x, int low, int high) {
  if (!(x > static_cast<float>(low))) return low;
  return x < static_cast<float>(high) ? static_cast<int>(x) : high;
}
// To the nearest, halves away from zero.
TL_MATH_FN int rounded_code(float x, int low, int high) {
  return code_of(primitive::trunc(x + primitive::copysign(0.5f, x)), low, high);
}
// The number of the largest magnitude, with its sign; the first of several.
TL_MATH_FN float extreme(const float* x, int count) {
  float largest = 0.0f, value = 0.0f;
  for (int j = 0; j < count; ++j) {
    const float magnitude = primitive::abs(x[j]);
    if (magnitude > largest) {
      largest = magnitude;
      value = x[j];
    }
  }
  return value;
}
struct Range {
  float low, high;
};
TL_MATH_FN Range range_of(const float* x, int count) {
  Range range = {x[0], x[0]};
  for (int j = 1; j < count; ++j) {
    range.low = x[j] < range.low ? x[j] : range.low;
    range.high = x[j] > range.high ? x[j] : range.high;
  }
  return range;
}

// Codes of a block of 32, four bits of each in `qs` and, where there is a fifth, that in `qh`.
template <class CodeOf>
TL_MATH_FN void put_codes(Bits8* qs, Bits8* qh, CodeOf code) {
  if (qh != nullptr) {
    for (int i = 0; i < 4; ++i) qh[i] = 0;
  }
  for (int j = 0; j < 16; ++j) {
    const Bits32 a = static_cast<Bits32>(code(j)), b = static_cast<Bits32>(code(j + 16));
    qs[j] = static_cast<Bits8>((a & 15u) | (b & 15u) << 4);
    if (qh != nullptr) {
      qh[j / 8] = static_cast<Bits8>(qh[j / 8] | a >> 4 << (j & 7));
      qh[2 + j / 8] = static_cast<Bits8>(qh[2 + j / 8] | b >> 4 << (j & 7));
    }
  }
}

TL_MATH_FN void encode_q4_0(const float* x, Bits8* block) {
  const float d = extreme(x, 32) / -8.0f, id = inverse(d);
  put_half(block, d);
  put_codes(block + 2, nullptr, [&](int j) { return code_of(mul(x[j], id) + 8.5f, 0, 15); });
}
TL_MATH_FN void encode_q4_1(const float* x, Bits8* block) {
  const Range range = range_of(x, 32);
  const float d = (range.high - range.low) / 15.0f, id = inverse(d);
  put_half(block, d);
  put_half(block + 2, range.low);
  put_codes(block + 4, nullptr,
            [&](int j) { return code_of(mul(x[j] - range.low, id) + 0.5f, 0, 15); });
}
TL_MATH_FN void encode_q5_0(const float* x, Bits8* block) {
  const float d = extreme(x, 32) / -16.0f, id = inverse(d);
  put_half(block, d);
  put_codes(block + 6, block + 2, [&](int j) { return code_of(mul(x[j], id) + 16.5f, 0, 31); });
}
TL_MATH_FN void encode_q5_1(const float* x, Bits8* block) {
  const Range range = range_of(x, 32);
  const float d = (range.high - range.low) / 31.0f, id = inverse(d);
  put_half(block, d);
  put_half(block + 2, range.low);
  put_codes(block + 8, block + 4,
            [&](int j) { return code_of(mul(x[j] - range.low, id) + 0.5f, 0, 31); });
}
// The bytes of Q8_0 and Q8_1; gives their sum and sets the scale.
TL_MATH_FN int put_bytes(const float* x, Bits8* qs, float& d) {
  d = primitive::abs(extreme(x, 32)) / 127.0f;
  const float id = inverse(d);
  int sum = 0;
  for (int j = 0; j < 32; ++j) {
    const int q = rounded_code(mul(x[j], id), -127, 127);
    qs[j] = static_cast<Bits8>(q & 255);
    sum += q;
  }
  return sum;
}
TL_MATH_FN void encode_q8_0(const float* x, Bits8* block) {
  float d = 0.0f;
  put_bytes(x, block + 2, d);
  put_half(block, d);
}
TL_MATH_FN void encode_q8_1(const float* x, Bits8* block) {
  float d = 0.0f;
  const int sum = put_bytes(x, block + 4, d);
  put_half(block, d);
  put_half(block + 2, mul(d, static_cast<float>(sum)));
}
TL_MATH_FN void encode_q8_k(const float* x, Bits8* block) {
  const float most = extreme(x, 256);
  const float scale = most != 0.0f ? -127.0f / most : 0.0f;
  const Bits32 d = float_bits::bits_of(inverse(scale));
  for (int i = 0; i < 4; ++i) block[i] = static_cast<Bits8>(d >> 8 * i & 255u);
  for (int part = 0; part < 16; ++part) {
    int sum = 0;
    for (int j = 16 * part; j < 16 * part + 16; ++j) {
      const int q = code_of(primitive::rint(mul(x[j], scale)), -128, 127);
      block[4 + j] = static_cast<Bits8>(q & 255);
      sum += q;
    }
    block[260 + 2 * part] = static_cast<Bits8>(sum & 255);
    block[261 + 2 * part] = static_cast<Bits8>(sum >> 8 & 255);
  }
}

}  // namespace tl::quant_blocks
