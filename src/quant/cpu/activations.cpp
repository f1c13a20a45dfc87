#include "quant/cpu/activations.h"

#include <cstddef>

#include "kernels/quant_encode.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

namespace qb = quant_blocks;

// To the nearest, halves away from zero, for numbers within a byte. Written so that compilers make
// vector code of it: a conversion truncates.
std::int8_t round_to_byte(float x) {
  return static_cast<std::int8_t>(static_cast<int>(x + __builtin_copysignf(0.5f, x)));
}

// A scale for which every number is within a byte; zero when there is none (all zero, or not all
// finite: then the block counts as zeros times its scale, which is not finite either).
struct Scale {
  float d, inverse;
};

Scale scale_of(const float* x, int count) {
  float largest = 0;
  bool finite = true;
  for (int j = 0; j < count; ++j) {
    const float magnitude = __builtin_fabsf(x[j]);
    finite = finite && magnitude <= 3.4028234664e38f;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (!finite) return {__builtin_nanf(""), 0};
  const float d = largest / 127.0f;
  const float inverse = qb::inverse(d);
  return inverse <= 3.4028234664e38f ? Scale{d, inverse} : Scale{0, 0};  // all but denormal
}

// To the eleven bits of a half, as Q8_0 has it, but with the range of a float: a half would be
// infinite from 8.3 million on.
float with_precision_of_half(float d) {
  const std::uint32_t bits = float_bits::bits_of(d);
  return float_bits::float_of((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

void encode(const float* x, int count, int part, std::int8_t* bytes, float* d, std::int32_t* sums) {
  const Scale scale = scale_of(x, count);
  *d = count == 32 && scale.inverse != 0 ? with_precision_of_half(scale.d) : scale.d;
  if (scale.inverse == 0) {
    for (int j = 0; j < count; ++j) bytes[j] = 0;
  } else {
    for (int j = 0; j < count; ++j) bytes[j] = round_to_byte(x[j] * scale.inverse);
  }
  for (int p = 0; p < count / part; ++p) {
    std::int32_t sum = 0;
    for (int j = 0; j < part; ++j) sum += bytes[p * part + j];
    sums[p] = sum;
  }
}

}  // namespace

Activations::Activations(const float* x, std::int64_t rows, std::int64_t columns, int block)
    : rows_(rows),
      columns_(columns),
      block_(block),
      part_(block == 32 ? 32 : 16),
      bytes_(aligned<std::int8_t>(static_cast<std::size_t>(rows * columns))),
      scales_(aligned<float>(static_cast<std::size_t>(rows * columns / block))),
      sums_(aligned<std::int32_t>(static_cast<std::size_t>(rows * columns / part_))) {
  ThreadPool::shared().parallel_for(
      0, rows * columns / block, 16384 / block, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t b = first; b < last; ++b) {
          encode(x + b * block, block, part_, bytes_.get() + b * block, scales_.get() + b,
                 sums_.get() + b * (block / part_));
        }
      });
}

}  // namespace tl::cpu
