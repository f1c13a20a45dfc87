// The table of dtypes, the small float types, and every one of the 121 conversions.
#include "tl/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tl {
namespace {

// ---- the table

TEST(DType, NamesAreUniqueAndParseBack) {
  std::set<std::string_view> seen;
  for (const DType t : kDTypes) {
    EXPECT_TRUE(seen.insert(name(t)).second) << name(t);
    EXPECT_EQ(parse_dtype(name(t)), t);
    std::ostringstream text;
    text << t;
    EXPECT_EQ(text.str(), name(t));
  }
  EXPECT_EQ(seen.size(), std::size_t{kDTypeCount});
}

TEST(DType, ParsingIsExact) {
  for (const char* bad : {"", "F32", "f32 ", " f32", "float", "f3", "f322", "u16"}) {
    EXPECT_THROW(parse_dtype(bad), Error) << bad;
  }
  try {
    parse_dtype("float32");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind, ErrorKind::BadArgument);
    EXPECT_STREQ(e.what(),
                 "dtype: \"float32\" is not one of u8, u32, i16, i32, i64, f8e4m3, f16, bf16, f32, "
                 "f64, bool");
  }
}

TEST(DType, VisitGivesTheTypeBehind) {
  for (const DType t : kDTypes) {
    visit_dtype("test", t, [&]<class T> {
      EXPECT_EQ(dtype_of<T>, t);
      EXPECT_EQ(sizeof(T), size_of(t));
      EXPECT_EQ(8 * sizeof(T), bits_of(t));
      EXPECT_EQ(is_float(t), std::is_floating_point_v<T> || kIsSmallFloat<T>);
      EXPECT_EQ(is_int(t), std::is_integral_v<T> && t != DType::Bool);
    });
  }
}

TEST(DType, VisitFloatTakesAllFloatsAndNothingElse) {
  for (const DType t : kDTypes) {
    if (is_float(t)) {
      EXPECT_EQ(visit_float("exp", t, []<class T> { return sizeof(T); }), size_of(t));
      continue;
    }
    try {
      visit_float("exp", t, []<class T> {});
      FAIL() << t;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind, ErrorKind::Unsupported);
      EXPECT_EQ(e.what(), "exp: needs a float tensor, got " + std::string(name(t)));
    }
  }
}

TEST(DType, ACodeOutsideTheEnumIsAnErrorNotACrash) {
  EXPECT_THROW(visit_dtype("load", static_cast<DType>(77), []<class T> {}), Error);
  std::ostringstream text;
  text << static_cast<DType>(77);
  EXPECT_EQ(text.str(), "dtype code 77");
}

// ---- the small float types

TEST(SmallFloats, CompareByValue) {
  EXPECT_EQ(half(0.0f), half(-0.0f));
  EXPECT_NE(half(0.0f).bits(), half(-0.0f).bits());
  EXPECT_LT(half(-2.0f), half(1.0));
  EXPECT_GT(float8_e4m3(448.0f), float8_e4m3(416));
  const bfloat16 nan = std::numeric_limits<bfloat16>::quiet_NaN();
  EXPECT_NE(nan, nan);
  EXPECT_EQ(nan <=> bfloat16(1.0f), std::partial_ordering::unordered);
}

template <class T>
void check_limits(double max, double min, double denorm_min, double epsilon) {
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ(static_cast<double>(Limits::max()), max);
  EXPECT_EQ(static_cast<double>(Limits::lowest()), -max);
  EXPECT_EQ(static_cast<double>(Limits::min()), min);
  EXPECT_EQ(static_cast<double>(Limits::denorm_min()), denorm_min);
  EXPECT_EQ(static_cast<double>(Limits::epsilon()), epsilon);
  EXPECT_EQ(std::ldexp(1.0, Limits::min_exponent - 1), min);
  EXPECT_EQ(std::ilogb(max), Limits::max_exponent - 1);
  EXPECT_TRUE(std::isnan(static_cast<float>(Limits::quiet_NaN())));
  if (Limits::has_infinity) {
    EXPECT_TRUE(std::isinf(static_cast<float>(Limits::infinity())));
  }
}

TEST(SmallFloats, HaveLimits) {
  check_limits<half>(65504.0, 0x1p-14, 0x1p-24, 0x1p-10);
  check_limits<bfloat16>(0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-7);
  check_limits<float8_e4m3>(448.0, 0x1p-6, 0x1p-9, 0x1p-3);
  EXPECT_FALSE(std::numeric_limits<float8_e4m3>::has_infinity);
}

// ---- conversions
//
// The expected value is computed here in long double, which holds every source exactly, with the
// policy written out once more in the plainest way.

using Wide = long double;

template <class T>
Wide widen(T x) {
  if constexpr (kIsSmallFloat<T>) {
    return static_cast<Wide>(static_cast<float>(x));
  } else {
    return static_cast<Wide>(x);
  }
}

// Boundary values of every type, as far as T can hold them.
template <class T>
std::vector<T> boundary_values() {
  std::vector<T> values;
  const auto add = [&](auto x) { values.push_back(convert<T>(x)); };
  for (const double x :
       {0.0,   0.25,  0.5,   0.999999, 1.0,   1.5,   2.0,   2.5,   3.0,   126.5, 127.0,
        128.0, 254.9, 255.0, 255.5,    256.0, 257.0, 447.0, 448.0, 464.0, 465.0, 480.0}) {
    add(x);
    add(-x);
  }
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t x : {power - 1, power, power + 1, power + power / 2}) {
      add(static_cast<std::int64_t>(x));
      add(-static_cast<double>(x));
      add(static_cast<double>(x));
    }
  }
  if constexpr (kIsSmallFloat<T> || std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    for (int exponent = -160; exponent <= 140; ++exponent) {
      for (const double factor : {1.0, 1.5, 1.0009765625, 1.00390625, 1.0000001}) {
        add(std::ldexp(factor, exponent));
        add(-std::ldexp(factor, exponent));
      }
    }
    for (const T x : {Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(),
                      Limits::quiet_NaN()}) {
      values.push_back(x);
    }
    if (Limits::has_infinity) {
      values.push_back(Limits::infinity());
      add(-std::numeric_limits<double>::infinity());
    }
  } else {
    values.push_back(std::numeric_limits<T>::max());
    values.push_back(std::numeric_limits<T>::min());
  }
  return values;
}

// Whether `got` is x rounded to nearest even: no other value of the type is nearer, judged from the
// two neighbours.
template <class To>
void expect_nearest(Wide x, To got, Wide max, Wide last_step) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(x)) {
    EXPECT_TRUE(std::isnan(widen(got)));
    return;
  }
  const Wide magnitude = std::fabs(x);
  if (magnitude >= max + last_step / 2 || (!Limits::has_infinity && magnitude > max)) {
    const Wide end = Limits::has_infinity ? std::numeric_limits<Wide>::infinity() : max;
    EXPECT_EQ(std::fabs(widen(got)), end);
    EXPECT_EQ(std::signbit(widen(got)), std::signbit(x));
    return;
  }
  // step between neighbours at this magnitude
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int scale = std::max(exponent, Limits::min_exponent) - Limits::digits;
  const Wide scaled = std::ldexp(x, -scale);  // neighbours are integers here
  EXPECT_EQ(std::ldexp(widen(got), -scale), std::nearbyint(scaled)) << "from " << x;
  EXPECT_EQ(std::signbit(widen(got)), std::signbit(x));
}

template <class To, class From>
void expect_converts(From from) {
  const To got = convert<To>(from);
  const Wide x = widen(from);
  if constexpr (std::is_same_v<To, bool>) {
    EXPECT_EQ(got, x != 0);
  } else if constexpr (std::is_floating_point_v<To> || kIsSmallFloat<To>) {
    using Limits = std::numeric_limits<To>;
    const Wide max = widen(Limits::max());
    expect_nearest(x, got, max, std::ldexp(Wide{1}, Limits::max_exponent - Limits::digits));
  } else if constexpr (std::is_integral_v<From>) {
    EXPECT_EQ(got, static_cast<To>(from));  // modulo 2^n, which C++20 promises
  } else {
    const Wide low = static_cast<Wide>(std::numeric_limits<To>::min());
    const Wide high = static_cast<Wide>(std::numeric_limits<To>::max());
    if (std::isnan(x)) {
      EXPECT_EQ(got, 0);
    } else {
      const Wide want = std::trunc(x);
      EXPECT_EQ(static_cast<Wide>(got), want < low ? low : want > high ? high : want) << x;
    }
  }
}

TEST(Convert, EveryPairAtItsBoundaries) {
  for (const DType from : kDTypes) {
    visit_dtype("from", from, [&]<class From> {
      const std::vector<From> values = boundary_values<From>();
      for (const DType to : kDTypes) {
        SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
        visit_dtype("to", to, [&]<class To> {
          for (const From x : values) expect_converts<To>(x);
        });
      }
    });
  }
}

TEST(Convert, EveryBitPatternOfTheSmallTypes) {
  const auto check_all = []<class From>(auto make) {
    for (unsigned b = 0; b < 1u << (8 * sizeof(From)); ++b) {
      const From x = make(b);
      for (const DType to : kDTypes) {
        visit_dtype("to", to, [&]<class To> { expect_converts<To>(x); });
      }
      if (testing::Test::HasFailure()) return;
    }
  };
  check_all.operator()<half>(
      [](unsigned b) { return half::from_bits(static_cast<std::uint16_t>(b)); });
  check_all.operator()<bfloat16>(
      [](unsigned b) { return bfloat16::from_bits(static_cast<std::uint16_t>(b)); });
  check_all.operator()<float8_e4m3>(
      [](unsigned b) { return float8_e4m3::from_bits(static_cast<std::uint8_t>(b)); });
  check_all.operator()<std::int16_t>([](unsigned b) { return static_cast<std::int16_t>(b); });
  check_all.operator()<std::uint8_t>([](unsigned b) { return static_cast<std::uint8_t>(b); });
}

TEST(Convert, ToTheSameTypeCopiesTheBits) {
  EXPECT_EQ(convert<half>(half::from_bits(0x7d01)).bits(), 0x7d01);
  EXPECT_EQ(convert<float8_e4m3>(float8_e4m3::from_bits(0xff)).bits(), 0xff);
}

static_assert(convert<std::uint8_t>(std::int64_t{-1}) == 255);
static_assert(convert<std::int16_t>(std::uint32_t{40000}) == -25536);
static_assert(convert<std::int64_t>(float8_e4m3(-448.0f)) == -448);
static_assert(convert<half>(std::int64_t{2049}).bits() == half(2048.0f).bits());
static_assert(convert<bfloat16>(true) == bfloat16(1.0f));
static_assert(convert<bool>(std::numeric_limits<half>::quiet_NaN()));
static_assert(convert<std::uint32_t>(-3.5) == 0);
static_assert(convert<float8_e4m3>(1e300) == std::numeric_limits<float8_e4m3>::max());

}  // namespace
}  // namespace tl
