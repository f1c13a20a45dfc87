// What goes wrong with one request ends that request, says what it was, and leaves the others.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/random_model.h"
#include "support/faulty_driver.h"
#include "support/on_every_device.h"
#include "tl/model/engine.h"
#include "tl/runtime/report.h"

namespace tl {
namespace {

using test::Ids;

GenerationRequest asked(const Ids& prompt, std::int64_t tokens = 6) {
  GenerationRequest request;
  request.prompt = prompt;
  request.sampling.temperature = 0;
  request.max_tokens = tokens;
  request.ignore_end_tokens = true;
  return request;
}

class EngineFailure : public test::OnEveryDevice {
 protected:
  void SetUp() override {
    device().synchronize();
    before_ = device().pool();
  }
  void TearDown() override { expect_baseline("at the end"); }
  void expect_baseline(const std::string& when) const {
    device().synchronize();
    EXPECT_EQ(device().pool().live_bytes, before_.live_bytes) << when << memory_report().text();
    EXPECT_EQ(device().pinned_pool().live_blocks, 0U) << when;
  }
  Engine engine(const test::RandomModel& shape = {}, const DecoderOptions& how = {}) const {
    const std::string path = test::write_random_model(folder_.file("m.gguf"), shape);
    const GgufFile file = GgufFile::open(path);
    return {Decoder(file, ModelWeights::load(file, device()), how),
            Tokenizer::from_gguf(file),
            {.sequences = 4, .step_tokens = 0}};
  }

  test::Folder folder_;
  PoolStatistics before_;
};
TL_ON_EVERY_DEVICE(EngineFailure);

TEST_P(EngineFailure, ABadRequestHasItsErrorAndTheOthersTheirText) {
  Engine engine = this->engine({}, {.cache = KvType::F16, .context = 64, .chunk = 512});
  const Ids good{1, 40, 50, 60};
  const GenerationResult expected = engine.generate(asked(good));
  ASSERT_EQ(expected.reason, FinishReason::Length) << expected.message;

  std::vector<std::pair<GenerationRequest, std::string>> bad;
  bad.emplace_back(asked({}), "generate: the prompt is empty");
  bad.emplace_back(asked({1, 288}), "generate: there is no token 288; the model has 288");
  bad.emplace_back(asked({1, -1}), "there is no token -1");
  bad.emplace_back(asked(Ids(65, 5)), "the prompt has 65 tokens, and the context holds 64");
  bad.emplace_back(asked(good, -2), "cannot have -2 tokens");
  bad.emplace_back(asked(good), "a stop string is empty");
  bad.back().first.stop = {"x", ""};
  bad.emplace_back(asked(good), "a shift cannot keep -1 tokens");
  bad.back().first.keep = -1;
  bad.emplace_back(asked(good), "the disk is full");
  bad.back().first.on_text = [](std::string_view) -> bool {
    throw std::runtime_error("the disk is full");
  };
  bad.emplace_back(asked(good), "the cache is not one of this model");
  bad.back().first.cache =
      KvCache(device(), {.layers = 1, .heads = 1, .key_size = 32, .value_size = 32}, 64);
  std::vector<std::string> messages;
  for (auto& [request, message] : bad) {
    engine.submit(std::move(request));
    engine.submit(asked(good));
    messages.push_back(message);
  }
  const std::vector<GenerationResult> results = engine.run();
  ASSERT_EQ(results.size(), 2 * messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(results[2 * i].reason, FinishReason::Error) << messages[i];
    EXPECT_TRUE(results[2 * i].error);
    EXPECT_NE(results[2 * i].message.find(messages[i]), std::string::npos)
        << results[2 * i].message;
    EXPECT_EQ(results[2 * i + 1].tokens, expected.tokens) << "after: " << messages[i];
  }
}

TEST_P(EngineFailure, AVocabularyLargerThanTheModelIsRefused) {
  const auto file = [&](std::int64_t vocabulary) {
    test::RandomModel shape;
    shape.vocabulary = vocabulary;
    return GgufFile::open(test::write_random_model(folder_.file("v.gguf"), shape));
  };
  const Decoder decoder(file(288), ModelWeights::load(file(288), device()));
  test::expect_error(ErrorKind::BadFile,
                     "the vocabulary has 290 tokens, but the model has numbers for 288",
                     [&] { Engine(decoder, Tokenizer::from_gguf(file(290))); });
  // Rows beyond the vocabulary fill a block and stand for no text.
  GenerationRequest request = asked({1, 40});
  request.sampling.logit_bias = {{287, 1000.0F}};
  const GenerationResult result =
      Engine(decoder, Tokenizer::from_gguf(file(280))).generate(std::move(request));
  EXPECT_EQ(result.tokens, Ids(6, 287)) << result.message;
  EXPECT_EQ(result.text, "");
}

TEST_P(EngineFailure, BadOptionsAreRefused) {
  const GgufFile file = GgufFile::open(test::write_random_model(folder_.file("m.gguf")));
  const Decoder decoder(file, ModelWeights::load(file, device()));
  const Tokenizer tokenizer = Tokenizer::from_gguf(file);
  for (const EngineOptions& options : {EngineOptions{0, 0}, EngineOptions{1, -1}}) {
    test::expect_error(ErrorKind::BadArgument, "room for one sequence",
                       [&] { Engine(decoder, tokenizer, options); });
  }
}

// Whatever allocation fails: every request has a result, those without an error have the right
// text, and nothing is left behind.
TEST_P(EngineFailure, OutOfMemoryAnywhereEndsWhatItHitAndLeaksNothing) {
  const std::vector<Ids> prompts{{1, 40, 50, 60}, Ids(70, 9), {1, 7, 7}};
  std::vector<Ids> expected;
  {
    Engine engine = this->engine();
    for (const Ids& prompt : prompts) expected.push_back(engine.generate(asked(prompt)).tokens);
  }
  int failed = 0;
  int fine = 0;
  for (int n = 1;; n += n < 40 ? 1 : 7) {
    bool reached = false;
    {
      Engine engine = this->engine();
      for (const Ids& prompt : prompts) engine.submit(asked(prompt));
      device().trim();  // so that the pool has to ask the driver
      test::FaultyDriver faulty(GetParam().kind);
      faulty.fail_from(n, 3);
      const std::vector<GenerationResult> results = engine.run();
      reached = faulty.reached();
      ASSERT_EQ(results.size(), prompts.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].error) {
          ++failed;
          EXPECT_NE(results[i].message.find("has no room for"), std::string::npos)
              << results[i].message;
        } else {
          ++fine;
          EXPECT_EQ(results[i].tokens, expected[i]) << "failure " << n << ", request " << i;
        }
      }
    }
    expect_baseline(join("after failure ", n, ": "));
    if (!reached) break;
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(fine, 0);
}

}  // namespace
}  // namespace tl
