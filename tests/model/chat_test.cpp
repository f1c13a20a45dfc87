// Chats as values, with a model of random weights: what is said is nonsense, but the same each
// time.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <utility>

#include "model/random_model.h"
#include "support/on_every_device.h"
#include "tl/model/chat.h"
#include "tl/model/decoder.h"
#include "tl/model/weights.h"

namespace tl::test {
namespace {

class Chats : public testing::Test {
 protected:
  Chats()
      : path_(write_random_model(testing::TempDir() + "chat_model.gguf")), engine_(open(path_)) {}
  ~Chats() override { std::remove(path_.c_str()); }

  static Engine open(const std::string& path) {
    const GgufFile file = GgufFile::open(path);
    return {Decoder(file, ModelWeights::load(file, Device::cpu())),
            Tokenizer::from_gguf(file),
            {.sequences = 1, .step_tokens = 0}};
  }
  static TextOptions greedy(std::int64_t tokens = 4) {
    return {.sampling = {.temperature = 0}, .max_tokens = tokens, .ignore_end = true};
  }
  Chat new_chat(TextOptions options = greedy()) {
    return {engine_, ChatTemplate::parse("{% for m in messages %}{{ m.content }}|{% endfor %}"),
            std::move(options)};
  }

  std::string path_;
  Engine engine_;
};

TEST_F(Chats, EachTurnComputesOnlyWhatIsNew) {
  Chat chat = new_chat();
  std::string shown;
  const GenerationResult first = chat.say("w1", [&](std::string_view text) {
    shown += text;
    return true;
  });
  EXPECT_EQ(first.statistics.reused_tokens, 0);
  EXPECT_EQ(shown, first.text);
  const GenerationResult second = chat.say("w2");
  EXPECT_GT(second.statistics.reused_tokens, 0);
  ASSERT_EQ(chat.messages().size(), 4U);
  EXPECT_EQ(chat.messages()[1].role, "assistant");
  EXPECT_EQ(chat.messages()[1].content, first.text);
  EXPECT_GT(chat.cache().length(), 0);
}

TEST_F(Chats, ACopyGoesOnByItself) {
  Chat chat = new_chat();
  chat.say("w1");
  Chat other = chat.fork();
  const std::string one = other.say("w2").text;
  EXPECT_EQ(chat.messages().size(), 2U);
  EXPECT_EQ(chat.say("w2").text, one);
  chat.reset();
  EXPECT_TRUE(chat.messages().empty());
  EXPECT_EQ(chat.cache().length(), 0);
  EXPECT_EQ(other.messages().size(), 4U);
}

TEST_F(Chats, GivenMessagesAreAnswered) {
  Chat chat = new_chat();
  const std::string first = chat.say("w1").text;
  const std::string second = chat.say("w2").text;
  Chat again = new_chat();
  again.set_messages({{"user", "w1"}});
  EXPECT_EQ(again.answer().text, first);
  EXPECT_EQ(again.say("w2").text, second);
}

TEST_F(Chats, AnotherSeedForARetry) {
  Chat chat = new_chat({.sampling = {.temperature = 5, .top_k = 0, .top_p = 1, .min_p = 0},
                        .seed = 3,
                        .max_tokens = 12,
                        .ignore_end = true});
  expect_error(ErrorKind::BadArgument, "no answer yet", [&] { chat.retry(); });
  const std::string first = chat.say("w1").text;
  const std::string second = chat.retry().text;
  EXPECT_NE(first, second);
  ASSERT_EQ(chat.messages().size(), 2U);
  EXPECT_EQ(chat.messages().back().content, second);
}

TEST_F(Chats, MayBeStopped) {
  Chat chat = new_chat(greedy(20));
  const GenerationResult cut = chat.say("w1", [](std::string_view) { return false; });
  EXPECT_EQ(cut.reason, FinishReason::Cancelled);
  const GenerationResult unasked = chat.say("w2", {}, [] { return false; });
  EXPECT_EQ(unasked.reason, FinishReason::Cancelled);
  EXPECT_LT(unasked.tokens.size(), 20U);
}

TEST_F(Chats, AFullContextIsAnErrorOrForgetsTheOldest) {
  const std::string message(100, 'x');
  Chat chat = new_chat();
  chat.say(message);
  try {
    chat.say(message);
    FAIL() << "it fits";
  } catch (const ContextFull& full) {
    EXPECT_EQ(full.context, 128);
    EXPECT_GT(full.tokens, 128U);
  }
  EXPECT_EQ(chat.messages().size(), 2U) << "what failed is not part of the chat";
  TextOptions shifts = greedy();
  shifts.context = ContextPolicy::Shift;
  Chat forgets = new_chat(shifts);
  forgets.say(message);
  forgets.say(message);
  EXPECT_EQ(forgets.messages().size(), 2U);
}

}  // namespace
}  // namespace tl::test
