// Vocabularies from tokenizer.json.
//
//   model         {"type": "BPE", "vocab": {"text": id, ...}, "merges": ["a b", ...] or
//                 [["a", "b"], ...], "byte_fallback": true where it was a SentencePiece model}
//   added_tokens  [{"id": 7, "content": "<s>", "special": true}, ...]
#include <map>
#include <unordered_map>

#include "model/convert_vocab.h"
#include "tl/base/error.h"

namespace tl::saved {

namespace {

constexpr float kAddedScore = -1000, kPaddingScore = -10000;

// "<0x0A>"
bool is_byte_token(std::string_view text) {
  const auto is_digit = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
  };
  return text.size() == 6 && text.starts_with("<0x") && is_digit(text[3]) && is_digit(text[4]) &&
         text[5] == '>';
}

// A merge has a space between its halves; one inside them is written as the byte vocabulary has it.
std::string half(const Json& part) {
  std::string out;
  for (const char c : part.get_ref<const std::string&>()) {
    if (c == ' ') {
      out += "\u0120";
    } else {
      out += c;
    }
  }
  return out;
}

struct Merge {
  std::string text;    // "a b"
  std::string result;  // "ab"
};

Merge read_merge(const Fields& model, const Json& item, std::size_t index) {
  if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string() &&
      !item[0].get_ref<const std::string&>().empty() &&
      !item[1].get_ref<const std::string&>().empty()) {
    return {half(item[0]) + " " + half(item[1]),
            item[0].get<std::string>() + item[1].get<std::string>()};
  }
  if (item.is_string()) {
    const auto& text = item.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string::npos && space != 0 && space + 1 != text.size() &&
        text.find(' ', space + 1) == std::string::npos) {
      return {text, text.substr(0, space) + text.substr(space + 1)};
    }
  }
  model.fail("merges[", index, "] is ", shown(item), ", not two texts");
}

std::vector<Merge> read_merges(const Fields& model) {
  const Json* list = model.find("merges");
  if (list == nullptr) model.missing("merges");
  if (!list->is_array()) model.fail("key 'merges' is ", shown(*list), ", not a list");
  std::vector<Merge> merges;
  for (const Json& item : *list) merges.push_back(read_merge(model, item, merges.size()));
  return merges;
}

// Tokens by id: those of the vocabulary, and over them those that were added.
struct Tokens {
  std::map<std::uint32_t, std::string> base;
  std::map<std::uint32_t, AddedToken> added;
  std::size_t count = 0;  // rows of the model
};

Tokens read_tokens(const TokenizerFiles& files, const Fields& model, const ModelConfig& config) {
  Tokens tokens;
  const auto vocab = model.object("vocab");
  if (!vocab) model.missing("vocab");
  for (const auto& [text, id] : model.find("vocab")->items()) {
    const std::uint32_t number = vocab->whole(text);
    if (const auto [at, is_new] = tokens.base.emplace(number, text); !is_new) {
      vocab->fail("'", at->second, "' and '", text, "' have the same id, ", number);
    }
  }
  for (AddedToken& token : files.added_in_tokenizer()) tokens.added.emplace(token.id, token);
  for (AddedToken& token : files.added_in_config()) tokens.added.emplace(token.id, token);
  for (AddedToken& token : files.added_in_list()) tokens.added.emplace(token.id, token);
  std::uint32_t most = 0;
  if (!tokens.base.empty()) most = tokens.base.rbegin()->first;
  if (!tokens.added.empty()) most = std::max(most, tokens.added.rbegin()->first);
  if (tokens.base.empty()) vocab->fail("is empty");
  tokens.count = config.vocab.value_or(most < kMostTokens ? most + 1 : 0);
  if (most >= tokens.count) {
    model.fail("there is a token with the id ", most, ", and the model has ",
               config.vocab.value_or(kMostTokens), " tokens");
  }
  return tokens;
}

// A SentencePiece vocabulary that the tokenizers library holds as merges. Its scores are lost, but
// they only say which merge comes first, and that is the order of the list.
void add_scores(const Tokens& tokens, const std::vector<Merge>& merges,
                const std::optional<std::string>& unknown, Vocabulary& out) {
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < merges.size(); ++i) first.emplace(merges[i].result, i);
  out.scores.assign(tokens.count, kPaddingScore);
  for (const auto& [id, text] : tokens.base) {
    const auto merge = first.find(text);
    const bool is_added = tokens.added.contains(id);
    out.scores[id] = is_added               ? kAddedScore
                     : merge != first.end() ? -static_cast<float>(merge->second)
                     : is_byte_token(text)  ? 0
                                            : -static_cast<float>(merges.size());
    if (is_byte_token(text)) out.types[id] = TokenType::Byte;
    if (text == unknown) {
      out.types[id] = TokenType::Unknown;
      out.scores[id] = 0;
    }
  }
  for (const auto& [id, token] : tokens.added) {
    if (!tokens.base.contains(id)) out.scores[id] = kAddedScore;
  }
}

}  // namespace

Vocabulary json_vocabulary(const TokenizerFiles& files, const ModelConfig& config,
                           std::vector<std::string>& notes) {
  if (!files.tokenizer) {
    throw Error(ErrorKind::BadFile, config.file,
                "there is no tokenizer.json and no tokenizer.model with it");
  }
  const Fields tokenizer = files.tokenizer->fields();
  const auto model = tokenizer.object("model");
  if (!model) tokenizer.missing("model");
  const std::string type = model->text_if("type").value_or("BPE");
  if (type != "BPE") {
    throw Error(ErrorKind::Unsupported, files.tokenizer->path, "vocabularies of the type '", type,
                "' cannot be converted; BPE can");
  }
  const bool is_pieces = model->flag_if("byte_fallback").value_or(false);
  const Tokens tokens = read_tokens(files, *model, config);
  std::vector<Merge> merges = read_merges(*model);

  Vocabulary out;
  out.model = is_pieces ? "llama" : "gpt2";
  out.pre = is_pieces ? "default" : pre_tokenizer_name(tokenizer, notes);
  for (std::size_t i = 0; i < tokens.count; ++i) out.tokens.push_back(join("[PAD", i, "]"));
  out.types.assign(tokens.count, TokenType::Unused);
  for (const auto& [id, text] : tokens.base) {
    out.tokens[id] = text;
    out.types[id] = TokenType::Normal;
  }
  for (const auto& [id, token] : tokens.added) {
    if (out.types[id] == TokenType::Normal && out.tokens[id] != token.text) {
      notes.push_back(join(files.tokenizer->path, ": token ", id, " '", token.text,
                           "' takes the place of '", out.tokens[id], "'"));
    }
    const bool is_special = token.is_special || looks_special(token.text);
    out.tokens[id] = is_special ? token.text : with_spaces(token.text);
    out.types[id] = is_special ? TokenType::Control : TokenType::UserDefined;
  }
  if (is_pieces) {
    add_scores(tokens, merges, model->text_if("unk_token"), out);
  } else {
    for (Merge& merge : merges) out.merges.push_back(std::move(merge.text));
    if (out.merges.empty()) {
      notes.push_back(join(files.tokenizer->path, ": has no merges, so texts are cut into bytes"));
    }
  }
  return out;
}

}  // namespace tl::saved
