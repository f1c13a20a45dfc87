// Tensors from a rule, and random ones.
#include "tl/ops/create.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/random.h"

namespace tl {
namespace {

using namespace test;

class Create : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Create);
class Random : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Random);

TEST_P(Create, FillsEveryDtype) {
  for (const DType dtype : kDTypes) {
    expect_close("full", full({2, 3}, 1, dtype, device()), dtype, {{2, 3}, {1, 1, 1, 1, 1, 1}},
                 {0});
    expect_close("ones", ones({}, dtype, device()), dtype, {{}, {1}}, {0});
    const Tensor x = ones({3}, dtype, device());
    expect_close("zeros_like", zeros_like(x), dtype, {{3}, {0, 0, 0}}, {0});
    expect_close("ones_like", ones_like(zeros_like(x)), dtype, {{3}, {1, 1, 1}}, {0});
    expect_close("full_like", full_like(x, 0), dtype, {{3}, {0, 0, 0}}, {0});
  }
}

TEST_P(Create, IntegersAreMadeFromWholeNumbers) {
  expect_error(ErrorKind::BadArgument, "full: 0.5 is not a whole number, and the tensor is i32",
               [&] { full({2}, 0.5, DType::I32, device()); });
  expect_error(ErrorKind::BadArgument,
               "full: ", [&] { full_like(Tensor::zeros({0}, DType::U8, device()), 1.5); });
  const Tensor ids = Tensor::zeros({2}, DType::I64, device());
  expect_error(ErrorKind::BadArgument, "one_hot: 0.5 is not a whole number",
               [&] { one_hot(ids, 3, DType::I32, 0.5, 0); });
  expect_close("full", full({2}, 3.0, DType::I16, device()), DType::I16, {{2}, {3, 3}}, {0});
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  expect_close("full", full({1}, huge, DType::F32, device()), DType::F32, {{1}, {0x1p64}}, {0});
  expect_error(ErrorKind::BadArgument, "full: ", [&] { full({1}, huge, DType::I64, device()); });
}

TEST_P(Create, CountsForwardAndBackward) {
  for (const DType dtype : kNumbers) {
    expect_close("arange", arange(5, dtype, device()), dtype, {{5}, {0, 1, 2, 3, 4}}, {0});
    expect_close("arange", arange(7, 0, -3, dtype, device()), dtype, {{3}, {7, 4, 1}}, {0});
    EXPECT_EQ(arange(0, 5, -1, dtype, device()).count(), 0);
    EXPECT_EQ(arange(5, 5, 1, dtype, device()).count(), 0);
    Host want{{1000}, {}};
    for (int i = 0; i < 1000; ++i) want.values.push_back(i);
    if (size_of(dtype) >= 4) {
      expect_close("arange", arange(1000, dtype, device()), dtype, want, {0});
    }
  }
  expect_close("arange", arange(0, 1, 0.25, DType::F64, device()), DType::F64,
               {{4}, {0, 0.25, 0.5, 0.75}}, {0});
  // Near the ends of the range it neither loops nor overflows.
  const std::int64_t top = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(arange(top - 2, top, 1, DType::I64, device()).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{top - 2, top - 1}));
  EXPECT_EQ(arange(0, 255, 100, DType::U8, device()).to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{0, 100, 200}));
  expect_error(ErrorKind::BadArgument, "arange: the step is 0",
               [&] { arange(0, 1, 0, DType::F32, device()); });
  expect_error(ErrorKind::BadArgument, "arange: 0.5 is not a whole number",
               [&] { arange(0, 1, 0.5, DType::I32, device()); });
}

TEST_P(Create, SpacesEvenly) {
  for (const DType dtype : kFloats) {
    expect_close("linspace", linspace(-1, 1, 5, dtype, device()), dtype,
                 {{5}, {-1, -0.5, 0, 0.5, 1}}, {0});
    EXPECT_EQ(host_of(linspace(0, 0.1, 7, dtype, device())).values.back(),
              rounded({{1}, {0.1}}, dtype).values[0]);
  }
  expect_close("linspace", linspace(3, 9, 1, DType::F32, device()), DType::F32, {{1}, {3}}, {0});
  EXPECT_EQ(linspace(3, 9, 0, DType::F32, device()).count(), 0);
  expect_error(ErrorKind::BadArgument, "linspace: a count of -1",
               [&] { linspace(0, 1, -1, DType::F32, device()); });
  expect_error(ErrorKind::BadArgument, "linspace: from -1e+308 to 1e+308",
               [&] { linspace(-1e308, 1e308, 3, DType::F64, device()); });
}

TEST_P(Create, TrianglesAndDiagonals) {
  for (const DType dtype : kDTypes) {
    expect_close("eye", eye(3, dtype, device()), dtype, {{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}}, {0});
    expect_close("tril2", tril2(3, dtype, device()), dtype, {{3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}},
                 {0});
    expect_close("triu2", triu2(3, dtype, device()), dtype, {{3, 3}, {1, 1, 1, 0, 1, 1, 0, 0, 1}},
                 {0});
    const Host x = rounded(uniform_for(dtype, {2, 5, 7}, 1, 9, 1), dtype);
    for (const std::int64_t diagonal : {-2, 0, 3}) {
      Host lower = x, upper = x;
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i / 7 % 5),
                   col = static_cast<std::int64_t>(i % 7);
        if (col - row > diagonal) lower.values[i] = 0;
        if (col - row < diagonal) upper.values[i] = 0;
      }
      for (const Arrangement how : kArrangements) {
        expect_close("tril", tril(arrange(x, dtype, how, device()), diagonal), dtype, lower, {0});
        expect_close("triu", triu(arrange(x, dtype, how, device()), diagonal), dtype, upper, {0});
      }
    }
  }
  EXPECT_EQ(eye(0, DType::F32, device()).count(), 0);
  expect_error(ErrorKind::BadArgument, "tril: shape (3,) has fewer than two dimensions",
               [&] { tril(ones({3}, DType::F32, device())); });
}

TEST_P(Create, OneHotRows) {
  for (const DType ids : kInts) {
    const Tensor x = contiguous_on({{3}, {1, 0, 2}}, ids, device());
    expect_close({"one_hot", ids}, one_hot(x, 3, DType::F32), DType::F32,
                 {{3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 1}}, {0});
    expect_error(ErrorKind::InvalidIndex, "index 2 is outside a dimension of size 2", [&] {
      one_hot(x, 2, DType::F32);
      device().synchronize();
    });
  }
  const Tensor none = contiguous_on({{2}, {255, 1}}, DType::U8, device());
  expect_close("one_hot", one_hot(none, 2, DType::U8, 7, 2), DType::U8, {{2, 2}, {2, 2, 2, 7}},
               {0});
  expect_unsupported("one_hot", DType::F32, device(),
                     [&] { one_hot(ones({2}, DType::F32, device()), 3, DType::F32); });
}

TEST_P(Create, UploadsNothing) {
  if (device().is_cpu()) GTEST_SKIP();
  const Tensor ids = contiguous_on({{3}, {1, 0, 2}}, DType::U32, device());
  const DriverCalls before = device().driver_calls();
  full({5}, 2, DType::F32, device());
  arange(9, DType::I64, device());
  linspace(0, 1, 9, DType::F16, device());
  tril(eye(4, DType::F32, device()));
  one_hot(ids, 4, DType::F32);
  dropout(rand_normal(0, 1, {40}, DType::BF16, device()), 0.5);
  randint(0, 9, {7}, DType::I32, device());
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

// ---- random numbers

struct Moments {
  double mean, deviation, low, high;
};
Moments moments(const Tensor& x) {
  const Host h = host_of(x);
  Moments m{0, 0, h.values[0], h.values[0]};
  for (const double v : h.values) {
    m.mean += v / static_cast<double>(h.values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (const double v : h.values) {
    m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(h.values.size());
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST_P(Random, KnownAnswerOfPhilox) {
  // The first block of key 0 and counter 0 is 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  device().set_seed(0);
  const auto u = rand_uniform(0, 1, {4}, DType::F32, device()).to_vector<float>();
  const std::uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(u[i], static_cast<float>(words[i] >> 8) * 0x1p-24F);
  }
}

TEST_P(Random, UniformStaysInItsHalfOpenRange) {
  for (const DType dtype : kFloats) {
    device().set_seed(1);
    const Moments m = moments(rand_uniform(-1, 3, {20001}, dtype, device()));
    EXPECT_NEAR(m.mean, 1, 0.05) << dtype;
    EXPECT_NEAR(m.deviation, 4 / std::sqrt(12.0), 0.05) << dtype;
    EXPECT_GE(m.low, -1) << dtype;
    EXPECT_LT(m.high, 3) << dtype;
    // A range of a few last places: rounding must not reach the end.
    const Moments narrow =
        moments(rand_uniform(1, 1 + 2 * epsilon(dtype), {2000}, dtype, device()));
    EXPECT_LT(narrow.high, 1 + 2 * epsilon(dtype)) << dtype;
    EXPECT_GE(narrow.low, 1) << dtype;
    const Moments zero = moments(rand_uniform(-1, 0, {5000}, dtype, device()));
    EXPECT_LT(zero.high, 0) << dtype;
    const Moments same = moments(rand_uniform(2, 2, {10}, dtype, device()));
    EXPECT_EQ(same.low, 2);
    EXPECT_EQ(same.high, 2);
  }
  const double inf = std::numeric_limits<double>::infinity();
  expect_error(ErrorKind::BadArgument,
               "rand_uniform: ", [&] { rand_uniform(1, 0, {2}, DType::F32, device()); });
  expect_error(ErrorKind::BadArgument,
               "rand_uniform: ", [&] { rand_uniform(0, inf, {2}, DType::F32, device()); });
  expect_unsupported("rand_uniform", DType::I32, device(),
                     [&] { rand_uniform(0, 1, {2}, DType::I32, device()); });
}

TEST_P(Random, NormalHasItsMomentsAndExactLength) {
  for (const DType dtype : kFloats) {
    device().set_seed(2);
    const Tensor x = rand_normal(1, 2, {20001}, dtype, device());
    EXPECT_EQ(x.count(), 20001);
    const Moments m = moments(x);
    EXPECT_NEAR(m.mean, 1, 0.06) << dtype;
    EXPECT_NEAR(m.deviation, 2, 0.06) << dtype;
    EXPECT_LT(m.low, 0) << dtype;
  }
  EXPECT_EQ(moments(rand_normal(3, 0, {5}, DType::F32, device())).low, 3);
  expect_error(ErrorKind::BadArgument,
               "rand_normal: ", [&] { rand_normal(0, -1, {2}, DType::F32, device()); });
}

TEST_P(Random, CallsAndSeedsDiffer) {
  device().set_seed(5);
  EXPECT_EQ(device().current_seed(), 5U);
  const auto a = rand_normal(0, 1, {9}, DType::F32, device()).to_vector<float>();
  const auto b = rand_normal(0, 1, {9}, DType::F32, device()).to_vector<float>();
  device().set_seed(6);
  const auto c = rand_normal(0, 1, {9}, DType::F32, device()).to_vector<float>();
  device().set_seed(5);
  const auto again = rand_normal(0, 1, {9}, DType::F32, device()).to_vector<float>();
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(a, again);
}

TEST_P(Random, EveryDeviceGivesTheNumbersOfTheCpu) {
  const auto both = [&](std::string_view what, const auto& make) {
    device().set_seed(11);
    const Tensor here = make(device());
    Device::cpu().set_seed(11);
    expect_equal(what, to(here, Device::cpu()), make(Device::cpu()));
  };
  for (const DType dtype : kFloats) {
    both("rand_uniform", [&](const Device& d) { return rand_uniform(-2, 5, {1003}, dtype, d); });
    both("rand_normal", [&](const Device& d) { return rand_normal(-2, 5, {1003}, dtype, d); });
  }
  for (const DType dtype : kInts) {
    both("randint", [&](const Device& d) { return randint(0, 100, {1003}, dtype, d); });
  }
}

TEST_P(Random, IntegersCoverTheirRange) {
  device().set_seed(3);
  for (const DType dtype : kInts) {
    const Moments m = moments(randint(3, 9, {2000}, dtype, device()));
    EXPECT_EQ(m.low, 3);
    EXPECT_EQ(m.high, 8);
    EXPECT_NEAR(m.mean, 5.5, 0.2);
  }
  expect_error(ErrorKind::BadArgument, "randint: integers from 0 to below 257 do not fit u8",
               [&] { randint(0, 257, {2}, DType::U8, device()); });
  expect_error(ErrorKind::BadArgument, "randint: there is no integer",
               [&] { randint(3, 3, {2}, DType::U8, device()); });
}

TEST_P(Random, DropoutKeepsTheMean) {
  device().set_seed(4);
  const Tensor y = dropout(ones({20000}, DType::F32, device()), 0.25);
  EXPECT_NEAR(moments(y).mean, 1, 0.02);
  EXPECT_EQ(moments(y).low, 0);
  EXPECT_EQ(moments(dropout(y, 1)).high, 0);
  EXPECT_TRUE(dropout(y, 0).shares_memory_with(y));
  EXPECT_NEAR(moments(bernoulli(0.3, {20000}, DType::Bool, device())).mean, 0.3, 0.02);
  expect_error(ErrorKind::BadArgument, "dropout: ", [&] { dropout(y, 1.5); });
}

}  // namespace
}  // namespace tl
