// Pooling against loops over doubles, small known cases, and wrong arguments.
#include "tl/ops/pool.h"

#include <cmath>
#include <limits>

#include "ops/conformance.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class Pool : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Pool);

struct Axis {
  std::int64_t kernel = 1, stride = 1, padding = 0;
  std::int64_t adaptive = 0;  // places, when not 0
};

// (b, c, h, w); the mean, or the maximum.
Host reference(const Host& x, const Axis& h, const Axis& w, bool mean, bool include_pad = true) {
  const std::int64_t planes = x.shape[0] * x.shape[1], in[2] = {x.shape[2], x.shape[3]};
  const Axis axes[2] = {h, w};
  std::int64_t out[2];
  for (int d = 0; d < 2; ++d) {
    out[d] = axes[d].adaptive != 0
                 ? axes[d].adaptive
                 : (in[d] + 2 * axes[d].padding - axes[d].kernel) / axes[d].stride + 1;
  }
  Host y{{x.shape[0], x.shape[1], out[0], out[1]}, {}};
  for (std::int64_t p = 0; p < planes; ++p) {
    for (std::int64_t oy = 0; oy < out[0]; ++oy) {
      for (std::int64_t ox = 0; ox < out[1]; ++ox) {
        const std::int64_t o[2] = {oy, ox};
        std::int64_t first[2], last[2];
        for (int d = 0; d < 2; ++d) {
          first[d] = axes[d].adaptive != 0 ? o[d] * in[d] / out[d]
                                           : o[d] * axes[d].stride - axes[d].padding;
          last[d] = axes[d].adaptive != 0 ? ((o[d] + 1) * in[d] + out[d] - 1) / out[d]
                                          : first[d] + axes[d].kernel;
        }
        double sum = 0, most = -std::numeric_limits<double>::infinity();
        std::int64_t inside = 0;
        for (std::int64_t iy = first[0]; iy < last[0]; ++iy) {
          for (std::int64_t ix = first[1]; ix < last[1]; ++ix) {
            if (iy < 0 || ix < 0 || iy >= in[0] || ix >= in[1]) continue;
            const double v = x.values[static_cast<std::size_t>((p * in[0] + iy) * in[1] + ix)];
            sum += v;
            most = std::isnan(v) || std::isnan(most) ? std::nan("") : std::max(most, v);
            ++inside;
          }
        }
        const std::int64_t size =
            include_pad ? (last[0] - first[0]) * (last[1] - first[1]) : inside;
        y.values.push_back(mean ? sum / static_cast<double>(size) : most);
      }
    }
  }
  return y;
}

struct Case {
  Shape x;
  Axis h, w;
};

const Case kCases[] = {
    {{1, 1, 1, 1}, {}, {}},
    {{2, 3, 4, 4}, {2, 2}, {2, 2}},
    {{1, 2, 5, 7}, {3, 1}, {2, 3}},
    {{2, 2, 9, 6}, {3, 2, 1}, {4, 1, 2}},
    {{1, 3, 6, 5}, {1, 1}, {5, 1}},
    {{1, 1, 40, 600}, {2, 1, 1}, {3, 2, 1}},
    {{1, 1, 30, 33}, {9, 4, 4}, {20, 7, 10}},  // wide windows
    {{1, 2, 20, 20}, {20, 1}, {20, 1}},
    {{0, 2, 4, 4}, {2, 2}, {2, 2}},
    {{3, 0, 4, 4}, {2, 2}, {2, 2}},
};

TEST_P(Pool, MeansAgreeWithTheDefinitionInEveryLayout) {
  for (const Case& c : kCases) {
    for (const DType dtype : kFloats) {
      const Host x = uniform_for(dtype, c.x, -2, 2, 1);
      for (const Arrangement how : kArrangements) {
        const Tensor t = arrange(x, dtype, how, device());
        for (const bool include : {true, false}) {
          const Tensor y = avg_pool2d(t, {c.h.kernel, c.w.kernel}, {c.h.stride, c.w.stride},
                                      {c.h.padding, c.w.padding}, include);
          expect_close("avg_pool2d", y, dtype, reference(x, c.h, c.w, true, include), {2, 2},
                       describe("avg_pool2d", dtype, c.x, how));
        }
      }
    }
  }
}

TEST_P(Pool, MaximaAreExactForEveryNumberInEveryLayout) {
  for (const Case& c : kCases) {
    for (const DType dtype : kNumbers) {
      const Host x = uniform_for(dtype, c.x, -100, 100, 2);
      for (const Arrangement how : kArrangements) {
        const Tensor y = max_pool2d(arrange(x, dtype, how, device()), {c.h.kernel, c.w.kernel},
                                    {c.h.stride, c.w.stride}, {c.h.padding, c.w.padding});
        expect_close("max_pool2d", y, dtype, reference(x, c.h, c.w, false), {0},
                     describe("max_pool2d", dtype, c.x, how));
      }
    }
  }
}

TEST_P(Pool, LinesPoolLikePlanesOfOneRow) {
  for (const DType dtype : kNumbers) {
    const Host x = uniform_for(dtype, {2, 3, 11}, -100, 100, 3);
    const Host plane{{2, 3, 1, 11}, x.values};
    for (const Arrangement how : kArrangements) {
      const Tensor t = arrange(x, dtype, how, device());
      Host want = reference(plane, {}, {4, 3, 2}, false);
      want.shape.erase(2);
      expect_close("max_pool1d", max_pool1d(t, {4}, {3}, {2}), dtype, want, {0});
      if (!is_float(dtype)) continue;
      want = reference(plane, {}, {4, 3, 2}, true);
      want.shape.erase(2);
      expect_close("avg_pool1d", avg_pool1d(t, {4}, {3}, {2}), dtype, want, {2, 100});
    }
  }
}

TEST_P(Pool, AdaptiveAndGlobalWindowsCoverTheInput) {
  const std::pair<Shape, Dims> cases[] = {{{2, 3, 7, 5}, {3, 2}},
                                          {{1, 2, 4, 4}, {4, 4}},
                                          {{1, 1, 3, 2}, {7, 5}},
                                          {{1, 2, 33, 40}, {2, 1}},
                                          {{2, 2, 6, 6}, {0, 3}}};
  for (const auto& [shape, size] : cases) {
    for (const DType dtype : kFloats) {
      const Host x = uniform_for(dtype, shape, -2, 2, 4);
      for (const Arrangement how : kArrangements) {
        const Tensor t = arrange(x, dtype, how, device());
        const Tensor y = adaptive_avg_pool2d(t, size);
        if (size[0] == 0) {
          EXPECT_EQ(y.shape(), (Shape{2, 2, 0, 3}));
          continue;
        }
        Axis h, w;
        h.adaptive = size[0];
        w.adaptive = size[1];
        expect_close("adaptive_avg_pool2d", y, dtype, reference(x, h, w, true), {2, 2});
        h.adaptive = w.adaptive = 1;
        expect_close("global_avg_pool2d", global_avg_pool2d(t), dtype, reference(x, h, w, true),
                     {2, 2});
        expect_close("global_max_pool2d", global_max_pool2d(t), dtype, reference(x, h, w, false),
                     {0});
      }
    }
  }
  const Host ints = uniform_for(DType::I64, {1, 2, 9, 9}, -100, 100, 5);
  Axis all;
  all.adaptive = 1;
  for (const DType dtype : kInts) {
    const Host x = rounded(uniform_for(dtype, {1, 2, 9, 9}, -100, 100, 5), dtype);
    expect_close("global_max_pool2d", global_max_pool2d(contiguous_on(x, dtype, device())), dtype,
                 reference(x, all, all, false), {0});
  }
}

TEST_P(Pool, ALargeMeanKeepsItsDigits) {
  const Host x{{1, 1, 300, 301}, std::vector<double>(300 * 301, 0.1f)};
  expect_close("global_avg_pool2d", global_avg_pool2d(contiguous_on(x, DType::F32, device())),
               DType::F32, {{1, 1, 1, 1}, {0.1f}}, {8});
}

TEST_P(Pool, NanWinsAndPaddingNeverDoes) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const Tensor x = contiguous_on({{1, 1, 6}, {1, nan, 3, -inf, -inf, -5}}, dtype, device());
    expect_close("max_pool1d", max_pool1d(x, {2}), dtype, {{1, 1, 3}, {nan, 3, -5}}, {0});
    expect_close("max_pool1d", max_pool1d(x.narrow(2, 3, 2), {2}, {1}, {1}), dtype,
                 {{1, 1, 3}, {-inf, -inf, -inf}}, {0});
    expect_close("avg_pool1d", avg_pool1d(x, {2}), dtype, {{1, 1, 3}, {nan, -inf, -inf}}, {0});
  }
  const Tensor low = contiguous_on({{1, 1, 2}, {-7, -8}}, DType::I32, device());
  expect_close("max_pool1d", max_pool1d(low, {2}, {1}, {1}), DType::I32, {{1, 1, 3}, {-7, -7, -8}},
               {0});
}

TEST_P(Pool, KnownValues) {
  const Tensor x = contiguous_on(
      {{1, 1, 4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}, DType::F32, device());
  expect_close("avg_pool2d", avg_pool2d(x, {2}), DType::F32, {{1, 1, 2, 2}, {2.5, 4.5, 10.5, 12.5}},
               {0});
  expect_close("max_pool2d", max_pool2d(x, {2}), DType::F32, {{1, 1, 2, 2}, {5, 7, 13, 15}}, {0});
  expect_close("max_pool2d", max_pool2d(x, {2}, {1}), DType::F32,
               {{1, 1, 3, 3}, {5, 6, 7, 9, 10, 11, 13, 14, 15}}, {0});
  const OpValue arguments[] = {x, Scalar(2)};
  expect_equal("avg_pool2d", call_op("avg_pool2d", arguments)[0], avg_pool2d(x, {2}));
}

TEST_P(Pool, AgreesWithTheDefinitionForRandomSizes) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 60; ++round) {
    const Shape shape = random_shape(random, 4, 12);
    const DType dtype = kNumbers[random() % std::size(kNumbers)];
    const auto axis = [&](std::int64_t in) {
      Axis a;
      a.kernel = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(in));
      a.stride = 1 + static_cast<std::int64_t>(random() % 4);
      a.padding =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(a.kernel / 2 + 1));
      return a;
    };
    const Axis h = axis(shape[2]), w = axis(shape[3]);
    const Host x = uniform_for(dtype, shape, -50, 50, random());
    const Tensor t = arrange(x, dtype, kArrangements[random() % 4], device());
    expect_close("max_pool2d",
                 max_pool2d(t, {h.kernel, w.kernel}, {h.stride, w.stride}, {h.padding, w.padding}),
                 dtype, reference(x, h, w, false), {0}, describe("max_pool2d", dtype, shape));
    if (!is_float(dtype)) continue;
    const bool include = random() % 2 == 0;
    expect_close(
        "avg_pool2d",
        avg_pool2d(t, {h.kernel, w.kernel}, {h.stride, w.stride}, {h.padding, w.padding}, include),
        dtype, reference(x, h, w, true, include), {2, 50}, describe("avg_pool2d", dtype, shape));
  }
}

TEST_P(Pool, RefusesSizesThatDoNotFit) {
  const Tensor x = Tensor::zeros({1, 2, 4, 4}, DType::F32, device());
  expect_error(ErrorKind::ShapeMismatch,
               "max_pool2d: kernel (5, 5) is larger than input (1, 2, 4, 4) with padding (0, 0)",
               [&] { max_pool2d(x, {5}); });
  expect_error(ErrorKind::BadArgument, "avg_pool2d: stride (0,) must be from 1",
               [&] { avg_pool2d(x, {2}, {0}); });
  expect_error(ErrorKind::BadArgument, "max_pool2d: kernel (0,) must be from 1",
               [&] { max_pool2d(x, {0}); });
  expect_error(ErrorKind::BadArgument, "max_pool2d: padding (2, 2) must be at most half the kernel",
               [&] { max_pool2d(x, {3}, {1}, {2}); });
  expect_error(ErrorKind::BadArgument, "must have 1 or 2 entries", [&] { max_pool2d(x, {}); });
  expect_error(ErrorKind::ShapeMismatch, "avg_pool1d: input must have 3 dimensions",
               [&] { avg_pool1d(x, {2}); });
  const Tensor flat = Tensor::zeros({1, 2, 0, 4}, DType::F32, device());
  expect_error(ErrorKind::ShapeMismatch, "max_pool2d", [&] { max_pool2d(flat, {2}, {}, {1}); });
  expect_error(ErrorKind::ShapeMismatch, "has an empty dimension",
               [&] { adaptive_avg_pool2d(flat, {2}); });
  expect_error(ErrorKind::ShapeMismatch, "global_max_pool2d", [&] { global_max_pool2d(flat); });
  expect_error(ErrorKind::BadArgument, "adaptive_avg_pool2d: size (-1,) must be from 0",
               [&] { adaptive_avg_pool2d(x, {-1}); });
}

TEST_P(Pool, RefusesDtypesWithoutAMeaning) {
  for (const DType dtype : kDTypes) {
    const Tensor line = Tensor::zeros({1, 1, 4}, dtype, device());
    const Tensor x = line.unsqueeze(2);
    if (dtype == DType::Bool) {
      expect_unsupported("max_pool1d", dtype, device(), [&] { max_pool1d(line, {1}); });
      expect_unsupported("max_pool2d", dtype, device(), [&] { max_pool2d(x, {1}); });
      expect_unsupported("global_max_pool2d", dtype, device(), [&] { global_max_pool2d(x); });
    }
    if (is_float(dtype)) continue;
    expect_unsupported("avg_pool1d", dtype, device(), [&] { avg_pool1d(line, {1}); });
    expect_unsupported("avg_pool2d", dtype, device(), [&] { avg_pool2d(x, {1}); });
    expect_unsupported("adaptive_avg_pool2d", dtype, device(),
                       [&] { adaptive_avg_pool2d(x, {1}); });
    expect_unsupported("global_avg_pool2d", dtype, device(), [&] { global_avg_pool2d(x); });
  }
}

TEST_P(Pool, CopiesNothingToTheHostAndDoesNotWait) {
  if (device().is_cpu()) GTEST_SKIP() << "on the CPU there is nothing to wait for";
  const Tensor x = contiguous_on(uniform({1, 4, 6, 6}, -1, 1, 1), DType::F32, device());
  max_pool2d(x, {2});  // loads the module
  const DriverCalls before = device().driver_calls();
  const Tensor y = avg_pool2d(max_pool2d(x.transpose(2, 3), {2}), {2});
  const Tensor z = global_avg_pool2d(x);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
