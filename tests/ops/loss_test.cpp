// Losses.
#include "tl/ops/loss.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"

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

TEST_P(Loss, ATargetOutOfRangeIsAnError) {
  const Tensor logits = contiguous_on(uniform({2, 4}, 0, 1, 73), DType::F32, device());
  for (const std::int64_t bad : {4, -1, -100}) {
    const Tensor targets = Tensor::from<std::int64_t>({0, bad}, {2}, device());
    expect_error(ErrorKind::InvalidIndex, join("cross_entropy: index ", bad), [&] {
      cross_entropy(logits, targets);
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
  }
}

TEST_P(Loss, StaysOnTheDevice) {
  const Tensor logits = contiguous_on(uniform({2, 4}, 0, 1, 75), DType::F32, device());
  const Tensor two = Tensor::from<std::int64_t>({0, 1}, {2}, device());
  const DriverCalls before = device().driver_calls();
  const Tensor y = cross_entropy(logits, two);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
