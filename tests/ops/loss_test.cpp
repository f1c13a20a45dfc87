// Losses.
#include "tl/ops/loss.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/softmax.h"

namespace tl {
namespace {

using namespace test;

class Loss : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Loss);

// A negative target leaves its row out.
Host row_losses(const Host& x, const std::vector<std::int64_t>& targets, double smoothing) {
  const std::int64_t n = x.shape[0], c = x.shape[1];
  Host y{{n}, std::vector<double>(static_cast<std::size_t>(n))};
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int64_t target = targets[static_cast<std::size_t>(row)];
    if (target < 0) continue;
    const double* from = x.values.data() + row * c;
    long double most = from[0], sum = 0, mean = 0;
    for (std::int64_t i = 0; i < c; ++i) most = std::max<long double>(most, from[i]);
    for (std::int64_t i = 0; i < c; ++i) sum += std::exp(from[i] - most);
    const long double all = std::log(sum) + most;
    for (std::int64_t i = 0; i < c; ++i) mean += (all - from[i]) / static_cast<long double>(c);
    y.values[static_cast<std::size_t>(row)] = static_cast<double>(
        (1 - static_cast<long double>(smoothing)) * (all - from[target]) + smoothing * mean);
  }
  return y;
}

Host total(const Host& losses, const std::vector<std::int64_t>& targets, bool mean) {
  long double sum = 0, count = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    sum += losses.values[i];
    if (targets[i] >= 0) count += 1;
  }
  return {{}, {static_cast<double>(mean ? sum / count : sum)}};
}

void check(const Shape& shape, DType dtype, DType index, const Device& device, Arrangement how,
           double smoothing, bool ignore) {
  const Host values = uniform(shape, -6, 6, 71);
  const Host x = rounded(values, dtype);
  std::vector<std::int64_t> targets;
  Host ids{{shape[0]}, {}};
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    const std::int64_t target = (i * 7 + 3) % shape[1];
    targets.push_back(ignore && target == 3 ? -1 : target);
    ids.values.push_back(static_cast<double>(target));
  }
  const Tensor logits = arrange(values, dtype, how, device);
  const Tensor classes = arrange(ids, index, how, device);
  const auto ignored = ignore ? std::optional<std::int64_t>(3) : std::nullopt;
  const bool wide = dtype == DType::F32 || dtype == DType::F64;
  const Bound bound{wide ? 8 : 0.6, wide ? 8 : 0.1};
  const Host want = row_losses(x, targets, smoothing);
  const std::string what = join(describe("", dtype, shape, how), " ", index);
  expect_close("cross_entropy", cross_entropy(logits, classes, "none", ignored, smoothing), dtype,
               want, bound, what);
  expect_close("cross_entropy", cross_entropy(logits, classes, "sum", ignored, smoothing), dtype,
               total(want, targets, false), bound, what);
  expect_close("cross_entropy", cross_entropy(logits, classes, "mean", ignored, smoothing), dtype,
               total(want, targets, true), bound, what);
}

TEST_P(Loss, CrossEntropyMatchesTheReference) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{1, 4}, Shape{7, 5}, Shape{33, 100}, Shape{5, 1031}}) {
      for (const Arrangement how : kArrangements) {
        check(shape, dtype, DType::I64, device(), how, 0, false);
        check(shape, dtype, DType::I16, device(), how, 0.1, true);
      }
    }
    check({3, 9000}, dtype, DType::I32, device(), Arrangement::Contiguous, 0.2, false);
    check({600, 4}, dtype, DType::U32, device(), Arrangement::Contiguous, 0, true);
  }
}

TEST_P(Loss, CrossEntropyTakesEveryIndexDtypeAndLeavesOutNothing) {
  for (const DType index : kInts) {
    check({9, 11}, DType::F32, index, device(), Arrangement::Contiguous, 0, true);
  }
  const Host x = rounded(uniform({3, 4}, -1, 1, 72), DType::F32);
  const Tensor logits = contiguous_on(x, DType::F32, device());
  const Tensor targets = Tensor::from<std::uint8_t>({2, 255, 0}, {3}, device());
  const std::vector<std::int64_t> wanted{2, -1, 0};
  expect_close("cross_entropy", cross_entropy(logits, targets), DType::F32,
               total(row_losses(x, wanted, 0), wanted, true), {4});
  // As PyTorch has it: -100.
  const Tensor hundred = Tensor::from<std::int64_t>({2, -100, 0}, {3}, device());
  expect_close("cross_entropy", cross_entropy(logits, hundred, "mean", -100), DType::F32,
               total(row_losses(x, wanted, 0), wanted, true), {4});
}

TEST_P(Loss, CrossEntropyOfNoRows) {
  const Tensor none = Tensor::zeros({0, 5}, DType::F32, device());
  const Tensor targets = Tensor::zeros({0}, DType::I64, device());
  expect_close("cross_entropy", cross_entropy(none, targets), DType::F32, {{}, {std::nan("")}}, {});
  expect_close("cross_entropy", cross_entropy(none, targets, "sum"), DType::F32, {{}, {0}}, {});
  EXPECT_EQ(cross_entropy(none, targets, "none").shape(), (Shape{0}));
}

TEST_P(Loss, CrossEntropyKeepsExtremes) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor logits = contiguous_on(
      {{4, 3}, {1e4, 0, -1e4, -inf, 0, 0, std::nan(""), 0, 0, 5, -inf, 5}}, DType::F32, device());
  const Tensor targets = Tensor::from<std::int64_t>({1, 0, 1, 2}, {4}, device());
  expect_close("cross_entropy", cross_entropy(logits, targets, "none"), DType::F32,
               {{4}, {1e4, inf, std::nan(""), std::log(2.0)}}, {2});
}

// ---- nll_loss

Host picked_losses(const Host& x, const std::vector<std::int64_t>& targets) {
  Host y{{x.shape[0]}, {}};
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const auto from = static_cast<std::int64_t>(row) * x.shape[1] + targets[row];
    y.values.push_back(targets[row] < 0 ? 0 : -x.values[static_cast<std::size_t>(from)]);
  }
  return y;
}

TEST_P(Loss, NllPicksTheTargetOfEveryRow) {
  for (const DType dtype : kFloats) {
    for (const DType index : kInts) {
      for (const Arrangement how : kArrangements) {
        const Shape shape{33, 11};
        const Host values = uniform(shape, -6, 0, 76);
        const Host x = rounded(values, dtype);
        Host ids{{shape[0]}, {}};
        std::vector<std::int64_t> all, some;
        for (std::int64_t i = 0; i < shape[0]; ++i) {
          all.push_back((i * 7 + 3) % shape[1]);
          some.push_back(all.back() == 3 ? -1 : all.back());
          ids.values.push_back(static_cast<double>(all.back()));
        }
        const Tensor logs = arrange(values, dtype, how, device());
        const Tensor targets = arrange(ids, index, how, device());
        const std::string what = join(describe("", dtype, shape, how), " ", index);
        const Bound bound{dtype == DType::F32 || dtype == DType::F64 ? 4 : 0.51};
        expect_close("nll_loss", nll_loss(logs, targets, "none"), dtype, picked_losses(x, all), {0},
                     what);
        expect_close("nll_loss", nll_loss(logs, targets, "none", 3), dtype, picked_losses(x, some),
                     {0}, what);
        for (const bool mean : {false, true}) {
          const char* reduction = mean ? "mean" : "sum";
          expect_close("nll_loss", nll_loss(logs, targets, reduction), dtype,
                       total(picked_losses(x, all), all, mean), bound, what);
          expect_close("nll_loss", nll_loss(logs, targets, reduction, 3), dtype,
                       total(picked_losses(x, some), some, mean), bound, what);
        }
      }
    }
  }
}

TEST_P(Loss, NllOfALogSoftmaxIsCrossEntropy) {
  const Tensor logits = contiguous_on(uniform({9, 5}, -4, 4, 77), DType::F64, device());
  const Tensor targets =
      Tensor::from<std::int64_t>({0, 4, -100, 3, 2, 1, -100, 0, 4}, {9}, device());
  expect_close("nll_loss", nll_loss(log_softmax(logits), targets, "mean", -100), DType::F64,
               host_of(cross_entropy(logits, targets, "mean", -100)), {8});
}

TEST_P(Loss, NllLeavesOutTheSentinelAndWhatIsIgnored) {
  const Tensor x = Tensor::from<float>({-1, -2, -4, -8}, {2, 2}, device());
  const Tensor targets = Tensor::from<std::uint8_t>({255, 1}, {2}, device());
  expect_close("nll_loss", nll_loss(x, targets), DType::F32, {{}, {8}}, {0});
  const Tensor losses = nll_loss(x, targets, "none");
  expect_equal("nll_loss", losses, Tensor::from<float>({0, 8}, {2}, device()));  // 0, not -0
  // An index that the dtype cannot hold ignores nothing: -255 is 1 in eight bits.
  expect_close("nll_loss", nll_loss(x, targets, "sum", -255), DType::F32, {{}, {8}}, {0});
  expect_close("nll_loss", nll_loss(x, targets, "mean", 1), DType::F32, {{}, {std::nan("")}}, {0});
  expect_close("nll_loss", nll_loss(x, targets, "sum", 1), DType::F32, {{}, {0}}, {0});
  const Tensor none = Tensor::zeros({0, 2}, DType::F32, device());
  const Tensor nothing = Tensor::zeros({0}, DType::I64, device());
  expect_close("nll_loss", nll_loss(none, nothing), DType::F32, {{}, {std::nan("")}}, {0});
  EXPECT_EQ(nll_loss(none, nothing, "none").shape(), (Shape{0}));
}

// ---- losses of two tensors of one shape

using Reference = std::function<double(double, double)>;
using Call = std::function<Tensor(const Tensor&, const Tensor&, std::string_view)>;

struct Ranges {
  double x_low, x_high, target_low, target_high;
};

void check_pairs(std::string_view op, const Call& call, const Reference& reference,
                 const Ranges& range, const Bound& bound, const Device& device) {
  for (const DType dtype : kFloats) {
    const bool narrow = dtype != DType::F32 && dtype != DType::F64;
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{5, 33}, Shape{3, 1, 700}}) {
      for (const Arrangement how : kArrangements) {
        const Host x = uniform(shape, range.x_low, range.x_high, 81);
        const Host t = uniform(shape, range.target_low, range.target_high, 82);
        const Host rx = rounded(x, dtype), rt = rounded(t, dtype);
        Host want{shape, {}};
        long double sum = 0, size = 0;
        for (std::size_t i = 0; i < rx.values.size(); ++i) {
          want.values.push_back(reference(rx.values[i], rt.values[i]));
          sum += want.values.back();
          size += std::abs(want.values.back());
        }
        // Narrow floats are rounded once: half a unit, and what f32 adds to it.
        const Bound each{narrow ? 0.51 : bound.units, narrow ? bound.scale / 8 : bound.scale};
        const auto count = static_cast<double>(x.count());
        const Bound total{each.units, static_cast<double>(size) + each.scale * count};
        const Bound mean{each.units, total.scale / count};
        const Tensor a = arrange(x, dtype, how, device), b = arrange(t, dtype, how, device);
        const std::string what = describe("", dtype, shape, how);
        expect_close(op, call(a, b, "none"), dtype, want, each, what);
        expect_close(op, call(a, b, "sum"), dtype, {{}, {static_cast<double>(sum)}}, total, what);
        expect_close(op, call(a, b, "mean"), dtype, {{}, {static_cast<double>(sum / count)}}, mean,
                     what);
      }
    }
    const Tensor none = Tensor::zeros({0, 3}, dtype, device);
    EXPECT_EQ(call(none, none, "none").shape(), (Shape{0, 3}));
    expect_close(op, call(none, none, "sum"), dtype, {{}, {0}}, {0});
    expect_close(op, call(none, none, "mean"), dtype, {{}, {std::nan("")}}, {0});
  }
}

TEST_P(Loss, MseAndL1MatchTheReference) {
  check_pairs(
      "mse_loss", [](auto& x, auto& t, auto how) { return mse_loss(x, t, how); },
      [](double x, double t) { return (x - t) * (x - t); }, {-3, 3, -3, 3}, {3}, device());
  check_pairs(
      "l1_loss", [](auto& x, auto& t, auto how) { return l1_loss(x, t, how); },
      [](double x, double t) { return std::abs(x - t); }, {-3, 3, -3, 3}, {2}, device());
}

double huber(double d, double delta) { return d <= delta ? d * d / 2 : delta * (d - delta / 2); }

TEST_P(Loss, HuberAndSmoothL1MatchTheReference) {
  // 0.75 and 1.5 are the same in every dtype.
  for (const double edge : {0.75, 1.0, 1.5}) {
    check_pairs(
        "huber_loss", [&](auto& x, auto& t, auto how) { return huber_loss(x, t, how, edge); },
        [&](double x, double t) { return huber(std::abs(x - t), edge); }, {-3, 3, -3, 3}, {4},
        device());
    check_pairs(
        "smooth_l1_loss",
        [&](auto& x, auto& t, auto how) { return smooth_l1_loss(x, t, how, edge); },
        [&](double x, double t) { return huber(std::abs(x - t), edge) / edge; }, {-3, 3, -3, 3},
        {5}, device());
  }
  check_pairs(
      "smooth_l1_loss", [](auto& x, auto& t, auto how) { return smooth_l1_loss(x, t, how, 0); },
      [](double x, double t) { return std::abs(x - t); }, {-3, 3, -3, 3}, {2}, device());
}

TEST_P(Loss, BinaryCrossEntropyMatchesTheReference) {
  check_pairs(
      "binary_cross_entropy",
      [](auto& x, auto& t, auto how) { return binary_cross_entropy(x, t, how); },
      [](double x, double t) {
        return -(t * std::max(std::log(x), -100.0) + (1 - t) * std::max(std::log1p(-x), -100.0));
      },
      {0, 1, 0, 1}, {6}, device());
  check_pairs(
      "binary_cross_entropy_with_logits",
      [](auto& x, auto& t, auto how) { return binary_cross_entropy_with_logits(x, t, how); },
      [](double x, double t) {
        const double tail = std::log1p(std::exp(-std::abs(x)));
        return t * (std::max(-x, 0.0) + tail) + (1 - t) * (std::max(x, 0.0) + tail);
      },
      {-30, 30, 0, 1}, {6}, device());
}

TEST_P(Loss, BinaryCrossEntropyIsBoundedAtCertainty) {
  const Tensor x = Tensor::from<float>({0, 0, 1, 1, 2, -1}, {6}, device());
  const Tensor t = Tensor::from<float>({0, 1, 0, 1, 1, 1}, {6}, device());
  expect_close("binary_cross_entropy", binary_cross_entropy(x, t, "none"), DType::F32,
               {{6}, {0, 100, 100, 0, std::nan(""), std::nan("")}}, {0});
}

TEST_P(Loss, LogitsOfAnySizeKeepTheirDigits) {
  const Tensor x = Tensor::from<double>({50, 50, -50, -50, 1e4, -1e4, 1e30}, {7}, device());
  const Tensor t = Tensor::from<double>({1, 0, 0, 1, 0, 1, 1}, {7}, device());
  const double small = std::log1p(std::exp(-50.0));
  expect_close("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits(x, t, "none"),
               DType::F64, {{7}, {small, 50, small, 50, 1e4, 1e4, 0}}, {4});
}

TEST_P(Loss, PosWeightBroadcastsOverTheInput) {
  for (const DType dtype : kFloats) {
    const Host x = rounded(uniform({4, 5}, -3, 3, 83), dtype);
    const Host t = rounded(uniform({4, 5}, 0, 1, 84), dtype);
    const Host w = rounded(uniform({5}, 0.5, 2, 85), dtype);
    Host want{x.shape, {}};
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      want.values.push_back(w.values[i % 5] * t.values[i] * std::log1p(std::exp(-x.values[i])) +
                            (1 - t.values[i]) * std::log1p(std::exp(x.values[i])));
    }
    const bool narrow = dtype != DType::F32 && dtype != DType::F64;
    expect_close("binary_cross_entropy_with_logits",
                 binary_cross_entropy_with_logits(
                     contiguous_on(x, dtype, device()), contiguous_on(t, dtype, device()), "none",
                     arrange(w, dtype, Arrangement::Stepped, device())),
                 dtype, want, {narrow ? 0.51 : 8});
  }
}

TEST_P(Loss, KlDivMatchesTheReference) {
  check_pairs(
      "kl_div", [](auto& x, auto& t, auto how) { return kl_div(x, t, how); },
      [](double x, double t) { return t == 0 ? 0 : t * (std::log(t) - x); }, {-5, 0, 0, 1}, {6, 1},
      device());
  check_pairs(
      "kl_div", [](auto& x, auto& t, auto how) { return kl_div(x, t, how, true); },
      [](double x, double t) { return std::exp(t) * (t - x); }, {-5, 0, -5, 0}, {6}, device());
}

TEST_P(Loss, KlDivOfBatchesDividesByTheirNumber) {
  const Tensor x = Tensor::from<float>({-1, -2, -3, -4, -5, -6}, {2, 3}, device());
  const Tensor t = Tensor::from<float>({0, 1, 0, 0, 0, 1}, {2, 3}, device());
  expect_close("kl_div", kl_div(x, t, "sum"), DType::F32, {{}, {8}}, {0});
  expect_close("kl_div", kl_div(x, t, "batchmean"), DType::F32, {{}, {4}}, {0});
  expect_close("kl_div", kl_div(x.get(0).get(1), t.get(0).get(1), "batchmean"), DType::F32,
               {{}, {2}}, {0});
}

TEST_P(Loss, NanAndInfinityReachTheLoss) {
  const double inf = std::numeric_limits<double>::infinity();
  const Host x{{3}, {std::nan(""), inf, 1}}, t{{3}, {0, 0, std::nan("")}};
  const Tensor a = contiguous_on(x, DType::F32, device()),
               b = contiguous_on(t, DType::F32, device());
  const Host want{{3}, {std::nan(""), inf, std::nan("")}};
  expect_close("mse_loss", mse_loss(a, b, "none"), DType::F32, want, {0});
  expect_close("l1_loss", l1_loss(a, b, "none"), DType::F32, want, {0});
  expect_close("huber_loss", huber_loss(a, b, "none"), DType::F32, want, {0});
  expect_close("smooth_l1_loss", smooth_l1_loss(a, b, "none"), DType::F32, want, {0});
}

TEST_P(Loss, NarrowFloatsAreReducedBeforeTheyAreRounded) {
  // 300 squares of 20 are 120000, beyond f16; their mean is not.
  const Host x{{300}, std::vector<double>(300, 20)}, t{{300}, std::vector<double>(300, 0)};
  const Tensor a = contiguous_on(x, DType::F16, device()),
               b = contiguous_on(t, DType::F16, device());
  expect_close("mse_loss", mse_loss(a, b), DType::F16, {{}, {400}}, {0});
  const Host y{{2}, {500, 500}};
  // A square of 500 is beyond f16 by itself.
  const Tensor c = contiguous_on(y, DType::F16, device());
  expect_close("mse_loss", mse_loss(c, c), DType::F16, {{}, {0}}, {0});
}

// ---- vectors

// The offsets of the elements of each vector along `dim`.
std::vector<std::vector<std::size_t>> lines(const Shape& shape, int dim) {
  std::int64_t inner = 1, outer = 1;
  for (int d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  for (int d = 0; d < dim; ++d) outer *= shape[d];
  std::vector<std::vector<std::size_t>> out;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      auto& line = out.emplace_back();
      for (std::int64_t k = 0; k < shape[dim]; ++k) {
        line.push_back(static_cast<std::size_t>((o * shape[dim] + k) * inner + i));
      }
    }
  }
  return out;
}

TEST_P(Loss, NormalizeAndCosineSimilarityMatchTheReference) {
  for (const DType dtype : kFloats) {
    const bool narrow = dtype != DType::F32 && dtype != DType::F64;
    for (const Shape& shape : {Shape{4, 9}, Shape{3, 5, 7}, Shape{2, 1000}}) {
      for (int dim = 0; dim < shape.size(); ++dim) {
        for (const Arrangement how : kArrangements) {
          const Host x = uniform(shape, -2, 2, 86), y = uniform(shape, -2, 2, 87);
          const Host rx = rounded(x, dtype), ry = rounded(y, dtype);
          Shape rest = shape;
          rest.erase(dim);
          Host units = rx, cosines{rest, {}};
          for (const auto& line : lines(shape, dim)) {
            long double xx = 0, yy = 0, xy = 0;
            for (const std::size_t i : line) {
              xx += static_cast<long double>(rx.values[i]) * rx.values[i];
              yy += static_cast<long double>(ry.values[i]) * ry.values[i];
              xy += static_cast<long double>(rx.values[i]) * ry.values[i];
            }
            for (const std::size_t i : line) {
              units.values[i] = static_cast<double>(rx.values[i] / std::sqrt(xx));
            }
            cosines.values.push_back(static_cast<double>(xy / (std::sqrt(xx) * std::sqrt(yy))));
          }
          const Tensor a = arrange(x, dtype, how, device()), b = arrange(y, dtype, how, device());
          const std::string what = join(describe("", dtype, shape, how), " dim ", dim);
          expect_close("normalize", normalize(a, 2, dim - shape.size()), dtype, units,
                       {narrow ? 0.51 : 4}, what);
          expect_close("cosine_similarity", cosine_similarity(a, b, dim), dtype, cosines,
                       {narrow ? 0.51 : 8, narrow ? 0.1 : 1}, what);
        }
      }
    }
  }
}

TEST_P(Loss, NormalizeTakesOtherNormsAndKeepsZeros) {
  const Tensor x = Tensor::from<float>({3, -1, 0, 0}, {2, 2}, device());
  expect_close("normalize", normalize(x, 1), DType::F32, {{2, 2}, {0.75, -0.25, 0, 0}}, {0});
  expect_close("normalize", normalize(x, std::numeric_limits<double>::infinity(), -1), DType::F32,
               {{2, 2}, {1, -1.0 / 3, 0, 0}}, {1});
  expect_close("normalize", normalize(x, 2, 1, 10), DType::F32, {{2, 2}, {0.3, -0.1, 0, 0}}, {1});
  EXPECT_EQ(normalize(Tensor::zeros({0, 3}, DType::F32, device())).shape(), (Shape{0, 3}));
}

TEST_P(Loss, CosineSimilarityBroadcastsAndTakesAnyLength) {
  const Tensor rows = Tensor::from<float>({1e18F, 0, 0, 1e-18F, -1, 0}, {3, 2}, device());
  const Tensor one = Tensor::from<float>({2e18F, 0}, {2}, device());
  expect_close("cosine_similarity", cosine_similarity(rows, one, 1, 1e-30), DType::F32,
               {{3}, {1, 0, -1}}, {2});
  expect_close("cosine_similarity", cosine_similarity(one, one, 0), DType::F32, {{}, {1}}, {2});
  const Tensor zero = Tensor::zeros({2}, DType::F32, device());
  expect_close("cosine_similarity", cosine_similarity(rows, zero), DType::F32, {{3}, {0, 0, 0}},
               {0});
}

// ---- arguments

std::vector<std::pair<std::string_view, Call>> pair_losses() {
  return {
      {"mse_loss", [](auto& x, auto& t, auto how) { return mse_loss(x, t, how); }},
      {"l1_loss", [](auto& x, auto& t, auto how) { return l1_loss(x, t, how); }},
      {"huber_loss", [](auto& x, auto& t, auto how) { return huber_loss(x, t, how); }},
      {"smooth_l1_loss", [](auto& x, auto& t, auto how) { return smooth_l1_loss(x, t, how); }},
      {"binary_cross_entropy",
       [](auto& x, auto& t, auto how) { return binary_cross_entropy(x, t, how); }},
      {"binary_cross_entropy_with_logits",
       [](auto& x, auto& t, auto how) { return binary_cross_entropy_with_logits(x, t, how); }},
      {"kl_div", [](auto& x, auto& t, auto how) { return kl_div(x, t, how); }},
  };
}

TEST_P(Loss, ATargetOutOfRangeIsAnError) {
  const Tensor logits = contiguous_on(uniform({2, 4}, 0, 1, 73), DType::F32, device());
  for (const std::int64_t bad : {4, -1, -100}) {
    const Tensor targets = Tensor::from<std::int64_t>({0, bad}, {2}, device());
    expect_error(ErrorKind::InvalidIndex, join("cross_entropy: index ", bad), [&] {
      cross_entropy(logits, targets);
      device().synchronize();
    });
    expect_error(ErrorKind::InvalidIndex, join("nll_loss: index ", bad), [&] {
      nll_loss(logits, targets);
      device().synchronize();
    });
  }
}

TEST_P(Loss, WrongArgumentsAreNamed) {
  const Tensor logits = contiguous_on(uniform({2, 4}, 0, 1, 74), DType::F32, device());
  const Tensor two = Tensor::from<std::int64_t>({0, 1}, {2}, device());
  const Tensor three = Tensor::from<std::int64_t>({0, 1, 2}, {3}, device());
  expect_error(ErrorKind::ShapeMismatch, "cross_entropy: targets have shape (3,)",
               [&] { cross_entropy(logits, three); });
  expect_error(ErrorKind::ShapeMismatch, "cross_entropy: logits must have 2",
               [&] { cross_entropy(logits.get(0), two); });
  expect_error(ErrorKind::BadArgument, "cross_entropy: reduction",
               [&] { cross_entropy(logits, two, "average"); });
  expect_error(ErrorKind::BadArgument, "cross_entropy: label smoothing",
               [&] { cross_entropy(logits, two, "mean", std::nullopt, 1.5); });
  expect_error(ErrorKind::Unsupported, "cross_entropy: needs an integer",
               [&] { cross_entropy(logits, logits.get_on_dim(1, 0)); });
  for (const DType dtype : kInts) {
    const Tensor x = contiguous_on({{2, 2}, {1, 2, 3, 4}}, dtype, device());
    expect_unsupported("cross_entropy", dtype, device(), [&] { cross_entropy(x, two); });
    expect_unsupported("nll_loss", dtype, device(), [&] { nll_loss(x, two); });
    expect_unsupported("normalize", dtype, device(), [&] { normalize(x); });
    expect_unsupported("cosine_similarity", dtype, device(), [&] { cosine_similarity(x, x); });
    for (const auto& [op, call] : pair_losses()) {
      expect_unsupported(op, dtype, device(), [&] { call(x, x, "mean"); });
    }
  }
}

TEST_P(Loss, WrongArgumentsOfPairsAreNamed) {
  const Tensor x = Tensor::zeros({4}, DType::F32, device());
  const Tensor column = Tensor::zeros({4, 1}, DType::F32, device());
  const Tensor half = Tensor::zeros({4}, DType::F16, device());
  for (const auto& [op, call] : pair_losses()) {
    expect_error(ErrorKind::ShapeMismatch,
                 join(op, ": the input has shape (4,), and the target (4, 1)"),
                 [&] { call(x, column, "mean"); });
    expect_error(ErrorKind::DTypeMismatch, join(op, ": one operand is f32, another f16"),
                 [&] { call(x, half, "mean"); });
    expect_error(ErrorKind::BadArgument, join(op, ": reduction is"),
                 [&] { call(x, x, "average"); });
    if (!device().location().is_cpu()) {
      const Tensor here = Tensor::zeros({4}, DType::F32);
      expect_error(ErrorKind::WrongDevice, join(op, ": one operand is on"),
                   [&] { call(x, here, "mean"); });
    }
  }
  expect_error(ErrorKind::BadArgument, "huber_loss: delta is above 0, not 0",
               [&] { huber_loss(x, x, "mean", 0); });
  expect_error(ErrorKind::BadArgument, "smooth_l1_loss: beta is at least 0, not -1",
               [&] { smooth_l1_loss(x, x, "mean", -1); });
  expect_error(ErrorKind::ShapeMismatch, "binary_cross_entropy_with_logits: pos_weight of shape",
               [&] { binary_cross_entropy_with_logits(x, x, "mean", column); });
  expect_error(ErrorKind::DTypeMismatch, "binary_cross_entropy_with_logits: one operand",
               [&] { binary_cross_entropy_with_logits(x, x, "mean", half); });
  expect_error(ErrorKind::BadArgument, "mse_loss: reduction is",
               [&] { mse_loss(x, x, "batchmean"); });
  expect_error(ErrorKind::BadArgument, "normalize: dim", [&] { normalize(x, 2, 1); });
  expect_error(ErrorKind::BadArgument, "cosine_similarity: dim",
               [&] { cosine_similarity(x, x, 1); });
  expect_error(ErrorKind::ShapeMismatch, "cosine_similarity: shapes",
               [&] { cosine_similarity(x, Tensor::zeros({3}, DType::F32, device())); });
}

TEST_P(Loss, StaysOnTheDevice) {
  const Tensor logits = contiguous_on(uniform({2, 4}, 0, 1, 75), DType::F32, device());
  const Tensor two = Tensor::from<std::int64_t>({0, 1}, {2}, device());
  const DriverCalls before = device().driver_calls();
  cross_entropy(logits, two);
  nll_loss(logits, two, "mean", 0);
  for (const auto& [op, call] : pair_losses()) call(logits, logits, "mean");
  kl_div(logits, logits, "batchmean");
  binary_cross_entropy_with_logits(logits, logits, "mean", logits);
  cosine_similarity(logits, logits);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
