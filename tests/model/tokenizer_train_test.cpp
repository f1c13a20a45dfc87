// Vocabularies learned from text: the merges by hand, and that a Tokenizer takes what is written.
#include "tl/model/tokenizer_train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/vocabularies.h"
#include "tl/model/chat_template.h"
#include "tl/model/convert.h"
#include "tl/model/tokenizer.h"

namespace tl::test {

namespace {

using Texts = std::vector<std::string>;

TrainedTokenizer train_on(std::string_view text, TokenizerTrainOptions options) {
  TokenizerTrainer trainer(std::move(options));
  trainer.add(text);
  return trainer.train();
}

GgufFile saved(const TrainedTokenizer& made) {
  GgufWriter writer;
  made.add_to(writer);
  const Folder folder;
  writer.write(folder.file("tokenizer.gguf"));
  return GgufFile::open(folder.file("tokenizer.gguf"));
}

// Without special tokens: ids 0 to 255 are the bytes.
TokenizerTrainOptions plain(std::size_t merges, std::string pre = "gpt-2") {
  TokenizerTrainOptions options;
  options.vocabulary = 256 + merges;
  options.pre = std::move(pre);
  options.special = {};
  options.begin = options.end = options.end_of_turn = "";
  return options;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += join("The ", i % 7, " quick foxes jump over a lazy dog, and dog number ", i,
                 " barks.\n\n\tThen they rest under the ", i % 3 == 0 ? "oak" : "élm", ".\n");
  }
  return text;
}

void refuse(const TokenizerTrainOptions& options, ErrorKind kind, const std::string& text) {
  expect_error(kind, text, [&] { TokenizerTrainer{options}; });
}

}  // namespace

TEST(TokenizerTrain, TheMostFrequentPairMergesFirst) {
  // Words: "hug" x3, " pug" x2, " hugs" x2. Counts of pairs: u g 7, h u 5, then as they change.
  const TrainedTokenizer made = train_on("hug\nhug\nhug\n pug\n pug\n hugs\n hugs", plain(6));
  // u+g 7 is token 256, h+ug 5 is 257. Then Ġ+p, Ġ+hug, p+ug and hug+s are all there twice: the
  // lower left id goes first, Ġ is 32, and of its two the lower right id, p is 112. What is left is
  // (258, 256) and (259, 115).
  EXPECT_EQ(made.merges, (Texts{"u g", "h ug", "Ġ p", "Ġ hug", "Ġp ug", "Ġhug s"}));
  EXPECT_EQ(made.tokens.size(), 262U);
  EXPECT_EQ(made.tokens[256], "ug");
  EXPECT_EQ(made.tokens[261], "Ġhugs");
}

TEST(TokenizerTrain, ThePiecesOfARowOfEqualBytesAreCountedAsTheyMerge) {
  // "aaaa" twice: a+a stands three times in each, then aa+aa once.
  const TrainedTokenizer made = train_on("aaaa aaaa", plain(3));
  EXPECT_EQ(made.merges, (Texts{"a a", "aa aa"}));
  EXPECT_EQ(made.tokens.size(), 258U);
  EXPECT_EQ(made.text_tokens, 3U);  // aaaa, Ġ, aaaa
}

TEST(TokenizerTrain, EveryTokenIsThereOnce) {
  const TrainedTokenizer made = train_on(long_text(), plain(700));
  std::vector<std::string> sorted = made.tokens;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  EXPECT_GE(made.merges.size(), made.tokens.size() - 256);
}

TEST(TokenizerTrain, CountsThatAreKeptAreThoseOfCountingAgain) {
  // The text in the learned tokens is what the tokenizer of the file makes of it.
  const std::string text = long_text();
  for (const std::size_t merges : {1, 10, 60, 200}) {
    const TrainedTokenizer made = train_on(text, plain(merges));
    const Tokenizer tokenizer = Tokenizer::from_gguf(saved(made));
    EXPECT_EQ(tokenizer.encode(text).size(), made.text_tokens) << merges;
  }
}

TEST(TokenizerTrain, TheSameTextGivesTheSameVocabulary) {
  TokenizerTrainer halves(plain(150));
  const std::string text = long_text();
  const std::size_t middle = text.find(".\nThe", text.size() / 2) + 2;
  halves.add(std::string_view(text).substr(0, middle));
  halves.add(std::string_view(text).substr(middle));
  const TrainedTokenizer whole = train_on(text, plain(150));
  EXPECT_EQ(halves.train().merges, whole.merges);
  EXPECT_EQ(halves.train().tokens, whole.tokens);
  EXPECT_EQ(train_on(text, plain(150)).merges, whole.merges);
}

TEST(TokenizerTrain, TextsComeBackAsTheyWere) {
  for (const std::string pre : {"gpt-2", "qwen2", "llama-bpe"}) {
    const Tokenizer tokenizer = Tokenizer::from_gguf(saved(train_on(long_text(), plain(300, pre))));
    for (const std::string_view text : {"", "The quick foxes", "  two  spaces\n\n\tand a tab",
                                        "漢字 and 🦙 were not in the text"}) {
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << pre;
    }
    const std::string text = long_text();
    EXPECT_LT(3 * tokenizer.encode(text).size(), text.size()) << pre;  // better than bytes
    EXPECT_TRUE(tokenizer.warnings().empty());
  }
}

TEST(TokenizerTrain, SpecialTokensAreNotCountedAndAreRead) {
  TokenizerTrainOptions options;
  options.vocabulary = 400;
  options.chat_template = TokenizerTrainOptions::role_template();
  const TrainedTokenizer made =
      train_on("<|user|>user<|eot|><|assistant|>hi<|eot|>\n<|end|>\n<|user|>user<|eot|>", options);
  EXPECT_EQ(made.special, 5U);
  EXPECT_EQ(made.text_bytes, 12U);  // user, hi, two new lines, user
  EXPECT_EQ(made.merges, (Texts{"e r", "s er", "u ser"}));
  const GgufFile file = saved(made);
  const Tokenizer tokenizer = Tokenizer::from_gguf(file);
  EXPECT_EQ(tokenizer.bos(), 0);
  EXPECT_EQ(tokenizer.eos(), 0);
  EXPECT_EQ(tokenizer.eot(), 1);
  EXPECT_TRUE(tokenizer.is_end(0) && tokenizer.is_end(1));
  EXPECT_FALSE(tokenizer.is_end(3));
  EXPECT_TRUE(tokenizer.adds_bos());
  ChatInput input;
  input.set_tokens(tokenizer);
  input.messages = {{"system", "s"}, {"user", " user\n"}};
  const std::string prompt = ChatTemplate::from_gguf(file)->render(input);
  EXPECT_EQ(prompt, "<|system|>s<|eot|><|user|>user<|eot|><|assistant|>");
  const TokenId user = *tokenizer.find("user");
  const TokenId s = 5 + 's';
  EXPECT_EQ(tokenizer.encode_prompt(prompt), (Ids{0, 2, s, 1, 3, user, 1, 4}));
}

TEST(TokenizerTrain, ATokenizerJsonGivesTheSameIds) {
  for (const std::string pre : {"qwen2", "gpt-2", "llama-bpe", "smollm"}) {
    TokenizerTrainOptions options;
    options.vocabulary = 500;
    options.pre = pre;
    options.chat_template = TokenizerTrainOptions::role_template();
    const TrainedTokenizer made = train_on(long_text(), options);
    const Folder folder;
    std::ofstream(folder.file("tokenizer.json")) << made.json();
    std::ofstream(folder.file("tokenizer_config.json")) << made.config_json();
    std::vector<std::string> notes;
    const std::string bytes = convert_tokenizer(folder.file("tokenizer.json"), &notes);
    EXPECT_EQ(notes, Texts{});
    const GgufFile file = GgufFile::from_memory(std::as_bytes(std::span(bytes)), "tokenizer.json");
    const Tokenizer read = Tokenizer::from_gguf(file), own = Tokenizer::from_gguf(saved(made));
    EXPECT_EQ(read.pre(), pre);
    EXPECT_EQ(read.eos(), own.eos());
    EXPECT_EQ(file.get<std::string>("tokenizer.chat_template"), options.chat_template);
    for (const std::string_view text : {"The 42 quick foxes", "  x\n\n<|user|>élm<|eot|>"}) {
      const EncodeOptions how{.add_special = true, .parse_special = true};
      EXPECT_EQ(read.encode(text, how), own.encode(text, how)) << pre;
    }
  }
  expect_error(ErrorKind::Unsupported, "tokenizer.json: how 'falcon' is written there is not known",
               [] { train_on("aa aa", plain(1, "falcon")).json(); });
}

TEST(TokenizerTrain, BytesThatAreNotUtf8AreWordsOfTheirOwn) {
  const TrainedTokenizer made = train_on(
      "ab\xFF"
      "ab\xC3 ab\xFF\xFF",
      plain(8));
  EXPECT_EQ(made.merges, (Texts{"a b"}));
  EXPECT_EQ(made.text_bytes, 11U);
  EXPECT_EQ(made.text_tokens, 8U);  // ab FF ab C3 Ġ ab FF FF
}

TEST(TokenizerTrain, PairsThatAreRareAreNoTokens) {
  EXPECT_EQ(train_on("abc", plain(100)).tokens.size(), 256U);
  TokenizerTrainOptions all = plain(100);
  all.least_count = 1;
  EXPECT_EQ(train_on("abc", all).merges, (Texts{"a b", "ab c"}));
}

TEST(TokenizerTrain, WhatCannotBeUsedIsAnError) {
  expect_error(ErrorKind::BadArgument, "tokenizer train: there is no text to learn from",
               [] { train_on("", plain(8)); });
  expect_error(ErrorKind::BadArgument, "there is no text to learn from",
               [] { train_on("<|end|>", {}); });
  TokenizerTrainOptions options;
  options.vocabulary = 260;
  refuse(options, ErrorKind::BadArgument,
         "a vocabulary of 260 tokens is not possible; 256 bytes and 5 special tokens need 261");
  options.vocabulary = 2'000'000;
  refuse(options, ErrorKind::BadArgument, "the most is 1000000");
  options = {};
  options.special.emplace_back("<|eot|>");
  refuse(options, ErrorKind::BadArgument, "the special token '<|eot|>' is there twice");
  options.special = {"<|end|>"};
  refuse(options, ErrorKind::BadArgument,
         "the token '<|eot|>' that ends a turn is not one of the special tokens");
  options = plain(8);
  options.special = {""};
  refuse(options, ErrorKind::BadArgument, "a special token is empty");
  options.special = {"x"};
  refuse(options, ErrorKind::BadArgument, "the special token 'x' is a single character");
  options.special = {"<\xFF>"};
  refuse(options, ErrorKind::BadArgument, "a special token is not UTF-8 at byte 1");
  refuse(plain(8, "toaster"), ErrorKind::Unsupported, "the pre-tokenizer 'toaster'");
  refuse(plain(8, "gemma4"), ErrorKind::Unsupported, "works on characters");
}

}  // namespace tl::test
