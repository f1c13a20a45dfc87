// Tokenizers beside what others made of the same texts: the cases that come with the project, and
// the words that Python's regex module finds.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "model/gguf_files.h"
#include "model/tokenizer_pre.h"
#include "tl/model/gguf.h"
#include "tl/model/tokenizer.h"

namespace tl::test {

namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

Json read_json(const fs::path& path) {
  std::ifstream in(path);
  return Json::parse(in);
}

// The texts of a file of cases, with a line between each two.
std::vector<std::string> texts_of(const fs::path& path) {
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  std::vector<std::string> out;
  std::string rest = contents(path.string());
  for (std::size_t at = rest.find(kBetween); at != std::string::npos; at = rest.find(kBetween)) {
    out.push_back(rest.substr(0, at));
    rest.erase(0, at + kBetween.size());
  }
  out.push_back(rest);
  return out;
}

std::vector<Ids> ids_of(const fs::path& path) {
  std::vector<Ids> out;
  std::istringstream lines(contents(path.string()));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    out.emplace_back();
    for (TokenId id = 0; words >> id;) out.back().push_back(id);
  }
  return out;
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  TextStream stream(tokenizer, {.special = true, .is_start = true});
  std::string out;
  for (const TokenId id : ids) {
    const std::string text = stream.push(id);
    EXPECT_EQ(first_invalid_utf8(text), text.size());
    out += text;
  }
  return out + stream.flush();
}

}  // namespace

class Vocabularies : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Files, Vocabularies,
                         testing::Values("ggml-vocab-llama-spm.gguf", "ggml-vocab-gpt-2.gguf"),
                         [](const auto& file) {
                           return std::string(file.param).find("gpt") != std::string::npos
                                      ? "gpt2"
                                      : "llama";
                         });

TEST_P(Vocabularies, GiveTheIdsOfTheCasesAndTheTextBack) {
  const fs::path folder = vocabulary_folder();
  if (folder.empty()) GTEST_SKIP() << "there is no shared/data/tokenizer";
  const fs::path path = folder / GetParam();
  const Tokenizer tokenizer = Tokenizer::from_gguf(GgufFile::open(path.string()));
  EXPECT_TRUE(tokenizer.warnings().empty());
  const auto texts = texts_of(path.string() + ".inp");
  const auto expected = ids_of(path.string() + ".out");
  ASSERT_GT(expected.size(), 40U);
  ASSERT_EQ(texts.size(), expected.size() + 1);  // the last text is empty and has no line
  EXPECT_EQ(texts.back(), "");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Ids ids = tokenizer.encode(texts[i], {.add_special = false, .parse_special = false});
    EXPECT_EQ(ids, expected[i]) << texts[i];
    EXPECT_EQ(tokenizer.decode(ids, {.special = true, .is_start = true}), texts[i]);
    EXPECT_EQ(streamed(tokenizer, ids), texts[i]);
  }
}

TEST(TokenizerData, TheTinyModelsGiveTheIdsOfTheCases) {
  const fs::path folder = data_folder();
  if (folder.empty()) GTEST_SKIP() << "there is no shared/data/gguf";
  const Tokenizer tokenizer =
      Tokenizer::from_gguf(GgufFile::open((folder / "tiny-llama-f32.gguf").string()));
  const Json cases = read_json(folder / "tokenize-tiny.json");
  ASSERT_GE(cases.size(), 8U);
  for (const Json& each : cases) {
    const auto text = each["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), each["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer.encode(text, {.add_special = true, .parse_special = true}),
              each["ids_parse_special"].get<Ids>())
        << text;
  }
}

TEST(PreTokenizers, FindTheWordsThatTheModelsOwnExpressionsFind) {
  const Json cases = read_json(source_folder() / "tests/model/data/pre_cases.json")["cases"];
  ASSERT_GT(cases.size(), 500U);
  for (const Json& each : cases) {
    const auto name = each[0].get<std::string>(), text = each[1].get<std::string>();
    const tok::PreTokenizer pre(tok::find_pre_rule(name));
    std::vector<std::string> words;
    std::size_t start = 0;
    for (const std::size_t end : pre.split(text)) {
      words.push_back(text.substr(start, end - start));
      start = end;
    }
    EXPECT_EQ(words, each[2].get<std::vector<std::string>>()) << name << ": " << text;
  }
}

// A text of one kind of character is the worst for expressions that go back and forth.
TEST(PreTokenizers, AreLinearOnLongRuns) {
  for (const tok::PreRule& rule : tok::pre_rules()) {
    const tok::PreTokenizer pre(rule);
    for (const std::string_view each :
         {"a", "A", " ", "\n", "7", "<", "'", "漢", "é", " \n", "aB", "a ", "e\u0301"}) {
      std::string text;
      while (text.size() < 200'000) text += each;
      const auto ends = pre.split(text);
      ASSERT_FALSE(ends.empty());
      EXPECT_EQ(ends.back(), text.size()) << rule.names[0] << " with '" << each << "'";
      EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end(), std::less_equal<>()));
    }
  }
}

TEST(PreTokenizers, EveryNameIsThereOnce) {
  std::vector<std::string_view> names;
  for (const tok::PreRule& rule : tok::pre_rules()) {
    names.insert(names.end(), rule.names.begin(), rule.names.end());
  }
  for (const std::string_view name : names) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
    const auto& rule = tok::find_pre_rule(name);
    EXPECT_NE(std::find(rule.names.begin(), rule.names.end(), name), rule.names.end());
  }
  expect_error(
      ErrorKind::Unsupported,
      "the pre-tokenizer 'nope' (tokenizer.ggml.pre) is not known; there are a.x-4.0, afmoe,",
      [] { tok::find_pre_rule("nope"); });
}

}  // namespace tl::test
