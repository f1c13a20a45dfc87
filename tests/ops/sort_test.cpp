// Sorting against std::stable_sort.
#include "tl/ops/sort.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/conformance.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Sort : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Sort);

const double kNaN = std::nan("");

// NaN after every number; -0 equal to 0.
bool comes_before(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(b) && !std::isnan(a);
  return a < b;
}

struct Sorted {
  Host values;
  Host indices;
};

// The first `keep` along `dim`.
Sorted reference(const Host& x, int dim, bool descending, std::int64_t keep = -1) {
  const std::int64_t count = x.shape[dim];
  if (keep < 0) keep = count;
  Shape shape = x.shape;
  shape[dim] = keep;
  Sorted out{{shape, {}}, {shape, {}}};
  std::int64_t outer = 1, inner = 1;
  for (int d = 0; d < dim; ++d) outer *= x.shape[d];
  for (int d = dim + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
  out.values.values.resize(static_cast<std::size_t>(outer * keep * inner));
  out.indices.values = out.values.values;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto at = [&](std::int64_t k) {
        return x.values[static_cast<std::size_t>((o * count + k) * inner + i)];
      };
      std::vector<std::int64_t> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return descending ? comes_before(at(b), at(a)) : comes_before(at(a), at(b));
      });
      for (std::int64_t k = 0; k < keep; ++k) {
        const auto to = static_cast<std::size_t>((o * keep + k) * inner + i);
        out.values.values[to] = at(order[static_cast<std::size_t>(k)]);
        out.indices.values[to] = static_cast<double>(order[static_cast<std::size_t>(k)]);
      }
    }
  }
  return out;
}

void expect_sorted(std::string_view op, const std::pair<Tensor, Tensor>& got, DType dtype,
                   const Sorted& want, const std::string& what) {
  expect_close(op, got.first, dtype, want.values, {0}, what);
  expect_close({op, dtype}, got.second, DType::U32, want.indices, {0}, what);
  EXPECT_TRUE(got.first.is_contiguous() && got.second.is_contiguous());
}

const Shape kShapes[] = {{1},      {7},    {3, 5},    {4, 0, 2}, {33, 65},
                         {300, 2}, {5, 1}, {2, 3, 4}, {3, 1025}, {2, 2, 70}};

TEST_P(Sort, EveryDtypeAlongEveryDim) {
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : kShapes) {
      const Host values = uniform_for(dtype, shape, -20, 20, 1);  // many ties in small dtypes
      for (int dim = 0; dim < shape.size(); ++dim) {
        for (const bool descending : {false, true}) {
          const Arrangement how =
              kArrangements[static_cast<std::size_t>(dim + (descending ? 1 : 0)) % 4];
          const Tensor x = arrange(values, dtype, how, device());
          expect_sorted("sort", sort(x, dim, descending), dtype, reference(values, dim, descending),
                        describe("sort", dtype, shape, how) + join(" dim ", dim));
        }
      }
    }
  }
}

TEST_P(Sort, RowsOfEveryLengthAroundTheLimits) {
  for (const std::int64_t cols : {2047, 2048, 2049, 4095, 4096, 4097, 8192, 8193, 10000}) {
    for (const DType dtype : {DType::U8, DType::F16, DType::F32, DType::I64}) {
      const Host values = uniform_for(dtype, {2, cols}, -1000, 1000, 2);
      const bool descending = cols % 2 == 0;
      expect_sorted("sort", sort(contiguous_on(values, dtype, device()), -1, descending), dtype,
                    reference(values, 1, descending), describe("sort", dtype, {2, cols}));
    }
  }
}

TEST_P(Sort, LongRowsOfManyPieces) {
  for (const DType dtype : {DType::BF16, DType::F32, DType::F64, DType::I32}) {
    const Host values = uniform_for(dtype, {150000}, -1e6, 1e6, 3);
    expect_sorted("sort", sort(contiguous_on(values, dtype, device())), dtype,
                  reference(values, 0, false), describe("sort", dtype, {150000}));
  }
}

TEST_P(Sort, NaNComesLastAndFirstInReverse) {
  for (const DType dtype : kFloats) {
    for (const std::int64_t cols : {9, 700, 9000}) {
      Host values = uniform_for(dtype, {2, cols}, -4, 4, 4);
      for (std::size_t i = 0; i < values.values.size(); i += 5) values.values[i] = kNaN;
      if (dtype != DType::F8E4M3) {
        values.values[1] = std::numeric_limits<double>::infinity();
        values.values[2] = -std::numeric_limits<double>::infinity();
      }
      for (const bool descending : {false, true}) {
        expect_sorted("sort", sort(contiguous_on(values, dtype, device()), 1, descending), dtype,
                      reference(values, 1, descending), describe("sort", dtype, {2, cols}));
      }
    }
  }
}

TEST_P(Sort, EqualElementsKeepTheirOrderAndTheirSigns) {
  const Tensor zeros = Tensor::from<float>({0.0f, -0.0f, 1.0f, -0.0f, 0.0f, -1.0f}, {6}, device());
  for (const bool descending : {false, true}) {
    const auto [values, indices] = sort(zeros, 0, descending);
    const auto order = indices.to_vector<std::uint32_t>();
    EXPECT_EQ(order, (descending ? std::vector<std::uint32_t>{2, 0, 1, 3, 4, 5}
                                 : std::vector<std::uint32_t>{5, 0, 1, 3, 4, 2}));
    const auto sorted = values.to_vector<float>();
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(std::signbit(sorted[i]), order[i] == 1 || order[i] == 3 || order[i] == 5);
    }
  }
  // All equal: the indices stay as they are, whatever the length.
  for (const std::int64_t n : {100, 5000}) {
    for (const bool descending : {false, true}) {
      const Tensor order = argsort(Tensor::zeros({n}, DType::I16, device()), 0, descending);
      const auto indices = order.to_vector<std::uint32_t>();
      for (std::size_t i = 0; i < indices.size(); ++i) ASSERT_EQ(indices[i], i);
    }
  }
}

TEST_P(Sort, TheEndsOfEveryRange) {
  const auto check = [&]<class T>(std::vector<T> values) {
    std::vector<T> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sort(Tensor::from(values, device())).first.template to_vector<T>(), sorted);
    std::reverse(sorted.begin(), sorted.end());
    EXPECT_EQ(sort(Tensor::from(values, device()), 0, true).first.template to_vector<T>(), sorted);
  };
  check(std::vector<std::int64_t>{0, -1, 1, std::numeric_limits<std::int64_t>::max(),
                                  std::numeric_limits<std::int64_t>::min(), 1ll << 33});
  check(std::vector<std::int32_t>{5, -1, 2147483647, -2147483647 - 1, 0});
  check(std::vector<std::uint32_t>{5, 4294967295u, 0, 2147483648u});
  check(std::vector<std::int16_t>{5, -32768, 32767, -1, 0});
  check(std::vector<std::uint8_t>{5, 255, 0, 128, 127});
  check(std::vector<double>{1e308, -1e308, 5e-324, -5e-324, 0.5});
}

TEST_P(Sort, TopkTakesTheBestFirst) {
  for (const DType dtype : kDTypes) {
    for (const auto& [shape, k] : std::vector<std::pair<Shape, std::int64_t>>{{{7}, 3},
                                                                              {{5, 40}, 40},
                                                                              {{3, 0, 2}, 0},
                                                                              {{4, 9000}, 5},
                                                                              {{2, 9000}, 1500},
                                                                              {{6}, 0}}) {
      const Host values = uniform_for(dtype, shape, -100, 100, 5);
      const int dim = shape.size() > 2 ? 1 : shape.size() - 1;
      for (const bool largest : {true, false}) {
        expect_sorted("topk", topk(contiguous_on(values, dtype, device()), k, dim, largest), dtype,
                      reference(values, dim, largest, k),
                      describe("topk", dtype, shape) + join(" k ", k));
      }
    }
  }
  // Along the first dimension of a transposed tensor, and with several rounds on a GPU.
  const Host values = uniform_for(DType::F32, {30000, 2}, -1, 1, 6);
  expect_sorted("topk",
                topk(arrange(values, DType::F32, Arrangement::Transposed, device()), 1000, 0),
                DType::F32, reference(values, 0, true, 1000), "first dim");
}

TEST_P(Sort, LastDimFormsSayTheSame) {
  const Host values = uniform({3, 50}, -1, 1, 7);
  const Tensor x = contiguous_on(values, DType::F32, device());
  for (const bool ascending : {true, false}) {
    const auto want = sort(x, -1, !ascending);
    expect_equal("sort_last_dim", sort_last_dim(x, ascending).first, want.first);
    expect_equal("arg_sort_last_dim", arg_sort_last_dim(x, ascending), want.second);
    expect_equal("argsort", argsort(x, 1, !ascending), want.second);
    // A view that starts elsewhere.
    expect_equal("arg_sort_last_dim", arg_sort_last_dim(x.narrow(0, 1, 2), ascending),
                 copy(want.second.narrow(0, 1, 2)));
  }
}

TEST_P(Sort, TakesOneNumberAndNothing) {
  const auto [values, indices] = sort(Tensor::from<float>({3}, {}, device()));
  EXPECT_EQ(values.item<float>(), 3);
  EXPECT_EQ(indices.item<std::uint32_t>(), 0u);
  EXPECT_EQ(sort(Tensor::zeros({2, 0}, DType::F32, device())).second.shape(), (Shape{2, 0}));
  EXPECT_EQ(topk(Tensor::zeros({2, 0}, DType::F32, device()), 0).first.shape(), (Shape{2, 0}));
}

TEST_P(Sort, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({2, 3}, DType::F32, device());
  expect_error(ErrorKind::BadArgument, "sort: ", [&] { sort(x, 2); });
  expect_error(ErrorKind::BadArgument, "topk: k is 4, and dim 1 of shape (2, 3) has 3 elements",
               [&] { topk(x, 4); });
  expect_error(ErrorKind::BadArgument, "topk: k is -1", [&] { topk(x, -1); });
  expect_error(ErrorKind::Overflow, "sort: ", [&] {
    sort(Tensor::zeros({1}, DType::F32, device()).broadcast_as({std::int64_t{1} << 32}));
  });
}

TEST_P(Sort, RandomShapesLengthsAndTies) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 30; ++round) {
    const auto rows = static_cast<std::int64_t>(random() % 20) + 1;
    const auto cols = static_cast<std::int64_t>(random() % 600) + 1;
    const DType dtype = kDTypes[random() % kDTypeCount];
    const Host values = uniform_for(dtype, {rows, cols}, -8, 8, random());
    const int dim = static_cast<int>(random() % 2);
    const bool descending = random() % 2 == 0;
    const Tensor x = arrange(values, dtype, kArrangements[random() % 4], device());
    expect_sorted("sort", sort(x, dim, descending), dtype, reference(values, dim, descending),
                  describe("sort", dtype, {rows, cols}) + join(" seed ", fuzz_seed()));
  }
}

TEST_P(Sort, CanBeCalledByName) {
  const std::vector<OpValue> arguments = {Tensor::from<float>({3, 1, 2}, {3}, device()), Scalar(2)};
  const auto best = call_op("topk", arguments);
  expect_close("topk", best.at(0), DType::F32, {{2}, {3, 2}}, {0});
  expect_close("topk", best.at(1), DType::U32, {{2}, {0, 2}}, {0});
}

TEST_P(Sort, OnAGpuNothingWaitsOrTravels) {
  if (device().is_cpu()) GTEST_SKIP() << "no GPU";
  const Tensor x = contiguous_on(uniform({2, 5000}, -1, 1, 8), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  sort(x);
  topk(x, 7);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
