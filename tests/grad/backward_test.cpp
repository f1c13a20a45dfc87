// The walk itself: what is followed, what is kept, and what is let go.
#include "tl/grad/grad.h"

#include "grad/check.h"
#include "tl/ops/create.h"
#include "tl/ops/matmul.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class Backward : public OnEveryDevice {
 protected:
  Tensor values(std::initializer_list<float> list) const {
    return Tensor::from(list, {static_cast<std::int64_t>(list.size())}, device());
  }
};
TL_ON_EVERY_DEVICE(Backward);

TEST_P(Backward, GivesTheGradientOfEveryVariable) {
  const Tensor a = follow(values({2, 3})), b = follow(values({5, 7}));
  const Gradients g = backward(sum_all(add(mul(a, b), a)));
  EXPECT_EQ(g.of(a).to_vector<float>(), (std::vector<float>{6, 8}));
  EXPECT_EQ(g.of(b).to_vector<float>(), (std::vector<float>{2, 3}));
}

TEST_P(Backward, AddsUpWhatComesOnSeveralWays) {
  const Tensor x = follow(values({3}));
  const Tensor square = mul(x, x);
  const Gradients g = backward(sum_all(add(mul(square, x), square)));  // x^3 + x^2
  EXPECT_FLOAT_EQ(g.of(x).item<float>(), 33);
}

TEST_P(Backward, LeavesTensorsThatNobodyFollowsAlone) {
  const Tensor x = values({1, 2});
  EXPECT_FALSE(mul(x, 2).has_history());
  expect_error(ErrorKind::BadArgument, "depends on nothing that is followed",
               [&] { backward(sum_all(x)); });
  const Tensor w = follow(x), unused = follow(x);
  const Gradients g = backward(sum_all(w));
  EXPECT_EQ(g.find(unused), nullptr);
  EXPECT_EQ(g.of(unused).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST_P(Backward, NeedsOneElementOrASeed) {
  const Tensor x = follow(values({1, 2}));
  expect_error(ErrorKind::ShapeMismatch, "needs one element, and shape (2,) has 2",
               [&] { backward(mul(x, 3)); });
  expect_error(ErrorKind::ShapeMismatch, "a seed of shape (1,) for a result of shape (2,)",
               [&] { backward(mul(x, 3), values({1})); });
  const Gradients g = backward(mul(x, 3), values({1, 10}));
  EXPECT_EQ(g.of(x).to_vector<float>(), (std::vector<float>{3, 30}));
}

TEST_P(Backward, RefusesIntegers) {
  expect_error(ErrorKind::Unsupported, "needs a float tensor, got i64",
               [&] { follow(Tensor::zeros({2}, DType::I64, device())); });
}

TEST_P(Backward, SeesValuesAsTheyWereWhenTheOpRan) {
  Tensor x = follow(values({2, 3}));
  const Tensor variable = x;
  const Tensor y = sum_all(mul(x, x));
  fill(x, 100);  // another value: detaches
  EXPECT_FALSE(x.has_history());
  EXPECT_EQ(backward(y).of(variable).to_vector<float>(), (std::vector<float>{4, 6}));
}

TEST_P(Backward, GoesThroughWritesIntoParts) {
  const Tensor x = follow(values({1, 2, 3, 4})), part = follow(values({10, 20}));
  Tensor y = x;
  assign_at(y, y.layout().narrow(0, 1, 2), part);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 10, 20, 4}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  const Gradients g = backward(y, values({1, 2, 3, 4}));
  EXPECT_EQ(g.of(x).to_vector<float>(), (std::vector<float>{1, 0, 0, 4}));
  EXPECT_EQ(g.of(part).to_vector<float>(), (std::vector<float>{2, 3}));
  Tensor z = x;
  fill_at(z, z.layout().narrow(0, 0, 1), 9);
  EXPECT_EQ(backward(z, values({1, 2, 3, 4})).of(x).to_vector<float>(),
            (std::vector<float>{0, 2, 3, 4}));
}

TEST_P(Backward, RunsTwiceOnlyWhenAskedToKeep) {
  const Tensor x = follow(values({2}));
  const Tensor y = sum_all(mul(x, x));
  EXPECT_FLOAT_EQ(backward(y, {.keep = true}).of(x).item<float>(), 4);
  EXPECT_FLOAT_EQ(backward(y).of(x).item<float>(), 4);
  expect_error(ErrorKind::BadArgument, "dropped by an earlier run", [&] { backward(y); });
}

TEST_P(Backward, DifferentiatesGradients) {
  const Tensor x = follow(values({0.5F}));
  const Tensor y = sum_all(sin(mul(x, x)));
  const Tensor first = backward(y, {.follow = true}).of(x);  // 2x cos(x^2)
  EXPECT_NEAR(first.item<float>(), 2 * 0.5 * std::cos(0.25), 1e-6);
  const Tensor second = backward(sum_all(first)).of(x);  // 2 cos(x^2) - 4x^2 sin(x^2)
  EXPECT_NEAR(second.item<float>(), 2 * std::cos(0.25) - std::sin(0.25), 1e-5);
}

TEST_P(Backward, GivesGradientsOnTheWay) {
  const Tensor x = follow(values({2}));
  const Tensor middle = mul(x, 3);
  const Tensor other = mul(x, 5);
  const Tensor wanted[] = {middle, x, other};
  const auto g = gradients_of(sum_all(mul(middle, middle)), wanted);
  EXPECT_FLOAT_EQ(g[0].item<float>(), 12);
  EXPECT_FLOAT_EQ(g[1].item<float>(), 36);
  EXPECT_FLOAT_EQ(g[2].item<float>(), 0);
}

TEST_P(Backward, KeepsNoHistoryWhereToldSo) {
  const Tensor x = follow(values({2}));
  {
    const NoHistory none;
    EXPECT_FALSE(mul(x, 2).has_history());
  }
  EXPECT_TRUE(mul(x, 2).has_history());
  EXPECT_FALSE(mul(x, 2).detach().has_history());
  EXPECT_FALSE(floor(x).has_history());
  EXPECT_FALSE(gt(x, 0).has_history());
}

TEST_P(Backward, WalksChainsOfAnyLength) {
  Tensor y = follow(values({1}));
  const Tensor x = y;
  for (int i = 0; i < 20'000; ++i) y = neg(y);
  EXPECT_FLOAT_EQ(backward(y).of(x).item<float>(), 1);
  y = x;
  for (int i = 0; i < 20'000; ++i) y = neg(y);  // and is let go without a walk
}

TEST_P(Backward, LetsGoOfWhatOpsKept) {
  device().synchronize();
  const std::uint64_t before = device().pool().live_blocks;
  {
    const Tensor x = follow(full({1000}, 0.5, DType::F32, device()));
    Tensor y = x;
    for (int i = 0; i < 10; ++i) y = sin(y);
    const Tensor loss = sum_all(y);
    y = Tensor();
    device().synchronize();
    const std::uint64_t held = device().pool().live_blocks;
    EXPECT_GE(held, before + 11);  // x, ten inputs of sin among them, and the loss
    const Gradients g = backward(loss);
    device().synchronize();
    EXPECT_EQ(device().pool().live_blocks, before + 3);  // x, its gradient and the loss
  }
  device().synchronize();
  EXPECT_EQ(device().pool().live_blocks, before);
}

TEST_P(Backward, ComputesAgainWhatACheckpointDidNotKeep) {
  const Tensor x = follow(spread({4, 4}, 1, device())), w = follow(spread({4, 4}, 2, device()));
  int runs = 0;
  const auto block = [&](std::span<const Tensor> in) {
    ++runs;
    return tanh(matmul(sin(matmul(in[0], in[1])), in[1]));
  };
  const Gradients kept = backward(sum_all(block(std::vector<Tensor>{x, w})));
  EXPECT_EQ(runs, 1);
  const Gradients again = backward(sum_all(checkpoint(block, {x, w})));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(kept.of(x).to_vector<double>(), again.of(x).to_vector<double>());
  EXPECT_EQ(kept.of(w).to_vector<double>(), again.of(w).to_vector<double>());
}

TEST_P(Backward, KeepsLessWithACheckpoint) {
  const Tensor x = follow(full({1000}, 0.5, DType::F32, device()));
  const auto block = [](std::span<const Tensor> in) {
    Tensor y = in[0];
    for (int i = 0; i < 10; ++i) y = sin(y);
    return y;
  };
  const Tensor inputs[] = {x};
  const auto held_by = [&](const Tensor& y) {
    device().synchronize();
    return y.has_history() ? device().pool().live_blocks : 0;
  };
  const std::uint64_t plain = held_by(block(inputs));
  const std::uint64_t again = held_by(checkpoint(block, {x}));
  EXPECT_EQ(plain - again, 9u);  // what is between the input and the result
}

TEST_P(Backward, MovesBetweenDevices) {
  const Tensor x = follow(Tensor::from({1.0F, 2.0F}, {2}));
  const Tensor there = to(x, device());
  const Gradients g = backward(sum_all(mul(there, 3)));
  EXPECT_TRUE(g.of(x).location().is_cpu());
  EXPECT_EQ(g.of(x).to_vector<float>(), (std::vector<float>{3, 3}));
}

TEST_P(Backward, ConvertsGradientsToTheDtypeOfTheVariable) {
  const Tensor x = follow(to_dtype(values({1, 2}), DType::F16));
  const Gradients g = backward(sum_all(mul(to_dtype(x, DType::F32), 3)));
  EXPECT_EQ(g.of(x).dtype(), DType::F16);
}

}  // namespace
}  // namespace tl
