// Optimisers against their formulas, written out with doubles.
#include "tl/grad/optimizer.h"

#include <cmath>
#include <numbers>

#include "grad/check.h"
#include "tl/ops/create.h"

namespace tl {
namespace {

using namespace test;

class Optimizers : public OnEveryDevice {
 protected:
  Tensor value(double x, DType dtype = DType::F64) const { return full({1}, x, dtype, device()); }
  static double real(const Tensor& x) { return x.item().real(); }

  // The parameter after steps along the gradient of x^2 / 2, which is x.
  double after(Optimizer& optimizer, double start, int steps) const {
    Tensor x = value(start);
    for (int i = 0; i < steps; ++i) {
      const Tensor gradient = x;
      optimizer.step({&x, 1}, {&gradient, 1});
    }
    return real(x);
  }
};
TL_ON_EVERY_DEVICE(Optimizers);

TEST_P(Optimizers, SgdWithMomentumDampeningAndDecay) {
  for (const bool nesterov : {false, true}) {
    const SgdOptions o{.rate = 0.1,
                       .momentum = 0.9,
                       .dampening = nesterov ? 0.0 : 0.2,
                       .nesterov = nesterov,
                       .weight_decay = 0.05};
    double x = 2, velocity = 0;
    for (int i = 0; i < 5; ++i) {
      const double g = x + o.weight_decay * x;
      velocity = i == 0 ? g : o.momentum * velocity + (1 - o.dampening) * g;
      x -= o.rate * (nesterov ? g + o.momentum * velocity : velocity);
    }
    EXPECT_NEAR(after(*make_sgd(o), 2, 5), x, 1e-12);
  }
  EXPECT_NEAR(after(*make_sgd({.rate = 0.1}), 1, 1), 0.9, 1e-15);
}

TEST_P(Optimizers, AdamAndAdamW) {
  for (const bool decoupled : {false, true}) {
    for (const bool amsgrad : {false, true}) {
      const AdamOptions o{
          .rate = 0.1, .weight_decay = 0.05, .decoupled = decoupled, .amsgrad = amsgrad};
      double x = 2, m = 0, v = 0, most = 0;
      for (int t = 1; t <= 5; ++t) {
        double g = x;
        if (decoupled) {
          x *= 1 - o.rate * o.weight_decay;
        } else {
          g += o.weight_decay * x;
        }
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        most = std::max(most, v);
        const double size = (amsgrad ? most : v) / (1 - std::pow(o.beta2, t));
        x -= o.rate * (m / (1 - std::pow(o.beta1, t))) / (std::sqrt(size) + o.eps);
      }
      EXPECT_NEAR(after(*make_adam(o), 2, 5), x, 1e-12);
    }
  }
}

TEST_P(Optimizers, KeepAMasterCopyOfHalves) {
  // Steps of 1e-5 are less than half of what separates two f16 numbers at 1.
  Tensor x = value(1, DType::F16);
  const auto sgd = make_sgd({.rate = 1e-5});
  const Tensor gradient = value(1, DType::F16);
  for (int i = 0; i < 1000; ++i) sgd->step({&x, 1}, {&gradient, 1});
  EXPECT_EQ(x.dtype(), DType::F16);
  EXPECT_NEAR(real(x), 0.99, 5e-4);
}

TEST_P(Optimizers, TakeAHalfThatWasSetAnew) {
  Tensor x = value(1, DType::F16);
  const auto sgd = make_sgd({.rate = 0.5});
  const Tensor gradient = value(1, DType::F16);
  sgd->step({&x, 1}, {&gradient, 1});
  EXPECT_EQ(real(x), 0.5);
  x = value(8, DType::F16);
  sgd->step({&x, 1}, {&gradient, 1});
  EXPECT_EQ(real(x), 7.5);
}

TEST_P(Optimizers, GoOnFromASavedState) {
  const AdamOptions o{.rate = 0.1, .amsgrad = true};
  const auto first = make_adam(o);
  Tensor x = value(2), y = value(2);
  const auto step = [](Optimizer& optimizer, Tensor& p) {
    const Tensor g = p;
    optimizer.step({&p, 1}, {&g, 1});
  };
  for (int i = 0; i < 6; ++i) step(*first, x);
  const auto early = make_adam(o);
  for (int i = 0; i < 3; ++i) step(*early, y);
  const auto late = make_adam(o);
  late->load_state(early->state());
  EXPECT_EQ(late->steps(), 3);
  for (int i = 0; i < 3; ++i) step(*late, y);
  EXPECT_EQ(real(x), real(y));
  expect_error(ErrorKind::BadArgument, "not the state of an optimiser",
               [&] { late->load_state({}); });
  auto broken = early->state();
  broken.emplace("x.first", value(1));
  expect_error(ErrorKind::BadArgument, "'x.first' is no part of a state",
               [&] { late->load_state(broken); });
  EXPECT_EQ(late->steps(), 6);
}

TEST_P(Optimizers, RefuseWhatDoesNotFit) {
  const auto sgd = make_sgd({});
  Tensor two[] = {value(1), value(2)};
  const Tensor one[] = {value(1)};
  expect_error(ErrorKind::BadArgument, "2 parameters and 1 gradients",
               [&] { sgd->step(two, one); });
  const Tensor wrong[] = {value(1), full({2}, 1, DType::F64, device())};
  expect_error(ErrorKind::ShapeMismatch, "parameter 1 has shape (1,), its gradient (2,)",
               [&] { sgd->step(two, wrong); });
  const Tensor good[] = {value(1), value(1)};
  sgd->step(two, good);
  expect_error(ErrorKind::BadArgument, "1 parameters, and there were 2 before",
               [&] { sgd->step({two, 1}, one); });
  expect_error(ErrorKind::BadArgument, "a rate must be at least 0, got -1",
               [] { make_sgd({.rate = -1}); });
  expect_error(ErrorKind::BadArgument, "nesterov needs momentum",
               [] { make_sgd({.nesterov = true}); });
  expect_error(ErrorKind::BadArgument, "beta2 must be at least 0 and below 1, got 1",
               [] { make_adam({.beta2 = 1}); });
}

TEST_P(Optimizers, TakeAStateOfTheSameShapeAlone) {
  const auto adam = make_adam({});
  Tensor x = value(1);
  const Tensor g = value(1);
  const Tensor steps = Tensor::from({std::int64_t{1}}, {1});
  const Tensor long_one = full({3}, 1, DType::F64, device());
  adam->load_state({{"steps", steps}, {"0.first", long_one}, {"0.second", value(1)}});
  expect_error(ErrorKind::ShapeMismatch,
               "parameter 0 has shape (1,), and 'first' of its state (3,)",
               [&] { adam->step({&x, 1}, {&g, 1}); });
  EXPECT_EQ(real(x), 1);
  expect_error(ErrorKind::BadArgument, "-1 steps",
               [&] { adam->load_state({{"steps", Tensor::from({std::int64_t{-1}}, {1})}}); });
  expect_error(ErrorKind::BadArgument, "'0.third' is no part of a state",
               [&] { adam->load_state({{"steps", steps}, {"0.third", value(1)}}); });
  // From a file it comes as f32 and on the CPU.
  adam->load_state({{"steps", steps},
                    {"0.first", full({1}, 0.5, DType::F32)},
                    {"0.second", full({1}, 0.25, DType::F32)}});
  adam->step({&x, 1}, {&g, 1});
  EXPECT_EQ(adam->steps(), 2);
  EXPECT_EQ(adam->state().at("0.first").dtype(), DType::F64);
}

TEST_P(Optimizers, GoOnWhereTheLastParameterHasNoState) {
  const auto first = make_sgd({.rate = 0.5});
  Tensor p[] = {value(1, DType::F16), value(1, DType::F32)};
  const Tensor g[] = {value(1, DType::F16), value(1, DType::F32)};
  first->step(p, g);
  const auto second = make_sgd({.rate = 0.5});
  second->load_state(first->state());
  second->step(p, g);
  EXPECT_EQ(real(p[0]), 0);
  EXPECT_EQ(real(p[1]), 0);
}

TEST_P(Optimizers, ClipToALength) {
  Tensor gradients[] = {value(3, DType::F32), value(4, DType::F32)};
  EXPECT_DOUBLE_EQ(clip_gradients(gradients, 10), 5);
  EXPECT_EQ(real(gradients[0]), 3);
  EXPECT_DOUBLE_EQ(clip_gradients(gradients, 1), 5);
  EXPECT_NEAR(gradient_norm(gradients), 1, 1e-6);
  expect_error(ErrorKind::BadArgument, "must be positive", [&] { clip_gradients(gradients, 0); });
}

TEST(Schedules, FollowTheirFormulas) {
  using enum Schedule::Kind;
  EXPECT_EQ((Schedule{}.rate(0.1, 50)), 0.1);
  const Schedule step{.kind = Step, .step_size = 10, .gamma = 0.5};
  EXPECT_EQ(step.rate(0.1, 9), 0.1);
  EXPECT_EQ(step.rate(0.1, 10), 0.05);
  EXPECT_EQ(step.rate(0.1, 25), 0.025);
  const Schedule slow{.kind = Exponential, .gamma = 0.9};
  EXPECT_NEAR(slow.rate(1, 3), 0.729, 1e-12);
  const Schedule wave{.kind = Cosine, .period = 10, .least = 0.2};
  EXPECT_NEAR(wave.rate(1, 0), 1, 1e-12);
  EXPECT_NEAR(wave.rate(1, 5), 0.6, 1e-12);
  EXPECT_NEAR(wave.rate(1, 9), 0.2 + 0.8 * (1 + std::cos(0.9 * std::numbers::pi)) / 2, 1e-12);
  EXPECT_NEAR(wave.rate(1, 10), 1, 1e-12);  // begins again
  const Schedule warm{.kind = Step, .step_size = 10, .gamma = 0.5, .warmup = 3};
  EXPECT_NEAR(warm.rate(1, 0), 0.25, 1e-12);
  EXPECT_NEAR(warm.rate(1, 2), 0.75, 1e-12);
  EXPECT_EQ(warm.rate(1, 3), 1);
  EXPECT_EQ(warm.rate(1, 13), 0.5);
}

}  // namespace
}  // namespace tl
