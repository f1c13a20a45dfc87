// Rms, layer, group and batch norm.
#include "tl/ops/norm.h"

#include <cmath>

#include "ops/conformance.h"

namespace tl {
namespace {

using namespace test;

class Norm : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(Norm);

// Wider than f64, whose own results are judged by it.
using Real = long double;

// What is wanted, and the largest |x| / deviation of a row: rounding the mean costs that many
// units.
struct Wanted {
  Host values;
  double size = 1;
};

// Rows of n elements; weight and bias (empty: none) by channel_of(row, position).
template <class ChannelOf>
Wanted reference(const Host& x, std::int64_t n, const Host& weight, const Host& bias, double eps,
                 bool centered, ChannelOf channel_of) {
  Wanted result{x};
  for (std::int64_t row = 0; n > 0 && row < x.count() / n; ++row) {
    const double* from = x.values.data() + row * n;
    Real mean = 0, squares = 0;
    for (std::int64_t i = 0; centered && i < n; ++i) mean += from[i];
    mean /= static_cast<Real>(n);
    for (std::int64_t i = 0; i < n; ++i) squares += (from[i] - mean) * (from[i] - mean);
    const Real scale = 1 / std::sqrt(squares / static_cast<Real>(n) + static_cast<Real>(eps));
    for (std::int64_t i = 0; i < n; ++i) {
      const auto c = static_cast<std::size_t>(channel_of(row, i));
      Real to = (from[i] - mean) * scale;
      if (!weight.values.empty()) to *= weight.values[c];
      if (!bias.values.empty()) to += bias.values[c];
      result.values.values[static_cast<std::size_t>(row * n + i)] = static_cast<double>(to);
      if (std::isfinite(from[i])) {
        result.size = std::max(result.size, static_cast<double>(std::abs(from[i]) * scale));
      }
    }
  }
  return result;
}

void expect_norm(std::string_view op, const Tensor& got, DType dtype, const Wanted& wanted,
                 const std::string& what = {}) {
  const bool wide = dtype == DType::F32 || dtype == DType::F64;
  expect_close(op, got, dtype, wanted.values, wide ? Bound{4, wanted.size} : Bound{0.6, 0.1}, what);
}

void check(const Host& values, DType dtype, const Device& device, Arrangement how, int form) {
  const std::int64_t n = values.shape.back();
  const Host x = rounded(values, dtype);
  const Host w = rounded(uniform({n}, 0.5, 1.5, 21), dtype);
  const Host b = rounded(uniform({n}, -0.5, 0.5, 22), dtype);
  const Host none{{0}, {}};
  const auto same = [](std::int64_t, std::int64_t i) { return i; };
  const Tensor in = arrange(values, dtype, how, device);
  const Tensor weight = arrange(w, dtype, how, device), bias = contiguous_on(b, dtype, device);
  const std::string what = describe("", dtype, values.shape, how);
  if (form != 1) {
    expect_norm("rms_norm", rms_norm(in, weight, 1e-3), dtype,
                reference(x, n, w, none, 1e-3, false, same), what);
    expect_norm("layer_norm", layer_norm(in, weight, bias, 1e-3), dtype,
                reference(x, n, w, b, 1e-3, true, same), what);
  }
  if (form != 0) {
    expect_norm("rms_norm", rms_norm(in), dtype, reference(x, n, none, none, 1e-5, false, same),
                what);
    expect_norm("layer_norm", layer_norm(in, std::nullopt, bias), dtype,
                reference(x, n, none, b, 1e-5, true, same), what);
  }
}

TEST_P(Norm, MatchesTheReferenceForEveryDtypeAndLayout) {
  const Shape shapes[] = {{1}, {7}, {0, 4}, {3, 0}, {3, 5}, {2, 3, 33}, {5, 64}, {2, 2, 3, 16}};
  for (const DType dtype : kFloats) {
    for (const Shape& shape : shapes) {
      for (const Arrangement how : kArrangements) {
        check(uniform(shape, -3, 5, 23), dtype, device(), how, 2);
      }
    }
  }
}

TEST_P(Norm, RowsOfEveryLengthClass) {
  for (const DType dtype : kFloats) {
    int form = 0;
    for (const std::int64_t n : {8, 24, 129, 512, 513, 1032, 4096, 5000, 16384, 20001, 20480}) {
      check(uniform({3, n}, -2, 4, 24), dtype, device(), Arrangement::Contiguous, form ^= 1);
    }
    check(uniform({2, 20001}, -2, 4, 25), dtype, device(), Arrangement::Stepped, 0);
    check(uniform({600, 3}, -2, 4, 26), dtype, device(), Arrangement::Contiguous, 0);
  }
}

TEST_P(Norm, FuzzedShapes) {
  std::mt19937_64 random(fuzz_seed());
  for (int round = 0; round < 30; ++round) {
    const Shape shape = random_shape(random, 1 + static_cast<int>(random() % 4), 20, true);
    check(uniform(shape, -1, 1, random()), kFloats[random() % 5], device(),
          kArrangements[random() % 4], 2);
  }
}

// E[x^2] - mean^2 would have no digit left here.
TEST_P(Norm, ALargeMeanCostsNoMoreThanItsRounding) {
  for (const std::int64_t n : {100, 3000, 30000}) {
    Host values = uniform({2, n}, 0, 1, 27);
    for (double& x : values.values) x = 10000 + std::floor(x * 16) / 16;  // exact in f32
    expect_norm("layer_norm", layer_norm(contiguous_on(values, DType::F32, device())), DType::F32,
                reference(values, n, {{0}, {}}, {{0}, {}}, 1e-5, true,
                          [](std::int64_t, std::int64_t i) { return i; }));
  }
}

TEST_P(Norm, LayerNormGoesOverSeveralDimensions) {
  for (const DType dtype : kFloats) {
    const Host values = uniform({3, 4, 5}, -2, 2, 28);
    const Host w = rounded(uniform({4, 5}, 0.5, 1.5, 29), dtype);
    const Host b = rounded(uniform({4, 5}, -1, 1, 30), dtype);
    for (const Arrangement how : kArrangements) {
      const Tensor x = arrange(values, dtype, how, device());
      expect_norm("layer_norm",
                  layer_norm(x, arrange(w, dtype, how, device()), arrange(b, dtype, how, device())),
                  dtype,
                  reference(rounded(values, dtype), 20, w, b, 1e-5, true,
                            [](std::int64_t, std::int64_t i) { return i; }));
      expect_norm("layer_norm_over", layer_norm_over(x, {3, 4, 5}), dtype,
                  reference(rounded(values, dtype), 60, {{0}, {}}, {{0}, {}}, 1e-5, true,
                            [](std::int64_t, std::int64_t i) { return i; }));
    }
  }
  const Tensor scalar = contiguous_on({{}, {3}}, DType::F32, device());
  expect_close("layer_norm", layer_norm(scalar), DType::F32, {{}, {0}}, {0});
  expect_close("rms_norm", rms_norm(scalar, std::nullopt, 0), DType::F32, {{}, {1}}, {1});
}

TEST_P(Norm, GroupNormTakesChannelsInGroups) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape :
         {Shape{2, 6}, Shape{2, 6, 5}, Shape{3, 4, 7, 9}, Shape{0, 4, 3}, Shape{1, 4, 101, 99}}) {
      const std::int64_t channels = shape[1];
      std::int64_t inner = 1;
      for (int d = 2; d < shape.size(); ++d) inner *= shape[d];
      const Host values = uniform(shape, -2, 3, 31);
      const Host w = rounded(uniform({channels}, 0.5, 1.5, 32), dtype);
      const Host b = rounded(uniform({channels}, -1, 1, 33), dtype);
      for (const Arrangement how : kArrangements) {
        const Tensor x = arrange(values, dtype, how, device());
        for (const std::int64_t groups : {std::int64_t{1}, std::int64_t{2}, channels}) {
          const std::int64_t each = channels / groups;
          const Wanted want = reference(
              rounded(values, dtype), each * inner, w, b, 1e-5, true,
              [&](std::int64_t row, std::int64_t i) { return row % groups * each + i / inner; });
          expect_norm("group_norm",
                      group_norm(x, groups, contiguous_on(w, dtype, device()),
                                 contiguous_on(b, dtype, device())),
                      dtype, want, describe("", dtype, shape, how));
        }
      }
    }
  }
}

TEST_P(Norm, BatchNormUsesTheGivenStatistics) {
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{4, 3}, Shape{2, 3, 5}, Shape{2, 3, 4, 7}, Shape{0, 3, 2}}) {
      const Host values = uniform(shape, -2, 3, 34);
      const Host x = rounded(values, dtype);
      const Host m = rounded(uniform({3}, -1, 1, 35), dtype);
      const Host v = rounded(uniform({3}, 0.5, 2, 36), dtype);
      const Host w = rounded(uniform({3}, 0.5, 1.5, 37), dtype);
      const Host b = rounded(uniform({3}, -1, 1, 38), dtype);
      std::int64_t inner = 1;
      for (int d = 2; d < shape.size(); ++d) inner *= shape[d];
      Host want = x, plain = x;
      for (std::size_t i = 0; i < want.values.size(); ++i) {
        const std::size_t c = i / static_cast<std::size_t>(inner) % 3;
        plain.values[i] = (x.values[i] - m.values[c]) / std::sqrt(v.values[c] + 1e-5);
        want.values[i] = plain.values[i] * w.values[c] + b.values[c];
      }
      for (const Arrangement how : kArrangements) {
        const Tensor in = arrange(values, dtype, how, device());
        const auto part = [&](const Host& h) { return arrange(h, dtype, how, device()); };
        expect_close("batch_norm", batch_norm(in, part(m), part(v), part(w), part(b)), dtype, want,
                     {dtype == DType::F32 || dtype == DType::F64 ? 8.0 : 0.6, 1},
                     describe("", dtype, shape, how));
        expect_close("batch_norm", batch_norm(in, part(m), part(v)), dtype, plain,
                     {dtype == DType::F32 || dtype == DType::F64 ? 8.0 : 0.6, 1},
                     describe("", dtype, shape, how));
      }
    }
  }
}

TEST_P(Norm, NanSpoilsItsRowOnly) {
  for (const std::int64_t n : {5, 700, 20000}) {
    Host values = uniform({3, n}, -1, 1, 39);
    values.values[static_cast<std::size_t>(n + n / 2)] = std::nan("");
    const auto same = [](std::int64_t, std::int64_t i) { return i; };
    const Tensor x = contiguous_on(values, DType::F32, device());
    const Host v = rounded(values, DType::F32), none{{0}, {}};
    expect_norm("layer_norm", layer_norm(x), DType::F32,
                reference(v, n, none, none, 1e-5, true, same));
    expect_norm("rms_norm", rms_norm(x), DType::F32,
                reference(v, n, none, none, 1e-5, false, same));
  }
}

TEST_P(Norm, WrongArgumentsAreNamed) {
  const Tensor x = contiguous_on(uniform({2, 4}, 0, 1, 40), DType::F32, device());
  const Tensor w3 = contiguous_on(uniform({3}, 0, 1, 41), DType::F32, device());
  const Tensor w4 = contiguous_on(uniform({4}, 0, 1, 42), DType::F16, device());
  expect_error(ErrorKind::ShapeMismatch, "rms_norm: weight has shape (3,)",
               [&] { rms_norm(x, w3); });
  expect_error(ErrorKind::ShapeMismatch, "layer_norm: shape (2, 4) does not end in (3,)",
               [&] { layer_norm(x, w3); });
  expect_error(ErrorKind::DTypeMismatch, "layer_norm", [&] { layer_norm(x, w4); });
  expect_error(ErrorKind::BadArgument, "group_norm: 4 channels", [&] { group_norm(x, 3); });
  expect_error(ErrorKind::BadArgument, "group_norm", [&] { group_norm(x, 0); });
  expect_error(ErrorKind::ShapeMismatch, "batch_norm: mean has shape (3,)",
               [&] { batch_norm(x, w3, w3); });
  for (const DType dtype : kInts) {
    const Tensor i = contiguous_on({{2, 2}, {1, 2, 3, 4}}, dtype, device());
    expect_unsupported("rms_norm", dtype, device(), [&] { rms_norm(i); });
    expect_unsupported("layer_norm", dtype, device(), [&] { layer_norm(i); });
    expect_unsupported("group_norm", dtype, device(), [&] { group_norm(i, 1); });
    const Tensor c = contiguous_on({{2}, {1, 2}}, dtype, device());
    expect_unsupported("batch_norm", dtype, device(), [&] { batch_norm(i, c, c); });
  }
}

TEST_P(Norm, StaysOnTheDevice) {
  const Tensor x = contiguous_on(uniform({8, 100}, -1, 1, 43), DType::F32, device());
  const Tensor w = contiguous_on(uniform({100}, -1, 1, 44), DType::F32, device());
  const DriverCalls before = device().driver_calls();
  const Tensor y = layer_norm(rms_norm(x, w), w, w);
  const Tensor z = batch_norm(group_norm(y, 4, w, w), w, w, w, w);
  const DriverCalls after = device().driver_calls();
  EXPECT_EQ(after.uploads, before.uploads);
  EXPECT_EQ(after.downloads, before.downloads);
  EXPECT_EQ(after.synchronizations, before.synchronizations);
}

}  // namespace
}  // namespace tl
