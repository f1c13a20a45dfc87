// Softmax and log_softmax along every dimension.
#include "tl/ops/softmax.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"

namespace tl {
namespace {

using namespace test;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Softmax : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Softmax);

// The plain formula along dimension `dim`.
Host reference(const Host& x, int dim, bool logarithm) {
  Host y = x;
  if (x.shape.empty()) {
    y.values[0] = logarithm ? 0 : 1;
    return y;
  }
  std::int64_t outer = 1, inner = 1;
  const std::int64_t n = x.shape[dim];
  for (int d = 0; d < dim; ++d) outer *= x.shape[d];
  for (int d = dim + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto at = [&](std::int64_t k) {
        return static_cast<std::size_t>((o * n + k) * inner + i);
      };
      long double most = -kInfinity, sum = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        if (std::isnan(x.values[at(k)])) most = x.values[at(k)];
        if (!std::isnan(most)) most = std::max<long double>(most, x.values[at(k)]);
      }
      for (std::int64_t k = 0; k < n; ++k) sum += std::exp(x.values[at(k)] - most);
      for (std::int64_t k = 0; k < n; ++k) {
        const long double e = x.values[at(k)] - most;
        y.values[at(k)] = static_cast<double>(logarithm ? e - std::log(sum) : std::exp(e) / sum);
      }
    }
  }
  return y;
}

// The difference to the largest element rounds before exp() sees it, which costs as many half units
// as its size; log_softmax is a difference, whose error is that of its larger part.
Bound bound(DType dtype, const Host& x, bool logarithm) {
  if (dtype != DType::F32 && dtype != DType::F64) return {0.6, logarithm ? 0.05 : 0};
  double low = 0, high = 0;
  for (const double v : x.values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const double range = std::min(high - low, 104.0);
  return logarithm ? Bound{2, std::max(1.0, range)} : Bound{4 + range / 2, 0};
}

void check(const Host& values, DType dtype, int dim, const Device& device, Arrangement how) {
  const Host start = rounded(values, dtype);
  const Tensor x = arrange(values, dtype, how, device);
  const std::string what = join(describe("", dtype, values.shape, how), " dim ", dim);
  const Tensor y = softmax(x, dim);
  EXPECT_TRUE(y.is_contiguous());
  expect_close("softmax", y, dtype, reference(start, dim, false), bound(dtype, start, false), what);
  expect_close("log_softmax", log_softmax(x, dim), dtype, reference(start, dim, true),
               bound(dtype, start, true), what);
}

TEST_P(Softmax, MatchesTheReferenceForEveryDtypeLayoutAndDimension) {
  const Shape shapes[] = {{}, {1}, {7}, {0}, {3, 5}, {4, 0, 2}, {2, 33, 3}, {3, 65}, {2, 3, 4, 5}};
  for (const DType dtype : kFloats) {
    for (const Shape& shape : shapes) {
      const Host values = uniform(shape, -5, 5, 11);
      for (const Arrangement how : kArrangements) {
        check(values, dtype, shape.empty() ? 0 : shape.size() - 1, device(), how);
        for (int dim = 0; dim + 1 < shape.size(); ++dim) check(values, dtype, dim, device(), how);
      }
    }
  }
}

// Part of a warp, a warp, a block that keeps the row, a block that reads it twice.
TEST_P(Softmax, RowsOfEveryLengthClass) {
  for (const DType dtype : kFloats) {
    for (const std::int64_t n : {8, 16, 24, 129, 512, 513, 1024, 1025, 4096, 5000, 16384, 20001}) {
      check(uniform({3, n}, -8, 8, 12), dtype, 1, device(), Arrangement::Contiguous);
    }
    check(uniform({2, 20001}, -8, 8, 13), dtype, 1, device(), Arrangement::Stepped);
    check(uniform({700, 3}, -8, 8, 14), dtype, 1, device(), Arrangement::Contiguous);
    check(uniform({1500, 37}, -8, 8, 15), dtype, 0, device(), Arrangement::Contiguous);
    check(uniform({2, 9, 130}, -8, 8, 16), dtype, 1, device(), Arrangement::Narrowed);
  }
}

TEST_P(Softmax, FuzzedShapes) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 30; ++round) {
    const int rank = 1 + static_cast<int>(random() % 4);
    const Shape shape = random_shape(random, rank, 20, true);
    const int dim = static_cast<int>(random() % static_cast<unsigned>(rank));
    check(uniform(shape, -4, 4, random()), kFloats[random() % 5], dim, device(),
          kArrangements[random() % 4]);
  }
}

TEST_P(Softmax, LargeInputsDoNotOverflow) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const Host values{{2, 3}, {60000, 59999, -60000, -1e4, -1e4, -1e4}};
    check(values, dtype, 1, device(), Arrangement::Contiguous);
    check(values, dtype, 0, device(), Arrangement::Contiguous);
  }
}

// Also a row that only a block keeps, one that is read twice, and columns.
TEST_P(Softmax, NanAndInfinityMakeTheirRowNanAndNoOther) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    for (const std::int64_t n : {3, 40, 1000, 3000, 20000}) {
      Host values = uniform({5, n}, -3, 3, 17);
      const auto at = [&](std::int64_t row, std::int64_t i) -> double& {
        return values.values[static_cast<std::size_t>(row * n + i)];
      };
      at(0, n / 2) = std::nan("");
      for (std::int64_t i = 0; i < n; ++i) at(1, i) = -kInfinity;
      at(2, 1) = kInfinity;
      at(3, 0) = -kInfinity;
      check(values, dtype, 1, device(), Arrangement::Contiguous);
      check(values, dtype, 1, device(), Arrangement::Transposed);
      if (n > 3000) continue;
      Host columns{{n, 5}, std::vector<double>(values.values.size())};
      for (std::int64_t row = 0; row < 5; ++row) {
        for (std::int64_t i = 0; i < n; ++i) {
          columns.values[static_cast<std::size_t>(i * 5 + row)] = at(row, i);
        }
      }
      check(columns, dtype, 0, device(), Arrangement::Contiguous);
    }
  }
}

TEST_P(Softmax, RefusesWhatIsNotFloat) {
  for (const DType dtype : kInts) {
    const Tensor x = contiguous_on({{2, 2}, {1, 2, 3, 4}}, dtype, device());
    expect_unsupported("softmax", dtype, device(), [&] { softmax(x); });
    expect_unsupported("log_softmax", dtype, device(), [&] { log_softmax(x); });
  }
  const Tensor x = contiguous_on({{2, 2}, {1, 2, 3, 4}}, DType::F32, device());
  expect_error(ErrorKind::BadArgument, "softmax", [&] { softmax(x, 2); });
  expect_error(ErrorKind::BadArgument, "log_softmax", [&] { log_softmax(x, -3); });
}

TEST_P(Softmax, StaysOnTheDevice) {
  const Tensor x = contiguous_on(uniform({8, 100}, -1, 1, 18), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  const Tensor y = log_softmax(softmax(x, 0), 1);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
