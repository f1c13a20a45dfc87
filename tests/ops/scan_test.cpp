// Running sums and products against plain loops.
#include "tl/ops/scan.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"

namespace tl {
namespace {

using namespace test;

class Scan : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Scan);

// Calls f(line) with the positions of every line along `dim`.
template <class F>
void for_each_line(const Shape& shape, int dim, F&& f) {
  std::size_t inner = 1, outer = 1;
  for (int d = 0; d < shape.size(); ++d) {
    (d < dim ? outer : inner) *= d == dim ? 1 : static_cast<std::size_t>(shape[d]);
  }
  const auto count = static_cast<std::size_t>(shape[dim]);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < inner; ++i) {
      std::vector<std::size_t> line;
      for (std::size_t k = 0; k < count; ++k) line.push_back((o * count + k) * inner + i);
      f(line);
    }
  }
}

// `most` is the largest sum of magnitudes: what errors are measured by.
Host running(const Host& x, int dim, DType dtype, bool product, double* most = nullptr) {
  Host out = x;
  for_each_line(x.shape, dim, [&](const std::vector<std::size_t>& line) {
    double total = product ? 1 : 0, magnitude = 0;
    std::uint64_t word = product ? 1 : 0;
    for (const std::size_t at : line) {
      if (is_float(dtype)) {
        total = product ? total * x.values[at] : total + x.values[at];
        magnitude += std::abs(x.values[at]);
        out.values[at] = total;
      } else {
        const auto element = static_cast<std::uint64_t>(static_cast<std::int64_t>(x.values[at]));
        word = product ? word * element : word + element;
        visit_dtype("scan", dtype, [&]<class T> {
          if constexpr (std::is_integral_v<T>) out.values[at] = static_cast<double>(T(word));
        });
      }
    }
    if (most != nullptr) *most = std::max(*most, magnitude);
  });
  return out;
}

const Shape kShapes[] = {{1},        {7},         {3, 5},   {4, 0, 2}, {33, 65},     {2, 3, 4},
                         {3, 2, 70}, {130, 2, 3}, {3, 515}, {2, 4097}, {5, 1, 7, 3}, {9000}};

TEST_P(Scan, SumsRunAlongEveryDim) {
  for (const DType dtype : kNumbers) {
    for (const Shape& shape : kShapes) {
      const Host values = uniform_for(dtype, shape, -4, 4, 1);
      for (int dim = 0; dim < shape.size(); ++dim) {
        double most = 0;
        const Host want = running(values, dim, dtype, false, &most);
        for (const Arrangement how : kArrangements) {
          const Tensor x = arrange(values, dtype, how, device());
          expect_close("cumsum", cumsum(x, dim), dtype, want, {8, most / 8},
                       describe("cumsum", dtype, shape, how) + join(" dim ", dim));
        }
      }
    }
  }
}

TEST_P(Scan, ProductsRunAlongEveryDim) {
  for (const DType dtype : kNumbers) {
    for (const Shape& shape : kShapes) {
      Host values = uniform_for(dtype, shape, 1, 4, 2);
      if (is_float(dtype)) {  // powers of two, so that every order of factors is exact
        double product = 1;
        for (double& x : values.values) {
          x = x < 2.5 ? 1 : product > 1 ? 0.5 : 2;
          product *= x;
        }
        if (shape.size() > 1 && shape[0] > 8) continue;
      }
      for (int dim = 0; dim < shape.size(); ++dim) {
        if (is_float(dtype) && dim + 1 != shape.size()) continue;
        expect_close("cumprod",
                     cumprod(arrange(values, dtype, kArrangements[dim % 4], device()), dim), dtype,
                     running(values, dim, dtype, true), {0},
                     describe("cumprod", dtype, shape) + join(" dim ", dim));
      }
    }
  }
}

TEST_P(Scan, LongLinesAreSharedByBlocks) {
  for (const Shape& shape : {Shape{100000}, Shape{2, 40001}, Shape{20000, 3}}) {
    for (int dim = 0; dim < shape.size(); ++dim) {
      const Host values = uniform_for(DType::I32, shape, -1000, 1000, 3);
      expect_close("cumsum", cumsum(contiguous_on(values, DType::I32, device()), dim), DType::I32,
                   running(values, dim, DType::I32, false), {0}, shape.text());
      const Host floats = uniform_for(DType::F32, shape, 0, 1, 4);
      expect_close("cumsum", cumsum(contiguous_on(floats, DType::F32, device()), dim), DType::F32,
                   running(floats, dim, DType::F32, false), {16}, shape.text());
      const Host halves = uniform_for(DType::F16, shape, -0.01, 0.01, 5);
      double most = 0;
      const Host want = running(halves, dim, DType::F16, false, &most);
      expect_close("cumsum", cumsum(contiguous_on(halves, DType::F16, device()), dim), DType::F16,
                   want, {1, most / 64}, shape.text());
    }
  }
}

TEST_P(Scan, IntegersWrapAndNaNStays) {
  const Tensor bytes = Tensor::from(std::vector<std::uint8_t>(600, 200), {600}, device());
  const auto sums = cumsum(bytes, 0).to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ASSERT_EQ(sums[i], static_cast<std::uint8_t>(200 * (i + 1)));
  }
  const float nan = std::nanf("");
  const auto out = cumsum(Tensor::from<float>({1, nan, 2}, {3}, device()), 0).to_vector<float>();
  EXPECT_EQ(out[0], 1);
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_TRUE(std::isnan(out[2]));
}

TEST_P(Scan, TakesOneNumberNegativeDimsAndNothing) {
  const Tensor one = Tensor::from<float>({3}, {}, device());
  EXPECT_EQ(cumsum(one, 0).item<float>(), 3);
  EXPECT_EQ(cumprod(one, -1).shape(), Shape{});
  expect_close("cumsum", cumsum(Tensor::from<float>({1, 2, 3, 4}, {2, 2}, device()), -2),
               DType::F32, {{2, 2}, {1, 2, 4, 6}}, {0});
  EXPECT_EQ(cumsum(Tensor::zeros({3, 0}, DType::F32, device()), 1).shape(), (Shape{3, 0}));
}

TEST_P(Scan, RefusesWhatHasNoMeaning) {
  const Tensor x = Tensor::zeros({2, 3}, DType::F32, device());
  expect_error(ErrorKind::BadArgument, "cumsum: ", [&] { cumsum(x, 2); });
  expect_unsupported("cumsum", DType::Bool, device(),
                     [&] { cumsum(Tensor::zeros({2}, DType::Bool, device()), 0); });
}

TEST_P(Scan, RandomShapesAndPermutations) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 40; ++round) {
    const int rank = static_cast<int>(random() % 4) + 1;
    const Shape shape = random_shape(random, rank, 20);
    const Tensor start = contiguous_on(uniform(shape, -4, 4, random()), DType::F32, device());
    const Tensor x = start.transpose(0, static_cast<std::int64_t>(random() % 4) % rank);
    const int dim = static_cast<int>(random() % 4) % rank;
    double most = 0;
    const Host want = running(host_of(x), dim, DType::F32, false, &most);
    expect_close("cumsum", cumsum(x, dim), DType::F32, want, {8, most / 8},
                 join(shape, " dim ", dim, " seed ", fuzz_seed()));
  }
}

TEST_P(Scan, OnAGpuNothingWaitsOrTravels) {
  if (device().is_cpu()) GTEST_SKIP() << "no GPU";
  const Tensor x = contiguous_on(uniform({30, 400}, -1, 1, 6), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  cumsum(x, 1);
  cumsum(x.t(), 1);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

// Products of 1 and -1 are exact in every dtype, however they are grouped.
TEST_P(Scan, ProductsAlongOuterDimensionsInEveryFloat) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{50, 33}, Shape{700, 3}, Shape{3, 260, 5}}) {
      Host x = uniform(shape, -1, 1, 92);
      for (double& v : x.values) v = v < 0 ? -1 : 1;
      const int dim = shape.size() - 2;
      const std::int64_t inner = shape[dim + 1];
      Host wanted = x;
      for (std::int64_t i = 0; i < wanted.count(); ++i) {
        if (i / inner % shape[dim] != 0) {
          wanted.values[static_cast<std::size_t>(i)] *=
              wanted.values[static_cast<std::size_t>(i - inner)];
        }
      }
      expect_close("cumprod", cumprod(contiguous_on(x, dtype, device()), dim), dtype, wanted, {0});
    }
  }
}

}  // namespace
}  // namespace tl
