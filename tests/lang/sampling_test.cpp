#include <limits>

#include "library_context.h"

namespace tl::lang::test {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::vector<std::int64_t> draws(std::string_view name, std::vector<Value> args, int count) {
  std::vector<std::int64_t> out;
  for (int i = 0; i < count; ++i) out.push_back(call_builtin(context(), name, args).integer());
  return out;
}

}  // namespace

TEST(Sampling, TakesTheLastRowAndTheLargestForTemperatureZero) {
  const Value logits = tensor({9, 0, 0, 0, 5, 1}, {2, 3});
  EXPECT_EQ(shown("temperature_sample", {logits, 0.0}), "1");
  EXPECT_EQ(shown("sample_temperature", {logits, 0.0001}), "1");
  EXPECT_EQ(shown("sample_greedy", {logits}), "1");
  const Value equals = list({1.0, 5.0, 3.0, 5.0, 2.0});
  EXPECT_EQ(shown("temperature_sample", {equals, 1e-4}), "3");  // the last
  EXPECT_EQ(shown("sample_greedy", {equals}), "1");
  EXPECT_EQ(shown("sample_greedy", {list({1.0, 3.0, 2.0})}), "1");
  fails("a temperature from 0", "temperature_sample", {logits, -1.0});
  fails("a temperature from 0", "sample_temperature", {logits, std::nan("")});
  fails("logits of shape", "temperature_sample", {tl::Tensor(), 1.0});
  fails("sample_greedy()", "sample_greedy", {"x"});
  fails("above -infinity", "sample_greedy", {tensor({kNever, kNever}, {2})});
}

TEST(Sampling, TellsWhatItDrewWhenAsked) {
  setenv("TL_DEBUG_SAMPLING", "1", 1);
  testing::internal::CaptureStderr();
  run("sample_greedy", {tensor({0, 5, 1}, {3})});
  const std::string told = testing::internal::GetCapturedStderr();
  unsetenv("TL_DEBUG_SAMPLING");
  EXPECT_TRUE(told.starts_with("[SAMPLING] token 1: logit 5.0000, probability 0.9")) << told;
  EXPECT_TRUE(told.ends_with("[SAMPLING] chosen: 1\n")) << told;
}

TEST(Sampling, DrawsBySeed) {
  const Value logits = tensor({0, 0, 0, 0}, {4});
  context().device->set_seed(1);
  const auto first = draws("temperature_sample", {logits, 1.0}, 40);
  const auto second = draws("temperature_sample", {logits, 1.0}, 40);
  context().device->set_seed(1);
  EXPECT_EQ(draws("temperature_sample", {logits, 1.0}, 40), first);
  EXPECT_NE(first, second);
  for (std::int64_t token = 0; token < 4; ++token) {
    EXPECT_GT(std::count(first.begin(), first.end(), token), 0) << token;
  }
}

TEST(Sampling, ByProbabilitiesAndAmongTheLikeliest) {
  for (const std::int64_t token : draws("sample", {tensor({0, 1, 0}, {3})}, 5)) {
    EXPECT_EQ(token, 1);
  }
  const auto drawn = draws("sample", {list({0.5, 0.5, 0.0})}, 40);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 2), 0);
  EXPECT_GT(std::count(drawn.begin(), drawn.end(), 0), 0);
  fails("probabilities that sum to 1, got a sum of 3", "sample", {tensor({1, 2}, {2})});
  fails("a least one of -1", "sample", {tensor({2, -1}, {2})});

  const Value logits = tensor({1, 3, 2, -9}, {4});
  for (const std::int64_t token : draws("sample_top_k", {logits, 1}, 5)) EXPECT_EQ(token, 1);
  for (const std::int64_t token : draws("top_p_sample", {logits, 0.1}, 5)) EXPECT_EQ(token, 1);
  fails("from 1 to 4 of the logits", "sample_top_k", {logits, 5});
  fails("above 0 and at most 1", "top_p_sample", {logits, 0.0});
}

TEST(Sampling, ChangesLogits) {
  const Value logits = tensor({1, 3, 2, 4, 4, 0}, {2, 3});
  EXPECT_EQ(floats(run("top_k", {logits, 1})),
            (std::vector<float>{kNever, 3, kNever, 4, kNever, kNever}));
  EXPECT_EQ(floats(run("top_k", {logits, 3})), floats(logits));
  EXPECT_EQ(floats(run("top_p", {tensor({0, 10, 9}, {3}), 0.9})),
            (std::vector<float>{kNever, 10, 9}));
  EXPECT_EQ(floats(run("top_p", {tensor({0, 10, 9}, {3}), 0.0})),
            (std::vector<float>{kNever, 10, kNever}));
  EXPECT_EQ(floats(run("top_p", {logits, 1.0})), floats(logits));
  EXPECT_EQ(floats(run("temperature", {tensor({1, 3}, {2}), 2.0})), (std::vector<float>{0.5, 1.5}));
  fails("from 1 to 3 of the logits", "top_k", {logits, 4});
  fails("a probability from 0 to 1", "top_p", {logits, 1.5});
  fails("a temperature above 0", "temperature", {logits, 0.0});
  run("print_top_k", {tensor({1, 3, 2.5}, {3}), 2});
  EXPECT_EQ(context().printed(),
            "      Top 2 logits:\n        [    1] = 3\n        [    2] = 2.5\n");
  fails("from 1 to 3", "print_top_k", {tensor({1, 3, 2.5}, {3}), 9});
}

}  // namespace tl::lang::test
