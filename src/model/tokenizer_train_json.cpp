// A vocabulary that was learned here as Hugging Face's library saves it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/convert_vocab.h"
#include "model/tokenizer_pre.h"
#include "tl/model/tokenizer_train.h"

namespace tl {

namespace {

using JsonOut = nlohmann::json;

JsonOut byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

JsonOut pre_tokenizer_json(const std::string& pre) {
  JsonOut list = JsonOut::array();
  bool has_bytes = false;
  for (const std::string& step : saved::pre_tokenizer_steps(pre)) {
    if (step == saved::kGpt2Step) {
      list.push_back(byte_level(true));
      has_bytes = true;
    } else if (step == saved::kDigitsStep) {
      list.push_back({{"type", "Digits"}, {"individual_digits", true}});
    } else {
      list.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", step}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
    }
  }
  if (!has_bytes) list.push_back(byte_level(false));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(list)}};
}

// Puts a token before every text.
JsonOut begins_with(const std::string& token, std::size_t id) {
  const JsonOut first = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  const JsonOut text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const JsonOut other = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
  return {{"type", "TemplateProcessing"},
          {"single", {first, text}},
          {"pair", {first, text, other}},
          {"special_tokens",
           {{token, {{"id", token}, {"ids", {id}}, {"tokens", JsonOut::array({token})}}}}}};
}

std::string text_of_json(const JsonOut& json) { return json.dump(1) + "\n"; }

}  // namespace

std::string TrainedTokenizer::json() const {
  JsonOut added = JsonOut::array(), vocabulary = JsonOut::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    vocabulary[tokens[id]] = id;
    if (id >= special) continue;
    added.push_back({{"id", id},
                     {"content", tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const auto first = std::find(tokens.begin(), tokens.end(), begin);
  const JsonOut model = {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", nullptr},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", false},
                         {"byte_fallback", false},
                         {"ignore_merges", tok::find_pre_rule(pre).ignore_merges},
                         {"vocab", std::move(vocabulary)},
                         {"merges", merges}};
  return text_of_json(
      {{"version", "1.0"},
       {"truncation", nullptr},
       {"padding", nullptr},
       {"added_tokens", std::move(added)},
       {"normalizer", nullptr},
       {"pre_tokenizer", pre_tokenizer_json(pre)},
       {"post_processor",
        begin.empty() ? JsonOut(nullptr)
                      : begins_with(begin, static_cast<std::size_t>(first - tokens.begin()))},
       {"decoder", byte_level(true)},
       {"model", model}});
}

std::string TrainedTokenizer::config_json() const {
  JsonOut config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"add_bos_token", !begin.empty()},
                    {"add_eos_token", false}};
  if (!begin.empty()) config["bos_token"] = begin;
  if (!end.empty()) config["eos_token"] = end;
  if (!chat_template.empty()) config["chat_template"] = chat_template;
  return text_of_json(config);
}

}  // namespace tl
