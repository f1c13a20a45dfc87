// A tokenizer.json by itself: the same ids as the vocabulary it was made of.
#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "tl/model/chat_template.h"
#include "tl/model/convert.h"
#include "tl/model/tokenizer.h"

namespace tl::test {

namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

struct Converted {
  explicit Converted(const std::string& path)
      : bytes(convert_tokenizer(path, &notes)),
        file(GgufFile::from_memory(std::as_bytes(std::span(bytes)), path)),
        tokenizer(Tokenizer::from_gguf(file)) {}
  std::vector<std::string> notes;
  std::string bytes;
  GgufFile file;
  Tokenizer tokenizer;
};

Json special(int id, const char* text) {
  return {{"id", id}, {"content", text}, {"special", true}};
}

// A vocabulary of pieces as Llama's tokenizer.json has it.
Json pieces() {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"<0x21>", 3},  {"\u2581", 4},
                {"a", 5},     {"b", 6},   {"ab", 7},   {"\u2581ab", 8}};
  return {{"added_tokens", {special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\u2581"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}}}},
          {"model",
           {{"type", "BPE"},
            {"byte_fallback", true},
            {"unk_token", "<unk>"},
            {"vocab", vocab},
            {"merges", {"a b", "\u2581 ab"}}}}};
}

}  // namespace

TEST(ConvertTokenizer, PiecesWithTheirSpaceAndTheirBeginning) {
  const Folder folder;
  save(folder.file("any-name.json"), pieces().dump());
  const Converted made(folder.file("any-name.json"));
  EXPECT_TRUE(made.notes.empty());
  EXPECT_EQ(made.tokenizer.model(), "llama");
  EXPECT_EQ(made.tokenizer.encode("ab ab!"), (Ids{1, 8, 8, 3}));
  EXPECT_EQ(made.tokenizer.encode("ab</s>", {.add_special = false, .parse_special = true}),
            (Ids{8, 2}));
  EXPECT_EQ(made.tokenizer.decode(Ids{1, 8, 8, 3}), "ab ab!");
  EXPECT_EQ(made.tokenizer.bos(), 1);
  EXPECT_EQ(made.tokenizer.eos(), 2);
  EXPECT_TRUE(made.tokenizer.adds_bos());
  EXPECT_FALSE(ChatTemplate::from_gguf(made.file).has_value());
}

TEST(ConvertTokenizer, WhatTheFileDoesNotAskForIsNotAdded) {
  const Folder folder;
  Json json = pieces();
  json.erase("normalizer");
  json.erase("post_processor");
  save(folder.file("t.json"), json.dump());
  const Converted made(folder.file("t.json"));
  EXPECT_EQ(made.tokenizer.encode("ab ab"), (Ids{7, 8}));
  EXPECT_EQ(made.tokenizer.eos(), 2);  // by its text
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "first"}};
  save(folder.file("t.json"), json.dump());
  EXPECT_EQ(Converted(folder.file("t.json")).tokenizer.encode("ab"), (Ids{8}));
  json["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "never"}};
  save(folder.file("t.json"), json.dump());
  EXPECT_EQ(Converted(folder.file("t.json")).tokenizer.encode("ab"), (Ids{7}));
}

TEST(ConvertTokenizer, TheFilesBesideItCount) {
  const Folder folder;
  save(folder.file("tokenizer.json"), pieces().dump());
  save(
      folder.file("tokenizer_config.json"),
      R"({"add_bos_token": false, "eos_token": "<s>", "chat_template": "{{ messages[0].content }}"})");
  const Converted made(folder.file("tokenizer.json"));
  EXPECT_EQ(made.tokenizer.encode("ab"), (Ids{8}));
  EXPECT_EQ(made.tokenizer.eos(), 1);
  ChatInput input;
  input.messages = {{"user", "Hi"}};
  ASSERT_TRUE(ChatTemplate::from_gguf(made.file).has_value());
  EXPECT_EQ(ChatTemplate::from_gguf(made.file)->render(input), "Hi");
}

TEST(ConvertTokenizer, BadFilesAreRefused) {
  const Folder folder;
  const std::string path = folder.file("t.json");
  expect_error(ErrorKind::BadFile, "t.json", [&] { convert_tokenizer(path); });
  for (const char* text :
       {"", "[]", "{", "{}", R"({"model": 5})", R"({"model": {"vocab": 1}})",
        R"({"model": {"vocab": {}, "merges": []}})", R"({"model": {"vocab": {"a": 0}}})"}) {
    save(path, text);
    expect_error(ErrorKind::BadFile, "t.json", [&] { convert_tokenizer(path); });
  }
  save(path, R"({"model": {"type": "WordPiece", "vocab": {}}})");
  expect_error(ErrorKind::Unsupported, "WordPiece", [&] { convert_tokenizer(path); });
}

// GPT-2's own vocabulary and merges, as its tokenizer.json has them.
TEST(ConvertTokenizer, TheBytesOfGpt2GiveTheSameIds) {
  if (data_folder().empty()) GTEST_SKIP() << "there is no shared/data near the sources";
  const auto vocabulary = data_folder().parent_path() / "tokenizer/ggml-vocab-gpt-2.gguf";
  if (!std::filesystem::exists(vocabulary)) GTEST_SKIP() << vocabulary << " is not there";
  const GgufFile known = GgufFile::open(vocabulary.string());
  const auto tokens = known.value("tokenizer.ggml.tokens").to_vector<std::string>();
  Json vocab = Json::object();
  for (std::size_t i = 0; i < tokens.size(); ++i) vocab[tokens[i]] = i;
  const Json json = {{"added_tokens", {special(50256, "<|endoftext|>")}},
                     {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                     {"model",
                      {{"type", "BPE"},
                       {"vocab", vocab},
                       {"merges", known.value("tokenizer.ggml.merges").to_vector<std::string>()}}}};
  const Folder folder;
  save(folder.file("tokenizer.json"), json.dump());
  const Converted made(folder.file("tokenizer.json"));
  const Tokenizer reference = Tokenizer::from_gguf(known);
  EXPECT_EQ(made.tokenizer.pre(), reference.pre());
  EXPECT_EQ(made.tokenizer.eos(), 50256);
  for (const std::string text :
       {"Hello world", "  two spaces\n\ttab", "it's 12345 grün 😀 <|endoftext|>", ""}) {
    EXPECT_EQ(made.tokenizer.encode(text), reference.encode(text, {.add_special = false})) << text;
  }
}

}  // namespace tl::test
