// Functions of one element, against the C library in double and, for the bits, against the CPU.
#include "tl/ops/unary.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/binary.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Unary : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Unary);

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  std::string_view name;
  Tensor (*op)(const Tensor&);
  double (*reference)(double);
  double low, high;  // of the values tried
  double units;      // error allowed, in the result's last place
};

// What is made of several functions is computed in more than double: its own errors must not count.
using Wide = long double;
Wide wide_sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide wide_normcdf(Wide x) { return std::erfc(-x * 0.707106781186547524400844362104849L) / 2; }
double sigmoid_of(double x) { return static_cast<double>(wide_sigmoid(x)); }
double normcdf_of(double x) { return static_cast<double>(wide_normcdf(x)); }
double silu_of(double x) { return x == -kInf ? 0 : static_cast<double>(x * wide_sigmoid(x)); }
double gelu_erf_of(double x) { return x == -kInf ? 0 : static_cast<double>(x * wide_normcdf(x)); }
double gelu_of(double x) {
  // 1 + tanh(u) = 2 / (1 + e^-2u), which does not cancel
  const Wide u = 0.797884560802865355879892119868764L * (x + 0.044715L * x * x * x);
  return x == -kInf ? 0 : static_cast<double>(x * wide_sigmoid(2 * u));
}
double softplus_of(double x) {
  return x > 60 ? x : static_cast<double>(std::log1p(std::exp(static_cast<Wide>(x))));
}
double mish_of(double x) {
  const Wide e = std::exp(static_cast<Wide>(x > 60 ? 60 : x)), n = e * (e + 2);
  return x == -kInf ? 0 : static_cast<double>(x * n / (n + 2));
}
double selu_of(double x) {
  constexpr Wide kScale = 1.0507009873554804934193349852946L;
  constexpr Wide kAlpha = 1.6732632423543772848170429916717L;
  return static_cast<double>(kScale * (x > 0 ? x : kAlpha * std::expm1(static_cast<Wide>(x))));
}
double round_even_of(double x) { return std::nearbyint(x); }

const Case kCases[] = {
    {"neg", neg, [](double x) { return -x; }, -100, 100, 0},
    {"abs", abs, [](double x) { return std::abs(x); }, -100, 100, 0},
    {"sqr", sqr, [](double x) { return x * x; }, -10, 10, 0.5},
    {"sign", sign, [](double x) { return std::isnan(x) ? x : double((x > 0) - (x < 0)); }, -2, 2,
     0},
    {"relu", relu, [](double x) { return std::isnan(x) ? x : std::max(x, 0.0); }, -5, 5, 0},
    {"recip", recip, [](double x) { return 1 / x; }, -5, 5, 0.5},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0, 400, 0.5},
    {"rsqrt", rsqrt,
     [](double x) { return static_cast<double>(1 / std::sqrt(static_cast<Wide>(x))); }, 0, 400,
     1.5},
    {"exp", exp, [](double x) { return std::exp(x); }, -20, 5, 1.1},
    {"exp2", exp2, [](double x) { return std::exp2(x); }, -20, 8, 1.2},
    {"expm1", expm1, [](double x) { return std::expm1(x); }, -20, 5, 1.5},
    {"log", log, [](double x) { return std::log(x); }, 0, 400, 1},
    {"log2", log2, [](double x) { return std::log2(x); }, 0, 400, 1},
    {"log10", log10, [](double x) { return std::log10(x); }, 0, 400, 1},
    {"log1p", log1p, [](double x) { return std::log1p(x); }, -1, 400, 1},
    {"sin", sin, [](double x) { return std::sin(x); }, -400, 400, 1},
    {"cos", cos, [](double x) { return std::cos(x); }, -400, 400, 1},
    {"tan", tan, [](double x) { return std::tan(x); }, -400, 400, 1.6},
    {"asin", asin, [](double x) { return std::asin(x); }, -1, 1, 1.6},
    {"acos", acos, [](double x) { return std::acos(x); }, -1, 1, 1.2},
    {"atan", atan, [](double x) { return std::atan(x); }, -20, 20, 1.6},
    {"sinh", sinh, [](double x) { return std::sinh(x); }, -6, 6, 2},
    {"cosh", cosh, [](double x) { return std::cosh(x); }, -6, 6, 2},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, -6, 6, 1.6},
    {"erf", erf, [](double x) { return std::erf(x); }, -4, 4, 1.2},
    {"erfc", erfc, [](double x) { return std::erfc(x); }, -3, 9, 2},
    {"normcdf", normcdf, normcdf_of, -12, 5, 2},
    {"floor", floor, [](double x) { return std::floor(x); }, -9, 9, 0},
    {"ceil", ceil, [](double x) { return std::ceil(x); }, -9, 9, 0},
    {"trunc", trunc, [](double x) { return std::trunc(x); }, -9, 9, 0},
    {"round", round, [](double x) { return std::round(x); }, -9, 9, 0},
    {"round_even", round_even, round_even_of, -9, 9, 0},
    {"relu6", relu6, [](double x) { return std::isnan(x) ? x : std::clamp(x, 0.0, 6.0); }, -9, 9,
     0},
    {"selu", selu, selu_of, -9, 9, 2},
    {"sigmoid", sigmoid, sigmoid_of, -20, 20, 2.2},
    {"hard_sigmoid", hard_sigmoid,
     [](double x) { return std::isnan(x) ? x : std::clamp(x + 3, 0.0, 6.0) / 6; }, -9, 9, 1.5},
    {"silu", silu, silu_of, -20, 20, 2.2},
    {"hard_swish", hard_swish,
     [](double x) { return x == -kInf ? 0 : x * (std::clamp(x + 3, 0.0, 6.0) / 6); }, -9, 9, 2},
    {"gelu", gelu, gelu_of, -9, 9, 2.5},
    {"gelu_erf", gelu_erf, gelu_erf_of, -9, 9, 2.5},
    {"softplus", softplus, softplus_of, -20, 40, 2},
    {"mish", mish, mish_of, -20, 40, 3},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.25); },
     [](double x) { return x > 0 ? x : 0.25 * x; }, -9, 9, 0.5},
    {"elu", [](const Tensor& x) { return elu(x, 1.5); },
     [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }, -9, 9, 2},
    {"powf", [](const Tensor& x) { return powf(x, 2.5); },
     [](double x) { return std::pow(x, 2.5); }, 0, 9, 1.2},
};

// Of an f64 result by a reference in double, which errs itself: 1 more.
Bound bound_of(const Case& c, DType dtype) {
  // Narrow floats are computed in f32 and rounded once more.
  const double more = dtype == DType::F64 ? 1 : dtype == DType::F32 ? 0 : 0.51;
  return {dtype == DType::F64 || dtype == DType::F32 ? c.units + more : std::min(c.units, 0.51)};
}

Host mapped(const Host& x, double (*f)(double)) {
  Host out = x;
  for (double& v : out.values) v = f(v);
  return out;
}

const Shape kShapes[] = {{}, {0}, {1}, {7}, {3, 0, 2}, {2, 3, 4}, {33, 65}, {5, 1030}};

TEST_P(Unary, FloatsOfEveryLayoutAreWithinTheBound) {
  for (const Case& c : kCases) {
    for (const DType dtype : kFloats) {
      for (const Shape& shape : kShapes) {
        const Host x = rounded(uniform(shape, c.low, c.high, 1), dtype);
        const Host want = mapped(x, c.reference);
        for (const Arrangement how : kArrangements) {
          if (shape.size() == 2 && shape[1] > 1000 && how != Arrangement::Contiguous &&
              dtype != DType::F32) {
            continue;  // the long rows are for the vector loops
          }
          const Tensor y = c.op(arrange(x, dtype, how, device()));
          EXPECT_TRUE(y.is_contiguous());
          expect_close(c.name, y, dtype, want, bound_of(c, dtype),
                       describe(c.name, dtype, shape, how));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// Numbers at which functions turn, end or overflow, and a sweep over all magnitudes.
Host hard_values(DType dtype) {
  std::vector<double> all = {0.0,    -0.0,   1,      -1,     kInf,    -kInf,  kNaN,   0.5,    -0.5,
                             1.5,    -1.5,   2.5,    -2.5,   88.7,    -88.7,  -103.9, -104.5, 709.7,
                             -745.2, 0x1p23, 0x1p24, 0x1p53, 1e5,     65536,  65535,  1e7,    1e9,
                             1e10,   1e22,   1e38,   1e300,  -1e300,  1e-30,  1e-38,  1e-40,  1e-45,
                             1e-300, 1e-310, 5e-324, -1e-45, -5e-324, 0.9999, 1.0001, 0.55,   -0.55,
                             9.1,    13.5,   26.5,   37.7,   -13.5,   -37.7,  0.7071, 1.4142, 0.25};
  for (int e = -160; e < 140; e += 3) {
    all.push_back(std::ldexp(1.37, e));
    all.push_back(-std::ldexp(1.61, e));
  }
  const auto count = static_cast<std::int64_t>(all.size());
  return rounded({{count}, std::move(all)}, dtype);
}

TEST_P(Unary, HardValuesAreWithinTheBound) {
  for (const Case& c : kCases) {
    for (const DType dtype : kFloats) {
      const Host x = hard_values(dtype);
      expect_close(c.name, c.op(contiguous_on(x, dtype, device())), dtype, mapped(x, c.reference),
                   bound_of(c, dtype), join(c.name, " ", dtype));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// NaN has no promised payload; every other result has the same bits.
void expect_same_bits(std::string_view op, const Tensor& got, const Tensor& wanted) {
  const Tensor here = to(got, Device::cpu());
  if (is_float(got.dtype())) {
    const Tensor a = isnan(here), b = isnan(wanted);
    expect_equal(op, a, b, "NaN");
    const Host flags = host_of(a);
    Host x = host_of(here), y = host_of(wanted);
    for (std::size_t i = 0; i < flags.values.size(); ++i) {
      if (flags.values[i] != 0) x.values[i] = y.values[i] = 0;
    }
    expect_equal(op, contiguous_on(x, got.dtype(), Device::cpu()),
                 contiguous_on(y, got.dtype(), Device::cpu()), join(got.dtype()));
  } else {
    expect_equal(op, here, wanted, join(got.dtype()));
  }
}

TEST_P(Unary, EveryDeviceGivesTheBitsOfTheCpu) {
  for (const Case& c : kCases) {
    for (const DType dtype : kFloats) {
      for (const Host& x : {hard_values(dtype), uniform({4500}, c.low, c.high, 3)}) {
        expect_same_bits(c.name, c.op(contiguous_on(x, dtype, device())),
                         c.op(contiguous_on(x, dtype, Device::cpu())));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// The exponent of gelu is a sum of two, its ends are where the result is subnormal and where it is
// x: many arguments between, in both precisions.
TEST_P(Unary, GeluIsWithinTheBoundAndTheSameEverywhereUpToItsEnds) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    const double start = dtype == DType::F32 ? -11.5 : -22;
    const Host x = rounded(uniform({100000}, start, 8, 4), dtype);
    const Tensor y = gelu(contiguous_on(x, dtype, device()));
    expect_same_bits("gelu", y, gelu(contiguous_on(x, dtype, Device::cpu())));
    // A subnormal result is judged by the smallest normal one.
    const double smallest = dtype == DType::F32 ? 0x1p-126 : 0x1p-1022;
    expect_close("gelu", y, dtype, mapped(x, gelu_of), {2.5, smallest}, join(dtype));
    if (testing::Test::HasFatalFailure()) return;
  }
  constexpr auto kEnd = std::numeric_limits<float>::infinity();
  const Tensor none = Tensor::from<float>({-11, -1e30f, -kEnd, -0.0f}, {4}, device());
  for (const float zero : gelu(none).to_vector<float>()) {
    EXPECT_EQ(zero, 0);
    EXPECT_TRUE(std::signbit(zero));
  }
  const Tensor same = Tensor::from<float>({7.25f, 8, 1e30f, kEnd, 0}, {5}, device());
  EXPECT_EQ(gelu(same).to_vector<float>(), same.to_vector<float>());
  EXPECT_TRUE(std::isnan(gelu(contiguous_on({{1}, {kNaN}}, DType::F32, device())).item<float>()));
}

TEST_P(Unary, IntegersHaveWhatMakesSenseForThem) {
  for (const DType dtype : kInts) {
    const Host x = uniform_for(dtype, {5, 67}, -100, 100, 2);
    for (const Arrangement how : kArrangements) {
      const Tensor t = arrange(x, dtype, how, device());
      for (const Case& c : kCases) {
        const bool identity = c.name == "floor" || c.name == "ceil" || c.name == "trunc" ||
                              c.name == "round" || c.name == "round_even";
        if (c.name == "neg" || c.name == "abs" || c.name == "sqr" || c.name == "sign" ||
            c.name == "relu" || identity) {
          Host want = mapped(x, c.reference);
          if (dtype == DType::U8 || dtype == DType::U32) {  // wrap
            const double range = dtype == DType::U8 ? 256 : 4294967296.0;
            for (double& v : want.values) v = v - std::floor(v / range) * range;
          }
          expect_close(c.name, c.op(t), dtype, want, {0}, describe(c.name, dtype, x.shape, how));
        } else {
          expect_unsupported(c.name, dtype, device(), [&] { c.op(t); });
        }
      }
    }
    expect_close("bitwise_not", bitwise_not(contiguous_on({{2}, {0, 5}}, dtype, device())), dtype,
                 rounded({{2},
                          {dtype == DType::U8    ? 255.0
                           : dtype == DType::U32 ? 4294967295.0
                                                 : -1.0,
                           dtype == DType::U8    ? 250.0
                           : dtype == DType::U32 ? 4294967290.0
                                                 : -6.0}},
                         dtype),
                 {0});
  }
  expect_unsupported("bitwise_not", DType::F32, device(),
                     [&] { bitwise_not(Tensor::zeros({2}, DType::F32, device())); });
  expect_unsupported("neg", DType::Bool, device(),
                     [&] { neg(Tensor::zeros({2}, DType::Bool, device())); });
}

TEST_P(Unary, TheMostNegativeIntegerWraps) {
  const Tensor x = Tensor::from<std::int32_t>({INT32_MIN, -1, INT32_MAX}, {3}, device());
  EXPECT_EQ(neg(x).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{INT32_MIN, 1, -INT32_MAX}));
  EXPECT_EQ(abs(x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{INT32_MIN, 1, INT32_MAX}));
}

TEST_P(Unary, AsksAboutEveryKindOfNumber) {
  const Host x{{5}, {0, 1, kNaN, kInf, -kInf}};
  for (const DType dtype : kFloats) {
    const bool f8 = dtype == DType::F8E4M3;  // has no infinity
    const Tensor t = contiguous_on(x, dtype, device());
    expect_close({"isnan", dtype}, isnan(t), DType::U8, {{5}, {0, 0, 1, 0, 0}}, {0});
    expect_close({"isinf", dtype}, isinf(t), DType::U8,
                 {{5}, {0, 0, 0, f8 ? 0.0 : 1, f8 ? 0.0 : 1}}, {0});
    expect_close({"isfinite", dtype}, isfinite(t), DType::U8,
                 {{5}, {1, 1, 0, f8 ? 1.0 : 0, f8 ? 1.0 : 0}}, {0});
    expect_close({"logical_not", dtype}, logical_not(t), DType::U8, {{5}, {1, 0, 0, 0, 0}}, {0});
  }
  for (const DType dtype : kInts) {
    const Tensor t = contiguous_on({{3}, {0, 1, 7}}, dtype, device());
    expect_close({"isnan", dtype}, isnan(t), DType::U8, {{3}, {0, 0, 0}}, {0});
    expect_close({"isinf", dtype}, isinf(t), DType::U8, {{3}, {0, 0, 0}}, {0});
    expect_close({"isfinite", dtype}, isfinite(t), DType::U8, {{3}, {1, 1, 1}}, {0});
    expect_close({"logical_not", dtype}, logical_not(t), DType::U8, {{3}, {1, 0, 0}}, {0});
  }
  const Tensor flags = contiguous_on({{2}, {0, 1}}, DType::Bool, device());
  expect_close({"logical_not", DType::Bool}, logical_not(flags), DType::U8, {{2}, {1, 0}}, {0});
}

TEST_P(Unary, ZerosKeepTheirSign) {
  const Tensor x = Tensor::from<float>({-0.0F}, {1}, device());
  for (const auto op : {neg, sin, tan, asin, atan, sinh, tanh, erf, expm1, log1p, sqrt, round}) {
    const bool negative = std::signbit(op(x).item<float>());
    EXPECT_EQ(negative, op != static_cast<Tensor (*)(const Tensor&)>(neg));
  }
}

TEST_P(Unary, HugeAnglesAreReducedExactly) {
  const Tensor x = Tensor::from<double>(
      {1e22, 0x1.6ac5b262ca1ffp+849, 5.319372648326541e+255, 1e300}, {4}, device());
  const std::vector<double> s = sin(x).to_vector<double>(), c = cos(x).to_vector<double>();
  const double want[] = {-0.8522008497671888, 1.0, 1.0, -0.8178819121159085};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(s[i], want[i], 2e-16);
    EXPECT_NEAR(s[i] * s[i] + c[i] * c[i], 1.0, 4e-16);
  }
  EXPECT_DOUBLE_EQ(c[1], -4.687165924254627e-19);  // the double closest to a multiple of pi / 2
}

TEST_P(Unary, RoundsToDecimals) {
  const Tensor x = contiguous_on({{4}, {1.25, -1.35, 1234.5, 0}}, DType::F64, device());
  expect_close("round_to", round_to(x, 1), DType::F64, {{4}, {1.3, -1.4, 1234.5, 0}}, {1});
  expect_close("round_to", round_to(x, -2), DType::F64, {{4}, {0, 0, 1200, 0}}, {1});
  for (const DType dtype : kFloats) {
    // 25.17 times 100 has more digits than the small floats; 440 times 10 is more than f8 has.
    const Host y = rounded({{3}, {25.17, -1.5, dtype == DType::F8E4M3 ? 440.0 : 30000.0}}, dtype);
    Host want = y;
    for (double& v : want.values) v = std::round(v * 100) / 100;
    expect_close("round_to", round_to(contiguous_on(y, dtype, device()), 2), dtype,
                 rounded(want, dtype), {1});
    // More decimals than there are digits change nothing, and none of the digits leaves nothing.
    const Host all{{4}, {1.5, -0.25, 0, kNaN}};
    const Tensor t = contiguous_on(all, dtype, device());
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    expect_close("round_to", round_to(t, kMost), dtype, all, {0});
    expect_close("round_to", round_to(t, 40), dtype, all, {0});
    expect_close("round_to", round_to(t, -40), dtype, {{4}, {0, 0, 0, kNaN}}, {0});
    expect_close("round_to", round_to(t, -kMost - 1), dtype, {{4}, {0, 0, 0, kNaN}}, {0});
  }
  const Tensor large = contiguous_on({{3}, {1e30, kInf, -kInf}}, DType::F32, device());
  expect_equal("round_to", round_to(large, 10), large);
  expect_unsupported("round_to", DType::I32, device(),
                     [&] { round_to(Tensor::zeros({2}, DType::I32, device()), 1); });
}

TEST_P(Unary, StaysOnTheDevice) {
  if (device().is_cpu()) GTEST_SKIP();
  const Tensor x = contiguous_on(uniform({40, 50}, 0, 1, 5), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  for (const Case& c : kCases) c.op(x.t());
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

TEST(UnaryTable, EveryCaseHasItsRow) {
  for (const Case& c : kCases) EXPECT_NE(find_op(c.name), nullptr) << c.name;
  const std::vector<OpValue> arguments{Tensor::from<float>({4.0F}, {1})};
  EXPECT_EQ(call_op("sqrt", arguments)[0].item<float>(), 2.0F);
}

}  // namespace
}  // namespace tl
