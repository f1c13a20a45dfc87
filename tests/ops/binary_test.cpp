// Functions of two elements with broadcasting and with numbers, against plain loops in double and,
// for the bits, against the CPU.
#include "tl/ops/binary.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/affine.h"
#include "tl/ops/copy.h"
#include "tl/ops/table.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class Binary : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Binary);

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  std::string_view name;
  Tensor (*op)(const Tensor&, const Tensor&);
  Tensor (*number_last)(const Tensor&, Scalar);
  Tensor (*number_first)(Scalar, const Tensor&);
  double (*reference)(double, double);
  double units;  // for floats
  bool flag = false;
};

double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b); }
double smaller(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNaN : std::min(a, b);
}

const Case kArithmetic[] = {
    {"add", add, add, add, [](double a, double b) { return a + b; }, 0.5},
    {"sub", sub, sub, sub, [](double a, double b) { return a - b; }, 0.5},
    {"mul", mul, mul, mul, [](double a, double b) { return a * b; }, 0.5},
    {"maximum", maximum, maximum, maximum, larger, 0},
    {"minimum", minimum, minimum, minimum, smaller, 0},
};
const Case kFloatsOnly[] = {
    {"div", div, div, div, [](double a, double b) { return a / b; }, 0.5},
    {"pow", pow, pow, pow, [](double a, double b) { return std::pow(a, b); }, 1.2},
    {"rem", rem, rem, rem, floor_mod, 0.5},
    {"fmod", fmod, fmod, fmod, [](double a, double b) { return std::fmod(a, b); }, 0},
    {"atan2", atan2, atan2, atan2, [](double a, double b) { return std::atan2(a, b); }, 1.6},
};
const Case kFlags[] = {
    {"eq", eq, eq, eq, [](double a, double b) -> double { return a == b; }, 0, true},
    {"ne", ne, ne, ne, [](double a, double b) -> double { return a != b; }, 0, true},
    {"lt", lt, lt, lt, [](double a, double b) -> double { return a < b; }, 0, true},
    {"le", le, le, le, [](double a, double b) -> double { return a <= b; }, 0, true},
    {"gt", gt, gt, gt, [](double a, double b) -> double { return a > b; }, 0, true},
    {"ge", ge, ge, ge, [](double a, double b) -> double { return a >= b; }, 0, true},
    {"logical_and", logical_and, logical_and, logical_and,
     [](double a, double b) -> double { return a != 0 && b != 0; }, 0, true},
    {"logical_or", logical_or, logical_or, logical_or,
     [](double a, double b) -> double { return a != 0 || b != 0; }, 0, true},
    {"logical_xor", logical_xor, logical_xor, logical_xor,
     [](double a, double b) -> double { return (a != 0) != (b != 0); }, 0, true},
};

// f over two hosts, broadcast.
Host combined(const Host& a, const Host& b, double (*f)(double, double)) {
  const Shape shape = broadcast_shapes("reference", a.shape, b.shape);
  Host out{shape, std::vector<double>(static_cast<std::size_t>(element_count("test", shape)))};
  const Layout left = Layout(a.shape).broadcast_to(shape);
  const Layout right = Layout(b.shape).broadcast_to(shape);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), x = 0, y = 0;
    for (int d = shape.size() - 1; d >= 0; --d) {
      x += rest % shape[d] * left.strides()[d];
      y += rest % shape[d] * right.strides()[d];
      rest /= shape[d];
    }
    out.values[i] = f(a.values[static_cast<std::size_t>(x)], b.values[static_cast<std::size_t>(y)]);
  }
  return out;
}

Bound bound_of(const Case& c, DType dtype) {
  if (dtype == DType::F64) return {c.units + (c.units > 0.5 ? 1 : 0)};
  return {dtype == DType::F32 ? c.units : std::min(c.units, 0.51)};
}

struct Pair {
  Shape a, b;
};
const Pair kPairs[] = {{{}, {}},
                       {{0}, {1}},
                       {{7}, {7}},
                       {{1}, {7}},
                       {{}, {3, 5}},
                       {{3, 5}, {5}},
                       {{4, 1}, {1, 9}},
                       {{2, 3, 4}, {3, 1}},
                       {{3, 0, 2}, {2}},
                       {{33, 64}, {64}},
                       {{33, 64}, {33, 1}},
                       {{2, 1, 3, 2, 2}, {4, 1, 2, 1}},
                       {{5, 1030}, {5, 1030}}};

void check(const Case& c, DType dtype, const Pair& shapes, double low, double high, Arrangement one,
           Arrangement two, const Device& device) {
  const Host a = rounded(uniform_for(dtype, shapes.a, low, high, 1), dtype);
  const Host b = rounded(uniform_for(dtype, shapes.b, low, high, 2), dtype);
  const Host want = combined(a, b, c.reference);
  const Tensor y = c.op(arrange(a, dtype, one, device), arrange(b, dtype, two, device));
  EXPECT_TRUE(y.is_contiguous());
  expect_close(
      {c.name, dtype}, y, c.flag ? DType::U8 : dtype, want, c.flag ? Bound{0} : bound_of(c, dtype),
      join(c.name, " ", dtype, " ", shapes.a, " and ", shapes.b, " ", name(one), " ", name(two)));
}

TEST_P(Binary, EveryDtypeLayoutAndBroadcastIsRight) {
  for (const DType dtype : kNumbers) {
    const bool is_unsigned = dtype == DType::U8 || dtype == DType::U32;
    for (const Pair& shapes : kPairs) {
      const bool large = shapes.a.size() == 2 && shapes.a[1] > 1000;
      for (const Arrangement one : kArrangements) {
        for (const Arrangement two : kArrangements) {
          if ((large || dtype == DType::I64) && (one != two)) continue;
          for (const Case& c : kArithmetic) {
            if (is_unsigned && c.name == "sub") continue;  // wraps, tested below
            check(c, dtype, shapes, -9, 10, one, two, device());
          }
          if (is_float(dtype)) {
            for (const Case& c : kFloatsOnly) {
              const double low = c.name == "pow" ? 0.1 : -9;
              check(c, dtype, shapes, low, 6, one, two, device());
            }
          }
          if (one == two) {
            for (const Case& c : kFlags) check(c, dtype, shapes, -2, 3, one, two, device());
          }
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Binary, NumbersStandOnEitherSide) {
  const Shape shape{5, 67};
  for (const DType dtype : kNumbers) {
    const Host x = rounded(uniform_for(dtype, shape, 1, 9, 3), dtype);
    const Host number{{}, {3}};
    for (const Arrangement how : kArrangements) {
      const Tensor t = arrange(x, dtype, how, device());
      const auto both = [&](const Case& c) {
        const DType type = c.flag ? DType::U8 : dtype;
        const Bound bound = c.flag ? Bound{0} : bound_of(c, dtype);
        expect_close(c.name, c.number_last(t, 3), type, combined(x, number, c.reference), bound);
        if (c.name == "sub" && is_int(dtype)) return;  // 3 - x may be negative
        expect_close(c.name, c.number_first(3.0, t), type, combined(number, x, c.reference), bound);
      };
      if (!is_int(dtype) || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64) {
        for (const Case& c : kArithmetic) both(c);
      }
      for (const Case& c : kFlags) both(c);
      if (is_float(dtype)) {
        for (const Case& c : kFloatsOnly) both(c);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  const Tensor x = contiguous_on({{2}, {1, 4}}, DType::F32, device());
  expect_close("operators", (2 * x + 1) / x - x, DType::F32, {{2}, {2, -1.75}}, {0});
  expect_close("operators", -x + 1.5 / x, DType::F32, {{2}, {0.5, -3.625}}, {0});
  Tensor y = x;
  y += x;
  y *= 3;
  y -= 2;
  y /= 4.0;
  expect_close("operators", y, DType::F32, {{2}, {1, 5.5}}, {0});
  expect_close("operators", x, DType::F32, {{2}, {1, 4}}, {0});
}

TEST_P(Binary, WholeNumbersDivideAndWrap) {
  const Tensor a = Tensor::from<std::int32_t>({7, -7, 7, -7, INT32_MIN, 5, 0}, {7}, device());
  const Tensor b = Tensor::from<std::int32_t>({2, 2, -2, -2, -1, 0, 0}, {7}, device());
  using Ints = std::vector<std::int32_t>;
  EXPECT_EQ(div(a, b).to_vector<std::int32_t>(), (Ints{3, -3, -3, 3, INT32_MIN, 0, 0}));
  EXPECT_EQ(floor_div(a, b).to_vector<std::int32_t>(), (Ints{3, -4, -4, 3, INT32_MIN, 0, 0}));
  EXPECT_EQ(fmod(a, b).to_vector<std::int32_t>(), (Ints{1, -1, 1, -1, 0, 0, 0}));
  EXPECT_EQ(rem(a, b).to_vector<std::int32_t>(), (Ints{1, 1, -1, -1, 0, 0, 0}));
  EXPECT_EQ(div(a, 2).to_vector<std::int32_t>(), (Ints{3, -3, 3, -3, INT32_MIN / 2, 2, 0}));
  EXPECT_EQ(div(a, 2.0).to_vector<std::int32_t>(), div(a, 2).to_vector<std::int32_t>());
  EXPECT_EQ(add(a, INT32_MAX).to_vector<std::int32_t>()[0], INT32_MIN + 6);

  const Tensor c = Tensor::from<std::uint8_t>({0, 1, 200, 255}, {4}, device());
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(sub(c, 1).to_vector<std::uint8_t>(), (Bytes{255, 0, 199, 254}));
  EXPECT_EQ(sub(1, c).to_vector<std::uint8_t>(), (Bytes{1, 0, 57, 2}));
  EXPECT_EQ(mul(c, c).to_vector<std::uint8_t>(), (Bytes{0, 1, 64, 1}));
  EXPECT_EQ(div(255, c).to_vector<std::uint8_t>(), (Bytes{0, 255, 1, 1}));
  EXPECT_EQ(rem(255, c).to_vector<std::uint8_t>(), (Bytes{0, 0, 55, 0}));
  EXPECT_EQ(fmod(c, 255).to_vector<std::uint8_t>(), (Bytes{0, 1, 200, 0}));

  const Tensor d = Tensor::from<std::int64_t>({2, -2, 0, 1, -1, 3}, {6}, device());
  const Tensor e = Tensor::from<std::int64_t>({10, 3, 0, -5, -5, -1}, {6}, device());
  EXPECT_EQ(pow(d, e).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{1024, -8, 1, 1, -1, 0}));
}

// Arithmetic wraps; an order, an equality or a question goes by the number itself.
TEST_P(Binary, NumbersOutsideTheDtypeAreOrderedByTheirValue) {
  const Tensor x = Tensor::from<std::uint8_t>({0, 44, 255}, {3}, device());  // 300 wraps to 44
  using Bytes = std::vector<std::uint8_t>;
  const auto expect = [](const Tensor& got, const Bytes& want) {
    EXPECT_EQ(got.to_vector<std::uint8_t>(), want);
  };
  expect(eq(x, 300), {0, 0, 0});
  expect(eq(300, x), {0, 0, 0});
  expect(ne(x, 300), {1, 1, 1});
  expect(lt(x, 300), {1, 1, 1});
  expect(le(x, -1), {0, 0, 0});
  expect(gt(x, 300), {0, 0, 0});
  expect(gt(x, -1), {1, 1, 1});
  expect(ge(300, x), {1, 1, 1});
  expect(lt(-1, x), {1, 1, 1});
  expect(lt(300, x), {0, 0, 0});
  expect(maximum(x, -1), {0, 44, 255});
  expect(maximum(-300, x), {0, 44, 255});
  expect(minimum(x, 300), {0, 44, 255});
  expect(minimum(x, -1), {0, 0, 0});
  expect(maximum(x, 300), {255, 255, 255});
  expect(clamp(x, -5, 300), {0, 44, 255});
  expect(clamp(x, 10, 1000), {10, 44, 255});
  expect(logical_and(x, 256), {0, 1, 1});
  expect(logical_xor(-256, x), {1, 0, 0});
  expect(add(x, 300), {44, 88, 43});
  const Tensor y = Tensor::from<std::int16_t>({-32768, 5}, {2}, device());
  expect(eq(y, 32768), {0, 0});
  expect(gt(y, -32769), {1, 1});
  expect(le(y, 1 << 20), {1, 1});
  EXPECT_EQ(clamp(y, -100000, 3).to_vector<std::int16_t>(), (std::vector<std::int16_t>{-32768, 3}));
  const Tensor z = Tensor::from<std::uint32_t>({0, 4294967295U}, {2}, device());
  expect(lt(z, std::int64_t{1} << 32), {1, 1});
  expect(eq(z, -1), {0, 0});
}

TEST_P(Binary, BitsOfEveryIntegerDtype) {
  for (const DType dtype : kInts) {
    const Host a = uniform_for(dtype, {3, 11}, -100, 100, 4), b = uniform_for(dtype, {11}, 0, 7, 5);
    const Tensor x = contiguous_on(a, dtype, device()), y = contiguous_on(b, dtype, device());
    const auto bits = [](auto f) { return f; };
    expect_close("bitwise_and", bitwise_and(x, y), dtype,
                 combined(a, b, bits([](double p, double q) {
                            return static_cast<double>(static_cast<long long>(p) &
                                                       static_cast<long long>(q));
                          })),
                 {0});
    expect_close("bitwise_or", bitwise_or(x, y), dtype,
                 combined(a, b, bits([](double p, double q) {
                            return static_cast<double>(static_cast<long long>(p) |
                                                       static_cast<long long>(q));
                          })),
                 {0});
    expect_close("bitwise_xor", bitwise_xor(x, y), dtype,
                 combined(a, b, bits([](double p, double q) {
                            return static_cast<double>(static_cast<long long>(p) ^
                                                       static_cast<long long>(q));
                          })),
                 {0});
    expect_close(
        "shift_right", shift_right(x, y), dtype,
        combined(a, b, bits([](double p, double q) { return std::floor(p / std::pow(2, q)); })),
        {0});
    const Host small = uniform_for(dtype, {3, 11}, 0, 1.99, 6);
    expect_close("shift_left", shift_left(contiguous_on(small, dtype, device()), y), dtype,
                 combined(small, b, bits([](double p, double q) { return p * std::pow(2, q); })),
                 {0});
    expect_close("shift_left", shift_left(x, 64), dtype,
                 combined(a, {{}, {0}}, [](double, double) { return 0.0; }), {0});
    expect_close("shift_right", shift_right(x, 64), dtype,
                 combined(a, {{}, {0}}, [](double p, double) { return p < 0 ? -1.0 : 0.0; }), {0});
  }
  expect_unsupported("bitwise_and", DType::F32, device(),
                     [&] { bitwise_and(Tensor::zeros({2}, DType::F32, device()), 1); });
  expect_unsupported("atan2", DType::I32, device(),
                     [&] { atan2(Tensor::zeros({2}, DType::I32, device()), 1); });
}

TEST_P(Binary, NanInfinityAndSignedZeros) {
  const std::vector<double> values = {0.0,  -0.0, 1,    -1,    2,    -2,  0.5,
                                      -0.5, 3,    kInf, -kInf, kNaN, 1e30};
  Host a{{13, 1}, values}, b{{13}, values};
  for (const DType dtype : {DType::F32, DType::F64}) {
    const Host x = rounded(a, dtype), y = rounded(b, dtype);
    const Tensor s = contiguous_on(x, dtype, device()), t = contiguous_on(y, dtype, device());
    for (const Case& c : kArithmetic) {
      expect_close(c.name, c.op(s, t), dtype, combined(x, y, c.reference), {1},
                   std::string(c.name));
    }
    for (const Case& c : kFloatsOnly) {
      expect_close(c.name, c.op(s, t), dtype, combined(x, y, c.reference), {2},
                   std::string(c.name));
    }
    for (const Case& c : kFlags) {
      expect_close({c.name, dtype}, c.op(s, t), DType::U8, combined(x, y, c.reference), {0},
                   std::string(c.name));
    }
  }
}

TEST_P(Binary, RemaindersAreExactForFarApartNumbers) {
  const Tensor a = Tensor::from<double>({1e300, 1e300, 5e-324, 1e17, -7.5, 1e-310}, {6}, device());
  const Tensor b = Tensor::from<double>({3, 1e-300, 1, 0.1, 2, 3e-320}, {6}, device());
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  const auto r = fmod(a, b).to_vector<double>();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(r[i], std::fmod(x[i], y[i])) << i;
  EXPECT_EQ(rem(a, b).to_vector<double>()[4], 0.5);
  EXPECT_EQ(floor_div(a, b).to_vector<double>()[4], -4);
  const Tensor c = Tensor::from<float>({3e38F, 1e-40F}, {2}, device());
  const Tensor d = Tensor::from<float>({1e-40F, 1e-44F}, {2}, device());
  EXPECT_EQ(fmod(c, d).to_vector<float>(),
            (std::vector<float>{std::fmod(3e38F, 1e-40F), std::fmod(1e-40F, 1e-44F)}));
}

TEST_P(Binary, EveryDeviceGivesTheBitsOfTheCpu) {
  for (const DType dtype : kFloats) {
    const Host a = uniform({2000}, -30, 30, 7), b = uniform({2000}, -9, 9, 8);
    const auto same = [&](const Case& c) {
      const Tensor here =
          c.op(contiguous_on(a, dtype, device()), contiguous_on(b, dtype, device()));
      const Tensor there =
          c.op(contiguous_on(a, dtype, Device::cpu()), contiguous_on(b, dtype, Device::cpu()));
      const Tensor nan = isnan(there);
      expect_equal({c.name, dtype}, isnan(to(here, Device::cpu())), nan);
      // NaN has no promised payload.
      const Host mask = host_of(nan);
      Host x = host_of(here), y = host_of(there);
      for (std::size_t i = 0; i < mask.values.size(); ++i) {
        if (mask.values[i] != 0) x.values[i] = y.values[i] = 0;
      }
      expect_equal(c.name, contiguous_on(x, dtype, Device::cpu()),
                   contiguous_on(y, dtype, Device::cpu()), join(c.name, " ", dtype));
    };
    for (const Case& c : kArithmetic) same(c);
    for (const Case& c : kFloatsOnly) same(c);
  }
}

TEST_P(Binary, FuzzedShapesAndLayouts) {
  std::mt19937_64 random(fuzz_seed());
  for (int i = 0; i < 40; ++i) {
    const int rank = static_cast<int>(random() % 5);
    const Shape full = random_shape(random, rank, 7, true);
    Pair shapes{full, full};
    for (int d = 0; d < rank; ++d) {
      if (random() % 4 == 0) shapes.a[d] = 1;
      if (random() % 4 == 0) shapes.b[d] = 1;
    }
    for (std::uint64_t cut = random() % 3; cut > 0 && !shapes.b.empty(); --cut) shapes.b.erase(0);
    const DType dtype = kNumbers[random() % std::size(kNumbers)];
    const Arrangement one = kArrangements[random() % 4], two = kArrangements[random() % 4];
    check(kArithmetic[0], dtype, shapes, 0, 10, one, two, device());
    check(kFlags[2], dtype, shapes, 0, 10, one, two, device());
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(Binary, BoolsAreComparedAndCombined) {
  const Tensor a = contiguous_on({{4}, {0, 0, 1, 1}}, DType::Bool, device());
  const Tensor b = contiguous_on({{4}, {0, 1, 0, 1}}, DType::Bool, device());
  const auto check_flags = [](std::string_view op, const Tensor& got, std::vector<double> want) {
    expect_close({op, DType::Bool}, got, DType::U8, {{4}, std::move(want)}, {0});
  };
  check_flags("logical_and", logical_and(a, b), {0, 0, 0, 1});
  check_flags("logical_or", logical_or(a, b), {0, 1, 1, 1});
  check_flags("logical_xor", logical_xor(a, b), {0, 1, 1, 0});
  check_flags("eq", eq(a, b), {1, 0, 0, 1});
  check_flags("ne", ne(a, b), {0, 1, 1, 0});
  expect_unsupported("add", DType::Bool, device(), [&] { add(a, b); });
}

TEST_P(Binary, SaysWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({2, 3}, DType::F32, device());
  expect_error(ErrorKind::ShapeMismatch,
               "add: ", [&] { add(x, Tensor::zeros({4}, DType::F32, device())); });
  expect_error(ErrorKind::DTypeMismatch, "mul: one operand is f32, another i32",
               [&] { mul(x, Tensor::zeros({3}, DType::I32, device())); });
  expect_error(ErrorKind::BadArgument, "mul: 0.5 is not a whole number, and the tensor is i32",
               [&] { mul(Tensor::zeros({3}, DType::I32, device()), 0.5); });
  // The checks hold for empty operands too.
  expect_error(ErrorKind::DTypeMismatch, "add: ", [&] {
    add(Tensor::zeros({0}, DType::F32, device()), Tensor::zeros({0}, DType::I32, device()));
  });
  if (!device().is_cpu()) {
    expect_error(ErrorKind::WrongDevice, "add: ", [&] { add(x, Tensor::zeros({3}, DType::F32)); });
  }
}

TEST_P(Binary, StaysOnTheDevice) {
  if (device().is_cpu()) GTEST_SKIP();
  const Tensor x = contiguous_on(uniform({40, 50}, 0, 1, 5), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  for (const Case& c : kArithmetic) {
    c.op(x, x.narrow(0, 0, 1));
    c.number_last(x.t(), 2);
    c.number_first(2, x);
  }
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
  EXPECT_EQ(after.launches - before.launches, 15U);
}

TEST(BinaryTable, TakesTensorsAndNumbersAlike) {
  const Tensor x = Tensor::from<float>({4.0F}, {1});
  EXPECT_EQ(call_op("sub", std::vector<OpValue>{x, Scalar(1)})[0].item<float>(), 3.0F);
  EXPECT_EQ(call_op("sub", std::vector<OpValue>{Scalar(1), x})[0].item<float>(), -3.0F);
  EXPECT_EQ(call_op("sub", std::vector<OpValue>{x, x})[0].item<float>(), 0.0F);
}

// Division truncates, floor_div and rem go with the floor, fmod with the truncation; by zero all
// give 0.
// Large enough for the GPU to straighten the operand first, and with a third dimension around it.
TEST_P(Binary, ALargeTransposedOperandGivesWhatItsCopyGives) {
  const Host values = uniform_for(DType::F32, {2, 370, 380}, -1, 1, 36);
  const Tensor x = contiguous_on(values, DType::F32, device());
  const Tensor turned = x.transpose(1, 2);
  const Tensor copied = copy(turned);
  const Tensor other =
      contiguous_on(uniform_for(DType::F32, {2, 380, 370}, -1, 1, 37), DType::F32, device());
  expect_equal("sub", sub(turned, other), sub(copied, other));
  expect_equal("sub", sub(other, turned), sub(other, copied));
  expect_equal("sub", sub(turned, turned.unsqueeze(0)), sub(copied, copied.unsqueeze(0)));
  expect_equal("mul", mul(turned, 3.0), mul(copied, 3.0));
  expect_equal("exp", exp(turned), exp(copied));
  expect_equal("affine", affine(turned, 2, 1), affine(copied, 2, 1));
}

TEST_P(Binary, IntegersDivideWithoutTraps) {
  struct IntegerCase {
    std::string_view name;
    Tensor (*op)(const Tensor&, const Tensor&);
    double (*reference)(double, double);
  };
  const IntegerCase cases[] = {
      {"sub", sub, [](double a, double b) { return a - b; }},
      {"div", div, [](double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }},
      {"floor_div", floor_div, [](double a, double b) { return b == 0 ? 0 : std::floor(a / b); }},
      {"rem", rem, [](double a, double b) { return b == 0 ? 0 : floor_mod(a, b); }},
      {"fmod", fmod, [](double a, double b) { return b == 0 ? 0 : std::fmod(a, b); }},
  };
  for (const DType dtype : kInts) {
    const Host b = uniform_for(dtype, {7, 41}, -6, 6, 31);
    Host a = uniform_for(dtype, {7, 41}, -60, 60, 30);
    for (double& x : a.values) x += x < 0 ? 0 : 6;  // unsigned differences stay above zero
    for (const IntegerCase& c : cases) {
      Host wanted = a;
      for (std::size_t i = 0; i < a.values.size(); ++i) {
        wanted.values[i] = c.reference(a.values[i], b.values[i]) + 0.0;
      }
      expect_close(c.name,
                   c.op(contiguous_on(a, dtype, device()), contiguous_on(b, dtype, device())),
                   dtype, wanted, {0}, describe(c.name, dtype, a.shape));
    }
  }
}

TEST_P(Binary, IntegersHavePowers) {
  for (const DType dtype : kInts) {
    const Host base = uniform_for(dtype, {90}, -5, 6, 32);
    const Host exponent = uniform_for(dtype, {90}, 0, 4, 33);
    Host wanted = base;
    for (std::size_t i = 0; i < 90; ++i) {
      wanted.values[i] = std::pow(base.values[i], exponent.values[i]);
    }
    expect_close(
        "pow", pow(contiguous_on(base, dtype, device()), contiguous_on(exponent, dtype, device())),
        dtype, wanted, {0});
  }
}

TEST_P(Binary, FloorDivisionOfFloatsIsTheFloorOfTheQuotient) {
  for (const DType dtype : kFloats) {
    Host a = uniform_for(dtype, {200}, -60, 60, 34);
    Host b = uniform_for(dtype, {200}, 1, 6, 35);
    for (double& x : a.values) x = std::floor(x);
    for (double& x : b.values) x = std::floor(x);
    a = rounded(a, dtype);
    b = rounded(b, dtype);
    Host wanted = a;
    for (std::size_t i = 0; i < 200; ++i) wanted.values[i] = std::floor(a.values[i] / b.values[i]);
    expect_close("floor_div",
                 floor_div(contiguous_on(a, dtype, device()), contiguous_on(b, dtype, device())),
                 dtype, wanted, {0.5});
  }
}

}  // namespace
}  // namespace tl
