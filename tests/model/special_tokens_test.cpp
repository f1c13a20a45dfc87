// Tokens with a role, chat templates, and the names of pre-tokenizers.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "model/convert_vocab.h"
#include "model/saved_models.h"

namespace tl {
namespace {

using namespace test;

std::optional<std::uint32_t> id(const GgufFile& file, const std::string& role) {
  return file.get_if<std::uint32_t>("tokenizer.ggml." + role + "_token_id");
}
std::optional<bool> adds(const GgufFile& file, const std::string& role) {
  return file.get_if<bool>("tokenizer.ggml.add_" + role + "_token");
}

TEST(SpecialTokens, TheTextInTheTokenizersConfigCountsFirst) {
  SavedModel model("Qwen2ForCausalLM");
  model.config.update({{"bos_token_id", 1},
                       {"eos_token_id", {1, 2}},
                       {"pad_token_id", 3},
                       {"sep_token_id", nullptr}});
  model.tokenizer_config = {{"bos_token", "<s>"},
                            {"eos_token", {{"content", "</s>"}}},
                            {"unk_token", nullptr},
                            {"add_bos_token", true},
                            {"add_eos_token", false}};
  const GgufFile file = model.convert();
  EXPECT_EQ(id(file, "bos"), 5u);
  EXPECT_EQ(id(file, "eos"), 6u);
  EXPECT_EQ(id(file, "padding"), 3u);
  EXPECT_EQ(id(file, "unknown"), std::nullopt);
  EXPECT_EQ(adds(file, "bos"), true);
  EXPECT_EQ(adds(file, "eos"), false);
}

TEST(SpecialTokens, OtherFilesHelpWhereItSaysNothing) {
  SavedModel model("Qwen2ForCausalLM");
  model.config["bos_token_id"] = 4;
  save(model.file("special_tokens_map.json"),
       R"({"eos_token": {"content": "abc"}, "pad_token": "?"})");
  GgufFile file = model.convert();
  EXPECT_EQ(id(file, "bos"), 4u);
  EXPECT_EQ(id(file, "eos"), 4u);
  EXPECT_EQ(id(file, "padding"), std::nullopt);

  SavedModel pieces("LlamaForCausalLM");
  pieces.tokenizer = nullptr;
  pieces.pieces =
      piece_field("<unk>", 0, 2) + piece_field("<s>", 0, 3) + piece_field("</s>", 0, 3) +
      bytes_field(2, number_field(3, 2) + number_field(43, 2)) + bytes_field(3, number_field(4, 0));
  file = pieces.convert();
  EXPECT_EQ(id(file, "unknown"), 0u);
  EXPECT_EQ(id(file, "bos"), 1u);
  EXPECT_EQ(id(file, "eos"), 2u);
  EXPECT_EQ(id(file, "padding"), 2u);
}

TEST(SpecialTokens, IdsThatAreNoTokensAreToldAndLeftOut) {
  SavedModel model("Qwen2ForCausalLM");
  model.config.update({{"bos_token_id", 12}, {"pad_token_id", -1}});
  const GgufFile file = model.convert();
  EXPECT_EQ(id(file, "bos"), std::nullopt);
  EXPECT_EQ(id(file, "padding"), std::nullopt);
  ASSERT_EQ(model.result.notes.size(), 2u);
  EXPECT_NE(model.result.notes[0].find("bos_token_id is 12, and there are 12 tokens"),
            std::string::npos);
  EXPECT_NE(model.result.notes[1].find("pad_token_id is -1"), std::string::npos);
}

Json special(const std::string& text) { return {{"SpecialToken", {{"id", text}}}}; }
Json sequence(const std::string& text) { return {{"Sequence", {{"id", text}}}}; }

TEST(SpecialTokens, TemplatesSayWhatIsAdded) {
  SavedModel model("LlamaForCausalLM");
  model.tokenizer_config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  const Json first = special("<s>"), last = special("</s>"), a = sequence("A"), b = sequence("B");
  model.tokenizer["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"}, {"single", {first, a}}, {"pair", {first, a, first, b}}}}}};
  GgufFile file = model.convert();
  EXPECT_EQ(adds(file, "bos"), true);
  EXPECT_EQ(adds(file, "eos"), std::nullopt);
  EXPECT_EQ(adds(file, "sep"), false);

  model.tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"}, {"single", {a, last}}, {"pair", {a, last, b, last}}};
  file = model.convert();
  EXPECT_EQ(adds(file, "bos"), std::nullopt);
  EXPECT_EQ(adds(file, "eos"), true);
  EXPECT_EQ(adds(file, "sep"), false);

  model.tokenizer["post_processor"]["single"] = {a, special("<tool>")};
  model.tokenizer["post_processor"].erase("pair");
  file = model.convert();
  EXPECT_EQ(id(file, "eos"), 7u);  // what ends a text
  EXPECT_EQ(id(file, "eot"), 6u);  // what was called the end

  model.tokenizer_config["add_eos_token"] = false;
  EXPECT_EQ(adds(model.convert(), "eos"), false);

  model.tokenizer["post_processor"] = {{"type", "RobertaProcessing"}};
  EXPECT_EQ(adds(model.convert(), "sep"), true);
  model.tokenizer["post_processor"] = {{"type", "Sequence"}, {"processors", 4}};
  model.expect_refused(ErrorKind::BadFile, "post_processor: key 'processors' is 4, not a list");
}

TEST(SpecialTokens, ALeadingSpaceIsAddedOrNot) {
  SavedModel llama("LlamaForCausalLM");
  EXPECT_EQ(llama.convert().find_value("tokenizer.ggml.add_space_prefix"), nullptr);
  llama.tokenizer_config = {{"add_prefix_space", false}};
  EXPECT_FALSE(llama.convert().get<bool>("tokenizer.ggml.add_space_prefix"));
  SavedModel gemma("Gemma2ForCausalLM");
  gemma.tokenizer = nullptr;
  gemma.pieces = piece_field("<unk>", 0, 2) + usual_specs();
  EXPECT_FALSE(gemma.convert().get<bool>("tokenizer.ggml.add_space_prefix"));
}

TEST(SpecialTokens, ModelsThatAreKnownByTheirSize) {
  for (const std::uint32_t size : {32016u, 49152u}) {
    SavedModel model("LlamaForCausalLM");
    model.config["vocab_size"] = size;
    model.tokenizer_config = {{"add_bos_token", true}};
    const GgufFile file = model.convert({.vocab_only = true});
    EXPECT_EQ(adds(file, "bos"), size != 49152);
    EXPECT_EQ(id(file, "eot"), size == 32016 ? std::optional(32010u) : std::nullopt);
  }
}

TEST(SpecialTokens, ChatTemplates) {
  SavedModel model("LlamaForCausalLM");
  save(model.file("chat_template.jinja"), "from a file\n");
  EXPECT_EQ(model.convert().get<std::string>("tokenizer.chat_template"), "from a file\n");
  model.tokenizer_config = {{"chat_template", "{{ x }}"}};
  EXPECT_EQ(model.convert().get<std::string>("tokenizer.chat_template"), "{{ x }}");
  model.tokenizer_config["chat_template"] = {{{"name", "default"}, {"template", "a"}},
                                             {{"name", "tool use"}, {"template", "b"}}};
  const GgufFile file = model.convert();
  EXPECT_EQ(file.get<std::string>("tokenizer.chat_template"), "a");
  EXPECT_EQ(file.get<std::string>("tokenizer.chat_template.tool_use"), "b");
  EXPECT_EQ(file.value("tokenizer.chat_templates").to_vector<std::string>(),
            std::vector<std::string>{"tool_use"});
  model.tokenizer_config["chat_template"] = 5;
  EXPECT_EQ(model.convert().find_value("tokenizer.chat_template"), nullptr);
  ASSERT_EQ(model.result.notes.size(), 1u);
  EXPECT_NE(model.result.notes[0].find("the chat template is 5"), std::string::npos);
  model.tokenizer_config = nullptr;
  fs::remove(model.file("tokenizer_config.json"));
  save(model.file("chat_template.jinja"), "\xff");
  model.expect_refused(ErrorKind::BadFile, "chat_template.jinja: is not UTF-8 at byte 0");
  fs::remove(model.file("chat_template.jinja"));
  save(model.file("chat_template.json"), R"({"chat_template": "json"})");
  EXPECT_EQ(model.convert().get<std::string>("tokenizer.chat_template"), "json");
}

// ---- how text is cut into words

Json split(const std::string& expression) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", expression}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}
const Json kBytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
const Json kGpt2 = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
const Json kDigits = {{"type", "Digits"}, {"individual_digits", true}};

std::string name_of(const std::vector<Json>& steps, bool ignore_merges = false,
                    std::size_t notes_expected = 0) {
  const Json json = {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
                     {"model", {{"ignore_merges", ignore_merges}}}};
  std::vector<std::string> notes;
  const std::string name = saved::pre_tokenizer_name(saved::Fields("t.json", json), notes);
  EXPECT_EQ(notes.size(), notes_expected) << (notes.empty() ? "" : notes[0]);
  return name;
}

TEST(PreTokenizer, IsFoundByItsExpressions) {
  const std::string start = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  const std::string end = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string llama3 = start + R"(\p{N}{1,3})" + end, qwen2 = start + R"(\p{N})" + end;
  EXPECT_EQ(name_of({split(llama3), kBytes}, true), "llama-bpe");
  EXPECT_EQ(name_of({split(llama3), kBytes}, false), "smaug-bpe");
  EXPECT_EQ(name_of({split(qwen2), kBytes}), "qwen2");
  EXPECT_EQ(name_of({kGpt2}), "gpt-2");
  EXPECT_EQ(name_of({kDigits, kGpt2}), "smollm");
  EXPECT_EQ(name_of({split("[\r\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"),
                     split("[一-龥ࠀ-一가-퟿]+"), kDigits, kBytes}),
            "deepseek-coder");
  // Inverted and removed is isolated, where nothing is left between.
  Json inverted = split(qwen2);
  inverted["behavior"] = "Removed";
  inverted["invert"] = true;
  EXPECT_EQ(name_of({inverted, kBytes}), "qwen2");
  // The characters instead of their names.
  std::string spelled = qwen2;
  for (std::size_t at = 0; (at = spelled.find("\\r\\n", at)) != std::string::npos;) {
    spelled.replace(at, 4, "\r\n");
  }
  EXPECT_EQ(name_of({split(spelled), kBytes}), "qwen2");
}

TEST(PreTokenizer, WhatIsNotKnownIsTold) {
  EXPECT_EQ(name_of({split("\\w+"), kBytes}, false, 1), "default");
  EXPECT_EQ(name_of({}, false, 1), "default");
  EXPECT_EQ(name_of({kGpt2, kDigits}, false, 1), "default");  // the other way round
  Json merged = split("\\s?\\p{L}+");
  merged["behavior"] = "MergedWithNext";
  EXPECT_EQ(name_of({merged, kBytes}, false, 1), "default");
  Json prefixed = kGpt2;
  prefixed["add_prefix_space"] = true;
  EXPECT_EQ(name_of({prefixed}, false, 1), "default");
  SavedModel model("Qwen2ForCausalLM");
  model.tokenizer["pre_tokenizer"] = split("\\w+");
  EXPECT_EQ(model.convert().get<std::string>("tokenizer.ggml.pre"), "default");
  ASSERT_EQ(model.result.notes.size(), 1u);
  EXPECT_NE(model.result.notes[0].find("is 'default' and some texts will have other tokens; it "
                                       "is: \\w+"),
            std::string::npos);
  Json deep = kGpt2;
  for (int i = 0; i < 20; ++i) deep = {{"type", "Sequence"}, {"pretokenizers", {deep}}};
  model.tokenizer["pre_tokenizer"] = deep;
  model.expect_refused(ErrorKind::BadFile, "is no list of steps");
}

}  // namespace
}  // namespace tl
