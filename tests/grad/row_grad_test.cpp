// The kernels for gradients of row ops, against what ops give in f64.
#include "ops/row_grad.h"

#include "grad/check.h"
#include "tl/ops/loss.h"
#include "tl/ops/norm.h"
#include "tl/ops/rope.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class RowGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape, std::uint64_t seed, DType dtype) const {
    return to_dtype(spread(shape, seed, device()), dtype);
  }
};
TL_ON_EVERY_DEVICE(RowGradient);

struct Bound {
  DType dtype;
  double error;  // of the norm of the difference, beside the norm of what is right
};
constexpr Bound kBounds[] = {{DType::F8E4M3, 0.05},
                             {DType::F16, 1e-3},
                             {DType::BF16, 8e-3},
                             {DType::F32, 1e-6},
                             {DType::F64, 1e-13}};
// A row in part of a warp, one with a rest, and one for a block.
constexpr std::int64_t kLengths[] = {5, 67, 1100};

void expect_close(const char* what, const Tensor& got, const Tensor& wanted, double error) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const double away = norm_all(sub(to_dtype(got, DType::F64), wanted)).item<double>();
  EXPECT_LT(away, error * norm_all(wanted).item<double>() + 1e-300) << what;
}

Tensor wide(const Tensor& x) { return to_dtype(x, DType::F64); }

// Through the rule that is made of ops, since its result is to be followed.
std::vector<Tensor> by_ops(const Tensor& y, const Tensor& g, std::span<const Tensor> inputs) {
  return gradients_of(sum_all(mul(y, g)), inputs, {.follow = true});
}

TEST_P(RowGradient, OfNormsIsThatOfOps) {
  for (const auto& [dtype, error] : kBounds) {
    for (const std::int64_t n : kLengths) {
      for (const bool centered : {false, true}) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(n) +
                     (centered ? " centered" : ""));
        const std::int64_t rows = n > 1000 ? 2 : 35;  // two parts of the sums over rows
        const Tensor x = made({rows, n}, 1, dtype), w = made({n}, 2, dtype);
        const Tensor g = made({rows, n}, 3, dtype);
        const std::vector<Tensor> in = {follow(wide(x)), follow(wide(w)),
                                        follow(Tensor::zeros({n}, DType::F64, device()))};
        const Tensor y = centered ? layer_norm(in[0], in[1], in[2], 0.01)
                                  : add(rms_norm(in[0], in[1], 0.01), in[2]);
        const std::vector<Tensor> wanted = by_ops(y, wide(g), in);
        const auto got = ops::norm_gradients(x, w, g, 0.01, centered, true);
        EXPECT_EQ(got.x.dtype(), dtype);
        expect_close("x", got.x, wanted[0], error);
        expect_close("weight", got.weight, wanted[1], std::min(error, 1e-5));
        expect_close("bias", got.bias, wanted[2], std::min(error, 1e-5));
      }
    }
  }
}

TEST_P(RowGradient, OfNormsNeedsNoWeight) {
  const Tensor x = made({3, 9}, 1, DType::F32), g = made({3, 9}, 3, DType::F32);
  const std::vector<Tensor> in = {follow(wide(x))};
  const std::vector<Tensor> wanted = by_ops(layer_norm(in[0]), wide(g), in);
  const auto got = ops::norm_gradients(x, Tensor(), g, 1e-5, true, false);
  expect_close("x", got.x, wanted[0], 1e-5);
  EXPECT_TRUE(got.weight.empty());
}

TEST_P(RowGradient, OfSoftmaxIsThatOfOps) {
  for (const auto& [dtype, error] : kBounds) {
    for (const std::int64_t n : kLengths) {
      for (const bool logarithm : {false, true}) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(n) +
                     (logarithm ? " logarithm" : ""));
        // Any numbers do for y: those of a real softmax are too small for an f8.
        const Tensor y = made({2, 3, n}, 1, dtype), g = made({2, 3, n}, 3, dtype);
        const std::int64_t dim = -1;
        const Tensor of = wide(y), with = wide(g);
        const Tensor wanted = logarithm ? sub(with, mul(exp(of), sum(with, {dim}, true)))
                                        : mul(of, sub(with, sum(mul(of, with), {dim}, true)));
        expect_close("x", ops::softmax_gradient(y, g, logarithm), wanted, error);
      }
    }
  }
}

TEST_P(RowGradient, OfCrossEntropyIsThatOfOps) {
  for (const auto& [dtype, error] : kBounds) {
    for (const std::int64_t n : kLengths) {
      for (const double smoothing : {0.0, 0.2}) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(n) +
                     (smoothing == 0 ? "" : " smooth"));
        const std::vector<std::int64_t> targets = {n - 1, 2, -100, 0};
        const Tensor ids = Tensor::from(targets, {4}, device());
        const Tensor logits = made({4, n}, 1, dtype);
        // Large enough that what is small is something in an f8, and what is large not too much.
        const Tensor weights =
            mul(made({4}, 2, DType::F64), std::min(300.0, static_cast<double>(n)));
        const std::vector<Tensor> in = {follow(wide(logits))};
        const Tensor wanted =
            by_ops(cross_entropy(in[0], ids, "none", -100, smoothing), weights, in)[0];
        for (const bool gaps : {false, true}) {
          const Tensor x = follow(gaps ? strided(logits) : logits);
          // The sum of losses is in the dtype of logits, so that theirs would be rounded to it.
          const Tensor loss = to_dtype(cross_entropy(x, ids, "none", -100, smoothing), DType::F64);
          const Tensor got = backward(sum_all(mul(loss, weights))).of(x);
          EXPECT_EQ(got.dtype(), dtype);
          expect_close("logits", got, wanted, dtype == DType::F8E4M3 ? 0.1 : 2 * error);
        }
      }
    }
  }
}

TEST_P(RowGradient, OfCrossEntropyTakesOneMatrix) {
  constexpr std::int64_t kRows = 64, kClasses = 512;
  const Tensor x = follow(made({kRows, kClasses}, 1, DType::F32));
  const Tensor ids = Tensor::from(std::vector<std::int64_t>(kRows, 7), {kRows}, device());
  device().synchronize();
  const std::uint64_t before = device().pool().live_bytes;
  device().reset_peak();
  const Tensor loss = cross_entropy(x, ids);
  device().synchronize();
  constexpr std::uint64_t kMatrix = kRows * kClasses * 4;
  EXPECT_LT(device().pool().peak_bytes - before, kMatrix / 4);
  const Tensor gradient = backward(loss).of(x);
  device().synchronize();
  EXPECT_LT(device().pool().peak_bytes - before, kMatrix + kMatrix / 4);
}

TEST_P(RowGradient, OfRopeIsThatOfOps) {
  for (const auto& [dtype, error] : kBounds) {
    SCOPED_TRACE(name(dtype));
    const Tensor c = made({7, 3}, 1, dtype), s = made({7, 3}, 2, dtype);
    const Tensor positions = Tensor::from(std::vector<std::int64_t>{6, 0, 3}, {3}, device());
    const auto check = [&](const char* what, const auto& form, const Tensor& x, const Tensor& g) {
      const std::vector<Tensor> in = {follow(x)};
      const Tensor y = form(in[0], c, s, positions);
      const Tensor wanted = gradients_of(sum_all(mul(y, g)), in, {.follow = true})[0];
      const Tensor got = backward(sum_all(mul(form(in[0], c, s, positions), g))).of(in[0]);
      EXPECT_EQ(wide(got).to_vector<double>(), wide(wanted).to_vector<double>()) << what;
    };
    const Tensor x = made({2, 2, 3, 8}, 3, dtype), g = made({2, 2, 3, 8}, 4, dtype);
    const Tensor across = made({2, 3, 2, 8}, 4, dtype);
    check("halves", rope, x, g);
    check("interleaved", rope_i, strided(x), strided(g));
    check("(b, t, h, d)", rope_thd, across, across);
    check("a transposed gradient", rope, x, across.transpose(1, 2));
  }
}

TEST_P(RowGradient, TakesRowsWithGaps) {
  const Tensor x = made({4, 6}, 1, DType::F64), g = made({4, 6}, 2, DType::F64);
  EXPECT_EQ(ops::softmax_gradient(strided(x), strided(g), false).to_vector<double>(),
            ops::softmax_gradient(x, g, false).to_vector<double>());
  EXPECT_EQ(
      ops::norm_gradients(strided(x), Tensor(), strided(g), 0.1, true, true).x.to_vector<double>(),
      ops::norm_gradients(x, Tensor(), g, 0.1, true, true).x.to_vector<double>());
}

}  // namespace
}  // namespace tl
