// Gradients of pooling: windows that overlap, leave gaps or reach into the padding.
#include "tl/ops/pool.h"

#include "grad/check.h"

namespace tl {
namespace {

using namespace test;

class PoolGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape) const { return spread(shape, 3, device()); }
};
TL_ON_EVERY_DEVICE(PoolGradient);

TEST_P(PoolGradient, OfMeansGoesThroughOverlapGapsAndPadding) {
  for (const bool counts_padding : {true, false}) {
    SCOPED_TRACE(counts_padding);
    expect_gradients("overlap and padding",
                     [&](std::span<const Tensor> in) {
                       return avg_pool2d(in[0], {3, 2}, {2, 1}, {1, 1}, counts_padding);
                     },
                     {made({1, 2, 5, 3})});
    expect_gradients("gaps",
                     [&](std::span<const Tensor> in) {
                       return avg_pool1d(in[0], {2}, {3}, {1}, counts_padding);
                     },
                     {made({2, 1, 8})});
  }
}

TEST_P(PoolGradient, OfMaximaGoesThroughOverlapGapsAndPadding) {
  expect_gradients(
      "overlap and padding",
      [](std::span<const Tensor> in) { return max_pool2d(in[0], {3, 2}, {2, 1}, {1, 1}); },
      {made({1, 2, 5, 3})});
  expect_gradients("gaps",
                   [](std::span<const Tensor> in) { return max_pool1d(in[0], {2}, {3}, {1}); },
                   {made({2, 1, 8})});
  expect_gradients("a window larger than two steps",
                   [](std::span<const Tensor> in) { return max_pool1d(in[0], {5}, {2}, {2}); },
                   {made({1, 1, 7})});
}

TEST_P(PoolGradient, OfAMaximumGoesToItWhole) {
  const Tensor x =
      follow(Tensor::from({1.f, 2.f, 3.f, 9.f, 5.f, 6.f, 7.f, 8.f, 4.f}, {1, 1, 3, 3}, device()));
  const Gradients g = backward(sum_all(max_pool2d(x, {2}, {1})));
  // 9 is the largest of no window: it lies in the middle of the left edge.
  EXPECT_EQ(g.of(x).to_vector<float>(), (std::vector<float>{0, 0, 0, 2, 0, 1, 0, 1, 0}));
}

TEST_P(PoolGradient, IsSharedByEqualMaxima) {
  const Tensor x = follow(Tensor::from({2.f, 2.f, 1.f, 5.f}, {1, 1, 4}, device()));
  const Gradients g = backward(sum_all(max_pool1d(x, {2})));
  EXPECT_EQ(g.of(x).to_vector<float>(), (std::vector<float>{0.5, 0.5, 0, 1}));
}

TEST_P(PoolGradient, AllowsAStrideBeyondTheInput) {
  const Tensor x = follow(Tensor::from({2.f, 3.f, 1.f}, {1, 1, 3}, device()));
  const std::int64_t far = (std::int64_t{1} << 31) - 1;
  EXPECT_EQ(backward(sum_all(max_pool1d(x, {2}, {far}))).of(x).to_vector<float>(),
            (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(backward(sum_all(avg_pool1d(x, {2}, {far}))).of(x).to_vector<float>(),
            (std::vector<float>{0.5, 0.5, 0}));
}

TEST_P(PoolGradient, OfAdaptiveAndGlobalWindows) {
  expect_gradients("sizes that do not divide",
                   [](std::span<const Tensor> in) { return adaptive_avg_pool2d(in[0], {3, 2}); },
                   {made({1, 2, 5, 3})});
  expect_gradients("more places than there were",
                   [](std::span<const Tensor> in) { return adaptive_avg_pool2d(in[0], {4, 3}); },
                   {made({1, 1, 3, 2})});
  expect_gradients("global mean",
                   [](std::span<const Tensor> in) { return global_avg_pool2d(in[0]); },
                   {made({2, 2, 3, 2})});
  expect_gradients("global maximum",
                   [](std::span<const Tensor> in) { return global_max_pool2d(in[0]); },
                   {made({2, 2, 3, 2})});
}

}  // namespace
}  // namespace tl
