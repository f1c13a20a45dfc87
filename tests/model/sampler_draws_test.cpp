// What samplers draw: the right distributions, and the same tokens on every device.
#include <gtest/gtest.h>

#include <map>

#include "model/sampling.h"
#include "support/on_every_device.h"
#include "support/sim_guard.h"

namespace tl {
namespace {

using test::distribution;
using test::kInf;
using test::kNan;
using test::Named;
using test::option_sets;
using test::plain;
using test::random_logits;

// Tokens of `rows` samplers with the seeds 0, 1, 2 ... for the same logits, `steps` times.
std::vector<std::uint32_t> draw(const Device& device, SamplingOptions options,
                                const std::vector<float>& logits, int rows, int steps = 1,
                                const std::vector<TokenId>& prompt = {}) {
  const auto count = static_cast<std::int64_t>(logits.size());
  std::vector<Sampler> samplers;
  std::vector<Sampler*> pointers;
  samplers.reserve(static_cast<std::size_t>(rows));
  for (int r = 0; r < rows; ++r) {
    options.seed = static_cast<std::uint64_t>(r);
    pointers.push_back(&samplers.emplace_back(options, count, device));
    samplers.back().accept(prompt);
  }
  const Tensor all = Tensor::from(logits, {1, count}, device).broadcast_as({rows, count});
  std::vector<std::uint32_t> tokens;
  for (int s = 0; s < steps; ++s) {
    const auto more = Sampler::sample(pointers, all).to_vector<std::uint32_t>();
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

// Pearson's test. Tokens that are expected less than five times are counted together.
void expect_distribution(const std::vector<std::uint32_t>& tokens, const std::vector<double>& p,
                         const std::string& what) {
  std::vector<double> seen(p.size(), 0.0);
  for (const std::uint32_t token : tokens) {
    ASSERT_LT(token, p.size()) << what;
    ASSERT_GT(p[token], 0) << what << ": token " << token << " must not come";
    seen[token] += 1;
  }
  const auto draws = static_cast<double>(tokens.size());
  double chi = 0, rare_seen = 0, rare_expected = 0, kinds = 0;
  const auto add = [&](double count, double expected) {
    chi += (count - expected) * (count - expected) / expected;
    kinds += 1;
  };
  for (std::size_t id = 0; id < p.size(); ++id) {
    if (p[id] * draws >= 5) {
      add(seen[id], p[id] * draws);
    } else {
      rare_seen += seen[id];
      rare_expected += p[id] * draws;
    }
  }
  if (rare_expected > 0) add(rare_seen, std::max(rare_expected, 1.0));
  EXPECT_LT(chi, kinds + 4 * std::sqrt(2 * kinds) + 6) << what << " with " << kinds << " kinds";
}

class SamplerDraws : public test::OnEveryDevice {
 protected:
  // The simulated GPU takes its time.
  bool is_real() const { return device().is_cpu() || test::simulated_drivers().empty(); }
};
TL_ON_EVERY_DEVICE(SamplerDraws);

TEST_P(SamplerDraws, EveryOptionAloneAndTogether) {
  const int steps = is_real() ? 60 : 4;
  const std::vector<TokenId> prompt = {4, 9, 0, 4, 4};  // the window of "all" has 0, 4, 4
  for (const auto& [name, options] : option_sets()) {
    if (options.is_greedy()) continue;
    const std::vector<float> logits = random_logits(40, 11, 2);
    // Samplers with penalties change by what they draw; the first token alone is looked at.
    const bool once = options.repetition_penalty != 1;
    const auto p = distribution(logits, options, once ? std::vector<TokenId>{0, 4, 4} : prompt);
    const auto tokens = once ? draw(device(), options, logits, 64 * steps, 1, prompt)
                             : draw(device(), options, logits, 64, steps, prompt);
    expect_distribution(tokens, p, name);
  }
}

TEST_P(SamplerDraws, PenaltiesOneByOne) {
  const std::vector<float> logits = {1.5F, -1, 0, 2, 0.5F};
  const std::vector<TokenId> last = {3, 3, 0, 1};
  const auto look = [&](const char* name, auto&& change) {
    SamplingOptions options = plain();
    change(options);
    const auto tokens = draw(device(), options, logits, is_real() ? 4000 : 256, 1, last);
    expect_distribution(tokens, distribution(logits, options, last), name);
  };
  look("repetition", [](SamplingOptions& o) { o.repetition_penalty = 2; });
  look("repetition below 1", [](SamplingOptions& o) { o.repetition_penalty = 0.5; });
  look("presence", [](SamplingOptions& o) { o.presence_penalty = 1; });
  look("frequency", [](SamplingOptions& o) { o.frequency_penalty = 0.7; });
  look("negative", [](SamplingOptions& o) { o.presence_penalty = -1; });
  look("everything", [](SamplingOptions& o) {
    o.frequency_penalty = 0.7;
    o.penalty_window = -1;
  });
}

TEST_P(SamplerDraws, AWholeVocabularyWithoutTopK) {
  const std::vector<float> logits = random_logits(3000, 5, 2);
  for (const auto& [name, options] : option_sets()) {
    if (options.top_k != 0) continue;
    expect_distribution(draw(device(), options, logits, 64, is_real() ? 20 : 1),
                        distribution(logits, options), name);
  }
}

TEST_P(SamplerDraws, SuccessiveTokensAreIndependent) {
  if (!is_real()) GTEST_SKIP() << "needs many draws; the tokens are the CPU's";
  const std::vector<float> logits = {0, 0};
  const auto tokens = draw(device(), plain(), logits, 50, 200);
  int pairs[2][2] = {};
  for (std::size_t i = 50; i < tokens.size(); ++i) ++pairs[tokens[i - 50]][tokens[i]];
  for (const auto& row : pairs) {
    for (const int count : row) EXPECT_NEAR(count, 199 * 50 / 4, 250);
  }
}

// ---- against the CPU

struct Case {
  std::int64_t size;
  int rows;
  int steps;
};

TEST_P(SamplerDraws, AreTheCpusTokensForEverySize) {
  if (device().is_cpu()) GTEST_SKIP() << "this is the CPU";
  for (const Case& c : {Case{1, 2, 2}, Case{2, 8, 3}, Case{31, 8, 4}, Case{33, 8, 4},
                        Case{511, 4, 2}, Case{1027, 4, 2}, Case{32000, 2, 1}}) {
    const std::vector<float> logits = random_logits(c.size, static_cast<unsigned>(c.size));
    for (auto [name, options] : option_sets()) {
      if (c.size == 1) options.logit_bias.clear();
      EXPECT_EQ(draw(device(), options, logits, c.rows, c.steps, {0}),
                draw(Device::cpu(), options, logits, c.rows, c.steps, {0}))
          << name << " of " << c.size;
    }
  }
}

// Every kernel and every way through them, for emulators that take minutes over the others.
TEST_P(SamplerDraws, SweepOfKernels) {
  std::vector<float> logits = random_logits(600, 2);
  std::fill(logits.begin() + 20, logits.end(), logits[0]);  // too many for a list
  for (const auto& [name, options] : option_sets()) {
    EXPECT_EQ(draw(device(), options, logits, 1, 1, {4, 0}),
              draw(Device::cpu(), options, logits, 1, 1, {4, 0}))
        << name;
  }
  EXPECT_EQ(draw(device(), test::greedy(), logits, 1),
            draw(Device::cpu(), test::greedy(), logits, 1));
}

TEST_P(SamplerDraws, AreTheCpusTokensForALargeVocabulary) {
  if (device().is_cpu()) GTEST_SKIP() << "this is the CPU";
  const std::vector<float> logits = random_logits(151936, 3);
  for (const auto& [name, options] : option_sets()) {
    if (std::string(name) == "cold" || std::string(name) == "top_k 1") continue;
    EXPECT_EQ(draw(device(), options, logits, 1), draw(Device::cpu(), options, logits, 1)) << name;
  }
}

// Logits that leave threads, bins or lists unevenly filled.
std::map<std::string, std::vector<float>> odd_logits() {
  std::map<std::string, std::vector<float>> all;
  const std::int64_t n = 3001;
  all["equal"] = std::vector<float>(n, 1.25F);
  auto& few = all["of few kinds"] = random_logits(n, 8);
  for (float& x : few) x = std::round(x);
  auto& masked = all["masked"] = random_logits(n, 9);
  for (std::size_t i = 0; i < masked.size(); ++i) {
    if (i % 37 != 0) masked[i] = i % 2 == 0 ? -1e9F : -kInf;
  }
  auto& holes = all["with NaN"] = random_logits(n, 10);
  for (std::size_t i = 0; i < holes.size(); i += 3) holes[i] = kNan;
  auto& endless = all["with infinities"] = random_logits(n, 11);
  for (std::size_t i = 5; i < endless.size(); i += 700) endless[i] = kInf;
  all["huge"] = random_logits(n, 12, 1e38F);
  all["tiny"] = random_logits(n, 13, 1e-41F);
  all["close"] = random_logits(n, 14, 1e-3F);
  auto& first = all["one thread's"] = std::vector<float>(n, -20.0F);
  for (std::size_t i = 0; i < 4; ++i) {
    first[i] = static_cast<float>(i);
    first[2048 + i] = static_cast<float>(i) - 1;
  }
  return all;
}

TEST_P(SamplerDraws, AreTheCpusTokensForOddLogits) {
  if (device().is_cpu()) GTEST_SKIP() << "this is the CPU";
  for (const auto& [kind, logits] : odd_logits()) {
    for (const auto& [name, options] : option_sets()) {
      EXPECT_EQ(draw(device(), options, logits, 3), draw(Device::cpu(), options, logits, 3))
          << name << " of " << kind;
    }
  }
}

TEST_P(SamplerDraws, LogitsThatDoNotLieAlignedGiveTheSame) {
  const std::int64_t n = 4099;
  std::vector<float> two = random_logits(2 * n + 1, 21);
  const Tensor rows = Tensor::from(two, {2 * n + 1}, device());
  const SamplingOptions options;
  for (const std::int64_t start : {std::int64_t{0}, std::int64_t{1}, n}) {
    Sampler here(options, n, device()), there(options, n, Device::cpu());
    const auto from = two.begin() + start;
    EXPECT_EQ(here.sample(rows.narrow(0, start, n)).item<std::uint32_t>(),
              there.sample(Tensor::from(std::vector<float>(from, from + n), Device::cpu()))
                  .item<std::uint32_t>());
  }
}

}  // namespace
}  // namespace tl
