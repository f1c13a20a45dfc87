#include "tl/model/sampler.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/sampling.h"
#include "support/faulty_driver.h"
#include "support/on_every_device.h"

namespace tl {
namespace {

using test::expect_error;
using test::greedy;
using test::kInf;
using test::kNan;
using test::plain;
using test::random_logits;

using Tokens = std::vector<std::uint32_t>;

class Samplers : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    device().synchronize();
    device().trim();
    before_ = device().pool();
  }
  void TearDown() override {
    device().synchronize();
    const PoolStatistics after = device().pool();
    EXPECT_EQ(after.live_bytes, before_.live_bytes);
    EXPECT_EQ(after.allocations - before_.allocations, after.returns - before_.returns);
  }
  Tensor logits(const std::vector<float>& values) const { return Tensor::from(values, device()); }
  std::uint32_t token(const SamplingOptions& options, const std::vector<float>& values) const {
    Sampler sampler(options, static_cast<std::int64_t>(values.size()), device());
    return sampler.sample(logits(values)).item<std::uint32_t>();
  }
  static Tokens draw(Sampler& sampler, const Tensor& logits, int count) {
    Tokens tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(sampler.sample(logits).item<std::uint32_t>());
    return tokens;
  }

  PoolStatistics before_;
};
TL_ON_EVERY_DEVICE(Samplers);

// ---- greedy

TEST_P(Samplers, GreedyTakesTheLargestAndOfEqualOnesTheFirst) {
  EXPECT_EQ(token(greedy(), {3}), 0U);
  EXPECT_EQ(token(greedy(), {1, 5, 5, 2}), 1U);
  EXPECT_EQ(token(greedy(), {-0.0F, 0.0F}), 0U);
  EXPECT_EQ(token(greedy(), {-2, -1, -3}), 1U);
  EXPECT_EQ(token(greedy(), {1, kInf, kInf}), 1U);
  EXPECT_EQ(token(plain(9e-8), {1, 2, 1}), 1U);
  for (const std::int64_t size : {31, 33, 2049, 32000, 151936}) {
    std::vector<float> values = random_logits(size, 1);
    values[static_cast<std::size_t>(size - 1)] = values[static_cast<std::size_t>(size / 2)] = 1e3F;
    EXPECT_EQ(token(greedy(), values), size / 2) << size;
  }
}

TEST_P(Samplers, NanAndMinusInfinityAreNeverChosen) {
  SamplingOptions hot = plain(100);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    hot.seed = seed;
    EXPECT_EQ(token(hot, {kNan, -kInf, 0, kNan}), 2U);
    EXPECT_EQ(token(greedy(), {kNan, -kInf, -1e38F, kNan}), 2U);
    const std::uint32_t endless = token(hot, {5, kInf, 1e30F, kInf});
    EXPECT_TRUE(endless == 1 || endless == 3);
  }
}

TEST_P(Samplers, NothingToChooseIsAnErrorAndTheSamplerGoesOn) {
  for (const SamplingOptions& options : {greedy(), plain(), SamplingOptions()}) {
    Sampler sampler(options, 3, device());
    for (const std::vector<float>& values :
         {std::vector<float>{kNan, kNan, kNan}, {-kInf, -kInf, -kInf}, {kNan, -kInf, kNan}}) {
      expect_error(ErrorKind::InvalidIndex, "sample: ", [&] {
        const Tensor none = sampler.sample(logits(values));
        device().synchronize();
      });
    }
    EXPECT_EQ(sampler.sample(logits({-kInf, 2, -kInf})).item<std::uint32_t>(), 1U);
  }
}

// ---- cuts

TEST_P(Samplers, TiesAtACutStayByLowerId) {
  SamplingOptions options = plain(100);
  const std::vector<float> equal(1024, 0.5F);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    options = plain(100);
    options.seed = seed;
    options.top_k = 3;
    EXPECT_LT(token(options, equal), 3U);
    EXPECT_LE(token(options, {1, 2, 1, 2, 1, 1}), 3U);  // 1, 3, then 0
    EXPECT_NE(token(options, {1, 2, 1, 2, 1, 1}), 2U);
    options.top_k = 0;
    options.top_p = 0.25;
    EXPECT_LT(token(options, {1, 1, 1, 1}), 1U);
    options.top_p = 0.26;
    EXPECT_LT(token(options, {1, 1, 1, 1}), 2U);
    options.top_p = 4.0 / 1024;
    EXPECT_LT(token(options, equal), 4U);
    options.top_p = 1;
    options.typical_p = 0.5;
    EXPECT_LT(token(options, {1, 1, 1, 1}), 2U);
  }
}

TEST_P(Samplers, TypicalMayDropTheLikeliest) {
  // Two thirds of the probability are spread over many tokens, so the mean surprise is theirs.
  std::vector<float> values(200, 0.0F);
  values[0] = std::log(100.0F);
  SamplingOptions options = plain();
  options.typical_p = 0.5;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    options.seed = seed;
    EXPECT_NE(token(options, values), 0U);
  }
}

// ---- penalties

TEST_P(Samplers, AWindowForgetsWhatIsOlder) {
  SamplingOptions options = greedy();
  options.presence_penalty = 1;
  options.penalty_window = 2;
  const Tensor x = logits({3, 2.9F, 2.8F, 2.7F});
  Sampler sampler(options, 4, device());
  EXPECT_EQ(draw(sampler, x, 7), (Tokens{0, 1, 2, 0, 1, 2, 0}));
  options.penalty_window = -1;
  Sampler all(options, 4, device());
  EXPECT_EQ(draw(all, x, 6), (Tokens{0, 1, 2, 3, 0, 0}));  // presence counts once
  options.penalty_window = 0;
  Sampler none(options, 4, device());
  EXPECT_EQ(draw(none, x, 3), (Tokens{0, 0, 0}));
}

TEST_P(Samplers, ATokenThatIsThereTwiceStaysWhenOneGoes) {
  SamplingOptions options = greedy();
  options.frequency_penalty = 1;
  options.penalty_window = 3;
  Sampler sampler(options, 2, device());
  sampler.accept(std::vector<TokenId>{0, 0, 1});
  EXPECT_EQ(sampler.sample(logits({1.5F, 0})).item<std::uint32_t>(), 0U);  // -0.5 and -1
  // The window is 0, 1, 0: -0.5 and -0.4.
  EXPECT_EQ(sampler.sample(logits({1.5F, 0.6F})).item<std::uint32_t>(), 1U);
}

TEST_P(Samplers, PromptsOfAnyLengthAreCounted) {
  SamplingOptions options = greedy();
  options.frequency_penalty = 1;
  const std::vector<float> values(50, 0.0F);
  for (const std::int64_t window : {1, 5, 64, 600, -1}) {
    options.penalty_window = window;
    for (const int length : {0, 1, 4, 5, 6, 70, 1300}) {
      Sampler here(options, 50, device()), there(options, 50, Device::cpu());
      std::vector<TokenId> prompt;
      for (int i = 0; i < length; ++i) prompt.push_back(i * i % 50);
      for (Sampler* sampler : {&here, &there}) {
        sampler->accept(prompt);
        sampler->accept(std::vector<TokenId>{7, 7, 3});
        sampler->accept(prompt);
      }
      EXPECT_EQ(draw(here, logits(values), 20), draw(there, Tensor::from(values), 20))
          << "window " << window << ", prompt of " << length;
    }
  }
}

TEST_P(Samplers, TokensOutsideTheVocabularyAreNotAccepted) {
  SamplingOptions options = greedy();
  options.presence_penalty = 1;
  for (const SamplingOptions& o : {options, SamplingOptions()}) {
    Sampler sampler(o, 4, device());
    expect_error(ErrorKind::InvalidIndex, "sampling: token 4 is not in the vocabulary of 4",
                 [&] { sampler.accept(std::vector<TokenId>{0, 4}); });
    expect_error(ErrorKind::InvalidIndex, "token -1",
                 [&] { sampler.accept(std::vector<TokenId>{-1}); });
  }
  Sampler sampler(options, 4, device());
  EXPECT_THROW(sampler.accept(std::vector<TokenId>{0, 4}), Error);
  EXPECT_EQ(sampler.sample(logits({1, 0.5F, 0, 0})).item<std::uint32_t>(), 0U);
}

TEST_P(Samplers, BiasesAreAddedFirst) {
  SamplingOptions options = greedy();
  options.logit_bias = {{2, 3.0F}, {0, -kInf}};
  EXPECT_EQ(token(options, {9, 1, 1, 2}), 2U);
  options.repetition_penalty = 4;
  Sampler sampler(options, 4, device());
  sampler.accept(std::vector<TokenId>{2});
  EXPECT_EQ(sampler.sample(logits({9, 1, 1, 2})).item<std::uint32_t>(), 3U);  // (1 + 3) / 4
}

// ---- values

TEST_P(Samplers, ACopyGoesOnByItself) {
  SamplingOptions options = plain();
  options.frequency_penalty = 0.5;
  options.seed = 7;
  const Tensor x = logits(random_logits(300, 4));
  Sampler first(options, 300, device());
  draw(first, x, 5);
  Sampler second = first;
  Sampler third = std::move(first);
  const Tokens expected = draw(second, x, 10);
  EXPECT_EQ(draw(first, x, 10), expected);  // as it was, though it was moved from
  EXPECT_EQ(draw(third, x, 10), expected);
  third.reset();
  second = third;
  EXPECT_EQ(draw(second, x, 5), draw(third, x, 5));
  EXPECT_NE(draw(first, x, 10), draw(second, x, 10));
}

TEST_P(Samplers, ResetStartsAnew) {
  SamplingOptions options;
  options.presence_penalty = 50;
  options.seed = 99;
  const Tensor x = logits(random_logits(100, 2, 1));
  Sampler sampler(options, 100, device());
  const Tokens first = draw(sampler, x, 8);
  sampler.reset();
  sampler.accept(std::vector<TokenId>{static_cast<TokenId>(first[0])});
  EXPECT_NE(draw(sampler, x, 8), first);
  sampler.reset();
  EXPECT_EQ(draw(sampler, x, 8), first);
  EXPECT_EQ(sampler.device().location(), device().location());
}

TEST_P(Samplers, SeedsGiveDifferentTokens) {
  SamplingOptions options = plain(5);
  const Tensor x = logits(random_logits(1000, 6, 1));
  std::vector<Tokens> seen;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 40}) {
    options.seed = seed;
    Sampler sampler(options, 1000, device());
    seen.push_back(draw(sampler, x, 6));
  }
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[2]);
  EXPECT_NE(seen[1], seen[2]);
}

// ---- several rows

TEST_P(Samplers, RowsAreAsIfAlone) {
  const std::int64_t n = 130, size = 97;  // more than a launch has
  const std::vector<float> values = random_logits(n * size, 3);
  std::vector<Sampler> together, alone;
  for (std::int64_t i = 0; i < n; ++i) {
    SamplingOptions options = i % 3 == 0 ? greedy() : i % 3 == 1 ? plain() : SamplingOptions();
    options.seed = static_cast<std::uint64_t>(i);
    options.presence_penalty = i % 2 == 0 ? 0 : 0.5;
    if (i % 5 == 0) options.logit_bias = {{3, 1.0F}};
    together.emplace_back(options, size, device());
    alone.emplace_back(options, size, Device::cpu());
  }
  std::vector<Sampler*> pointers;
  for (Sampler& sampler : together) pointers.push_back(&sampler);
  const Tensor x = Tensor::from(values, {n, size}, device());
  const Tensor there = Tensor::from(values, {n, size});
  for (int step = 0; step < 2; ++step) {
    const Tensor tokens = Sampler::sample(pointers, x);
    EXPECT_EQ(tokens.shape(), Shape{n});
    EXPECT_EQ(tokens.dtype(), DType::U32);
    EXPECT_EQ(tokens.location(), device().location());
    const Tokens got = tokens.to_vector<std::uint32_t>();
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(got[at], alone[at].sample(there.get(i)).item<std::uint32_t>()) << i;
    }
  }
  EXPECT_EQ(Sampler::sample({}, x.narrow(0, 0, 0)).shape(), Shape{0});
}

TEST_P(Samplers, LogitsInAnyLayout) {
  const std::vector<float> values = random_logits(6 * 50, 3);
  const Tensor across = Tensor::from(values, {50, 6}, device()).t();  // (6, 50)
  for (std::int64_t r = 0; r < 6; ++r) {
    Sampler sampler(greedy(), 50, device());
    std::uint32_t best = 0;
    const auto at = [&](std::uint32_t i) { return values[i * 6 + static_cast<std::size_t>(r)]; };
    for (std::uint32_t i = 1; i < 50; ++i) best = at(i) > at(best) ? i : best;
    EXPECT_EQ(sampler.sample(across.get(r)).item<std::uint32_t>(), best);
    EXPECT_EQ(sampler.sample(across.narrow(0, r, 1)).item<std::uint32_t>(), best);
  }
}

TEST_P(Samplers, WhatDoesNotGoTogetherIsRefused) {
  Sampler sampler(SamplingOptions(), 8, device()), other(greedy(), 8, device());
  const Tensor x = logits(random_logits(8, 1));
  expect_error(ErrorKind::ShapeMismatch,
               "sample: the sampler's vocabulary has 8 tokens, and the logits have shape (1, 7)",
               [&] { sampler.sample(x.narrow(0, 0, 7)); });
  expect_error(ErrorKind::ShapeMismatch, "logits of 1 samplers must have as many rows",
               [&] { sampler.sample(x.view({2, 4})); });
  expect_error(ErrorKind::ShapeMismatch, "have shape ()", [&] { sampler.sample(x.get(0)); });
  const Tensor two = Tensor::zeros({2, 8}, DType::F32, device());
  const auto both = [&](Sampler* a, Sampler* b) {
    const std::vector<Sampler*> list = {a, b};
    Sampler::sample(list, two);
  };
  expect_error(ErrorKind::BadArgument, "sample: a sampler is there twice",
               [&] { both(&sampler, &sampler); });
  expect_error(ErrorKind::BadArgument, "sample: a sampler is null",
               [&] { both(&sampler, nullptr); });
  expect_error(ErrorKind::Unsupported, "sample: logits must be f32, and are f16",
               [&] { sampler.sample(Tensor::zeros({8}, DType::F16, device())); });
  if (!device().is_cpu()) {
    expect_error(ErrorKind::WrongDevice, "sample: the sampler is on " + device().text(),
                 [&] { sampler.sample(Tensor::zeros({8}, DType::F32)); });
  }
  both(&sampler, &other);
}

TEST_P(Samplers, BadOptionsAreNamed) {
  const auto refuse = [&](const std::string& text, const std::function<void(SamplingOptions&)>& set,
                          std::int64_t vocabulary = 10) {
    SamplingOptions options;
    set(options);
    expect_error(ErrorKind::BadArgument, "sampling: " + text,
                 [&] { Sampler(options, vocabulary, device()); });
  };
  refuse("temperature is -0.1, and must be a number of 0 or more",
         [](auto& o) { o.temperature = -0.1; });
  refuse("temperature is nan", [](auto& o) { o.temperature = std::nan(""); });
  refuse("temperature is inf", [](auto& o) { o.temperature = HUGE_VAL; });
  refuse("top_k is -1", [](auto& o) { o.top_k = -1; });
  refuse("top_p is 0, and must be above 0 and at most 1", [](auto& o) { o.top_p = 0; });
  refuse("top_p is 1.01", [](auto& o) { o.top_p = 1.01; });
  refuse("top_p is nan", [](auto& o) { o.top_p = std::nan(""); });
  refuse("min_p is -1", [](auto& o) { o.min_p = -1; });
  refuse("min_p is 2", [](auto& o) { o.min_p = 2; });
  refuse("typical_p is 0", [](auto& o) { o.typical_p = 0; });
  refuse("typical_p is nan", [](auto& o) { o.typical_p = std::nan(""); });
  refuse("repetition_penalty is 0", [](auto& o) { o.repetition_penalty = 0; });
  refuse("repetition_penalty is 1e+39", [](auto& o) { o.repetition_penalty = 1e39; });
  refuse("presence_penalty is inf", [](auto& o) { o.presence_penalty = HUGE_VAL; });
  refuse("frequency_penalty is nan", [](auto& o) { o.frequency_penalty = std::nan(""); });
  refuse("penalty_window is -2, and must be -1 for all", [](auto& o) { o.penalty_window = -2; });
  refuse("penalty_window is 16777217",
         [](auto& o) { o.penalty_window = SamplingOptions::kMostWindow + 1; });
  refuse("logit_bias is for token -3", [](auto& o) { o.logit_bias = {{-3, 1.0F}}; });
  refuse("logit_bias is for token 10, and must be for a token of the 10",
         [](auto& o) { o.logit_bias = {{10, 1.0F}}; });
  refuse("logit_bias is there twice for token 2",
         [](auto& o) { o.logit_bias = {{2, 1.0F}, {2, 2.0F}}; });
  refuse("logit_bias is nan for token 1", [](auto& o) { o.logit_bias = {{1, kNan}}; });
  refuse("vocabulary is 0", [](auto&) {}, 0);
  refuse("vocabulary is -5", [](auto&) {}, -5);
  refuse("vocabulary is 4194305", [](auto&) {}, Sampler::kMostTokens + 1);
}

TEST_P(Samplers, TheLimitsOfOptionsWork) {
  const std::vector<float> values = {1, 3, 2, 3};
  SamplingOptions options;
  options.min_p = 1;
  options.top_k = 1000;
  options.penalty_window = SamplingOptions::kMostWindow;  // nothing is penalised: takes no memory
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    options.seed = seed;
    const std::uint32_t chosen = token(options, values);
    EXPECT_TRUE(chosen == 1 || chosen == 3);
  }
  options = plain(std::numeric_limits<float>::max());
  EXPECT_LT(token(options, values), 4U);
  options = plain(1e-7);
  EXPECT_TRUE(token(options, values) % 2 == 1);
}

// ---- memory

TEST_P(Samplers, SamplingTakesNoMoreMemory) {
  SamplingOptions options;
  options.presence_penalty = 0.5;
  options.logit_bias = {{1, 1.0F}};
  Sampler sampler(options, 5000, device());
  const Tensor x = logits(random_logits(5000, 1));
  sampler.sample(x);
  device().synchronize();
  const PoolStatistics first = device().pool();
  for (int i = 0; i < 20; ++i) sampler.sample(x);
  device().synchronize();
  const PoolStatistics last = device().pool();
  EXPECT_EQ(last.live_bytes, first.live_bytes);
  EXPECT_EQ(last.reserved_bytes, first.reserved_bytes);
  EXPECT_EQ(last.allocations - first.allocations, 20U);  // of the tokens
}

TEST_P(Samplers, WithoutPenaltiesTheStateIsSmall) {
  const Sampler sampler(SamplingOptions(), 150000, device());
  EXPECT_LT(device().pool().live_bytes - before_.live_bytes, 1024U);
  SamplingOptions options;
  options.frequency_penalty = 1;
  const Sampler counting(options, 150000, device());
  const Sampler copy = counting;  // shares
  EXPECT_LT(device().pool().live_bytes - before_.live_bytes, 150000U * 4 + 2048);
}

TEST_P(Samplers, AfterAFailedAllocationTheyAreAsTheyWere) {
  SamplingOptions options = plain(2);
  options.frequency_penalty = 0.3;
  const std::int64_t size = 1 << 20;
  const Tensor x = logits(random_logits(size, 1));
  Sampler sampler(options, size, device()), twin(options, size, device());
  const Tokens expected = draw(twin, x, 3);
  const Sampler held = sampler;  // a write has to detach
  test::FaultyDriver driver(device().kind());
  device().trim();
  driver.fail_from(1, 1000);
  EXPECT_THROW(sampler.sample(x), OutOfMemory);
  EXPECT_THROW(sampler.accept(std::vector<TokenId>{1}), OutOfMemory);
  EXPECT_THROW(sampler.reset(), OutOfMemory);
  EXPECT_THROW(Sampler(options, size, device()), OutOfMemory);
  driver.fail_from(0);
  EXPECT_EQ(draw(sampler, x, 3), expected);
  Sampler again = held;
  EXPECT_EQ(draw(again, x, 3), expected);
}

}  // namespace
}  // namespace tl
