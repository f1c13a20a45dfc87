// Numbers into blocks. Formats with one scale per block follow fixed rules
// (kernels/quant_encode.h). The others leave the choice of scales to the writer; here each part of
// a block tries a number of scales, for each takes the codes that round to it and then the scale
// (and minimum) that is best for those codes in the least-squares sense, and keeps the one with the
// smallest weighted error.
#include "quant/cpu/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/quant_encode.h"
#include "tl/base/error.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

namespace qb = quant_blocks;
using qb::Bits32;
using qb::Bits8;

constexpr int kSuper = 256;
// How much a block's bias counts beside its squared errors, over the number of codes: with few
// codes errors are large, and so is the bias that comes with them.
constexpr float kAgainstBias = 240;

int nearest(float x, int low, int high) { return qb::code_of(std::nearbyint(x), low, high); }

// What an error of each number counts: more for large numbers, which matter more in a product, and
// by the importance of its column where that is known.
void weigh(std::span<const float> x, const float* importance, std::span<float> weight) {
  float squares = 0;
  for (const float v : x) squares += v * v;
  const float mean = squares / static_cast<float>(x.size());
  const float root = std::sqrt(mean);
  for (std::size_t j = 0; j < x.size(); ++j) {
    weight[j] = importance == nullptr ? root + std::fabs(x[j])
                                      : importance[j] * std::sqrt(mean + x[j] * x[j]);
  }
}

// ---- scale and minimum: x = scale q - minimum, neither below zero

struct Affine {
  float scale = 0, minimum = 0;
};

// The best pair for codes 0 to `most`.
Affine fit_affine(std::span<const float> x, std::span<const float> weight, int most) {
  float low = 0, high = x[0];  // a minimum above zero cannot be written
  for (const float v : x) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (!(high > low) || !std::isfinite(high - low)) return {0, std::isfinite(low) ? -low : 0};

  float sum_w = 0, sum_wx = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    sum_w += weight[j];
    sum_wx += weight[j] * x[j];
  }
  Affine best;
  float best_error = std::numeric_limits<float>::infinity();
  std::array<float, 32> code{};
  // Takes the codes that round to (scale, minimum), solves for both, and keeps what is better.
  const auto attempt = [&](float scale, float minimum) {
    const float inverse = 1 / scale;
    float sum_wq = 0, sum_wqq = 0, sum_wxq = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      code[j] = static_cast<float>(nearest((x[j] + minimum) * inverse, 0, most));
      const float wq = weight[j] * code[j];
      sum_wq += wq;
      sum_wqq += wq * code[j];
      sum_wxq += wq * x[j];
    }
    const float determinant = sum_w * sum_wqq - sum_wq * sum_wq;
    if (!(determinant > 0)) return false;
    Affine found = {(sum_w * sum_wxq - sum_wx * sum_wq) / determinant,
                    (sum_wq * sum_wxq - sum_wqq * sum_wx) / determinant};
    if (found.minimum < 0) found = {sum_wqq > 0 ? sum_wxq / sum_wqq : 0, 0};
    if (!(found.scale > 0)) return false;
    float error = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const float difference = found.scale * code[j] - found.minimum - x[j];
      error += weight[j] * difference * difference;
    }
    if (!(error < best_error)) return false;
    best_error = error;
    best = found;
    return true;
  };
  for (int step = -10; step <= 10; ++step) {
    const float levels = static_cast<float>(most) + 0.1f * static_cast<float>(step);
    if (levels > 0.5f) attempt((high - low) / levels, -low);
  }
  for (int round = 0; round < 4 && best.scale > 0; ++round) {
    if (!attempt(best.scale, best.minimum)) break;
  }
  if (!(best.scale > 0)) best = {(high - low) / static_cast<float>(most), -low};
  return best;
}

// ---- scale alone: x = scale value(code)

// Of the scales whose inverses are given, and of what each leads to, the one that explains most of
// the sum of squares. value(x) is the number nearest to x that a code stands for.
template <std::size_t kCount, class Value>
float best_scale(std::span<const float> x, std::span<const float> weight,
                 const std::array<float, kCount>& inverses, Value value) {
  float best = 0, best_gain = 0;
  const auto attempt = [&](float inverse) {
    float sum_xq = 0, sum_qq = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const float q = value(x[j] * inverse);
      sum_xq += weight[j] * x[j] * q;
      sum_qq += weight[j] * q * q;
    }
    if (!(sum_qq > 0) || !(sum_xq * sum_xq > best_gain * sum_qq)) return false;
    best_gain = sum_xq * sum_xq / sum_qq;
    best = sum_xq / sum_qq;
    return true;
  };
  for (const float inverse : inverses) attempt(inverse);
  for (int round = 0; round < 4 && best != 0; ++round) {
    if (!attempt(1 / best)) break;
  }
  return best;
}

// Inverses that put `largest` near either end of the codes' values.
template <int kSteps>
std::array<float, 2 * (2 * kSteps + 1)> inverses_near(float low, float high, float step,
                                                      float largest) {
  std::array<float, 2 * (2 * kSteps + 1)> inverses{};
  std::size_t at = 0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    inverses[at++] = (low - step * static_cast<float>(i)) / largest;
    inverses[at++] = (high + step * static_cast<float>(i)) / largest;
  }
  return inverses;
}

// Codes from -`most` to `most` - 1 that stand for themselves.
float fit_scale(std::span<const float> x, std::span<const float> weight, int most) {
  const float largest = qb::extreme(x.data(), static_cast<int>(x.size()));
  if (largest == 0 || !std::isfinite(largest)) return 0;
  const auto top = static_cast<float>(most);
  return best_scale(x, weight, inverses_near<9>(-top, top - 1, 0.1f, largest),
                    [&](float v) { return static_cast<float>(nearest(v, -most, most - 1)); });
}

// ---- blocks of 256 with pairs of scale and minimum

struct Pairs {
  std::array<int, 16> scale{}, minimum{};
  float d = 0, dmin = 0;  // as the file holds them
};

// What a scale and a minimum do to a part, with the codes that are nearest: the weighted sum of
// squared errors, and the sum of errors times numbers. The smallest squares alone shrink numbers,
// and a product with anything like them then comes out too small.
struct Effect {
  float error = 0, bias = 0;
};

Effect effect_of(std::span<const float> x, std::span<const float> weight, float scale,
                 float minimum, int most) {
  const float inverse = qb::inverse(scale);
  Effect effect;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const auto code = static_cast<float>(nearest((x[j] + minimum) * inverse, 0, most));
    const float difference = scale * code - minimum - x[j];
    effect.error += weight[j] * difference * difference;
    effect.bias += difference * x[j];
  }
  return effect;
}

// One pair for each part of `size` numbers, in units of two scales for the whole block.
Pairs fit_pairs(const float* x, const float* importance, int size, int codes, int levels,
                Bits8* place) {
  const int parts = kSuper / size;
  std::array<Affine, 16> fits;
  std::array<float, 32> weight{};
  Affine largest;
  for (int p = 0; p < parts; ++p) {
    const std::span<const float> part(x + p * size, static_cast<std::size_t>(size));
    weigh(part, importance == nullptr ? nullptr : importance + p * size, weight);
    const auto at = static_cast<std::size_t>(p);
    fits[at] = fit_affine(part, weight, codes);
    largest.scale = std::max(largest.scale, fits[at].scale);
    largest.minimum = std::max(largest.minimum, fits[at].minimum);
  }
  const auto top = static_cast<float>(levels);
  qb::put_half(place, largest.scale / top);
  qb::put_half(place + 2, largest.minimum / top);
  Pairs pairs;
  pairs.d = qb::half(place);
  pairs.dmin = qb::half(place + 2);
  const float per_scale = qb::inverse(largest.scale) * top;
  const float per_minimum = qb::inverse(largest.minimum) * top;
  float squares = 0, bias = 0;  // of the block; the bias of the parts before
  for (int j = 0; j < kSuper; ++j) squares += x[j] * x[j];
  for (int p = 0; p < parts; ++p) {
    const std::span<const float> part(x + p * size, static_cast<std::size_t>(size));
    weigh(part, importance == nullptr ? nullptr : importance + p * size, weight);
    float mean_weight = 0;
    for (std::size_t j = 0; j < part.size(); ++j) mean_weight += weight[j];
    mean_weight /= static_cast<float>(size);
    const auto at = static_cast<std::size_t>(p);
    // The two were chosen together and are rounded apart, so their neighbours may be better; and of
    // those that are nearly as good, one makes up for the bias so far.
    const float for_bias =
        squares > 0 ? kAgainstBias / static_cast<float>(codes) * mean_weight / squares : 0;
    float kept_bias = 0;
    const int scale = nearest(fits[at].scale * per_scale, 0, levels);
    const int minimum = nearest(fits[at].minimum * per_minimum, 0, levels);
    float best_error = std::numeric_limits<float>::infinity();
    for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, levels); ++s) {
      for (int m = std::max(minimum - 1, 0); m <= std::min(minimum + 1, levels); ++m) {
        const Effect effect = effect_of(part, weight, pairs.d * static_cast<float>(s),
                                        pairs.dmin * static_cast<float>(m), codes);
        const float sum = bias + effect.bias;
        const float error = effect.error + for_bias * sum * sum;
        if (!(error < best_error)) continue;
        best_error = error;
        kept_bias = effect.bias;
        pairs.scale[at] = s;
        pairs.minimum[at] = m;
      }
    }
    bias += kept_bias;
  }
  return pairs;
}

// The code of each number under the pairs as they are in the file.
std::array<Bits8, kSuper> codes_of(const float* x, const Pairs& pairs, int size, int most) {
  std::array<Bits8, kSuper> codes{};
  for (int e = 0; e < kSuper; ++e) {
    const auto p = static_cast<std::size_t>(e / size);
    const float scale = pairs.d * static_cast<float>(pairs.scale[p]);
    const float minimum = pairs.dmin * static_cast<float>(pairs.minimum[p]);
    codes[static_cast<std::size_t>(e)] =
        static_cast<Bits8>(scale == 0 ? 0 : nearest((x[e] + minimum) / scale, 0, most));
  }
  return codes;
}

// Eight pairs of six bits in twelve bytes, the layout that pair_scale() reads.
void put_pairs(const Pairs& pairs, Bits8* s) {
  for (std::size_t j = 0; j < 4; ++j) {
    const auto scale = static_cast<Bits32>(pairs.scale[j]);
    const auto minimum = static_cast<Bits32>(pairs.minimum[j]);
    const auto scale4 = static_cast<Bits32>(pairs.scale[j + 4]);
    const auto minimum4 = static_cast<Bits32>(pairs.minimum[j + 4]);
    s[j] = static_cast<Bits8>(scale | scale4 >> 4 << 6);
    s[j + 4] = static_cast<Bits8>(minimum | minimum4 >> 4 << 6);
    s[j + 8] = static_cast<Bits8>((scale4 & 15u) | (minimum4 & 15u) << 4);
  }
}

// Codes of two bits: four planes of 32 numbers share 32 bytes, in each half of 128.
void put_two_bits(const std::array<Bits8, kSuper>& codes, Bits8* qs) {
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t first = i / 32 * 128 + i % 32;
    qs[i] = static_cast<Bits8>((codes[first] & 3u) | (codes[first + 32] & 3u) << 2 |
                               (codes[first + 64] & 3u) << 4 | (codes[first + 96] & 3u) << 6);
  }
}

// Codes of four bits: 64 numbers share 32 bytes.
void put_four_bits(const std::array<Bits8, kSuper>& codes, Bits8* qs) {
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t first = i / 32 * 64 + i % 32;
    qs[i] = static_cast<Bits8>((codes[first] & 15u) | (codes[first + 32] & 15u) << 4);
  }
}

void encode_q2_k(const float* x, const float* importance, Bits8* block) {
  const Pairs pairs = fit_pairs(x, importance, 16, 3, 15, block + 80);
  for (std::size_t p = 0; p < 16; ++p) {
    block[p] = static_cast<Bits8>(pairs.scale[p] | pairs.minimum[p] << 4);
  }
  put_two_bits(codes_of(x, pairs, 16, 3), block + 16);
}

void encode_q4_k(const float* x, const float* importance, Bits8* block) {
  const Pairs pairs = fit_pairs(x, importance, 32, 15, 63, block);
  put_pairs(pairs, block + 4);
  put_four_bits(codes_of(x, pairs, 32, 15), block + 16);
}

void encode_q5_k(const float* x, const float* importance, Bits8* block) {
  const Pairs pairs = fit_pairs(x, importance, 32, 31, 63, block);
  put_pairs(pairs, block + 4);
  const auto codes = codes_of(x, pairs, 32, 31);
  for (std::size_t l = 0; l < 32; ++l) {
    Bits32 bits = 0;
    for (std::size_t pair = 0; pair < 8; ++pair) {
      bits |= static_cast<Bits32>(codes[32 * pair + l] >> 4) << pair;
    }
    block[16 + l] = static_cast<Bits8>(bits);
  }
  put_four_bits(codes, block + 48);
}

// ---- blocks of 256 with sixteen signed scales

struct Scales {
  std::array<int, 16> scale{};
  float d = 0;
};

// Scales from -`levels` to `levels` - 1; the largest takes the lower end, which reaches further.
Scales fit_scales(const float* x, const float* importance, int codes, int levels, Bits8* place) {
  std::array<float, 16> fits{}, weight{};
  for (std::size_t p = 0; p < 16; ++p) {
    const std::span<const float> part(x + 16 * p, 16);
    weigh(part, importance == nullptr ? nullptr : importance + 16 * p, weight);
    fits[p] = fit_scale(part, weight, codes);
  }
  const float largest = qb::extreme(fits.data(), 16);
  qb::put_half(place, largest / static_cast<float>(-levels));
  Scales scales;
  scales.d = qb::half(place);
  const float per_scale = qb::inverse(largest) * static_cast<float>(-levels);
  for (std::size_t p = 0; p < 16; ++p) {
    scales.scale[p] = nearest(fits[p] * per_scale, -levels, levels - 1);
  }
  return scales;
}

// Codes from 0 to 2 `most` - 1, that is with `most` added.
std::array<Bits8, kSuper> codes_of(const float* x, const Scales& scales, int most) {
  std::array<Bits8, kSuper> codes{};
  for (int e = 0; e < kSuper; ++e) {
    const float scale =
        scales.d * static_cast<float>(scales.scale[static_cast<std::size_t>(e / 16)]);
    const int q = scale == 0 ? 0 : nearest(x[e] / scale, -most, most - 1);
    codes[static_cast<std::size_t>(e)] = static_cast<Bits8>(q + most);
  }
  return codes;
}

void encode_q3_k(const float* x, const float* importance, Bits8* block) {
  const Scales scales = fit_scales(x, importance, 4, 32, block + 108);
  std::fill_n(block + 96, 12, Bits8{0});
  for (std::size_t p = 0; p < 16; ++p) {
    const auto bits = static_cast<Bits32>(scales.scale[p] + 32);
    Bits8& low = block[96 + p % 8];
    low = static_cast<Bits8>(low | (bits & 15u) << p / 8 * 4);
    Bits8& high = block[104 + p % 4];
    high = static_cast<Bits8>(high | bits >> 4 << p / 4 * 2);
  }
  const auto codes = codes_of(x, scales, 4);
  for (std::size_t l = 0; l < 32; ++l) {
    Bits32 bits = 0;
    for (std::size_t plane = 0; plane < 8; ++plane) {
      bits |= static_cast<Bits32>(codes[32 * plane + l] >> 2) << plane;
    }
    block[l] = static_cast<Bits8>(bits);
  }
  put_two_bits(codes, block + 32);
}

void encode_q6_k(const float* x, const float* importance, Bits8* block) {
  const Scales scales = fit_scales(x, importance, 32, 128, block + 208);
  for (std::size_t p = 0; p < 16; ++p) {
    block[192 + p] = static_cast<Bits8>(scales.scale[p] & 255);
  }
  const auto codes = codes_of(x, scales, 32);
  for (std::size_t side = 0; side < 2; ++side) {
    const Bits8* from = codes.data() + 128 * side;
    for (std::size_t l = 0; l < 32; ++l) {
      block[64 * side + l] = static_cast<Bits8>((from[l] & 15u) | (from[l + 64] & 15u) << 4);
      block[64 * side + l + 32] =
          static_cast<Bits8>((from[l + 32] & 15u) | (from[l + 96] & 15u) << 4);
      block[128 + 32 * side + l] = static_cast<Bits8>(
          from[l] >> 4 | from[l + 32] >> 4 << 2 | from[l + 64] >> 4 << 4 | from[l + 96] >> 4 << 6);
    }
  }
}

// ---- four-bit codes with uneven values

constexpr std::span<const signed char, 16> kUneven{qb::kUneven};

// The code whose value is nearest.
int uneven_code(float x) {
  const auto above = std::lower_bound(
      kUneven.begin(), kUneven.end(), x,
      [](signed char value, float wanted) { return static_cast<float>(value) < wanted; });
  const auto place = above - kUneven.begin();
  if (place == 0) return 0;
  if (place == 16) return 15;
  const auto at = static_cast<std::size_t>(place);
  const bool lower = x - static_cast<float>(kUneven[at - 1]) <= static_cast<float>(kUneven[at]) - x;
  return static_cast<int>(place) - (lower ? 1 : 0);
}

float fit_uneven(std::span<const float> x, std::span<const float> weight) {
  const float largest = qb::extreme(x.data(), static_cast<int>(x.size()));
  if (largest == 0 || !std::isfinite(largest)) return 0;
  return best_scale(x, weight, inverses_near<8>(-127, 113, 2, largest), [](float v) {
    return static_cast<float>(kUneven[static_cast<std::size_t>(uneven_code(v))]);
  });
}

// Sixteen bytes of codes under a scale as the file holds it.
void put_uneven(const float* x, float scale, Bits8* qs) {
  const float inverse = qb::inverse(scale);
  qb::put_codes(qs, nullptr, [&](int j) { return uneven_code(x[j] * inverse); });
}

void encode_iq4_nl(const float* x, const float* importance, Bits8* block) {
  std::array<float, 32> weight{};
  weigh({x, 32}, importance, weight);
  qb::put_half(block, fit_uneven({x, 32}, weight));
  put_uneven(x, qb::half(block), block + 2);
}

void encode_iq4_xs(const float* x, const float* importance, Bits8* block) {
  std::array<float, 8> fits{};
  std::array<float, 32> weight{};
  for (std::size_t p = 0; p < 8; ++p) {
    const std::span<const float> part(x + 32 * p, 32);
    weigh(part, importance == nullptr ? nullptr : importance + 32 * p, weight);
    fits[p] = fit_uneven(part, weight);
  }
  const float largest = qb::extreme(fits.data(), 8);
  qb::put_half(block, largest / -32);
  const float d = qb::half(block), per_scale = qb::inverse(largest) * -32;
  std::fill_n(block + 2, 6, Bits8{0});
  for (std::size_t p = 0; p < 8; ++p) {
    const int scale = nearest(fits[p] * per_scale, -32, 31);
    const auto bits = static_cast<Bits32>(scale + 32);
    block[4 + p / 2] = static_cast<Bits8>(block[4 + p / 2] | (bits & 15u) << p % 2 * 4);
    block[2 + p / 4] = static_cast<Bits8>(block[2 + p / 4] | bits >> 4 << p % 4 * 2);
    put_uneven(x + 32 * p, d * static_cast<float>(scale), block + 8 + 16 * p);
  }
}

// ---- four-bit floats with a power of two

void encode_mxfp4(const float* x, Bits8* block) {
  const float largest = std::fabs(qb::extreme(x, 32));
  // The largest number falls between 4 and 8, where 6 is the largest code.
  int e = 0;
  if (largest > 0) e = std::isfinite(largest) ? std::ilogb(largest) - 2 + 127 : 254;
  e = std::clamp(e, 0, 254);
  block[0] = static_cast<Bits8>(e);
  const float d = qb::MXFP4::scale(static_cast<Bits32>(e));
  qb::put_codes(block + 1, nullptr, [&](int j) {
    int best = 0;
    float best_error = std::fabs(x[j]);
    for (int code = 1; code < 16; ++code) {
      const float error = std::fabs(qb::twice_e2m1(static_cast<Bits32>(code)) * d - x[j]);
      if (error < best_error) {
        best_error = error;
        best = code;
      }
    }
    return best;
  });
}

void encode(QType type, const float* x, const float* importance, Bits8* block) {
  switch (type) {
    case QType::Q4_0:
      return qb::encode_q4_0(x, block);
    case QType::Q4_1:
      return qb::encode_q4_1(x, block);
    case QType::Q5_0:
      return qb::encode_q5_0(x, block);
    case QType::Q5_1:
      return qb::encode_q5_1(x, block);
    case QType::Q8_0:
      return qb::encode_q8_0(x, block);
    case QType::Q8_1:
      return qb::encode_q8_1(x, block);
    case QType::Q8_K:
      return qb::encode_q8_k(x, block);
    case QType::Q2_K:
      return encode_q2_k(x, importance, block);
    case QType::Q3_K:
      return encode_q3_k(x, importance, block);
    case QType::Q4_K:
      return encode_q4_k(x, importance, block);
    case QType::Q5_K:
      return encode_q5_k(x, importance, block);
    case QType::Q6_K:
      return encode_q6_k(x, importance, block);
    case QType::IQ4_NL:
      return encode_iq4_nl(x, importance, block);
    case QType::IQ4_XS:
      return encode_iq4_xs(x, importance, block);
    case QType::MXFP4:
      return encode_mxfp4(x, block);
    default:
      throw Error(ErrorKind::Unsupported, "quantize", type, " can be read and not made");
  }
}

}  // namespace

bool can_quantize(QType type) {
  switch (type) {
    case QType::Q4_0:
    case QType::Q4_1:
    case QType::Q5_0:
    case QType::Q5_1:
    case QType::Q8_0:
    case QType::Q8_1:
    case QType::Q8_K:
    case QType::Q2_K:
    case QType::Q3_K:
    case QType::Q4_K:
    case QType::Q5_K:
    case QType::Q6_K:
    case QType::IQ4_NL:
    case QType::IQ4_XS:
    case QType::MXFP4:
      return true;
    default:
      return false;
  }
}

void quantize(QType type, const float* x, std::int64_t rows, std::int64_t columns,
              const float* importance, std::byte* out) {
  const QFormat& format = format_of(type);
  const std::int64_t in_row = columns / format.elements;
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / format.elements);
  ThreadPool::shared().parallel_for(
      0, rows * in_row, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t b = first; b < last; ++b) {
          const float* weights =
              importance == nullptr ? nullptr : importance + b % in_row * format.elements;
          encode(type, x + b * format.elements, weights,
                 reinterpret_cast<Bits8*>(out + b * format.bytes));
        }
      });
}

}  // namespace tl::cpu
