// Gradients of attention with every option.
#include "tl/ops/attention.h"

#include "grad/check.h"
#include "tl/ops/create.h"
#include "tl/ops/matmul.h"
#include "tl/ops/softmax.h"
#include "tl/ops/where.h"

namespace tl {
namespace {

using namespace test;

class AttentionGradient : public OnEveryDevice {
 protected:
  Tensor made(const Shape& shape, std::uint64_t seed) const {
    return spread(shape, seed, device());
  }
  // Two query heads for each of two key heads; fewer queries than keys; values of another depth.
  std::vector<Tensor> grouped() const {
    return {made({1, 4, 2, 3}, 1), made({1, 2, 3, 3}, 2), made({1, 2, 3, 2}, 3)};
  }
  void expect_with(const std::string& what, const AttentionOptions& options) const {
    expect_gradients(
        what,
        [&](std::span<const Tensor> in) {
          return scaled_dot_product_attention(in[0], in[1], in[2], options);
        },
        grouped());
  }
};
TL_ON_EVERY_DEVICE(AttentionGradient);

TEST_P(AttentionGradient, GoesThroughSharedHeadsOfAnyLayout) {
  expect_gradients_of_any_layout(
      "grouped heads", [](std::span<const Tensor> in) { return attention(in[0], in[1], in[2]); },
      grouped());
}

TEST_P(AttentionGradient, GoesThroughEveryOption) {
  expect_with("causal", {.causal = true});
  expect_with("scale and cap", {.scale = 0.7, .softcap = 0.8});
  expect_with("window", {.window = 1});
  expect_with("causal window with a cap", {.causal = true, .window = 0, .softcap = 0.5});
}

TEST_P(AttentionGradient, GoesThroughMasksOfNumbersAndSlopes) {
  std::vector<Tensor> inputs = grouped();
  inputs.push_back(made({4, 1, 3}, 4));  // broadcast over the batch and the queries
  inputs.push_back(made({4}, 5));
  expect_gradients(
      "mask and slopes",
      [](std::span<const Tensor> in) {
        return scaled_dot_product_attention(
            in[0], in[1], in[2], {.mask = in[3], .causal = true, .softcap = 0.9, .slopes = in[4]});
      },
      inputs);
}

TEST_P(AttentionGradient, IsNothingWhereAQuerySeesNoKey) {
  const Tensor mask = Tensor::from(std::vector<std::uint8_t>{0, 0, 0, 1, 0, 1}, {2, 3}, device());
  expect_with("yes or no", {.mask = mask});
  // More queries than keys: the first ones see none.
  expect_gradients("causal",
                   [](std::span<const Tensor> in) {
                     return scaled_dot_product_attention(in[0], in[1], in[2], {.causal = true});
                   },
                   {made({1, 1, 3, 2}, 1), made({1, 1, 2, 2}, 2), made({1, 1, 2, 2}, 3)});
  const double never = -std::numeric_limits<double>::infinity();
  const Tensor added =
      Tensor::from(std::vector<double>{never, never, never, 0.5, never, 1}, {2, 3}, device());
  const std::vector<Tensor> in = grouped();
  const Tensor q = follow(in[0]);
  const Tensor y = scaled_dot_product_attention(q, in[1], in[2], {.mask = added});
  const std::vector<double> g = backward(weigh(y)).of(q).to_vector<double>();
  for (std::size_t i = 0; i < g.size(); ++i) {
    EXPECT_TRUE(std::isfinite(g[i])) << i;
    const bool sees_nothing = i / 3 % 2 == 0;  // the first of two queries
    EXPECT_EQ(g[i] == 0, sees_nothing) << i;
  }
}

TEST_P(AttentionGradient, CanBeDifferentiatedAgain) {
  const auto gradient_of = [](std::size_t which) {
    return [which](std::span<const Tensor> in) {
      std::vector<Tensor> inputs;
      for (const Tensor& x : in) inputs.push_back(x.has_history() ? x : follow(x));
      const Tensor y = scaled_dot_product_attention(inputs[0], inputs[1], inputs[2],
                                                    {.causal = true, .softcap = 0.9});
      return gradients_of(weigh(mul(y, y)), inputs, {.follow = true})[which];
    };
  };
  const std::vector<Tensor> inputs = {made({1, 2, 2, 2}, 1), made({1, 1, 2, 2}, 2),
                                      made({1, 1, 2, 1}, 3)};
  expect_gradients("gradient of q", gradient_of(0), inputs, 1e-5);
  expect_gradients("gradient of k", gradient_of(1), inputs, 1e-5);
}

TEST_P(AttentionGradient, OfLongSequencesIsTakenInParts) {
  if (!device().is_cpu()) GTEST_SKIP() << "minutes on a simulated GPU, and the same code";
  // More scores than are computed at a time; the same by ops that keep all of them. With slopes
  // that are followed no kernel takes it.
  constexpr std::int64_t kLength = 4200;
  std::vector<Tensor> in;
  for (std::uint64_t i = 0; i < 3; ++i) {
    in.push_back(follow(to_dtype(spread({1, 1, kLength, 2}, i + 1, device(), 2), DType::F32)));
  }
  const Tensor none = follow(Tensor::zeros({1}, DType::F32, device()));
  const Tensor y =
      scaled_dot_product_attention(in[0], in[1], in[2], {.causal = true, .slopes = none});
  const Tensor scores = mul(matmul(in[0], in[1].t()), 1 / std::sqrt(2.0));
  const Tensor seen = tril2(kLength, DType::U8, device());
  const Tensor plain =
      matmul(softmax(where(seen, scores, -std::numeric_limits<double>::infinity()), -1), in[2]);
  const Gradients got = backward(weigh(y)), wanted = backward(weigh(plain));
  for (const Tensor& x : in) {
    const double error = norm_all(sub(got.of(x), wanted.of(x))).item<float>();
    EXPECT_LT(error, 1e-4 * norm_all(wanted.of(x)).item<float>());
  }
}

}  // namespace
}  // namespace tl
