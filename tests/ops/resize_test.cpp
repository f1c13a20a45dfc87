// Resizing against loops over doubles, small known cases, and wrong arguments.
#include "tl/ops/resize.h"

#include <cmath>

#include "ops/conformance.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Resize : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Resize);

Host nearest(const Host& x, std::int64_t height, std::int64_t width) {
  Host y{{x.shape[0], x.shape[1], height, width}, {}};
  const std::int64_t h = x.shape[2], w = x.shape[3];
  for (std::int64_t p = 0; p < x.shape[0] * x.shape[1]; ++p) {
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t from = (p * h + i * h / height) * w + j * w / width;
        y.values.push_back(x.values[static_cast<std::size_t>(from)]);
      }
    }
  }
  return y;
}

// ratio: in / out, or 1 / scale.
Host bilinear(const Host& x, std::int64_t height, std::int64_t width, bool align, double ratio_h,
              double ratio_w) {
  Host y{{x.shape[0], x.shape[1], height, width}, {}};
  const std::int64_t h = x.shape[2], w = x.shape[3];
  const auto position = [&](std::int64_t i, std::int64_t in, std::int64_t out, double ratio) {
    const auto at = static_cast<double>(i);
    if (align) {
      return out > 1 ? at * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    }
    return std::max(0.0, ratio * (at + 0.5) - 0.5);
  };
  for (std::int64_t p = 0; p < x.shape[0] * x.shape[1]; ++p) {
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        const double fy = position(i, h, height, ratio_h), fx = position(j, w, width, ratio_w);
        const std::int64_t y0 = std::min(static_cast<std::int64_t>(fy), h - 1);
        const std::int64_t x0 = std::min(static_cast<std::int64_t>(fx), w - 1);
        const std::int64_t y1 = std::min(y0 + 1, h - 1), x1 = std::min(x0 + 1, w - 1);
        const double dy = std::min(fy - static_cast<double>(y0), 1.0);
        const double dx = std::min(fx - static_cast<double>(x0), 1.0);
        const auto at = [&](std::int64_t r, std::int64_t c) {
          return x.values[static_cast<std::size_t>((p * h + r) * w + c)];
        };
        y.values.push_back((1 - dy) * ((1 - dx) * at(y0, x0) + dx * at(y0, x1)) +
                           dy * ((1 - dx) * at(y1, x0) + dx * at(y1, x1)));
      }
    }
  }
  return y;
}

Host bilinear(const Host& x, std::int64_t height, std::int64_t width, bool align) {
  return bilinear(x, height, width, align,
                  static_cast<double>(x.shape[2]) / static_cast<double>(height),
                  static_cast<double>(x.shape[3]) / static_cast<double>(width));
}

// Three roundings in the dtype. Positions are f64, so in f64 their own rounding shows: an ulp of a
// position times the difference of two elements.
Bound bound_for(DType dtype, const Host& x) {
  const double reach = static_cast<double>(std::max(x.shape[2], x.shape[3]));
  return {.units = 4, .scale = dtype == DType::F64 ? 4 * reach : 1};
}

struct Case {
  Shape x;
  std::int64_t height, width;
};

const Case kCases[] = {
    {{1, 1, 1, 1}, 3, 3}, {{1, 1, 1, 2}, 3, 6},  {{1, 1, 2, 2}, 4, 4}, {{2, 3, 4, 4}, 8, 8},
    {{1, 2, 5, 7}, 3, 2}, {{1, 2, 3, 5}, 7, 11}, {{1, 3, 6, 4}, 4, 6}, {{1, 1, 64, 64}, 128, 128},
    {{2, 2, 4, 5}, 4, 5}, {{1, 2, 3, 3}, 1, 1},  {{0, 2, 3, 3}, 6, 6}, {{2, 0, 3, 3}, 6, 6},
};

TEST_P(Resize, NearestTakesTheElementBelowForEveryDtypeAndLayout) {
  for (const Case& c : kCases) {
    for (const DType dtype : kDTypes) {
      const Host x = uniform_for(dtype, c.x, -100, 100, 1);
      for (const Arrangement how : kArrangements) {
        const Tensor y = upsample_nearest2d(arrange(x, dtype, how, device()), c.height, c.width);
        EXPECT_TRUE(y.is_contiguous());
        expect_close("upsample_nearest2d", y, dtype, nearest(x, c.height, c.width), {0},
                     describe("upsample_nearest2d", dtype, c.x, how));
      }
    }
  }
}

TEST_P(Resize, NearestOfLinesIsNearestOfPlanesWithOneRow) {
  for (const DType dtype : kDTypes) {
    const Host x = uniform_for(dtype, {2, 3, 5}, -100, 100, 2);
    for (const std::int64_t size : {1, 3, 5, 12}) {
      for (const Arrangement how : kArrangements) {
        Host want = nearest({{2, 3, 1, 5}, x.values}, 1, size);
        want.shape.erase(2);
        const Tensor t = arrange(x, dtype, how, device());
        expect_close("upsample_nearest1d", upsample_nearest1d(t, size), dtype, want, {0});
        expect_close("interpolate1d", interpolate1d(t, size), dtype, want, {0});
      }
    }
    const Host plane = uniform_for(dtype, {1, 2, 3, 4}, -100, 100, 3);
    expect_close("interpolate2d", interpolate2d(contiguous_on(plane, dtype, device()), 5, 6), dtype,
                 nearest(plane, 5, 6), {0});
  }
}

TEST_P(Resize, BilinearAgreesWithTheFormulaInEveryLayout) {
  for (const Case& c : kCases) {
    for (const DType dtype : kFloats) {
      const Host x = uniform_for(dtype, c.x, -4, 4, 4);
      for (const Arrangement how : kArrangements) {
        for (const bool align : {false, true}) {
          const Tensor y =
              upsample_bilinear2d(arrange(x, dtype, how, device()), c.height, c.width, align);
          EXPECT_TRUE(y.is_contiguous());
          expect_close("upsample_bilinear2d", y, dtype, bilinear(x, c.height, c.width, align),
                       bound_for(dtype, x), describe("upsample_bilinear2d", dtype, c.x, how));
        }
      }
    }
  }
}

TEST_P(Resize, BilinearWithAScaleUsesTheScale) {
  const Host x = uniform({1, 2, 5, 7}, -4, 4, 5);
  for (const DType dtype : kFloats) {
    const Host in = rounded(x, dtype);
    const Tensor t = contiguous_on(in, dtype, device());
    for (const bool align : {false, true}) {
      for (const auto& [sh, sw] : {std::pair{2.0, 2.0}, {1.7, 2.3}, {0.5, 0.41}, {2.5, 1.0}}) {
        const auto height = static_cast<std::int64_t>(std::floor(5 * sh));
        const auto width = static_cast<std::int64_t>(std::floor(7 * sw));
        expect_close("upsample_bilinear2d_with_scale",
                     upsample_bilinear2d_with_scale(t, sh, sw, align), dtype,
                     bilinear(in, height, width, align, 1 / sh, 1 / sw), bound_for(dtype, in));
      }
      // Sizes that do not change: the tensor itself.
      expect_close("upsample_bilinear2d_with_scale",
                   upsample_bilinear2d_with_scale(t, 1.1, 1.05, align), dtype, in, {0});
    }
  }
}

// The values that PyTorch's documentation and tests show.
TEST_P(Resize, KnownValues) {
  const Tensor x = contiguous_on({{1, 1, 2, 2}, {1, 2, 3, 4}}, DType::F32, device());
  expect_close("upsample_bilinear2d", upsample_bilinear2d(x, 4, 4), DType::F32,
               {{1, 1, 4, 4},
                {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4}},
               {1});
  const double t = 1.0 / 3;
  expect_close("upsample_bilinear2d", upsample_bilinear2d(x, 4, 4, true), DType::F32,
               {{1, 1, 4, 4},
                {1, 1 + t, 1 + 2 * t, 2, 1 + 2 * t, 2, 2 + t, 2 + 2 * t, 2 + t, 2 + 2 * t, 3, 3 + t,
                 3, 3 + t, 3 + 2 * t, 4}},
               {2});
  expect_close("upsample_nearest2d", upsample_nearest2d(x, 4, 4), DType::F32,
               {{1, 1, 4, 4}, {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}}, {0});
  const Tensor row = contiguous_on({{1, 1, 1, 2}, {1, 2}}, DType::F32, device());
  const double third[] = {1, 1, 1 + t, 2 - t, 2, 2};  // 1 + (i - 1) / 3 between the two elements
  Host wide{{1, 1, 3, 6}, {}};
  for (int r = 0; r < 3; ++r) wide.values.insert(wide.values.end(), third, third + 6);
  expect_close("upsample_bilinear2d", upsample_bilinear2d(row, 3, 6), DType::F32, wide, {2});
  const OpValue arguments[] = {x, Scalar(4), Scalar(4)};
  expect_equal("upsample_bilinear2d", call_op("upsample_bilinear2d", arguments)[0],
               upsample_bilinear2d(x, 4, 4));
}

TEST_P(Resize, TheSameSizeGivesTheSameElementsWhateverTheLayout) {
  const Host x = uniform({2, 3, 4, 5}, -1, 1, 6);
  for (const Arrangement how : kArrangements) {
    const Tensor t = arrange(rounded(x, DType::F32), DType::F32, how, device());
    for (const Tensor& y : {upsample_nearest2d(t, 4, 5), upsample_bilinear2d(t, 4, 5, true),
                            upsample_bilinear2d(t, 4, 5, false)}) {
      EXPECT_TRUE(y.is_contiguous());
      expect_close("upsample_nearest2d", y, DType::F32, rounded(x, DType::F32), {0});
    }
  }
}

TEST_P(Resize, AgreesWithTheDefinitionForRandomSizes) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 40; ++round) {
    const Shape shape = random_shape(random, 4, 9);
    const auto height = static_cast<std::int64_t>(1 + random() % 20);
    const auto width = static_cast<std::int64_t>(1 + random() % 20);
    const DType dtype = kFloats[random() % std::size(kFloats)];
    const Host x = uniform_for(dtype, shape, -4, 4, random());
    const Tensor t = arrange(x, dtype, kArrangements[random() % 4], device());
    expect_close("upsample_nearest2d", upsample_nearest2d(t, height, width), dtype,
                 nearest(x, height, width), {0});
    const bool align = random() % 2 == 0;
    expect_close("upsample_bilinear2d", upsample_bilinear2d(t, height, width, align), dtype,
                 bilinear(x, height, width, align), bound_for(dtype, x));
  }
}

TEST_P(Resize, PixelShuffleMovesChannelsIntoPixelsAndBack) {
  const Tensor known =
      contiguous_on({{1, 4, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}}, DType::F32, device());
  expect_close("pixel_shuffle", pixel_shuffle(known, 2), DType::F32,
               {{1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7}}, {0});
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : {Shape{2, 9, 2, 3}, Shape{9, 1, 2}, Shape{2, 2, 18, 2, 1},
                               Shape{0, 9, 2, 2}, Shape{2, 0, 3, 3}}) {
      const Host x = uniform_for(dtype, shape, -100, 100, 7);
      for (const Arrangement how : kArrangements) {
        const Tensor t = arrange(x, dtype, how, device());
        const Tensor up = pixel_shuffle(t, 3);
        EXPECT_TRUE(up.is_contiguous());
        EXPECT_EQ(up.dim(-1), shape.back() * 3);
        EXPECT_EQ(up.dim(-3), t.dim(-3) / 9);
        expect_close("pixel_unshuffle", pixel_unshuffle(up, 3), dtype, x, {0});
        expect_close("pixel_shuffle", pixel_shuffle(t, 1), dtype, x, {0});
      }
    }
  }
}

TEST_P(Resize, RefusesSizesThatDoNotFit) {
  const Tensor x = Tensor::zeros({1, 4, 3, 3}, DType::F32, device());
  expect_error(ErrorKind::BadArgument, "upsample_nearest2d: size (0, 4) must be from 1",
               [&] { upsample_nearest2d(x, 0, 4); });
  expect_error(ErrorKind::BadArgument, "upsample_bilinear2d: size (4, -1) must be from 1",
               [&] { upsample_bilinear2d(x, 4, -1); });
  expect_error(ErrorKind::ShapeMismatch, "upsample_nearest1d: input must have 3 dimensions",
               [&] { upsample_nearest1d(x, 4); });
  expect_error(ErrorKind::ShapeMismatch, "has an empty dimension", [&] {
    upsample_bilinear2d(Tensor::zeros({1, 4, 0, 3}, DType::F32, device()), 4, 4);
  });
  expect_error(ErrorKind::BadArgument, "upsample_bilinear2d_with_scale: scale -1",
               [&] { upsample_bilinear2d_with_scale(x, -1, 1); });
  expect_error(ErrorKind::BadArgument, "upsample_bilinear2d_with_scale: scale nan",
               [&] { upsample_bilinear2d_with_scale(x, 1, std::nan("")); });
  expect_error(ErrorKind::BadArgument, "size (0, 3) must be from 1",
               [&] { upsample_bilinear2d_with_scale(x, 0.1, 1); });
  expect_error(ErrorKind::BadArgument, "upsample_bilinear2d_with_scale: scale 1e+300",
               [&] { upsample_bilinear2d_with_scale(x, 1e300, 1); });
  expect_error(ErrorKind::ShapeMismatch,
               "pixel_shuffle: the 4 channels of (1, 4, 3, 3) are not a multiple of 3 * 3",
               [&] { pixel_shuffle(x, 3); });
  expect_error(ErrorKind::ShapeMismatch, "pixel_unshuffle: the height and width",
               [&] { pixel_unshuffle(x, 2); });
  expect_error(ErrorKind::BadArgument, "pixel_shuffle: factor must be from 1",
               [&] { pixel_shuffle(x, 0); });
  expect_error(ErrorKind::ShapeMismatch, "pixel_shuffle: input must have 3 dimensions or more",
               [&] { pixel_shuffle(x.get(0).get(0), 1); });
}

TEST_P(Resize, RefusesDtypesWithoutAMeaning) {
  for (const DType dtype : kDTypes) {
    if (is_float(dtype)) continue;
    const Tensor x = Tensor::zeros({1, 1, 3, 3}, dtype, device());
    expect_unsupported("upsample_bilinear2d", dtype, device(),
                       [&] { upsample_bilinear2d(x, 4, 4); });
    expect_unsupported("upsample_bilinear2d_with_scale", dtype, device(),
                       [&] { upsample_bilinear2d_with_scale(x, 2, 2); });
  }
}

TEST_P(Resize, CopiesNothingToTheHostAndDoesNotWait) {
  if (device().is_cpu()) GTEST_SKIP() << "on the CPU there is nothing to wait for";
  const Tensor x = contiguous_on(uniform({1, 4, 6, 6}, -1, 1, 1), DType::F32, device());
  pixel_shuffle(upsample_nearest2d(x, 7, 7), 2);  // loads the modules
  const DriverCalls before = device().driver_calls();
  const Tensor y = pixel_shuffle(upsample_bilinear2d(x.transpose(2, 3), 8, 8), 2);
  const Tensor z = upsample_nearest2d(x, 9, 9);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
