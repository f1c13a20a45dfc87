// A tokenizer.json by itself, as the metadata of a GGUF file.
#include <algorithm>
#include <set>

#include "model/convert_vocab.h"
#include "tl/base/error.h"
#include "tl/model/convert.h"

namespace tl {

namespace {

using saved::Fields;
using saved::Json;

// {"type": "Sequence", "normalizers": [...]} or one of them: `visit` for each.
template <class F>
void for_each_step(const Json& step, std::string_view list, const F& visit) {
  if (!step.is_object()) return;
  if (const auto found = step.find(list); found != step.end() && found->is_array()) {
    for (const Json& each : *found) for_each_step(each, list, visit);
  } else {
    visit(step);
  }
}

std::string text_of(const Json& step, std::string_view key) {
  const auto found = step.find(key);
  return found != step.end() && found->is_string() ? found->get<std::string>() : "";
}

// Does it put a space before a text? SentencePiece does unless it is told not to; here it is a step
// of its own.
bool adds_space(const Fields& tokenizer) {
  bool adds = false;
  if (const Json* steps = tokenizer.find("normalizer")) {
    for_each_step(*steps, "normalizers", [&](const Json& step) {
      adds = adds || (text_of(step, "type") == "Prepend" && text_of(step, "prepend") == "\u2581");
    });
  }
  if (const Json* steps = tokenizer.find("pre_tokenizer")) {
    for_each_step(*steps, "pretokenizers", [&](const Json& step) {
      if (text_of(step, "type") != "Metaspace") return;
      const std::string scheme = text_of(step, "prepend_scheme");
      const auto old = step.find("add_prefix_space");
      const bool says_no = old != step.end() && old->is_boolean() && !old->get<bool>();
      adds = adds || (scheme.empty() ? !says_no : scheme != "never");
    });
  }
  return adds;
}

// The tokens that begin and end texts, by their texts, for files that do not say which they are.
constexpr std::string_view kBegins[] = {"<s>", "[BOS]", "<bos>", "<|begin_of_text|>",
                                        "<|endoftext|>"};
constexpr std::string_view kEnds[] = {"</s>",       "[EOS]",           "<eos>",
                                      "<|im_end|>", "<|end_of_text|>", "<|endoftext|>"};

void add_by_text(const saved::Vocabulary& vocabulary, std::string_view key,
                 std::span<const std::string_view> texts, GgufWriter& writer) {
  for (const std::string_view text : texts) {
    const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text);
    if (found == vocabulary.tokens.end()) continue;
    writer.add(key, static_cast<std::uint32_t>(found - vocabulary.tokens.begin()));
    return;
  }
}

}  // namespace

std::string convert_tokenizer(const std::string& tokenizer_json, std::vector<std::string>* notes) {
  const saved::TokenizerFiles files(tokenizer_json);
  std::vector<std::string> said;
  saved::ModelConfig config;  // there is none: nothing is known of the model
  config.file = tokenizer_json;
  config.json = Json::object();
  saved::Vocabulary vocabulary = saved::json_vocabulary(files, config, said);
  vocabulary.add_space_prefix = adds_space(files.tokenizer->fields());

  GgufWriter writer;
  saved::add_tokens(vocabulary, writer);
  std::set<std::string, std::less<>> known;
  for (const auto& [key, value] : saved::special_token_metadata(files, config, vocabulary, said)) {
    writer.add(key, value);
    known.insert(key);
  }
  const auto add_missing = [&](std::string_view key, const auto& add) {
    if (!known.contains(key)) add(key);
  };
  add_missing("tokenizer.ggml.bos_token_id",
              [&](auto key) { add_by_text(vocabulary, key, kBegins, writer); });
  add_missing("tokenizer.ggml.eos_token_id",
              [&](auto key) { add_by_text(vocabulary, key, kEnds, writer); });
  // What no file asks for is not added to texts.
  for (const std::string_view key :
       {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"}) {
    add_missing(key, [&](auto missing) { writer.add(missing, false); });
  }
  if (notes != nullptr) notes->insert(notes->end(), said.begin(), said.end());
  return writer.metadata_file();
}

}  // namespace tl
