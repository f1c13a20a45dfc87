// Vocabularies: tokens and their kinds, scores and merges, and how text is cut into words.
#include "model/convert_vocab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/saved_models.h"

namespace tl {
namespace {

using namespace test;

template <class T>
std::vector<T> list(const GgufFile& file, const std::string& key) {
  return file.value("tokenizer.ggml." + key).to_vector<T>();
}

// Five pieces for a model of twelve tokens.
std::string five_pieces() {
  return piece_field("<unk>", 0, 2) + piece_field("<s>", 0, 3) + piece_field("</s>", 0, 3) +
         piece_field("<0x0A>", 0, 6) + piece_field("\u2581a", -1, 1) + usual_specs();
}

struct WithPieces : SavedModel {
  explicit WithPieces(const std::string& architecture = "LlamaForCausalLM")
      : SavedModel(architecture) {
    tokenizer = nullptr;
    pieces = five_pieces();
  }
};

TEST(ConvertVocab, PiecesArePaddedToTheRowsOfTheModel) {
  const WithPieces model;
  const GgufFile file = model.convert();
  EXPECT_EQ(file.get<std::string>("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(file.get<std::string>("tokenizer.ggml.pre"), "default");
  const auto tokens = list<std::string>(file, "tokens");
  ASSERT_EQ(tokens.size(), 12u);
  EXPECT_EQ(tokens[4], "\u2581a");
  EXPECT_EQ(tokens[5], "[PAD5]");
  const auto scores = list<float>(file, "scores");
  EXPECT_EQ(scores[4], -1.0f);
  EXPECT_EQ(scores[11], -10000.0f);
  EXPECT_EQ(list<std::int32_t>(file, "token_type"),
            (std::vector<std::int32_t>{2, 3, 3, 6, 1, 5, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(file.find_value("tokenizer.ggml.merges"), nullptr);
  EXPECT_TRUE(model.result.notes.empty());
}

TEST(ConvertVocab, AddedTokensTakeTheirPlaces) {
  WithPieces model;
  save(model.file("added_tokens.json"), R"({"<new>": 5, "<far>": 40})");
  model.tokenizer_config = {{"added_tokens_decoder",
                             {{"4", {{"content", "b"}, {"special", false}}},
                              {"6", {{"content", "<c>"}, {"special", true}}},
                              {"7", {{"content", "<|d|>"}}},
                              {"8", {{"content", "e\u2581f"}, {"special", false}}},
                              {"50", {{"content", "g"}}}}}};
  const GgufFile file = model.convert();
  const auto tokens = list<std::string>(file, "tokens");
  const std::vector<std::string> expected = {"b", "<new>", "<c>", "<|d|>", "e f", "[PAD9]"};
  EXPECT_EQ(std::vector(tokens.begin() + 4, tokens.begin() + 10), expected);
  const auto types = list<std::int32_t>(file, "token_type");
  EXPECT_EQ(std::vector(types.begin() + 4, types.begin() + 10),
            (std::vector<std::int32_t>{4, 4, 3, 3, 4, 5}));
  const auto scores = list<float>(file, "scores");
  EXPECT_EQ(scores[5], -1000.0f);
  std::string notes;
  for (const std::string& note : model.result.notes) notes += note + "\n";
  EXPECT_NE(notes.find("token 40 '<far>' is left out"), std::string::npos) << notes;
  EXPECT_NE(notes.find("token 50 'g' is left out"), std::string::npos) << notes;
  EXPECT_NE(notes.find("token 4 'b' takes the place of '\u2581a'"), std::string::npos) << notes;
  EXPECT_EQ(model.result.notes.size(), 3u);
}

TEST(ConvertVocab, Phi3TakesAddedTokensFromBothFiles) {
  WithPieces model("Phi3ForCausalLM");
  model.tokenizer = {{"added_tokens", {{{"id", 7}, {"content", "<|d|>"}, {"special", false}}}}};
  model.tokenizer_config = {
      {"tokenizer_class", "LlamaTokenizer"},
      {"added_tokens_decoder", {{"6", {{"content", "<|c|>"}, {"special", true}}}}}};
  GgufFile file = model.convert();
  const auto types = list<std::int32_t>(file, "token_type");
  EXPECT_EQ(types[6], 3);
  EXPECT_EQ(types[7], 4);  // what looks special is not guessed here
  EXPECT_EQ(list<std::string>(file, "tokens")[7], "<|d|>");

  // Phi 4 has the same architecture and a vocabulary of bytes.
  SavedModel four("Phi3ForCausalLM");
  four.pieces = five_pieces();
  four.tokenizer_config = {{"tokenizer_class", "GPT2Tokenizer"}};
  EXPECT_EQ(four.convert().get<std::string>("tokenizer.ggml.model"), "gpt2");
}

TEST(ConvertVocab, WhatReadersDoOtherwiseIsTold) {
  WithPieces model;
  model.pieces = piece_field("a", 0, 1) + piece_field("x\u2581y", 0, 4) +
                 bytes_field(3, number_field(3, 0));  // unigram, no leading space
  const GgufFile file = model.convert();
  EXPECT_EQ(list<std::string>(file, "tokens")[1], "x y");  // defined by the user
  EXPECT_FALSE(file.get<bool>("tokenizer.ggml.add_space_prefix"));
  ASSERT_EQ(model.result.notes.size(), 2u);
  EXPECT_NE(model.result.notes[0].find("is no vocabulary of merged pairs"), std::string::npos);
  EXPECT_NE(model.result.notes[1].find("removes spaces that are doubled"), std::string::npos);
  model.pieces.clear();
  for (int i = 0; i < 14; ++i) model.pieces += piece_field(join("t", i), 0, 1);
  model.pieces += usual_specs();
  EXPECT_EQ(list<std::string>(model.convert(), "tokens").back(), "t11");
  EXPECT_NE(model.result.notes[0].find("of 14 pieces the first 12 are used"), std::string::npos);
}

TEST(ConvertVocab, BytesHaveMergesInEitherForm) {
  SavedModel model("Qwen2ForCausalLM");
  const GgufFile file = model.convert();
  EXPECT_EQ(file.get<std::string>("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(list<std::string>(file, "merges"), (std::vector<std::string>{"a b", "ab c"}));
  EXPECT_EQ(list<std::string>(file, "tokens"),
            (std::vector<std::string>{"a", "b", "c", "ab", "abc", "<s>", "</s>", "<tool>", "[PAD8]",
                                      "[PAD9]", "[PAD10]", "[PAD11]"}));
  EXPECT_EQ(list<std::int32_t>(file, "token_type"),
            (std::vector<std::int32_t>{1, 1, 1, 1, 1, 3, 3, 4, 5, 5, 5, 5}));
  EXPECT_EQ(file.find_value("tokenizer.ggml.scores"), nullptr);
  model.tokenizer["model"]["merges"] =
      Json::array({Json::array({"a", "b"}), Json::array({"a b", "c"})});
  EXPECT_EQ(list<std::string>(model.convert(), "merges"),
            (std::vector<std::string>{"a b", "a\u0120b c"}));
}

TEST(ConvertVocab, BadVocabulariesAreRefused) {
  const auto refuse = [](const std::string& at, const Json& value, const std::string& text,
                         ErrorKind kind = ErrorKind::BadFile) {
    SavedModel model("Qwen2ForCausalLM");
    model.tokenizer[Json::json_pointer(at)] = value;
    model.expect_refused(kind, text);
  };
  refuse("/model", 5, "tokenizer.json: model: is 5, not an object");
  refuse("/model/type", "Unigram", "vocabularies of the type 'Unigram' cannot be converted",
         ErrorKind::Unsupported);
  refuse("/model/vocab", Json::object(), "vocab: is empty");
  refuse("/model/vocab", nullptr, "model: there is no key 'vocab'");
  refuse("/model/vocab/x", -1, "key 'x' is -1, not a whole number");
  refuse("/model/vocab/x", "1", "key 'x' is \"1\", not a whole number");
  refuse("/model/vocab/x", 3, "'ab' and 'x' have the same id, 3");
  refuse("/model/vocab/x", 12, "there is a token with the id 12, and the model has 12 tokens");
  refuse("/model/vocab/x", 4000000000u, "there is a token with the id 4000000000");
  refuse("/model/merges", nullptr, "there is no key 'merges'");
  refuse("/model/merges", "a b", "key 'merges' is \"a b\", not a list");
  for (const Json& bad : {Json("ab"), Json(" ab"), Json("ab "), Json("a b c"), Json(3),
                          Json::array({"a"}), Json::array({"a", ""}), Json::array({"a", 1})}) {
    refuse("/model/merges/1", bad, "merges[1] is ");
  }
  refuse("/added_tokens", 3, "key 'added_tokens' is 3, not a list");
  refuse("/added_tokens/0", "x", "added_tokens[0]: is \"x\", not an object");
  refuse("/added_tokens/0/id", nullptr, "added_tokens[0]: there is no key 'id'");
  refuse("/added_tokens/0/content", 4, "added_tokens[0]: key 'content' is 4, not a text");
  refuse("/added_tokens/0/content", nullptr, "added_tokens[0]: there is no key 'content'");
  refuse("/added_tokens/0/id", 99, "there is a token with the id 99");
  refuse("/pre_tokenizer", {{"type", "Sequence"}}, "there is no key 'pretokenizers'");
  refuse("/pre_tokenizer", {{"type", "Split"}}, "there is no key 'pattern'");

  SavedModel none("LlamaForCausalLM");
  none.tokenizer = nullptr;
  none.expect_refused(ErrorKind::BadFile, "there is no tokenizer.json and no tokenizer.model");
  SavedModel list("LlamaForCausalLM");
  list.tokenizer = Json::array();
  list.expect_refused(ErrorKind::BadFile, "tokenizer.json: is an array of 0, not an object");
  WithPieces pieces;
  pieces.pieces = "no protocol buffers";
  pieces.expect_refused(ErrorKind::BadFile, "tokenizer.model: byte 0: ");
  WithPieces ids;
  ids.tokenizer_config = {{"added_tokens_decoder", {{"x7", {{"content", "a"}}}}}};
  ids.expect_refused(ErrorKind::BadFile, "added_tokens_decoder: 'x7' is no id of a token");
  WithPieces added;
  save(added.file("added_tokens.json"), R"({"a": "b"})");
  added.expect_refused(ErrorKind::BadFile, "added_tokens.json: key 'a' is \"b\"");
}

// ---- vocabularies of others

TEST(ConvertVocab, TheByteVocabularyOfGpt2ComesBack) {
  if (vocabulary_folder().empty()) GTEST_SKIP() << "there is no shared/data/tokenizer";
  const GgufFile known = GgufFile::open((vocabulary_folder() / "ggml-vocab-gpt-2.gguf").string());
  const auto tokens = list<std::string>(known, "tokens");
  const auto types = list<std::int32_t>(known, "token_type");
  SavedModel model("Qwen2ForCausalLM");
  model.tokenizer["model"]["vocab"] = Json::object();
  model.tokenizer["added_tokens"] = Json::array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (types[i] == 1) {
      model.tokenizer["model"]["vocab"][tokens[i]] = i;
    } else {
      model.tokenizer["added_tokens"].push_back(
          {{"id", i}, {"content", tokens[i]}, {"special", true}});
    }
  }
  model.tokenizer["model"]["merges"] = list<std::string>(known, "merges");
  model.config["vocab_size"] = tokens.size();
  const GgufFile file = model.convert({.vocab_only = true});
  for (const std::string key : {"model", "pre", "tokens", "token_type", "merges"}) {
    EXPECT_EQ(file.value("tokenizer.ggml." + key), known.value("tokenizer.ggml." + key)) << key;
  }
}

class LlamaPieces : public testing::Test {
 protected:
  void SetUp() override {
    if (vocabulary_folder().empty()) GTEST_SKIP() << "there is no shared/data/tokenizer";
    const GgufFile known =
        GgufFile::open((vocabulary_folder() / "ggml-vocab-llama-spm.gguf").string());
    file.emplace(known);
    tokens = list<std::string>(known, "tokens");
    scores = list<float>(known, "scores");
    types = list<std::int32_t>(known, "token_type");
    model.config["vocab_size"] = tokens.size();
  }
  std::optional<GgufFile> file;
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  SavedModel model{"LlamaForCausalLM"};
};

TEST_F(LlamaPieces, ComeBackFromTheirModel) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    model.pieces += piece_field(tokens[i], scores[i], static_cast<unsigned>(types[i]));
  }
  model.pieces += usual_specs();
  model.tokenizer_config = {{"add_bos_token", true}, {"add_eos_token", false}};
  model.tokenizer = nullptr;
  const GgufFile ours = model.convert({.vocab_only = true});
  for (const GgufEntry& entry : file->metadata()) {
    if (!entry.key.starts_with("tokenizer.")) continue;
    EXPECT_EQ(ours.value(entry.key), entry.value) << entry.key;
  }
}

// The tokenizers library holds such a vocabulary as merges, in the order of the scores: each way to
// make a token of two others.
TEST_F(LlamaPieces, KeepTheOrderOfTheirMergesWithoutTheirModel) {
  std::vector<std::size_t> order;
  std::map<std::string, std::size_t> ids;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ids.emplace(tokens[i], i);
    if (types[i] == 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<std::size_t> merged;
  Json merges = Json::array();
  for (const std::size_t id : order) {
    const std::string& token = tokens[id];
    bool is_merged = false;
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const std::string left = token.substr(0, cut), right = token.substr(cut);
      if (!ids.contains(left) || !ids.contains(right)) continue;
      merges.push_back(Json::array({left, right}));
      is_merged = true;
    }
    if (is_merged) merged.push_back(id);
  }
  ASSERT_GT(merged.size(), 20000u);
  model.tokenizer["model"] = {{"type", "BPE"},
                              {"byte_fallback", true},
                              {"unk_token", "<unk>"},
                              {"merges", merges},
                              {"vocab", ids}};
  model.tokenizer["added_tokens"] = {{{"id", 1}, {"content", "<s>"}, {"special", true}},
                                     {{"id", 2}, {"content", "</s>"}, {"special", true}}};
  const GgufFile ours = model.convert({.vocab_only = true});
  EXPECT_EQ(ours.get<std::string>("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(ours.get<std::string>("tokenizer.ggml.pre"), "default");
  EXPECT_EQ(list<std::string>(ours, "tokens"), tokens);
  EXPECT_EQ(list<std::int32_t>(ours, "token_type"), types);
  const auto made = list<float>(ours, "scores");
  for (std::size_t i = 1; i < merged.size(); ++i) {
    ASSERT_GT(made[merged[i - 1]], made[merged[i]]) << tokens[merged[i]];
  }
}

}  // namespace
}  // namespace tl
