// Random numbers depend on nothing; what dropout keeps, it scales.
#include "tl/ops/random.h"

#include "grad/check.h"

namespace tl {
namespace {

using namespace test;

class RandomGradient : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(RandomGradient);

TEST_P(RandomGradient, DropoutPassesWhatItKept) {
  constexpr double kProbability = 0.25;
  const Tensor x = follow(spread({50, 40}, 1, device()));
  const Tensor y = dropout(x, kProbability);
  const Tensor seed = spread({50, 40}, 2, device());
  const auto given = backward(y, seed).of(x).to_vector<double>();
  const auto kept = y.to_vector<double>(), seeds = seed.to_vector<double>();
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == 0) ++dropped;  // x has no 0
    ASSERT_DOUBLE_EQ(given[i], kept[i] == 0 ? 0 : seeds[i] / (1 - kProbability));
  }
  EXPECT_GT(dropped, 400u);
  EXPECT_LT(dropped, 600u);
}

TEST_P(RandomGradient, DropoutOfNothingAndOfAll) {
  const Tensor x = follow(spread({3}, 1, device()));
  EXPECT_EQ(backward(sum_all(dropout(x, 0))).of(x).to_vector<double>(),
            (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(backward(sum_all(dropout(x, 1))).of(x).to_vector<double>(),
            (std::vector<double>{0, 0, 0}));
}

TEST_P(RandomGradient, RandomNumbersDependOnNothing) {
  const Tensor x = follow(spread({3}, 1, device()));
  EXPECT_FALSE(rand_like(x).has_history());
  EXPECT_FALSE(randn_like(x).has_history());
}

}  // namespace
}  // namespace tl
