// The engine with a model of random weights, on every device.
#include "tl/model/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/random_model.h"
#include "support/on_every_device.h"
#include "tl/base/text.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using test::Ids;

SamplingOptions greedy() {
  SamplingOptions options;
  options.temperature = 0;
  return options;
}

class EngineTest : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    device().synchronize();
    before_ = device().pool();
    path_ = test::write_random_model(folder_.file("m.gguf"));
  }
  void TearDown() override {
    device().synchronize();
    const PoolStatistics now = device().pool();
    EXPECT_EQ(now.live_bytes, before_.live_bytes) << memory_report().text();
    EXPECT_EQ(now.mapped_bytes, before_.mapped_bytes);
    EXPECT_EQ(device().pinned_pool().live_blocks, 0U);
  }

  Engine engine(const EngineOptions& options = {}, const DecoderOptions& how = {}) const {
    const GgufFile file = GgufFile::open(path_);
    return {Decoder(file, ModelWeights::load(file, device()), how), Tokenizer::from_gguf(file),
            options};
  }
  // Two greedy answers to one prompt. On a GPU several rows go through other products than one
  // does, so answers may part, but only where two logits are as good as equal.
  static void expect_same(const Engine& engine, const Ids& prompt, const Ids& got,
                          const Ids& expected, const std::string& where) {
    if (engine.decoder().device().is_cpu() || got == expected) {
      EXPECT_EQ(got, expected) << where;
      return;
    }
    ASSERT_EQ(got.size(), expected.size()) << where;
    const auto parted = std::mismatch(got.begin(), got.end(), expected.begin());
    Ids common = prompt;
    common.insert(common.end(), got.begin(), parted.first);
    KvCache cache = engine.decoder().new_cache();
    const std::vector<float> logits = engine.decoder().forward(common, cache).to_vector<float>();
    const float most = *std::max_element(logits.begin(), logits.end());
    // What rounding activations to bytes may change in models of random weights.
    constexpr float kTie = 0.4F;
    EXPECT_GT(logits[static_cast<std::size_t>(*parted.first)], most - kTie) << where;
    EXPECT_GT(logits[static_cast<std::size_t>(*parted.second)], most - kTie) << where;
  }
  static GenerationRequest asked(const Ids& prompt, std::int64_t tokens = 12) {
    GenerationRequest request;
    request.prompt = prompt;
    request.sampling = greedy();
    request.max_tokens = tokens;
    request.ignore_end_tokens = true;
    return request;
  }
  // Prompts of different lengths.
  static Ids prompt(int which) {
    Ids out{1};
    for (int i = 0; i < 3 + 7 * which; ++i) out.push_back(3 + (i * 31 + which * 17) % 280);
    return out;
  }

  test::Folder folder_;
  std::string path_;
  PoolStatistics before_;
};
TL_ON_EVERY_DEVICE(EngineTest);

TEST_P(EngineTest, GreedyIsTheArgumentOfTheLargestLogit) {
  Engine engine = this->engine();
  const Ids start = prompt(1);
  const GenerationResult result = engine.generate(asked(start, 6));
  ASSERT_EQ(result.reason, FinishReason::Length) << result.message;
  Ids all = start;
  for (const TokenId token : result.tokens) {
    KvCache cache = engine.decoder().new_cache();
    const std::vector<float> logits = engine.decoder().forward(all, cache).to_vector<float>();
    EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
    all.push_back(token);
  }
  EXPECT_EQ(result.sequence, all);
  EXPECT_EQ(result.tokens.size(), 6U);
  EXPECT_EQ(result.statistics.prompt_tokens, std::ssize(start));
  EXPECT_EQ(result.statistics.generated_tokens, 6);
  EXPECT_GT(result.statistics.prompt_speed(), 0);
  EXPECT_GT(result.statistics.answer_speed(), 0);
  TextStream stream(engine.tokenizer());
  std::string text;
  for (const TokenId token : result.tokens) text += stream.push(token);
  EXPECT_EQ(result.text, text + stream.flush());
}

// Steps of one token each, the way an answer is written: on a GPU the token goes from the sampler
// to the next step without the host, which finds out about the end a step late.
TEST_P(EngineTest, TokensFollowEachOther) {
  Engine engine = this->engine({.sequences = 1, .step_tokens = 1});
  GenerationRequest request = asked(prompt(1), 10);
  request.keep_cache = true;
  const GenerationResult result = engine.generate(std::move(request));
  ASSERT_EQ(result.reason, FinishReason::Length) << result.message;
  KvCache cache = engine.decoder().new_cache();
  Ids all;
  TokenId best = 0;
  for (const TokenId token : result.sequence) {
    all.push_back(token);
    if (all.size() > prompt(1).size()) {
      EXPECT_EQ(token, best) << "token " << all.size();
    }
    const std::vector<float> logits =
        engine.decoder().forward(std::span(&token, 1), cache).to_vector<float>();
    best = static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  EXPECT_EQ(result.cache.length(), std::ssize(result.sequence) - 1);
}

TEST_P(EngineTest, TellsHowMuchOfAPromptIsRead) {
  Engine engine = this->engine({.sequences = 2, .step_tokens = 8});
  GenerationRequest request = asked(prompt(3), 2);  // 25 tokens
  std::vector<std::int64_t> heard;
  request.on_prompt = [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(total, std::ssize(prompt(3)));
    heard.push_back(done);
  };
  EXPECT_EQ(engine.generate(std::move(request)).reason, FinishReason::Length);
  EXPECT_EQ(heard, (std::vector<std::int64_t>{8, 16, 24, 25}));

  GenerationRequest failing = asked(prompt(1), 2);
  failing.on_prompt = [](std::int64_t, std::int64_t) { throw std::runtime_error("no more"); };
  const GenerationResult failed = engine.generate(std::move(failing));
  EXPECT_EQ(failed.reason, FinishReason::Error);
  EXPECT_EQ(failed.message, "no more");
}

TEST_P(EngineTest, ARequestMayBeginWithWhatAnotherHasComputed) {
  Engine engine = this->engine({.sequences = 2, .step_tokens = 0});
  const Ids first = prompt(12);
  Ids second = first;
  second.resize(70);
  second.push_back(5);
  const Ids alone = engine.generate(asked(second)).tokens;
  EXPECT_EQ(engine.fork_prefix(second).length(), 0);  // nothing runs
  engine.submit(asked(first, 40));
  engine.step();
  engine.step();
  GenerationRequest request = asked(second);
  request.cache = engine.fork_prefix(second);
  EXPECT_EQ(request.cache.length(), 70);
  EXPECT_EQ(engine.fork_prefix(Ids{2, 3}).length(), 0);  // begins otherwise
  const GenerationResult result = engine.generate(std::move(request));
  EXPECT_EQ(result.statistics.reused_tokens, 70);
  expect_same(engine, second, result.tokens, alone, "with a shared start");
  engine.run();
}

TEST_P(EngineTest, HowPromptsAreCutDoesNotMatter) {
  Ids expected;
  for (const std::int64_t step : {0, 1, 3, 64}) {
    const GenerationResult result =
        engine({.sequences = 1, .step_tokens = step}).generate(asked(prompt(3), 8));
    ASSERT_EQ(result.reason, FinishReason::Length) << result.message;
    if (expected.empty()) expected = result.tokens;
    EXPECT_EQ(result.tokens, expected) << "in steps of " << step;
  }
}

TEST_P(EngineTest, SeveralAtOnceAreAsOneByOne) {
  std::vector<GenerationResult> alone;
  for (int i = 0; i < 5; ++i) {
    alone.push_back(engine().generate(asked(prompt(i), 4 + 3 * i)));
  }
  for (const std::int64_t sequences : {1, 2, 5}) {
    Engine engine = this->engine({.sequences = sequences, .step_tokens = 16});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(engine.submit(asked(prompt(i), 4 + 3 * i)), i + 1U);
    EXPECT_EQ(engine.queued(), 5U);
    const std::vector<GenerationResult> together = engine.run();
    ASSERT_EQ(together.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(together[i].id, i + 1);
      expect_same(engine, prompt(static_cast<int>(i)), together[i].tokens, alone[i].tokens,
                  join(sequences, " at once, request ", i));
      if (together[i].tokens == alone[i].tokens) {
        EXPECT_EQ(together[i].text, alone[i].text);
      }
      EXPECT_EQ(together[i].reason, FinishReason::Length) << together[i].message;
    }
    EXPECT_EQ(engine.active(), 0U);
    EXPECT_EQ(engine.cache_bytes(), 0U);
    EXPECT_GE(engine.peak_cache_bytes(), engine.decoder().new_cache().block_bytes());
  }
}

TEST_P(EngineTest, SequencesThatEndGiveTheirBlocksBackAtOnce) {
  Engine engine = this->engine();
  engine.submit(asked(prompt(1), 2));
  engine.submit(asked(prompt(1), 20));
  std::uint64_t most = 0;
  while (engine.step()) {
    most = std::max(most, engine.cache_bytes());
    if (engine.active() == 1) break;
  }
  EXPECT_EQ(most, 2 * engine.decoder().new_cache().block_bytes());
  EXPECT_EQ(engine.cache_bytes(), engine.decoder().new_cache().block_bytes());
  const std::vector<GenerationResult> first = engine.take_results();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].cache.size_bytes(), 0U);
  EXPECT_EQ(engine.run().size(), 1U);
}

TEST_P(EngineTest, ARequestComesInWhileOthersRun) {
  Engine engine = this->engine();
  const Ids late = engine.generate(asked(prompt(2), 5)).tokens;
  bool is_in = false;
  GenerationRequest first = asked(prompt(1), 10);
  first.on_text = [&](std::string_view) {
    if (!std::exchange(is_in, true)) engine.submit(asked(prompt(2), 5));
    return true;
  };
  engine.submit(std::move(first));
  const std::vector<GenerationResult> results = engine.run();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].tokens, late);
}

TEST_P(EngineTest, SubmittedFromAnotherThread) {
  Engine engine = this->engine({.sequences = 2, .step_tokens = 0});
  const Ids expected = engine.generate(asked(prompt(1), 4)).tokens;
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) engine.submit(asked(prompt(1), 4));
    done = true;
  });
  std::size_t count = 0;
  while (!done || engine.step()) {
    if (done) continue;
    engine.step();
  }
  other.join();
  for (const GenerationResult& result : engine.run()) {
    EXPECT_EQ(result.tokens, expected);
    ++count;
  }
  EXPECT_EQ(count, 20U);
}

// The greedy continuations of models made by others, as far as the best token is safely ahead.
TEST_P(EngineTest, GreedyContinuationsOfReferenceModels) {
  if (test::data_folder().empty()) GTEST_SKIP() << "the models of shared/data are not here";
  int compared = 0;
  for (const std::string type : {"f32", "f16", "q8_0", "q4_0", "q4_k_m", "q6_k"}) {
    const test::fs::path model = test::data_folder() / ("tiny-llama-" + type + ".gguf");
    const GgufFile file = GgufFile::open(model.string());
    const auto reference = nlohmann::json::parse(
        test::contents((test::data_folder() / ("tiny-llama-" + type + ".exact.json")).string()));
    // How far correct results are apart (the data's README) in logits, twice.
    const double safe = type == "f32" || type == "f16" ? 0.06 : 1.2;
    Engine engine(Decoder(file, ModelWeights::load(file, device())), Tokenizer::from_gguf(file));
    for (const auto& run : reference["runs"]) {
      const Ids expected = run["greedy"];
      const std::vector<double> margins = run["greedy_margin"];
      const GenerationResult result = engine.generate(asked(run["prompt"], 16));
      ASSERT_EQ(result.tokens.size(), expected.size()) << result.message;
      for (std::size_t i = 0; i < expected.size() && margins[i] > safe; ++i, ++compared) {
        EXPECT_EQ(result.tokens[i], expected[i]) << model << ", token " << i;
      }
    }
  }
  EXPECT_GT(compared, 10);
}

// ---- caches that are kept

TEST_P(EngineTest, AChatComputesOnlyWhatIsNew) {
  Engine engine = this->engine();
  GenerationRequest first = asked(prompt(4), 9);
  first.keep_cache = true;
  GenerationResult turn = engine.generate(std::move(first));
  ASSERT_EQ(turn.reason, FinishReason::Length) << turn.message;
  EXPECT_GE(turn.cache.length(), std::ssize(turn.sequence) - 1);
  EXPECT_LE(turn.cache.length(), std::ssize(turn.sequence));

  Ids second = turn.sequence;
  for (const TokenId token : {5, 77, 260}) second.push_back(token);
  const Ids fresh = engine.generate(asked(second)).tokens;
  GenerationRequest next = asked(second);
  next.cache = std::move(turn.cache);
  const GenerationResult result = engine.generate(std::move(next));
  EXPECT_EQ(result.tokens, fresh);
  EXPECT_GE(result.statistics.reused_tokens, std::ssize(second) - 4);
}

TEST_P(EngineTest, ForksShareTheirPrefix) {
  Engine engine = this->engine();
  Ids common;
  for (int i = 0; i < 70; ++i) common.push_back(3 + (i * 13) % 280);
  KvCache parent = engine.decoder().new_cache();
  engine.decoder().forward(common, parent);
  std::vector<Ids> expected;
  std::vector<GenerationRequest> requests;
  for (TokenId last = 10; last < 14; ++last) {
    requests.push_back(asked(common));
    requests.back().prompt.push_back(last);
    expected.push_back(engine.generate(requests.back()).tokens);
    requests.back().cache = parent.fork();
  }
  const std::uint64_t peak_before = engine.peak_cache_bytes();
  for (GenerationRequest& request : requests) engine.submit(std::move(request));
  const std::vector<GenerationResult> results = engine.run();
  ASSERT_EQ(results.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    Ids whole = common;
    whole.push_back(static_cast<TokenId>(10 + i));
    expect_same(engine, whole, results[i].tokens, expected[i], join("fork ", i));
    EXPECT_EQ(results[i].statistics.reused_tokens, 70);
  }
  // One block for all, and one of its own for each.
  EXPECT_EQ(peak_before, 2 * parent.block_bytes());
  EXPECT_EQ(engine.peak_cache_bytes(), 5 * parent.block_bytes());
  EXPECT_EQ(parent.length(), 70);
}

TEST_P(EngineTest, ACacheThatHoldsTheWholePromptIsCut) {
  Engine engine = this->engine();
  const Ids start = prompt(2);
  KvCache cache = engine.decoder().new_cache();
  engine.decoder().forward(start, cache);
  GenerationRequest request = asked(start);
  request.cache = cache.fork();
  const GenerationResult result = engine.generate(std::move(request));
  EXPECT_EQ(result.statistics.reused_tokens, std::ssize(start) - 1);
  EXPECT_EQ(result.tokens, engine.generate(asked(start)).tokens);
}

// ---- ends

TEST_P(EngineTest, StopStringsEndTheTextAndAreNotShown) {
  Engine engine = this->engine();
  const GenerationResult whole = engine.generate(asked(prompt(2), 24));
  ASSERT_GT(whole.text.size(), 12U);
  for (std::size_t at = 0; at + 5 < whole.text.size(); at += 3) {
    const std::string stop = whole.text.substr(at, 5);  // across tokens
    if (first_invalid_utf8(stop) != stop.size()) continue;
    GenerationRequest request = asked(prompt(2), 24);
    request.stop = {"no such text", stop};
    std::string shown;
    request.on_text = [&](std::string_view text) {
      shown += text;
      return true;
    };
    const GenerationResult result = engine.generate(std::move(request));
    EXPECT_EQ(result.reason, FinishReason::StopString);
    EXPECT_EQ(result.text, whole.text.substr(0, whole.text.find(stop)));
    EXPECT_EQ(shown, result.text);
    EXPECT_LE(result.tokens.size(), whole.tokens.size());
  }
}

TEST_P(EngineTest, EndTokensEndTheText) {
  Engine engine = this->engine();
  GenerationRequest request = asked(prompt(1), 10);
  request.sampling.logit_bias = {{2, 1000.0F}};
  request.ignore_end_tokens = false;
  request.keep_cache = true;
  const GenerationResult result = engine.generate(std::move(request));
  EXPECT_EQ(result.reason, FinishReason::StopToken);
  EXPECT_EQ(result.tokens, Ids{});
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(result.sequence, prompt(1));
  EXPECT_EQ(result.cache.length(), std::ssize(prompt(1)));  // without the end token
  EXPECT_EQ(result.statistics.generated_tokens, 1);
}

TEST_P(EngineTest, NoTokensAreNoTokens) {
  Engine engine = this->engine();
  const GenerationResult result = engine.generate(asked(prompt(1), 0));
  EXPECT_EQ(result.reason, FinishReason::Length);
  EXPECT_EQ(result.tokens, Ids{});
  EXPECT_EQ(engine.generate(asked(prompt(1), 1)).tokens.size(), 1U);
}

TEST_P(EngineTest, CancelEndsOneAndLeavesTheOthers) {
  Engine engine = this->engine({.sequences = 2, .step_tokens = 0});
  const Ids expected = engine.generate(asked(prompt(1), 10)).tokens;
  const RequestId running = engine.submit(asked(prompt(2), 50));
  const RequestId other = engine.submit(asked(prompt(1), 10));
  const RequestId waiting = engine.submit(asked(prompt(3), 50));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(engine.step());
  engine.cancel(running);
  engine.cancel(waiting);
  engine.cancel(12345);  // of nobody
  const std::vector<GenerationResult> results = engine.run();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].reason, FinishReason::Cancelled);
  EXPECT_GT(results[0].tokens.size(), 0U);
  EXPECT_LT(results[0].tokens.size(), 6U);
  EXPECT_EQ(results[1].id, other);
  EXPECT_EQ(results[1].tokens, expected);
  EXPECT_EQ(results[2].reason, FinishReason::Cancelled);
  EXPECT_EQ(results[2].tokens, Ids{});

  engine.submit(asked(prompt(1), 50));
  engine.submit(asked(prompt(2), 50));
  engine.step();
  engine.cancel_all();
  EXPECT_FALSE(engine.step());
  EXPECT_EQ(engine.run().size(), 2U);
}

TEST_P(EngineTest, TheCallbackMayEndIt) {
  Engine engine = this->engine();
  GenerationRequest request = asked(prompt(2), 50);
  int calls = 0;
  request.on_text = [&](std::string_view) { return ++calls < 3; };
  const GenerationResult result = engine.generate(std::move(request));
  EXPECT_EQ(result.reason, FinishReason::Cancelled);
  EXPECT_EQ(calls, 3);
  EXPECT_LT(result.tokens.size(), 50U);
}

TEST_P(EngineTest, AnEngineMayBeDroppedInTheMiddle) {
  Engine engine = this->engine();
  engine.submit(asked(prompt(2), 50));
  engine.submit(asked(prompt(1), 50));
  for (int i = 0; i < 3; ++i) engine.step();
}

// ---- a full context

TEST_P(EngineTest, AFullContextIsTheEnd) {
  Engine engine = this->engine({}, {.cache = KvType::F16, .context = 24, .chunk = 512});
  const Ids start = prompt(1);
  const GenerationResult result = engine.generate(asked(start, -1));
  EXPECT_EQ(result.reason, FinishReason::Length);
  EXPECT_EQ(std::ssize(result.sequence), 25);  // the last one needs no position
  EXPECT_EQ(result.statistics.shifts, 0);
}

TEST_P(EngineTest, AShiftForgetsTheOldestAndComputesTheRestAgain) {
  constexpr std::int64_t kContext = 24;
  constexpr std::int64_t kKeep = 4;
  Engine engine = this->engine({}, {.cache = KvType::F16, .context = kContext, .chunk = 512});
  GenerationRequest request = asked(prompt(1), 40);
  request.context = ContextPolicy::Shift;
  request.keep = kKeep;
  const GenerationResult result = engine.generate(std::move(request));
  EXPECT_EQ(result.reason, FinishReason::Length) << result.message;
  EXPECT_EQ(result.tokens.size(), 40U);
  EXPECT_GE(result.statistics.shifts, 2);

  // The same by hand, from nothing each time.
  Ids all = prompt(1);
  for (const TokenId token : result.tokens) {
    KvCache cache = engine.decoder().new_cache();
    if (std::ssize(all) > kContext) {
      const auto drop = (std::ssize(all) - kKeep) / 2;
      all.erase(all.begin() + kKeep, all.begin() + kKeep + drop);
    }
    const std::vector<float> logits = engine.decoder().forward(all, cache).to_vector<float>();
    EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
    all.push_back(token);
  }
  EXPECT_EQ(result.sequence, all);
}

TEST_P(EngineTest, AShiftThatCanForgetNothingIsTheEnd) {
  Engine engine = this->engine({}, {.cache = KvType::F16, .context = 24, .chunk = 512});
  GenerationRequest request = asked(prompt(1), 40);
  request.context = ContextPolicy::Shift;
  request.keep = 24;
  EXPECT_EQ(engine.generate(std::move(request)).reason, FinishReason::Length);
}

}  // namespace
}  // namespace tl
