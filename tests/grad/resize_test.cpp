// Gradients of resizing: larger, smaller, and by factors that are no integers.
#include "tl/ops/resize.h"

#include "grad/check.h"

namespace tl {
namespace {

using namespace test;

class ResizeGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape) const { return spread(shape, 5, device()); }
};
TL_ON_EVERY_DEVICE(ResizeGradient);

TEST_P(ResizeGradient, OfTheNearestElementAddsUpEveryUse) {
  const Tensor x = follow(Tensor::from({1.f, 2.f, 3.f}, {1, 1, 3}, device()));
  const Tensor y = upsample_nearest1d(x, 7);  // 0 0 0 1 1 2 2
  EXPECT_EQ(backward(sum_all(y)).of(x).to_vector<float>(), (std::vector<float>{3, 2, 2}));
  expect_gradients("larger and smaller",
                   [](std::span<const Tensor> in) { return upsample_nearest2d(in[0], 5, 2); },
                   {made({1, 2, 3, 4})});
}

TEST_P(ResizeGradient, OfWeightedMeans) {
  for (const bool align_corners : {false, true}) {
    SCOPED_TRACE(align_corners);
    expect_gradients(
        "larger",
        [&](std::span<const Tensor> in) { return upsample_bilinear2d(in[0], 5, 4, align_corners); },
        {made({1, 2, 2, 3})});
    expect_gradients(
        "smaller, and one place",
        [&](std::span<const Tensor> in) { return upsample_bilinear2d(in[0], 1, 3, align_corners); },
        {made({1, 1, 4, 5})});
    expect_gradients("by a scale",
                     [&](std::span<const Tensor> in) {
                       return upsample_bilinear2d_with_scale(in[0], 1.7, 0.6, align_corners);
                     },
                     {made({1, 1, 3, 4})});
  }
}

TEST_P(ResizeGradient, OfPixelsAndChannels) {
  expect_gradients("shuffle", [](std::span<const Tensor> in) { return pixel_shuffle(in[0], 2); },
                   {made({1, 4, 2, 1})});
  expect_gradients("unshuffle",
                   [](std::span<const Tensor> in) { return pixel_unshuffle(in[0], 2); },
                   {made({1, 1, 4, 2})});
}

TEST_P(ResizeGradient, KeepsTheSizeOfWhatKeepsItsSize) {
  const Tensor x = follow(Tensor::from({1.f, 2.f}, {1, 1, 1, 2}, device()));
  EXPECT_EQ(backward(sum_all(upsample_bilinear2d(x, 1, 2))).of(x).to_vector<float>(),
            (std::vector<float>{1, 1}));
  EXPECT_EQ(backward(sum_all(upsample_nearest2d(x, 1, 2))).of(x).to_vector<float>(),
            (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace tl
