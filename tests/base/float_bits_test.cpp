// float_bits.h against a reference that shares nothing with it: the nearest value is looked up in
// the sorted list of all values of a format, decoded by their definition in long double.
#include "tl/base/float_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tl::float_bits {
namespace {

using Wide = long double;  // 64 bits of precision: exact for every f64, i64 and u64
static_assert(std::numeric_limits<Wide>::digits >= 64);

// ---- the reference

struct Format {
  std::string name;
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  unsigned sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  unsigned max_finite() const {
    const unsigned all = sign_bit() - 1;
    return has_infinity ? all - (1u << mantissa_bits) : all - 1;
  }

  Wide value(unsigned magnitude) const {  // of a finite pattern
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const auto mantissa = static_cast<int>(magnitude & ((1u << mantissa_bits) - 1));
    const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    return std::ldexp(static_cast<Wide>(significand),
                      std::max(exponent, 1) - bias() - mantissa_bits);
  }

  // Nearest, ties to even, of a number that is not NaN.
  unsigned nearest(Wide x) const {
    const unsigned sign = std::signbit(x) ? sign_bit() : 0;
    const Wide magnitude = std::fabs(x);
    const unsigned top = max_finite();
    if (magnitude >= value(top)) {
      // past the last value lies the one that would follow; from halfway on it is too large
      const Wide next = value(top) + (value(top) - value(top - 1));
      const bool overflows = magnitude >= (value(top) + next) / 2;
      return sign | (overflows && has_infinity ? top + 1 : top);
    }
    unsigned low = 0, high = top;  // value(low) <= magnitude < value(high)
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      (value(middle) <= magnitude ? low : high) = middle;
    }
    const Wide below = magnitude - value(low), above = value(high) - magnitude;
    if (below != above) return sign | (below < above ? low : high);
    return sign | (low % 2 == 0 ? low : high);
  }
};

const Format kF16{"f16", 5, 10, true};
const Format kBF16{"bf16", 8, 7, true};
const Format kF8{"f8e4m3", 4, 3, false};

struct Under {
  const Format& format;
  unsigned (*encode)(float);
  float (*decode)(unsigned);
};

const Under kAll[] = {
    {kF16, [](float x) -> unsigned { return f32_to_f16(x); },
     [](unsigned b) { return f16_to_f32(static_cast<Bits16>(b)); }},
    {kBF16, [](float x) -> unsigned { return f32_to_bf16(x); },
     [](unsigned b) { return bf16_to_f32(static_cast<Bits16>(b)); }},
    {kF8, [](float x) -> unsigned { return f32_to_f8e4m3(x); },
     [](unsigned b) { return f8e4m3_to_f32(static_cast<Bits8>(b)); }},
};

// A wide number through each small format must be what the reference says: one rounding.
template <class T>
void expect_single_rounding(T x) {
  const float ready = round_ready(x);
  for (const Under& u : kAll) {
    ASSERT_EQ(u.encode(ready), u.format.nearest(static_cast<Wide>(x)))
        << u.format.name << " of " << static_cast<Wide>(x);
  }
}

// All halfway points between neighbours of every format.
std::vector<Wide> halfway_points() {
  std::vector<Wide> points;
  for (const Under& u : kAll) {
    for (unsigned m = 0; m < u.format.max_finite(); ++m) {
      points.push_back((u.format.value(m) + u.format.value(m + 1)) / 2);
    }
    const unsigned top = u.format.max_finite();
    points.push_back(u.format.value(top) + (u.format.value(top) - u.format.value(top - 1)) / 2);
  }
  return points;
}

// ---- f32 and the small formats

TEST(FloatBits, EveryPatternDecodesToItsDefinition) {
  for (const Under& u : kAll) {
    for (unsigned m = 0; m <= u.format.max_finite(); ++m) {
      const Wide want = u.format.value(m);
      EXPECT_EQ(u.decode(m), want) << u.format.name << " " << m;
      EXPECT_EQ(u.decode(m | u.format.sign_bit()), -want) << u.format.name << " -" << m;
      EXPECT_TRUE(std::signbit(u.decode(m | u.format.sign_bit())));
    }
  }
  EXPECT_EQ(f16_to_f32(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(f16_to_f32(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(bf16_to_f32(0x7f80), std::numeric_limits<float>::infinity());
  EXPECT_EQ(f8e4m3_to_f32(0x7e), 448.0f);
}

TEST(FloatBits, EveryPatternRoundTrips) {
  for (const Under& u : kAll) {
    for (unsigned b = 0; b < 2 * u.format.sign_bit(); ++b) {
      const float x = u.decode(b);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(u.decode(u.encode(x)))) << u.format.name << " " << b;
        EXPECT_NE(bits_of(x) & 0x400000u, 0u) << "a NaN is quiet: " << u.format.name << " " << b;
      } else {
        EXPECT_EQ(u.encode(x), b) << u.format.name;
      }
    }
  }
}

TEST(FloatBits, NaNPatternsAreTheOnesOfTheFormat) {
  for (unsigned b = 0; b < 65536; ++b) {
    EXPECT_EQ(std::isnan(f16_to_f32(static_cast<Bits16>(b))), (b & 0x7fffu) > 0x7c00u);
    EXPECT_EQ(std::isnan(bf16_to_f32(static_cast<Bits16>(b))), (b & 0x7fffu) > 0x7f80u);
  }
  for (unsigned b = 0; b < 256; ++b) {
    EXPECT_EQ(std::isnan(f8e4m3_to_f32(static_cast<Bits8>(b))), (b & 0x7fu) == 0x7fu);
  }
}

TEST(FloatBits, NaNOfAnyPayloadStaysNaN) {
  for (const Bits32 payload : {1u, 0x1fffu, 0x2000u, 0x80000u, 0x200000u, 0x400000u, 0x7fffffu}) {
    for (const Bits32 sign : {0u, 0x80000000u}) {
      const float nan = float_of(sign | kF32Infinity | payload);
      for (const Under& u : kAll) EXPECT_TRUE(std::isnan(u.decode(u.encode(nan)))) << payload;
    }
  }
  EXPECT_TRUE(std::isnan(round_ready(std::numeric_limits<double>::quiet_NaN())));
}

TEST(FloatBits, OverflowIsInfinityButSaturatesInF8) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float x : {65520.0f, 1e30f, infinity}) {
    EXPECT_EQ(f32_to_f16(x), 0x7c00);
    EXPECT_EQ(f32_to_f16(-x), 0xfc00);
  }
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f32_to_bf16(infinity), 0x7f80);
  for (const float x : {448.0f, 449.0f, 464.0f, 480.0f, 1e30f, infinity}) {
    EXPECT_EQ(f32_to_f8e4m3(x), 0x7e);
    EXPECT_EQ(f32_to_f8e4m3(-x), 0xfe);
  }
}

// Around every value and every halfway point of every format, the float neighbours on both sides.
TEST(FloatBits, RoundsToNearestEvenAtEveryTie) {
  for (const Under& u : kAll) {
    std::vector<float> points;
    for (unsigned m = 0; m <= u.format.max_finite(); ++m) {
      const Wide here = u.format.value(m);
      const Wide next = m < u.format.max_finite() ? u.format.value(m + 1) : here;
      points.push_back(static_cast<float>(here));
      points.push_back(static_cast<float>((here + next) / 2));
      points.push_back(static_cast<float>((3 * here + next) / 4));
    }
    for (const float point : points) {
      const float around[] = {std::nextafter(point, -1.0f), point,
                              std::nextafter(point, std::numeric_limits<float>::infinity())};
      for (const float x : around) {
        if (std::isinf(x)) continue;
        ASSERT_EQ(u.encode(x), u.format.nearest(x)) << u.format.name << " of " << x;
        ASSERT_EQ(u.encode(-x), u.format.nearest(-x)) << u.format.name << " of " << -x;
      }
    }
  }
}

TEST(FloatBits, RandomFloatsRoundLikeTheReference) {
  std::mt19937 random(1);
  for (int i = 0; i < 300000; ++i) {
    const float x = float_of(static_cast<Bits32>(random()));
    if (!std::isfinite(x)) continue;
    for (const Under& u : kAll) ASSERT_EQ(u.encode(x), u.format.nearest(x)) << u.format.name;
  }
}

// ---- one rounding from wide types

TEST(FloatBits, DoublesBesideATieRoundOnce) {
  for (const Wide tie : halfway_points()) {
    const double x = static_cast<double>(tie);
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double near : {x, std::nextafter(x, 0.0), std::nextafter(x, infinity)}) {
      expect_single_rounding(near);
      expect_single_rounding(-near);
    }
  }
}

TEST(FloatBits, TheNaiveRouteThroughF32WouldBeWrong) {
  const double trap = 1.0 + 0x1p-11 + 0x1p-40;  // just above the tie between two f16 values
  EXPECT_EQ(f32_to_f16(static_cast<float>(trap)), 0x3c00);
  EXPECT_EQ(f32_to_f16(round_ready(trap)), 0x3c01);
}

TEST(FloatBits, RandomDoublesRoundOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100000; ++i) {
    const double any = std::bit_cast<double>(random());
    if (std::isfinite(any)) expect_single_rounding(any);
    // and among those that the small formats can tell apart
    const auto mantissa = static_cast<double>(static_cast<std::int64_t>(random()));
    expect_single_rounding(std::ldexp(mantissa, static_cast<int>(random() % 120) - 100));
  }
}

TEST(FloatBits, DoubleExtremes) {
  for (const double x :
       {0.0, 0x1p-1074, 0x1p-150, 0x1.8p-150, 0x1p-149, 0x1p-133, 0x1p-134, 0x1.00001p-134, 0x1p127,
        0x1.fffffep127, 0x1.fefffffffffffp127, 0x1.ffp127, 0x1.fffffffffffffp127, 0x1p128, 1e300}) {
    expect_single_rounding(x);
    expect_single_rounding(-x);
  }
  EXPECT_EQ(f32_to_f8e4m3(round_ready(-std::numeric_limits<double>::infinity())), 0xfe);
  EXPECT_EQ(f32_to_f16(round_ready(-0.0)), 0x8000);
}

TEST(FloatBits, IntegersBesideATieRoundOnce) {
  for (const Wide tie : halfway_points()) {
    if (tie < 1 || tie >= 0x1p64L) continue;
    const auto at = static_cast<std::uint64_t>(tie);
    for (const std::uint64_t x : {at - 1, at, at + 1}) {
      expect_single_rounding<unsigned long long>(x);
      if (x < 1ull << 63) {
        expect_single_rounding<long long>(static_cast<long long>(x));
        expect_single_rounding<long long>(-static_cast<long long>(x));
      }
      if (x < 1ull << 32) expect_single_rounding<unsigned>(static_cast<unsigned>(x));
      if (x < 1ull << 31) {
        expect_single_rounding<int>(static_cast<int>(x));
        expect_single_rounding<int>(-static_cast<int>(x));
      }
    }
  }
}

TEST(FloatBits, IntegersOfEveryLengthRoundOnce) {
  std::mt19937_64 random(3);
  for (int length = 1; length <= 64; ++length) {
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t x = (random() | 1ull << 63) >> (64 - length);
      expect_single_rounding<unsigned long long>(x);
      expect_single_rounding<long long>(static_cast<long long>(x));
      expect_single_rounding<unsigned>(static_cast<unsigned>(x));
      expect_single_rounding<int>(static_cast<int>(x));
      expect_single_rounding<short>(static_cast<short>(x));
      expect_single_rounding<unsigned char>(static_cast<unsigned char>(x));
      expect_single_rounding<long>(static_cast<long>(x));
      expect_single_rounding<unsigned long>(x);
    }
  }
  expect_single_rounding<long long>(std::numeric_limits<long long>::min());
  expect_single_rounding<unsigned long long>(~0ull);
}

// ---- f64 to f32, and the compile-time path

TEST(FloatBits, DoubleToFloatIsTheHardwareConversion) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::bit_cast<double>(random());
    if (std::isnan(x)) continue;
    EXPECT_EQ(bits_of(f64_to_f32(x)), bits_of(static_cast<float>(x)));
  }
}

constexpr double kInfinity64 = std::numeric_limits<double>::infinity();
static_assert(f64_to_f32(1e300) == std::numeric_limits<float>::infinity());
static_assert(f64_to_f32(-kInfinity64) == -std::numeric_limits<float>::infinity());
static_assert(f64_to_f32(0x1.ffffffp+127) == std::numeric_limits<float>::infinity());
static_assert(f64_to_f32(0x1.fffffefffffffp+127) == std::numeric_limits<float>::max());
static_assert(f64_to_f32(-0x1.fffffefffffffp+127) == std::numeric_limits<float>::lowest());
static_assert(f64_to_f32(0x1.8p-149) == 0x1p-148f);
static_assert(f32_to_f16(1.0f) == 0x3c00 && f16_to_f32(0x3555) == 0x1.554p-2f);
static_assert(f32_to_f16(0x1p-25f) == 0 && f32_to_f16(0x1.8p-24f) == 2);
static_assert(f32_to_f8e4m3(0x1p-10f) == 0 && f32_to_f8e4m3(0x1.8p-9f) == 2);
static_assert(f32_to_f16(round_ready(1e300)) == 0x7c00);
static_assert(truncate<unsigned char>(-1.5f) == 0 && truncate<short>(1e9) == 32767);
static_assert(truncate<long long>(-kInfinity64) == std::numeric_limits<long long>::min());
static_assert(truncate<int>(std::numeric_limits<float>::quiet_NaN()) == 0);
static_assert(convert_number<bool>(std::numeric_limits<double>::quiet_NaN()));

}  // namespace
}  // namespace tl::float_bits
