// Sorted values come from where their indices say.
#include "tl/ops/sort.h"

#include "grad/check.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using namespace test;

class SortGradient : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(SortGradient);

TEST_P(SortGradient, GoesToWhereValuesCameFrom) {
  const std::vector<Tensor> inputs{spread({3, 4, 2}, 1, device())};
  for (const std::int64_t dim : {0, 1, -1}) {
    for (const bool flag : {false, true}) {
      expect_gradients_of_any_layout(
          "sort", [&](auto in) { return sort(in[0], dim, flag).first; }, inputs);
      expect_gradients_of_any_layout(
          "topk", [&](auto in) { return topk(in[0], 2, dim, flag).first; }, inputs);
    }
  }
  expect_gradients(
      "sort_last_dim", [](auto in) { return sort_last_dim(in[0], false).first; }, inputs);
  expect_gradients("sort of a number", [](auto in) { return sort(in[0]).first; },
                   {spread({}, 1, device())});
}

TEST_P(SortGradient, EqualElementsKeepTheirOrder) {
  const Tensor x = follow(Tensor::from({2.0, 1.0, 2.0, 1.0}, {4}, device()));
  const Tensor seed = Tensor::from({1.0, 2.0, 3.0, 4.0}, {4}, device());
  const auto given = backward(sort(x, 0).first, seed).of(x).to_vector<double>();
  EXPECT_EQ(given, (std::vector<double>{3, 1, 4, 2}));
  const auto best = backward(sum_all(topk(x, 1, 0).first)).of(x).to_vector<double>();
  EXPECT_EQ(best, (std::vector<double>{1, 0, 0, 0}));
}

TEST_P(SortGradient, NothingOfNothingIsZero) {
  const Tensor x = follow(spread({3}, 1, device()));
  const auto none = backward(sum_all(topk(x, 0, 0).first)).of(x).to_vector<double>();
  EXPECT_EQ(none, (std::vector<double>{0, 0, 0}));
}

TEST_P(SortGradient, IndicesHaveNone) {
  const Tensor x = follow(spread({3}, 1, device()));
  EXPECT_FALSE(sort(x).second.has_history());
  EXPECT_FALSE(argsort(x).has_history());
}

TEST_P(SortGradient, HasAGradientItself) {
  expect_gradients("sort", gradient_of([](auto in) { return sqr(sort(sin(in[0]), 1).first); }),
                   {spread({2, 4}, 1, device())});
  expect_gradients("topk", gradient_of([](auto in) { return sqr(topk(sin(in[0]), 2, 1).first); }),
                   {spread({2, 4}, 1, device())});
}

}  // namespace
}  // namespace tl
