// Reductions against plain loops over doubles.
#include "tl/ops/reduce.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Reduce : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Reduce);

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// The elements that each output reduces, in row-major order of the reduced dimensions.
struct Groups {
  Shape shape;
  std::vector<std::vector<double>> of;
};

Groups group(const Host& x, const Dims& dims, bool keepdim = false) {
  std::vector<bool> gone(static_cast<std::size_t>(x.shape.size()));
  for (const std::int64_t d : dims) {
    gone[static_cast<std::size_t>(d < 0 ? d + x.shape.size() : d)] = true;
  }
  Groups groups;
  std::int64_t outputs = 1;
  for (int d = 0; d < x.shape.size(); ++d) {
    const bool keep = !gone[static_cast<std::size_t>(d)];
    if (keep) outputs *= x.shape[d];
    if (keep || keepdim) groups.shape.push_back(keep ? x.shape[d] : 1);
  }
  groups.of.resize(static_cast<std::size_t>(outputs));
  Dims at = Dims::repeated(x.shape.size(), 0);
  for (const double value : x.values) {
    std::int64_t output = 0;
    for (int d = 0; d < x.shape.size(); ++d) {
      if (!gone[static_cast<std::size_t>(d)]) output = output * x.shape[d] + at[d];
    }
    groups.of[static_cast<std::size_t>(output)].push_back(value);
    for (int d = x.shape.size() - 1; d >= 0; --d) {
      if (++at[d] < x.shape[d]) break;
      at[d] = 0;
    }
  }
  return groups;
}

template <class F>
Host for_each_group(const Groups& groups, F&& f) {
  Host out{groups.shape, {}};
  for (const auto& values : groups.of) out.values.push_back(f(values));
  return out;
}

double sum_of(const std::vector<double>& values) {
  long double total = 0;
  for (const double x : values) total += x;
  return static_cast<double>(total);
}
double absolute_of(const std::vector<double>& values) {
  double total = 0;
  for (const double x : values) total += std::abs(x);
  return total;
}
double variance_of(const std::vector<double>& values, double correction) {
  const auto n = static_cast<double>(values.size());
  const double mean = sum_of(values) / n;
  long double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return static_cast<double>(squares) / std::max(n - correction, 0.0);
}
template <class Better>
std::size_t place_of(const std::vector<double>& values, Better better) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (std::isnan(values[best])) break;
    if (better(values[i], values[best]) || std::isnan(values[i])) best = i;
  }
  return best;
}
double log_sum_exp(const std::vector<double>& values) {
  double largest = -kInfinity;
  for (const double x : values) largest = std::max(largest, x);
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double x : values) sum += std::exp(x - largest);
  return largest + std::log(sum);
}
double norm_of(const std::vector<double>& values, double p) {
  double total = p == -kInfinity ? kInfinity : 0;
  for (const double value : values) {
    const double x = std::abs(value);
    if (std::isinf(p)) {
      total = p > 0 ? std::max(total, x) : std::min(total, x);
    } else if (p == 0) {
      total += x != 0 ? 1 : 0;
    } else {
      total += std::pow(x, p);
    }
  }
  return std::isinf(p) || p == 0 ? total : std::pow(total, 1 / p);
}

// An integer sum or product that wraps: computed in 64 bits, low bits kept.
template <class F>
Host wrap(const Groups& groups, DType dtype, F&& f) {
  Host out{groups.shape, {}};
  for (const auto& values : groups.of) {
    const std::uint64_t word = f(values);
    visit_dtype("wrap", dtype, [&]<class T> {
      if constexpr (std::is_integral_v<T>) {
        out.values.push_back(static_cast<double>(static_cast<T>(word)));
      }
    });
  }
  return out;
}
std::uint64_t wrapping_sum(const std::vector<double>& values) {
  std::uint64_t total = 0;
  for (const double x : values) total += static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  return total;
}
std::uint64_t wrapping_product(const std::vector<double>& values) {
  std::uint64_t total = 1;
  for (const double x : values) total *= static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  return total;
}

double scale_of(const Groups& groups) {
  double most = 0;
  for (const auto& values : groups.of) most = std::max(most, absolute_of(values));
  return most;
}

struct Case {
  Shape shape;
  Dims dims;

  // Larger shapes take one of the arrangements each, in turn.
  std::vector<Arrangement> arrangements() const {
    const std::int64_t count = element_count("cases", shape);
    if (count <= 200) return {std::begin(kArrangements), std::end(kArrangements)};
    return {kArrangements[static_cast<std::size_t>(count + shape[0] + dims.size()) % 4]};
  }
};
// Every set of dimensions of shapes that cross warps, blocks and the limits between the forms.
std::vector<Case> cases() {
  std::vector<Case> all;
  const Shape shapes[] = {{},        {1},          {7},          {3, 5},    {4, 0, 2}, {33, 65},
                          {2, 3, 4}, {5, 1, 7, 3}, {1, 1500, 2}, {3, 2100}, {300, 17}, {17, 300}};
  for (const Shape& shape : shapes) {
    for (unsigned set = 0; set < (1u << shape.size()); ++set) {
      Dims dims;
      for (int d = 0; d < shape.size(); ++d) {
        if ((set >> d & 1) != 0) dims.push_back(d);
      }
      all.push_back({shape, dims});
    }
  }
  return all;
}

TEST_P(Reduce, SumsOverEveryCombinationOfDims) {
  for (const DType dtype : kNumbers) {
    for (const Case& c : cases()) {
      const Host values = uniform_for(dtype, c.shape, -4, 4, 1);
      const Groups groups = group(values, c.dims);
      const Host want =
          is_float(dtype) ? for_each_group(groups, sum_of) : wrap(groups, dtype, wrapping_sum);
      for (const Arrangement how : c.arrangements()) {
        const Tensor x = arrange(values, dtype, how, device());
        // Small floats round once at the end; what f32 loses on the way is below their epsilon.
        expect_close("sum", sum(x, c.dims), dtype, want, {4, scale_of(groups) / 8},
                     describe("sum", dtype, c.shape, how) + c.dims.text());
      }
    }
  }
}

TEST_P(Reduce, KeepsDimsWhenAskedAndCountsThemFromTheEnd) {
  const Host values = uniform({3, 4, 5}, -1, 1, 2);
  const Host rounded_values = rounded(values, DType::F32);
  const Tensor x = contiguous_on(values, DType::F32, device());
  for (const Dims& dims : {Dims{0}, Dims{-1}, Dims{1, -1}, Dims{-1, 0, 1}, Dims{}}) {
    expect_close("sum", sum(x, dims, true), DType::F32,
                 for_each_group(group(rounded_values, dims, true), sum_of), {4, 4});
  }
  EXPECT_EQ(max(x, {1}, true).shape(), (Shape{3, 1, 5}));
  EXPECT_EQ(argmax(x, -2, true).shape(), (Shape{3, 1, 5}));
  EXPECT_EQ(argmax(x, -2).shape(), (Shape{3, 5}));
  EXPECT_EQ(var(x, {0, 2}, 1, true).shape(), (Shape{1, 4, 1}));
  EXPECT_EQ(sum_all(x).shape(), Shape{});
}

TEST_P(Reduce, OverNoDimsIsTheTensorItself) {
  const Tensor x = contiguous_on(uniform({3, 4}, -1, 1, 3), DType::F32, device());
  expect_equal("sum", sum(x, {}), x);
  expect_equal("prod", prod(x, {}), x);
  expect_equal("max", max(x, {}), x);
  expect_equal("mean", mean(x, {}), x);
}

TEST_P(Reduce, MultipliesOverDims) {
  for (const DType dtype : kNumbers) {
    for (const Case& c : cases()) {
      Host values = uniform_for(dtype, c.shape, 1, 4, 4);
      if (is_float(dtype)) {  // near 1, so that long products stay in range
        for (double& x : values.values) x = x < 2.5 ? 1 : x < 3.2 ? 0.5 : 2;
      }
      const Groups groups = group(values, c.dims);
      Host want = is_float(dtype) ? for_each_group(groups,
                                                   [](const std::vector<double>& v) {
                                                     double p = 1;
                                                     for (const double x : v) p *= x;
                                                     return p;
                                                   })
                                  : wrap(groups, dtype, wrapping_product);
      if (is_float(dtype)) want = rounded(want, dtype);
      const Arrangement how = kArrangements[static_cast<std::size_t>(c.shape.size()) % 4];
      // Powers of two are exact unless they leave f32 on the way: short products only.
      if (is_float(dtype) && values.count() > 200) continue;
      expect_close("prod", prod(arrange(values, dtype, how, device()), c.dims), dtype, want, {0},
                   describe("prod", dtype, c.shape, how) + c.dims.text());
    }
  }
}

TEST_P(Reduce, IntegersWrapInTheirDtype) {
  const Tensor bytes = Tensor::from(std::vector<std::uint8_t>(300, 255), {300}, device());
  EXPECT_EQ(sum_all(bytes).item<std::uint8_t>(), static_cast<std::uint8_t>(300 * 255));
  EXPECT_EQ(prod_all(bytes).item<std::uint8_t>(), 1);  // 255 is -1
  const Tensor words = Tensor::from<std::int32_t>({2147483647, 1, 1}, {3}, device());
  EXPECT_EQ(sum_all(words).item<std::int32_t>(), -2147483647);
  const Tensor shorts = Tensor::from(std::vector<std::int16_t>(40, 1000), {2, 20}, device());
  EXPECT_EQ(sum_all(shorts).item<std::int16_t>(), static_cast<std::int16_t>(40000));
  const Tensor longs =
      Tensor::from<std::int64_t>({std::int64_t{1} << 62, std::int64_t{1} << 62}, {2}, device());
  EXPECT_EQ(sum_all(longs).item<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
}

TEST_P(Reduce, MeanAndVarianceOverDims) {
  for (const DType dtype : kFloats) {
    for (const Case& c : cases()) {
      const Host values = uniform_for(dtype, c.shape, -4, 4, 5);
      const Groups groups = group(values, c.dims);
      const auto mean_of = [](const std::vector<double>& v) {
        return sum_of(v) / static_cast<double>(v.size());
      };
      const Arrangement how = kArrangements[static_cast<std::size_t>(values.count()) % 4];
      const Tensor x = arrange(values, dtype, how, device());
      const std::string what = describe("", dtype, c.shape, how) + c.dims.text();
      expect_close("mean", mean(x, c.dims), dtype, for_each_group(groups, mean_of), {4, 1}, what);
      // Of numbers that are close to each other the distances lose digits: errors are measured by
      // the size of the numbers.
      for (const double correction : {0.0, 1.0}) {
        expect_close(
            "var", var(x, c.dims, correction), dtype,
            for_each_group(groups, [&](const auto& v) { return variance_of(v, correction); }),
            {8, 1}, what);
        expect_close(
            "std", std_dev(x, c.dims, correction), dtype,
            for_each_group(groups,
                           [&](const auto& v) { return std::sqrt(variance_of(v, correction)); }),
            {8, 1}, what);
      }
    }
  }
}

TEST_P(Reduce, VarianceOfNumbersFarFromZeroKeepsItsDigits) {
  for (const Shape& shape : {Shape{5000, 1}, Shape{1, 5000}, Shape{40, 125}}) {
    Host values = uniform(shape, 0, 1, 6);
    for (double& x : values.values) x += 4096;  // E[x^2] - mean^2 would have no digit left in f32
    values = rounded(values, DType::F32);
    const Tensor x = contiguous_on(values, DType::F32, device());
    const Host want =
        for_each_group(group(values, {0, 1}), [](const auto& v) { return variance_of(v, 1); });
    // The mean itself is known to 4096 * 2^-24.
    expect_close("var", var_all(x), DType::F32, want, {2000}, shape.text());
  }
}

TEST_P(Reduce, VarianceOfTooFewIsNaN) {
  const Tensor one = Tensor::from<float>({3}, {1}, device());
  EXPECT_TRUE(std::isnan(var_all(one).item<float>()));
  EXPECT_EQ(var_all(one, 0).item<float>(), 0);
  EXPECT_TRUE(std::isnan(var_all(Tensor::zeros({0}, DType::F32, device())).item<float>()));
  EXPECT_TRUE(std::isnan(std_dev_all(one).item<float>()));
}

TEST_P(Reduce, FindsTheSmallestAndLargestAndWhereTheyAre) {
  for (const DType dtype : kNumbers) {
    for (const Case& c : cases()) {
      const Host values = uniform_for(dtype, c.shape, -50, 50, 7);
      if (values.values.empty() || c.dims.empty()) continue;
      const Groups groups = group(values, c.dims);
      const auto least = [](double a, double b) { return a < b; };
      const auto most = [](double a, double b) { return a > b; };
      for (const Arrangement how : c.arrangements()) {
        const Tensor x = arrange(values, dtype, how, device());
        const std::string what = describe("", dtype, c.shape, how) + c.dims.text();
        expect_close("min", min(x, c.dims), dtype,
                     for_each_group(groups, [&](const auto& v) { return v[place_of(v, least)]; }),
                     {0}, what);
        expect_close("max", max(x, c.dims), dtype,
                     for_each_group(groups, [&](const auto& v) { return v[place_of(v, most)]; }),
                     {0}, what);
        const auto index = [&](const auto& better) {
          return for_each_group(
              groups, [&](const auto& v) { return static_cast<double>(place_of(v, better)); });
        };
        if (c.dims.size() == 1) {
          expect_close({"argmin", dtype}, argmin(x, c.dims[0]), DType::U32, index(least), {0},
                       what);
          expect_close({"argmax", dtype}, argmax(x, c.dims[0]), DType::U32, index(most), {0}, what);
        } else if (c.dims.size() == c.shape.size()) {
          expect_close({"argmin", dtype}, argmin_all(x), DType::U32, index(least), {0}, what);
          expect_close({"argmax", dtype}, argmax_all(x), DType::U32, index(most), {0}, what);
        }
      }
    }
  }
}

TEST_P(Reduce, ArgFunctionsTakeTheFirstOfEqualsOnEveryPath) {
  for (const Shape& shape : {Shape{1, 20000}, Shape{2, 700}, Shape{20000, 1}, Shape{5000, 40}}) {
    Host values{shape, std::vector<double>(static_cast<std::size_t>(shape[0] * shape[1]), 1)};
    const auto n = values.values.size();
    values.values[n / 3] = values.values[n / 2] = values.values[n - 1] = 7;
    values.values[n / 4] = values.values[n / 4 + 1] = -7;
    for (const DType dtype : {DType::I16, DType::F16, DType::F32, DType::F64}) {
      const Tensor x = contiguous_on(values, dtype, device());
      EXPECT_EQ(argmax_all(x).item<std::uint32_t>(), n / 3) << shape << dtype;
      EXPECT_EQ(argmin_all(x).item<std::uint32_t>(), n / 4) << shape << dtype;
      // In the other order of memory the index is still the logical one.
      const Tensor turned = arrange(values, dtype, Arrangement::Transposed, device());
      EXPECT_EQ(argmax_all(turned).item<std::uint32_t>(), n / 3) << shape << dtype;
    }
  }
  const Tensor zeros = Tensor::from<float>({0.0f, -0.0f, 0.0f}, {3}, device());
  EXPECT_EQ(argmin_all(zeros).item<std::uint32_t>(), 0u);
  EXPECT_EQ(argmax_all(zeros).item<std::uint32_t>(), 0u);
}

TEST_P(Reduce, NaNWinsInMinAndMaxAndTheFirstOneIsFound) {
  for (const DType dtype : kFloats) {
    for (const std::size_t n : {5u, 1000u, 9000u}) {
      Host values = uniform({static_cast<std::int64_t>(n)}, -4, 4, 8);
      values.values[n / 2] = values.values[n - 1] = kNaN;
      for (const Arrangement how : kArrangements) {
        const Tensor x = arrange(values, dtype, how, device());
        EXPECT_TRUE(std::isnan(host_of(max_all(x)).values[0]));
        EXPECT_TRUE(std::isnan(host_of(min_all(x)).values[0]));
        EXPECT_EQ(argmax_all(x).item<std::uint32_t>(), n / 2);
        EXPECT_EQ(argmin_all(x).item<std::uint32_t>(), n / 2);
        EXPECT_TRUE(std::isnan(host_of(logsumexp_all(x)).values[0]));
        EXPECT_TRUE(std::isnan(host_of(norm_all(x, kInfinity)).values[0]));
      }
    }
  }
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const Tensor x = contiguous_on({{3}, {-kInfinity, 1, kInfinity}}, dtype, device());
    EXPECT_EQ(host_of(max_all(x)).values[0], kInfinity);
    EXPECT_EQ(host_of(min_all(x)).values[0], -kInfinity);
    EXPECT_EQ(argmax_all(x).item<std::uint32_t>(), 2u);
    EXPECT_TRUE(std::isnan(host_of(sum_all(x)).values[0]));
  }
}

TEST_P(Reduce, AllAnyAndCountTakeEveryDtype) {
  for (const DType dtype : kDTypes) {
    for (const Case& c : cases()) {
      Host values = uniform(c.shape, 0, 1, 9);
      for (double& x : values.values) x = x < 0.02 ? 0 : 1;
      const Groups groups = group(values, c.dims);
      const auto zeros = [](const auto& v) { return std::count(v.begin(), v.end(), 0.0); };
      const Arrangement how = kArrangements[static_cast<std::size_t>(values.count()) % 4];
      const Tensor x = arrange(values, dtype, how, device());
      const std::string what = describe("", dtype, c.shape, how) + c.dims.text();
      expect_close({"all", dtype}, all(x, c.dims), DType::U8,
                   for_each_group(groups, [&](const auto& v) { return zeros(v) == 0 ? 1 : 0; }),
                   {0}, what);
      expect_close({"any", dtype}, any(x, c.dims), DType::U8,
                   for_each_group(groups,
                                  [&](const auto& v) {
                                    return zeros(v) < static_cast<std::ptrdiff_t>(v.size()) ? 1 : 0;
                                  }),
                   {0}, what);
      expect_close({"count_nonzero", dtype}, count_nonzero(x, c.dims), DType::I64,
                   for_each_group(groups,
                                  [&](const auto& v) {
                                    return static_cast<double>(v.size()) -
                                           static_cast<double>(zeros(v));
                                  }),
                   {0}, what);
    }
  }
  const Tensor odd = Tensor::from<float>({-0.0f, std::nanf(""), 1e-45f, 0.0f}, {4}, device());
  EXPECT_EQ(count_nonzero_all(odd).item<std::int64_t>(), 2);
}

TEST_P(Reduce, LogSumExpAndNormsOverDims) {
  for (const DType dtype : kFloats) {
    for (const Case& c : cases()) {
      const Host values = uniform_for(dtype, c.shape, -4, 4, 10);
      const Groups groups = group(values, c.dims);
      const Arrangement how = kArrangements[static_cast<std::size_t>(values.count()) % 4];
      const Tensor x = arrange(values, dtype, how, device());
      const std::string what = describe("", dtype, c.shape, how) + c.dims.text();
      expect_close("logsumexp", logsumexp(x, c.dims), dtype, for_each_group(groups, log_sum_exp),
                   {4, 4}, what);
      for (const double p : {2.0, 1.0, 3.0, 0.5, 0.0, -1.0, kInfinity, -kInfinity}) {
        if (std::isinf(p) && values.values.empty()) continue;
        if (values.count() > 200 && p != 2 && p != 3) continue;  // the same walk, and slow
        // f64 has only as many digits as the logarithm of what is raised to a power.
        expect_close(
            "norm", norm(x, c.dims, p), dtype,
            rounded(for_each_group(groups, [&](const auto& v) { return norm_of(v, p); }), dtype),
            {64}, what + join(" p ", p));
      }
    }
  }
}

TEST_P(Reduce, LogSumExpOfInfinitiesAndOfLargeNumbers) {
  const auto of = [&](std::vector<float> v) {
    return logsumexp_all(Tensor::from(v, device())).item<float>();
  };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(of({-infinity, -infinity}), -infinity);
  EXPECT_EQ(of({}), -infinity);
  EXPECT_EQ(of({1, infinity}), infinity);
  EXPECT_EQ(of({-infinity, 5}), 5);
  EXPECT_FLOAT_EQ(of({1000, 1000}), 1000 + std::log(2.0f));
  EXPECT_FLOAT_EQ(of({-1000, -1000}), -1000 + std::log(2.0f));
  std::vector<float> rows(3000, -infinity);
  rows[2999] = -500;
  EXPECT_EQ(of(rows), -500);
}

TEST_P(Reduce, LargeSumsStayAccurate) {
  // All of one sign and not a multiple of a power of two: one running f32 total would be off by
  // thousands of epsilons.
  const std::int64_t n = 300000;
  for (const Shape& shape : {Shape{n}, Shape{n / 4, 4}, Shape{4, n / 4}}) {
    const Host values{shape, std::vector<double>(static_cast<std::size_t>(n), 0.1f)};
    const Tensor x = contiguous_on(values, DType::F32, device());
    expect_close("sum", sum_all(x), DType::F32, {{}, {sum_of(values.values)}}, {8}, shape.text());
    for (int d = 0; d < shape.size(); ++d) {
      expect_close("sum", sum(x, {d}), DType::F32, for_each_group(group(values, {d}), sum_of), {8},
                   shape.text());
      expect_close(
          "mean", mean(x, {d}), DType::F32,
          for_each_group(group(values, {d}),
                         [](const auto& v) { return sum_of(v) / static_cast<double>(v.size()); }),
          {8});
    }
  }
  const Tensor halves =
      contiguous_on({{20000}, std::vector<double>(20000, 1)}, DType::F16, device());
  EXPECT_EQ(static_cast<float>(sum_all(halves).item<half>()),
            20000.0f);  // 16-bit sums stop at 2048
}

TEST_P(Reduce, NothingGivesTheNeutralElement) {
  const Tensor x = Tensor::zeros({3, 0, 2}, DType::F32, device());
  expect_close("sum", sum(x, {1}), DType::F32, {{3, 2}, std::vector<double>(6, 0)}, {0});
  expect_close("prod", prod(x, {1}), DType::F32, {{3, 2}, std::vector<double>(6, 1)}, {0});
  expect_close("mean", mean(x, {1}), DType::F32, {{3, 2}, std::vector<double>(6, kNaN)}, {0});
  expect_close("all", all(x, {1}), DType::U8, {{3, 2}, std::vector<double>(6, 1)}, {0});
  expect_close("any", any(x, {1}), DType::U8, {{3, 2}, std::vector<double>(6, 0)}, {0});
  EXPECT_EQ(sum(x, {0}).shape(), (Shape{0, 2}));
  EXPECT_EQ(max(x, {0}).shape(), (Shape{0, 2}));
  EXPECT_EQ(argmax(x, 2).shape(), (Shape{3, 0}));
  expect_error(ErrorKind::BadArgument, "min: no elements along dim 1 of shape (3, 0, 2)",
               [&] { min(x, {1}); });
  expect_error(ErrorKind::BadArgument, "argmax: no elements along dim 1", [&] { argmax(x, 1); });
  expect_error(ErrorKind::BadArgument, "argmin: no elements", [&] { argmin_all(x); });
}

TEST_P(Reduce, BroadcastOperandsCountEveryTime) {
  const Host values = uniform({5, 1, 3}, -1, 1, 11);
  const Tensor x = contiguous_on(values, DType::F32, device()).broadcast_as({2, 5, 400, 3});
  Host full{{2, 5, 400, 3}, {}};
  for (int i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 5; ++j) {
      for (int k = 0; k < 400; ++k) {
        for (std::size_t l = 0; l < 3; ++l) full.values.push_back(values.values[j * 3 + l]);
      }
    }
  }
  full = rounded(full, DType::F32);
  for (const Dims& dims : {Dims{0}, Dims{2}, Dims{0, 2}, Dims{1, 2}, Dims{0, 1, 2, 3}, Dims{3}}) {
    const Groups groups = group(full, dims);
    expect_close("sum", sum(x, dims), DType::F32, for_each_group(groups, sum_of),
                 {8, scale_of(groups) / 8}, dims.text());
  }
}

TEST_P(Reduce, RandomShapesDimsAndPermutations) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 60; ++round) {
    const int rank = static_cast<int>(random() % 5) + 1;
    const Shape shape = random_shape(random, rank, 9);
    Dims order = all_dims(rank);
    for (int d = rank - 1; d > 0; --d) {
      std::swap(order[d], order[static_cast<int>(random() % static_cast<unsigned>(d + 1))]);
    }
    const Tensor x =
        contiguous_on(uniform(shape, -4, 4, random()), DType::F32, device()).permute(order);
    const Host values = host_of(x);
    Dims dims;
    for (int d = 0; d < rank; ++d) {
      if (random() % 2 == 0) dims.push_back(d);
    }
    const Groups groups = group(values, dims);
    const std::string what = join(shape, " ", order, " over ", dims, " seed ", fuzz_seed());
    expect_close("sum", sum(x, dims), DType::F32, for_each_group(groups, sum_of),
                 {4, scale_of(groups) / 8}, what);
    expect_close(
        "max", max(x, dims), DType::F32,
        for_each_group(groups, [](const auto& v) { return *std::max_element(v.begin(), v.end()); }),
        {0}, what);
    expect_close("var", var(x, dims, 0), DType::F32,
                 for_each_group(groups, [](const auto& v) { return variance_of(v, 0); }), {16, 1},
                 what);
  }
}

TEST_P(Reduce, TheSameInputGivesTheSameBits) {
  const Tensor x = contiguous_on(uniform({40000}, -1, 1, 12), DType::F32, device());
  const Tensor first = sum_all(x);
  for (int i = 0; i < 3; ++i) expect_equal("sum", sum_all(x), first);
}

TEST_P(Reduce, BlocksThatShareOutputsNeedOneLaunch) {
  if (device().is_cpu()) GTEST_SKIP() << "no GPU";
  const Tensor x = contiguous_on(uniform({100000}, -1, 1, 14), DType::F32, device());
  const Tensor columns = x.view({5000, 20}), rows = x.view({2, 50000});
  sum_all(x);  // makes the counters
  const auto launches = [&](const auto& reduce) {
    const std::uint64_t before = device().driver_calls().launches;
    reduce();
    return device().driver_calls().launches - before;
  };
  EXPECT_EQ(launches([&] { sum_all(x); }), 1U);
  EXPECT_EQ(launches([&] { var(rows, {1}); }), 1U);
  EXPECT_EQ(launches([&] { max(columns, {0}); }), 1U);
  EXPECT_EQ(launches([&] { norm_all(x, 3); }), 1U);
}

// The blocks of a launch count each other on counters that belong to its stream.
TEST_P(Reduce, StreamsDoNotCountEachOthersBlocks) {
  if (device().is_cpu()) GTEST_SKIP() << "no GPU";
  const Host values = uniform({200000}, -1, 1, 15);
  const Tensor wanted = sum_all(contiguous_on(values, DType::F32, device()));
  std::vector<Device> handles;
  std::vector<Tensor> operands, sums;
  for (int i = 0; i < 3; ++i) {
    handles.push_back(device().is_cuda() ? Device::cuda_with_stream(device().index())
                                         : Device::rocm_with_stream(device().index()));
    operands.push_back(contiguous_on(values, DType::F32, handles.back()));
  }
  for (int i = 0; i < 30; ++i) sums.push_back(sum_all(operands[static_cast<std::size_t>(i % 3)]));
  for (const Tensor& sum : sums) {
    expect_equal("sum", to(sum, Device::cpu()), to(wanted, Device::cpu()));
  }
}

TEST_P(Reduce, RefusesWhatHasNoMeaning) {
  const Tensor ints = Tensor::zeros({2, 3}, DType::I32, device());
  const Tensor bools = Tensor::zeros({2, 3}, DType::Bool, device());
  for (const DType dtype : kInts) {
    const Tensor x = Tensor::zeros({2, 3}, dtype, device());
    expect_unsupported("mean", dtype, device(), [&] { mean_all(x); });
    expect_unsupported("var", dtype, device(), [&] { var_all(x); });
    expect_unsupported("std", dtype, device(), [&] { std_dev_all(x); });
    expect_unsupported("logsumexp", dtype, device(), [&] { logsumexp_all(x); });
    expect_unsupported("norm", dtype, device(), [&] { norm_all(x); });
  }
  expect_unsupported("sum", DType::Bool, device(), [&] { sum_all(bools); });
  expect_unsupported("max", DType::Bool, device(), [&] { max_all(bools); });
  expect_unsupported("argmax", DType::Bool, device(), [&] { argmax_all(bools); });
  expect_error(ErrorKind::BadArgument, "sum: ", [&] { sum(ints, {2}); });
  expect_error(ErrorKind::BadArgument, "sum: ", [&] { sum(ints, {1, -1}); });
  expect_error(ErrorKind::BadArgument, "argmax: ", [&] { argmax(ints, 5); });
  expect_error(ErrorKind::Overflow, "argmax: ", [&] {
    argmax(Tensor::zeros({1}, DType::F32, device()).broadcast_as({std::int64_t{1} << 32}), 0);
  });
  expect_error(ErrorKind::BadArgument,
               "norm: ", [&] { norm_all(Tensor::zeros({2}, DType::F32, device()), kNaN); });
}

TEST_P(Reduce, CanBeCalledByName) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2}, device());
  const std::vector<OpValue> only = {x};
  EXPECT_EQ(call_op("sum", only)[0].item<float>(), 10);
  const std::vector<OpValue> along = {x, Scalar(0)};
  expect_close("argmax", call_op("argmax", along)[0], DType::U32, {{2}, {1, 1}}, {0});
  expect_close("norm", call_op("norm", along)[0], DType::F32,
               {{2}, {std::sqrt(10.0), std::sqrt(20.0)}}, {1});
}

TEST_P(Reduce, OnAGpuNothingWaitsOrTravels) {
  if (device().is_cpu()) GTEST_SKIP() << "no GPU";
  const Tensor x = contiguous_on(uniform({300, 40}, -1, 1, 13), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  sum_all(x);
  argmax(x.t(), 0);
  var(x, {0});
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

// Products of 1 and -1 are exact in every dtype, however they are grouped.
TEST_P(Reduce, LongProductsOfFloatsKeepTheSign) {
  for (const DType dtype : kFloats) {
    Host x = uniform({40003}, -1, 1, 91);
    double wanted = 1;
    for (double& v : x.values) {
      v = v < 0 ? -1 : 1;
      wanted *= v;
    }
    expect_close("prod", prod_all(contiguous_on(x, dtype, device())), dtype, {{}, {wanted}}, {0});
  }
}

}  // namespace
}  // namespace tl
