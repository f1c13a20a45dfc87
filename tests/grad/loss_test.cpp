// Losses: reductions, rows that are left out, and places where a slope is no number; and gates.
#include "tl/ops/loss.h"

#include <limits>

#include "grad/check.h"
#include "tl/ops/glu.h"
#include "tl/ops/softmax.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class LossGradient : public OnEveryDevice {
 protected:
  Tensor ids(std::initializer_list<std::int64_t> list) const {
    return Tensor::from(std::vector<std::int64_t>(list), {static_cast<std::int64_t>(list.size())},
                        device());
  }
  Tensor row(std::initializer_list<double> list) const {
    return Tensor::from(std::vector<double>(list), {static_cast<std::int64_t>(list.size())},
                        device());
  }
  Tensor numbers(const Shape& shape, std::uint64_t seed = 1) const {
    return spread(shape, seed, device(), 2);
  }
  // All between 0.1 and 0.9.
  Tensor shares(const Shape& shape, std::uint64_t seed = 1) const {
    const NoHistory none;
    return mul(abs(spread(shape, seed, device())), 0.9);
  }
};
TL_ON_EVERY_DEVICE(LossGradient);

constexpr std::string_view kReductions[] = {"mean", "sum", "none"};
constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

TEST_P(LossGradient, CrossEntropyInEveryForm) {
  const Tensor targets = ids({4, -100, 0, 2, kNothing, 4});
  for (const std::string_view reduction : kReductions) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      expect_gradients_of_any_layout(
          "cross_entropy",
          [&](auto in) { return cross_entropy(in[0], targets, reduction, -100, smoothing); },
          {numbers({6, 5})});
    }
    expect_gradients_of_any_layout(
        "nll_loss",
        [&](auto in) { return nll_loss(log_softmax(in[0], 1), targets, reduction, -100); },
        {numbers({6, 5})});
  }
}

TEST_P(LossGradient, TargetsMayBeOfAnyDtype) {
  for (const DType dtype : {DType::U8, DType::U32, DType::I16, DType::I32}) {
    const Tensor targets = to_dtype(ids({1, 0, 3, 2}), dtype);
    expect_gradients("cross_entropy",
                     [&](auto in) { return cross_entropy(in[0], targets, "mean", 3); },
                     {numbers({4, 4})});
  }
}

TEST_P(LossGradient, RowsThatAreLeftOutGetZeros) {
  const Tensor x = follow(numbers({3, 4}));
  const auto given = [&](const Tensor& loss) { return backward(loss).of(x).to_vector<double>(); };
  const Tensor some = ids({7, 1, 7}), none = ids({7, 7, 7});
  const auto one = given(cross_entropy(x, some, "mean", 7));
  for (const std::size_t i : {0, 3, 8, 11}) EXPECT_EQ(one[i], 0) << i;
  EXPECT_LT(one[5], 0);
  EXPECT_NEAR(one[4] + one[5] + one[6] + one[7], 0, 1e-12);
  EXPECT_EQ(given(cross_entropy(x, none, "mean", 7)), std::vector<double>(12, 0.0));
  EXPECT_EQ(given(nll_loss(x, none, "mean", 7)), std::vector<double>(12, 0.0));
  const Tensor each = cross_entropy(x, some, "none", 7);
  EXPECT_EQ(backward(each, row({5, 0, 5})).of(x).to_vector<double>(), std::vector<double>(12, 0.0));
}

TEST_P(LossGradient, CrossEntropyOfNarrowFloats) {
  const Tensor targets = ids({4, 1, 0, 2});
  const Tensor logits = numbers({4, 5});
  const Tensor x = follow(to_dtype(logits, DType::F32));
  const auto wanted = backward(cross_entropy(x, targets, "mean", 1, 0.1)).of(x).to_vector<float>();
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const Tensor narrow = follow(to_dtype(logits, dtype));
    const Gradients gradients = backward(cross_entropy(narrow, targets, "mean", 1, 0.1));
    const Tensor given = gradients.of(narrow);
    EXPECT_EQ(given.dtype(), dtype);
    const auto values = to_dtype(given, DType::F32).to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], wanted[i], 4e-3) << i;
  }
}

TEST_P(LossGradient, LargeLogitsStayExact) {
  const Tensor x =
      follow(Tensor::from({1000.0, -1000.0, 0.0, -1000.0, 1000.0, 0.0}, {2, 3}, device()));
  const auto given = backward(cross_entropy(x, ids({0, 0}), "sum")).of(x).to_vector<double>();
  EXPECT_EQ(given, (std::vector<double>{0, 0, 0, -1, 1, 0}));
}

TEST_P(LossGradient, LossesOfPairs) {
  const std::vector<Tensor> pair{numbers({3, 4}), numbers({3, 4}, 2)};
  const std::vector<Tensor> probabilities{shares({3, 4}), shares({3, 4}, 2)};
  for (const std::string_view r : kReductions) {
    const auto check = [&](const std::string& what, const Function& f,
                           const std::vector<Tensor>& in) {
      expect_gradients_of_any_layout(what, f, in);
    };
    check("mse", [&](auto in) { return mse_loss(in[0], in[1], r); }, pair);
    check("l1", [&](auto in) { return l1_loss(in[0], in[1], r); }, pair);
    check("huber", [&](auto in) { return huber_loss(in[0], in[1], r, 0.7); }, pair);
    check("smooth_l1", [&](auto in) { return smooth_l1_loss(in[0], in[1], r, 0.7); }, pair);
    check("smooth_l1 of 0", [&](auto in) { return smooth_l1_loss(in[0], in[1], r, 0); }, pair);
    check("bce", [&](auto in) { return binary_cross_entropy(in[0], in[1], r); }, probabilities);
    check("kl_div", [&](auto in) { return kl_div(in[0], in[1], r); }, probabilities);
    check("kl_div of logarithms", [&](auto in) { return kl_div(in[0], in[1], r, true); }, pair);
    check("bce of logits",
          [&](auto in) { return binary_cross_entropy_with_logits(in[0], in[1], r, in[2]); },
          {pair[0], probabilities[0], shares({4}, 3)});
  }
  expect_gradients(
      "batchmean", [](auto in) { return kl_div(in[0], in[1], "batchmean"); }, probabilities);
}

TEST_P(LossGradient, EqualPairsHaveNoSlope) {
  const Tensor x = follow(row({1, 2, 3}));
  const Tensor same = row({1, 2, 3});
  const std::vector<double> zeros(3, 0.0);
  EXPECT_EQ(backward(l1_loss(x, same, "sum")).of(x).to_vector<double>(), zeros);
  EXPECT_EQ(backward(huber_loss(x, same, "sum")).of(x).to_vector<double>(), zeros);
  EXPECT_EQ(backward(smooth_l1_loss(x, same, "sum", 0)).of(x).to_vector<double>(), zeros);
  const Tensor edge = row({0, 3, 3});  // at a distance of delta both forms have one slope
  EXPECT_EQ(backward(huber_loss(x, edge, "sum")).of(x).to_vector<double>(),
            (std::vector<double>{1, -1, 0}));
}

TEST_P(LossGradient, CertainProbabilitiesHaveNumbersAsSlopes) {
  const Tensor x = follow(row({0, 0, 1, 1})), target = follow(row({0, 1, 0, 1}));
  const Gradients g = backward(binary_cross_entropy(x, target, "sum"));
  EXPECT_EQ(g.of(x).to_vector<double>(), (std::vector<double>{1, 0, 0, -1}));
  EXPECT_EQ(g.of(target).to_vector<double>(), (std::vector<double>{100, 100, -100, -100}));
}

TEST_P(LossGradient, TargetsOfZeroHaveNumbersAsSlopes) {
  const Tensor x = follow(row({-1, -2})), target = follow(row({0, 1}));
  const Gradients g = backward(kl_div(x, target, "sum"));
  EXPECT_EQ(g.of(x).to_vector<double>(), (std::vector<double>{0, -1}));
  EXPECT_EQ(g.of(target).to_vector<double>(), (std::vector<double>{1, 3}));
}

TEST_P(LossGradient, VectorsOfAnyNorm) {
  for (const double p : {1.0, 2.0, 3.0}) {
    expect_gradients_of_any_layout("normalize", [&](auto in) { return normalize(in[0], p, 1); },
                                   {numbers({3, 4})});
  }
  expect_gradients_of_any_layout("cosine_similarity",
                                 [](auto in) { return cosine_similarity(in[0], in[1], 0); },
                                 {numbers({3, 4}), numbers({3, 1}, 2)});
}

TEST_P(LossGradient, BothHalvesOfAGateGetTheirs) {
  for (const bool twice : {false, true}) {
    const auto check = [&](const std::string& what, const Function& f) {
      expect_gradients_of_any_layout(what, twice ? gradient_of(f) : f, {numbers({3, 6})});
    };
    check("glu", [](auto in) { return glu(in[0]); });
    check("swiglu", [](auto in) { return swiglu(in[0]); });
  }
}

TEST_P(LossGradient, HasAGradientItself) {
  const Tensor targets = ids({2, 3, 0});
  for (const std::string_view r : kReductions) {
    expect_gradients("cross_entropy", gradient_of([&](auto in) {
                       return sqr(cross_entropy(in[0], targets, r, 3, 0.1));
                     }),
                     {numbers({3, 3})});
    expect_gradients("nll_loss",
                     gradient_of([&](auto in) { return sqr(nll_loss(in[0], targets, r, 3)); }),
                     {numbers({3, 3})});
    expect_gradients("bce",
                     gradient_of([&](auto in) { return binary_cross_entropy(in[0], in[1], r); }),
                     {shares({2, 3}), shares({2, 3}, 2)}, 1e-5);
  }
}

}  // namespace
}  // namespace tl
