// Gradients of normalisation layers: of inputs, weights, biases and statistics.
#include "tl/ops/norm.h"

#include "grad/check.h"
#include "tl/ops/create.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class NormGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape, std::uint64_t seed = 1) const {
    return spread(shape, seed, device());
  }
};
TL_ON_EVERY_DEVICE(NormGradient);

TEST_P(NormGradient, OfInputsWeightsAndBiases) {
  expect_gradients_of_any_layout(
      "rms_norm", [](std::span<const Tensor> in) { return rms_norm(in[0], in[1], 0.1); },
      {made({2, 3, 4}), made({4}, 2)});
  expect_gradients_of_any_layout(
      "layer_norm", [](std::span<const Tensor> in) { return layer_norm(in[0], in[1], in[2], 0.1); },
      {made({2, 3, 4}), made({4}, 2), made({4}, 3)});
}

TEST_P(NormGradient, OverSeveralDimensionsAndWithABiasAlone) {
  expect_gradients("layer_norm over two",
                   [](std::span<const Tensor> in) { return layer_norm(in[0], in[1], in[2]); },
                   {made({2, 3, 2}), made({3, 2}, 2), made({3, 2}, 3)});
  expect_gradients(
      "a bias alone",
      [](std::span<const Tensor> in) { return layer_norm_over(in[0], {4}, std::nullopt, in[1]); },
      {made({3, 4}), made({4}, 2)});
  expect_gradients("a weight alone followed",
                   [&](std::span<const Tensor> in) { return rms_norm(made({3, 4}), in[0]); },
                   {made({4}, 2)});
}

TEST_P(NormGradient, OfGroupsOfChannels) {
  expect_gradients_of_any_layout(
      "group_norm", [](std::span<const Tensor> in) { return group_norm(in[0], 2, in[1], in[2]); },
      {made({2, 4, 3}), made({4}, 2), made({4}, 3)});
  expect_gradients(
      "group_norm of (b, c)",
      [](std::span<const Tensor> in) { return group_norm(in[0], 1, in[1], std::nullopt); },
      {made({2, 4}), made({4}, 2)});
}

TEST_P(NormGradient, OfABatchNormAndItsStatistics) {
  const Tensor variance = add(sqr(made({3}, 5)), 0.3);
  expect_gradients(
      "batch_norm",
      [](std::span<const Tensor> in) { return batch_norm(in[0], in[1], in[2], in[3], in[4]); },
      {made({2, 3, 2}), made({3}, 4), variance, made({3}, 2), made({3}, 3)});
  expect_gradients("batch_norm of (b, c)",
                   [](std::span<const Tensor> in) {
                     return batch_norm(in[0], in[1], in[2], std::nullopt, in[3]);
                   },
                   {made({2, 3}), made({3}, 4), variance, made({3}, 3)});
}

TEST_P(NormGradient, NeedsNeitherWeightNorBias) {
  const Tensor mean = made({3}, 4), variance = add(sqr(made({3}, 5)), 0.3);
  expect_gradients("batch_norm",
                   [&](std::span<const Tensor> in) { return batch_norm(in[0], mean, variance); },
                   {made({2, 3})});
  expect_gradients("group_norm", [](std::span<const Tensor> in) { return group_norm(in[0], 3); },
                   {made({2, 3, 2})});
  expect_gradients("rms_norm", [](std::span<const Tensor> in) { return rms_norm(in[0]); },
                   {made({2, 3})});
}

TEST_P(NormGradient, CanBeDifferentiatedAgain) {
  const auto gradient = [](std::span<const Tensor> in) {
    const std::vector<Tensor> inputs = {in[0].has_history() ? in[0] : follow(in[0]),
                                        in[1].has_history() ? in[1] : follow(in[1])};
    const Tensor y = layer_norm(inputs[0], inputs[1], std::nullopt, 0.1);
    return gradients_of(weigh(mul(y, y)), inputs, {.follow = true})[0];
  };
  expect_gradients("layer_norm", gradient, {made({2, 3}), made({3}, 2)}, 1e-5);
}

// What an f64 norm has as its gradients, for numbers whose squares an f16 does not hold.
TEST_P(NormGradient, OfSmallFloatsIsComputedInLargerOnes) {
  const Tensor values = mul(made({3, 40}), 1000), factors = made({40}, 2);
  const auto gradients = [&](DType dtype) {
    const Tensor x = follow(to_dtype(values, dtype)), w = follow(to_dtype(factors, dtype));
    const Tensor y = rms_norm(x, w);
    const Gradients g = backward(mul(y, y), ones(y.shape(), dtype, device()));
    return std::pair(to_dtype(mul(to_dtype(g.of(x), DType::F64), 1000), DType::F64),
                     to_dtype(g.of(w), DType::F64));
  };
  const auto [dx, dw] = gradients(DType::F64);
  const auto [small_dx, small_dw] = gradients(DType::F16);
  const double x_size = norm_all(dx).item<double>(), w_size = norm_all(dw).item<double>();
  EXPECT_LT(norm_all(sub(small_dx, dx)).item<double>(), 5e-3 * x_size);
  EXPECT_LT(norm_all(sub(small_dw, dw)).item<double>(), 5e-3 * w_size);
}

}  // namespace
}  // namespace tl
