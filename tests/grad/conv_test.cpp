// Gradients of convolutions with every setting.
#include "tl/ops/conv.h"

#include "grad/check.h"
#include "tl/ops/create.h"

namespace tl {
namespace {

using namespace test;

class ConvGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape, std::uint64_t seed) const {
    return spread(shape, seed, device());
  }
};
TL_ON_EVERY_DEVICE(ConvGradient);

TEST_P(ConvGradient, GoesThroughStridesPaddingDilationGroupsAndABias) {
  // Sizes that leave a rest, another one along each dimension.
  expect_gradients("conv2d",
                   [](std::span<const Tensor> in) {
                     return conv2d(in[0], in[1], {1, 2}, {2, 3}, {1, 2}, 2, in[2]);
                   },
                   {made({2, 2, 4, 6}, 1), made({2, 1, 3, 2}, 2), made({2}, 3)});
  expect_gradients(
      "conv1d",
      [](std::span<const Tensor> in) { return conv1d(in[0], in[1], {2}, {3}, {2}, 1, in[2]); },
      {made({1, 2, 9}, 4), made({3, 2, 2}, 5), made({3}, 6)});
}

TEST_P(ConvGradient, GoesThroughThreeDimensions) {
  expect_gradients("conv3d",
                   [](std::span<const Tensor> in) {
                     return conv3d(in[0], in[1], {0, 1, 0}, {1, 2, 2}, {2, 1, 1}, 2, in[2]);
                   },
                   {made({1, 2, 3, 2, 4}, 1), made({2, 1, 2, 2, 1}, 2), made({2}, 3)});
  expect_gradients("conv_transpose3d",
                   [](std::span<const Tensor> in) {
                     return conv_transpose3d(in[0], in[1], {0, 1, 0}, {0, 1, 0}, {1, 2, 2},
                                             {1, 1, 2}, 2, in[2]);
                   },
                   {made({1, 2, 2, 2, 1}, 1), made({2, 1, 1, 2, 2}, 2), made({2}, 3)});
}

TEST_P(ConvGradient, GoesThroughTransposedOnesWithOutputPadding) {
  expect_gradients("conv_transpose2d",
                   [](std::span<const Tensor> in) {
                     return conv_transpose2d(in[0], in[1], {1, 0}, {1, 2}, {2, 3}, {1, 2}, 2,
                                             in[2]);
                   },
                   {made({2, 2, 3, 2}, 1), made({2, 1, 3, 2}, 2), made({2}, 3)});
  // An output padding larger than the stride, which the dilation allows.
  expect_gradients("conv_transpose1d",
                   [](std::span<const Tensor> in) {
                     return conv_transpose1d(in[0], in[1], {1}, {2}, {1}, {3}, 1, in[2]);
                   },
                   {made({2, 2, 3}, 4), made({2, 3, 2}, 5), made({3}, 6)});
}

TEST_P(ConvGradient, OfNothingIsNothing) {
  const Tensor x = follow(Tensor::zeros({0, 2, 4, 4}, DType::F32, device()));
  const Tensor kernel = follow(ones({3, 2, 2, 2}, DType::F32, device()));
  const Gradients g = backward(sum_all(conv2d(x, kernel, {1}, {2})));
  EXPECT_EQ(g.of(x).shape(), x.shape());
  EXPECT_EQ(g.of(kernel).to_vector<float>(), std::vector<float>(24, 0));
}

TEST_P(ConvGradient, CanBeDifferentiatedAgain) {
  // The gradient for x is a function of the kernel, and the other way round.
  const auto gradient_of = [](std::size_t which) {
    return [which](std::span<const Tensor> in) {
      const std::vector<Tensor> inputs = {in[0].has_history() ? in[0] : follow(in[0]),
                                          in[1].has_history() ? in[1] : follow(in[1])};
      const Tensor y = conv2d(inputs[0], inputs[1], {0}, {2, 1}, {1, 2});
      return gradients_of(weigh(mul(y, y)), inputs, {.follow = true})[which];
    };
  };
  const std::vector<Tensor> inputs = {made({1, 1, 4, 3}, 1), made({1, 1, 2, 2}, 2)};
  expect_gradients("gradient of x", gradient_of(0), inputs);
  expect_gradients("gradient of the kernel", gradient_of(1), inputs);
}

TEST_P(ConvGradient, OfALargeBatchIsTakenInParts) {
  if (!device().is_cpu()) GTEST_SKIP() << "minutes on a simulated GPU, and the same code";
  // Two images whose windows do not fit at once.
  constexpr std::int64_t kSide = 1400;
  const Tensor x = ones({2, 1, kSide, kSide}, DType::F32);
  const Tensor kernel = follow(ones({1, 1, 3, 3}, DType::F32));
  const Tensor y = conv2d(x, kernel);
  const double places = 2.0 * (kSide - 2) * (kSide - 2);
  const Gradients g = backward(y, ones(y.shape(), DType::F32));
  for (const float value : g.of(kernel).to_vector<float>()) {
    EXPECT_NEAR(value, places, 1e-5 * places);
  }
}

}  // namespace
}  // namespace tl
