// Models and chats through tl/c.h, with random weights: what they say is nonsense, but always the
// same.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "capi/support.h"
#include "model/random_model.h"

namespace tl::test {
namespace {

struct Text {
  char* text = nullptr;
  ~Text() { tl_text_free(text); }
};

class CModels : public OnEveryDeviceInC {
 protected:
  void SetUp() override {
    OnEveryDeviceInC::SetUp();
    path_ = write_random_model(testing::TempDir() + "capi_model.gguf");
    ASSERT_EQ(tl_model_open(path_.c_str(), c_device(device()), nullptr, &model_), TL_OK)
        << tl_last_error();
    ASSERT_EQ(tl_text_options_init(&options_), TL_OK);
    options_.temperature = 0;
    options_.max_tokens = 6;
    options_.ignore_end = 1;
  }
  void TearDown() override {
    EXPECT_EQ(tl_model_free(model_), TL_OK) << tl_last_error();
    std::remove(path_.c_str());
    OnEveryDeviceInC::TearDown();
  }
  std::string generated(const char* prompt) {
    Text out;
    EXPECT_EQ(tl_model_generate(model_, prompt, &options_, nullptr, nullptr, &out.text, nullptr),
              TL_OK)
        << tl_last_error();
    return out.text == nullptr ? "" : out.text;
  }

  std::string path_;
  tl_model* model_ = nullptr;
  tl_text_options options_{};
};
TL_ON_EVERY_DEVICE(CModels);

int append(const char* text, std::size_t length, void* user) {
  EXPECT_EQ(std::string(text).size(), length);
  *static_cast<std::string*>(user) += text;
  return 1;
}

TEST_P(CModels, WriteTextPieceByPiece) {
  std::string pieces;
  Text whole;
  tl_result result{};
  TL_GOOD(tl_model_generate(model_, "w1 w2", &options_, append, &pieces, &whole.text, &result));
  EXPECT_NE(pieces, "");
  EXPECT_EQ(pieces, whole.text);
  EXPECT_EQ(result.finish, TL_FINISH_LENGTH);
  EXPECT_EQ(result.generated_tokens, 6);
  EXPECT_GT(result.prompt_tokens, 0);
  EXPECT_EQ(generated("w1 w2"), pieces);

  const auto stop = [](const char*, std::size_t, void*) { return 0; };
  TL_GOOD(tl_model_generate(model_, "w1 w2", &options_, stop, nullptr, nullptr, &result));
  EXPECT_EQ(result.finish, TL_FINISH_CANCELLED);
  EXPECT_LT(result.generated_tokens, 6);
}

TEST_P(CModels, StopAtTexts) {
  const std::string all = generated("w1 w2");
  const std::string end = all.substr(all.size() / 2);
  const char* const stops[] = {end.c_str()};
  options_.stop = stops;
  options_.stop_count = 1;
  Text out;
  tl_result result{};
  TL_GOOD(tl_model_generate(model_, "w1 w2", &options_, nullptr, nullptr, &out.text, &result));
  EXPECT_EQ(result.finish, TL_FINISH_STOP_TEXT);
  EXPECT_EQ(out.text, all.substr(0, all.find(end)));
}

TEST_P(CModels, TokensAndBack) {
  std::size_t count = 0;
  TL_GOOD(tl_model_tokenize(model_, "w1 w2", nullptr, 0, &count));
  ASSERT_GT(count, 1U);
  std::vector<tl_token> tokens(count);
  TL_GOOD(tl_model_tokenize(model_, "w1 w2", tokens.data(), count, &count));
  Text text;
  TL_GOOD(tl_model_detokenize(model_, tokens.data(), count, &text.text));
  EXPECT_STREQ(text.text, "w1 w2");
  expect_status(TL_SIZE_MISMATCH, tl_model_tokenize(model_, "w1 w2", tokens.data(), 1, &count),
                "room for 1 tokens");
  const tl_token wild = 1 << 20;
  expect_status(TL_INVALID_INDEX, tl_model_detokenize(model_, &wild, 1, &text.text), "1048576");
}

TEST_P(CModels, ChatsGoOnAndFork) {
  tl_chat* chat = nullptr;
  TL_GOOD(tl_chat_new(model_, "Be brief.", &options_, &chat));
  tl_result first{}, second{};
  Text one, two, three, whole;
  TL_GOOD(tl_chat_say(chat, "w1", nullptr, nullptr, &one.text, &first));
  EXPECT_EQ(first.reused_tokens, 0);
  tl_chat* fork = nullptr;
  TL_GOOD(tl_chat_clone(chat, &fork));
  TL_GOOD(tl_chat_say(chat, "w2", nullptr, nullptr, &two.text, &second));
  EXPECT_GT(second.reused_tokens, 0) << "the first turn is in the cache";
  TL_GOOD(tl_chat_say(fork, "w2", nullptr, nullptr, &three.text, nullptr));
  EXPECT_STREQ(two.text, three.text);
  // The same messages without a chat give the same answer.
  const tl_message messages[] = {
      {"system", "Be brief."}, {"user", "w1"}, {"assistant", one.text}, {"user", "w2"}};
  tl_result result{};
  TL_GOOD(tl_model_chat(model_, messages, 4, &options_, nullptr, nullptr, &whole.text, &result));
  EXPECT_EQ(result.reused_tokens, 0);
  EXPECT_NE(std::string(whole.text), "");
  TL_GOOD(tl_chat_reset(fork));
  Text again;
  TL_GOOD(tl_chat_say(fork, "w1", nullptr, nullptr, &again.text, nullptr));
  EXPECT_STREQ(again.text, one.text);
  TL_GOOD(tl_chat_free(fork));
  expect_status(TL_BAD_HANDLE, tl_chat_free(fork), "not the handle of a chat");
  // A chat keeps its model.
  TL_GOOD(tl_model_free(model_));
  model_ = nullptr;
  TL_GOOD(tl_chat_say(chat, "w3", nullptr, nullptr, nullptr, nullptr));
  TL_GOOD(tl_chat_free(chat));
}

struct Within {
  tl_model* model;
  tl_chat* chat;
  int calls = 0;
};

TEST_P(CModels, ACallbackCannotUseItsModel) {
  Within within{model_, nullptr};
  TL_GOOD(tl_chat_new(model_, nullptr, &options_, &within.chat));
  const auto use_it = [](const char*, std::size_t, void* user) {
    auto& here = *static_cast<Within*>(user);
    if (here.calls++ == 0) {
      expect_status(TL_BAD_ARGUMENT,
                    tl_model_generate(here.model, "x", nullptr, nullptr, nullptr, nullptr, nullptr),
                    "a callback cannot use the model that calls it");
      EXPECT_EQ(tl_chat_free(here.chat), TL_OK) << "but it may free what is answering";
    }
    return 1;
  };
  TL_GOOD(tl_chat_say(within.chat, "w1", use_it, &within, nullptr, nullptr));
  EXPECT_GT(within.calls, 0);
}

TEST_P(CModels, ThreadsTakeTurns) {
  const std::string alone = generated("w5");
  std::vector<std::string> answers(3);
  std::vector<std::thread> threads;
  for (std::string& answer : answers) threads.emplace_back([&] { answer = generated("w5"); });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(answers, std::vector<std::string>(3, alone));
}

TEST(CModelErrors, AreStatuses) {
  tl_model* model = nullptr;
  const tl_device cpu = {TL_CPU, 0};
  expect_status(TL_BAD_FILE, tl_model_open("/none.gguf", cpu, nullptr, &model), "/none.gguf");
  expect_status(TL_BAD_ARGUMENT, tl_model_open(nullptr, cpu, nullptr, &model), "path is null");
  expect_status(TL_BAD_ARGUMENT, tl_model_open("x", cpu, nullptr, nullptr), "model is null");
  const std::string path =
      write_random_model(testing::TempDir() + "capi_bare.gguf", {.chat_template = ""});
  tl_model_options how{};
  expect_status(TL_BAD_ARGUMENT, tl_model_open(path.c_str(), cpu, &how, &model),
                "struct_size is 0");
  TL_GOOD(tl_model_options_init(&how));
  how.cache_type = "f7";
  expect_status(TL_BAD_ARGUMENT, tl_model_open(path.c_str(), cpu, &how, &model), "f7");
  TL_GOOD(tl_model_open(path.c_str(), cpu, nullptr, &model));
  tl_chat* chat = nullptr;
  expect_status(TL_BAD_ARGUMENT, tl_chat_new(model, nullptr, nullptr, &chat),
                "has no chat template");
  const tl_message empty[] = {{"user", nullptr}};
  expect_status(TL_BAD_ARGUMENT,
                tl_model_chat(model, empty, 1, nullptr, nullptr, nullptr, nullptr, nullptr),
                "content is null");
  expect_status(TL_BAD_ARGUMENT,
                tl_model_chat(model, empty, 0, nullptr, nullptr, nullptr, nullptr, nullptr),
                "no message to answer");
  tl_text_options odd{};
  TL_GOOD(tl_text_options_init(&odd));
  odd.top_p = 7;
  expect_status(TL_BAD_ARGUMENT,
                tl_model_generate(model, "x", &odd, nullptr, nullptr, nullptr, nullptr), "top_p");
  expect_status(TL_BAD_ARGUMENT,
                tl_model_generate(model, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
                "prompt is null");
  const std::string too_long(4000, 'x');
  expect_status(
      TL_BAD_ARGUMENT,
      tl_model_generate(model, too_long.c_str(), nullptr, nullptr, nullptr, nullptr, nullptr), "");
  TL_GOOD(tl_model_free(model));
  expect_status(TL_BAD_HANDLE, tl_model_free(model), "not the handle of a model");
  how.cache_type = "f32";
  how.chat_template = "chatml";
  TL_GOOD(tl_model_open(path.c_str(), cpu, &how, &model));
  TL_GOOD(tl_chat_new(model, nullptr, nullptr, &chat));
  TL_GOOD(tl_chat_free(chat));
  TL_GOOD(tl_model_free(model));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tl::test
