// One block of activations (activations.h). Included where it is to be compiled, once for each
// instruction set, inside an anonymous namespace; so no guard, and no includes of its own.

// A scale for which every number is within a byte; zero when there is none (all zero, or not all
// finite: then the block counts as zeros times its scale, which is not finite either).
struct BlockScale {
  float d, inverse;
};

inline BlockScale block_scale(const float* x, int count) {
  // Bits of magnitudes are ordered as magnitudes are, with what is not finite above.
  std::uint32_t largest = 0;
  for (int j = 0; j < count; ++j) {
    const std::uint32_t magnitude = float_bits::bits_of(x[j]) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  if (largest >= kInfinity) return {float_bits::float_of(0x7fc00000u), 0};
  const float d = float_bits::float_of(largest) / 127.0f;
  const float inverse = d != 0 ? 1.0f / d : 0;
  if (float_bits::bits_of(inverse) >= kInfinity) return {0, 0};  // all but denormal
  return {d, inverse};
}

// To the eleven bits of a half, as Q8_0 has it, but with the range of a float: a half would be
// infinite from 8.3 million on.
inline float with_precision_of_half(float d) {
  const std::uint32_t bits = float_bits::bits_of(d);
  return float_bits::float_of((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

template <int kCount, int kPart>
void encode_block(const float* x, std::int8_t* bytes, float* d, std::int32_t* sums) {
  const BlockScale scale = block_scale(x, kCount);
  *d = kCount == 32 && scale.inverse != 0 ? with_precision_of_half(scale.d) : scale.d;
  for (int p = 0; p < kCount / kPart; ++p) {
    std::int32_t sum = 0;
    for (int j = kPart * p; j < kPart * (p + 1); ++j) {
      // To the nearest, halves away from zero: a conversion truncates. Numbers times zero are zero,
      // but for those that are not finite.
      const float scaled = scale.inverse == 0 ? 0 : x[j] * scale.inverse;
      const auto q = static_cast<std::int32_t>(scaled + __builtin_copysignf(0.5f, scaled));
      bytes[j] = static_cast<std::int8_t>(q);
      sum += q;
    }
    sums[p] = sum;
  }
}

// Blocks [first, last) of numbers that lie one after the other.
inline void encode_blocks(const float* x, int block, std::int64_t first, std::int64_t last,
                          std::int8_t* bytes, float* scales, std::int32_t* sums) {
  for (std::int64_t b = first; b < last; ++b) {
    if (block == 32) {
      encode_block<32, 32>(x + 32 * b, bytes + 32 * b, scales + b, sums + b);
    } else {
      encode_block<256, 16>(x + 256 * b, bytes + 256 * b, scales + b, sums + 16 * b);
    }
  }
}
