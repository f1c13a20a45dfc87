#include "model/convert_vocab.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "tl/base/error.h"

namespace tl::saved {

namespace {

std::optional<TokenizerFiles::File> read_file(const std::optional<std::string>& path) {
  if (!path) return std::nullopt;
  TokenizerFiles::File file{*path, read_json(*path)};
  file.fields();  // an object, or an error that names the file
  return file;
}

std::string content(const Fields& token) {
  auto text = token.text_if("content");
  if (!text) token.missing("content");
  return std::move(*text);
}

}  // namespace

TokenizerFiles::TokenizerFiles(const Checkpoint& checkpoint)
    : tokenizer(read_file(checkpoint.file("tokenizer.json"))),
      config(read_file(checkpoint.file("tokenizer_config.json"))),
      added(read_file(checkpoint.file("added_tokens.json"))),
      special_map(read_file(checkpoint.file("special_tokens_map.json"))),
      model_path(checkpoint.file("tokenizer.model")),
      template_path(checkpoint.file("chat_template.jinja")),
      json_template_path(checkpoint.file("chat_template.json")) {}

TokenizerFiles::TokenizerFiles(const std::string& tokenizer_json)
    : tokenizer(read_file(tokenizer_json)) {
  const std::filesystem::path path(tokenizer_json);
  if (path.filename() != "tokenizer.json") return;  // whose the files beside it are, nobody knows
  const auto beside = [&](std::string_view name) -> std::optional<std::string> {
    const std::filesystem::path other = path.parent_path() / name;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(other, ignored)) return std::nullopt;
    return other.string();
  };
  config = read_file(beside("tokenizer_config.json"));
  added = read_file(beside("added_tokens.json"));
  special_map = read_file(beside("special_tokens_map.json"));
  template_path = beside("chat_template.jinja");
  json_template_path = beside("chat_template.json");
}

std::vector<AddedToken> TokenizerFiles::added_in_tokenizer() const {
  std::vector<AddedToken> tokens;
  if (!tokenizer) return tokens;
  const Fields fields = tokenizer->fields();
  const Json* list = fields.find("added_tokens");
  if (list == nullptr) return tokens;
  if (!list->is_array()) fields.fail("key 'added_tokens' is ", shown(*list), ", not a list");
  for (const Json& item : *list) {
    const Fields token(join(tokenizer->path, ": added_tokens[", tokens.size(), "]"), item);
    tokens.push_back({token.whole("id"), content(token), token.flag_if("special").value_or(false)});
  }
  return tokens;
}

std::vector<AddedToken> TokenizerFiles::added_in_config() const {
  std::vector<AddedToken> tokens;
  if (!config) return tokens;
  const auto list = config->fields().object("added_tokens_decoder");
  if (!list) return tokens;
  for (const auto& [key, value] : config->json["added_tokens_decoder"].items()) {
    std::uint32_t id = 0;
    const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (status != std::errc{} || end != key.data() + key.size()) {
      list->fail("'", key, "' is no id of a token");
    }
    const Fields token(join(list->where(), ": ", key), value);
    tokens.push_back({id, content(token), token.flag_if("special").value_or(false)});
  }
  return tokens;
}

std::vector<AddedToken> TokenizerFiles::added_in_list() const {
  std::vector<AddedToken> tokens;
  if (!added) return tokens;
  const Fields fields = added->fields();
  for (const auto& [text, id] : added->json.items()) {
    tokens.push_back({fields.whole(text), text, false});
  }
  return tokens;
}

bool looks_special(std::string_view text) {
  constexpr std::array<std::string_view, 4> kKnown = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
  for (const std::string_view known : kKnown) {
    if (text == known) return true;
  }
  return (text.starts_with("<|") && text.ends_with("|>")) ||
         (text.starts_with("<\uff5c") && text.ends_with("\uff5c>")) ||
         (text.starts_with("<unused") && text.ends_with(">"));
}

std::string with_spaces(std::string_view text) {
  constexpr std::string_view kMark = "\u2581";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_mark = text.substr(at).starts_with(kMark);
    out += is_mark ? ' ' : text[at];
    at += is_mark ? kMark.size() : 1;
  }
  return out;
}

void add_tokens(const Vocabulary& vocabulary, GgufWriter& writer) {
  writer.add("tokenizer.ggml.model", vocabulary.model);
  writer.add("tokenizer.ggml.pre", vocabulary.pre);
  writer.add("tokenizer.ggml.tokens",
             GgufValue::array(std::span<const std::string>(vocabulary.tokens)));
  if (!vocabulary.scores.empty()) {
    writer.add("tokenizer.ggml.scores",
               GgufValue::array(std::span<const float>(vocabulary.scores)));
  }
  std::vector<std::int32_t> types;
  for (const TokenType type : vocabulary.types) types.push_back(static_cast<std::int32_t>(type));
  writer.add("tokenizer.ggml.token_type", GgufValue::array(std::span<const std::int32_t>(types)));
  if (!vocabulary.merges.empty()) {
    writer.add("tokenizer.ggml.merges",
               GgufValue::array(std::span<const std::string>(vocabulary.merges)));
  }
}

Vocabulary read_vocabulary(const TokenizerFiles& files, const ModelConfig& config,
                           std::vector<std::string>& notes) {
  if (config.vocab.value_or(0) > kMostTokens) {
    throw Error(ErrorKind::BadFile, config.file, "vocab_size is ", *config.vocab, ", and ",
                kMostTokens, " tokens are the most");
  }
  const Family family = config.architecture.family;
  const auto kind = files.config ? files.config->fields().text_if("tokenizer_class") : std::nullopt;
  // Phi 4 has the other kind of vocabulary under the name of Phi 3.
  const bool is_bytes = family == Family::Phi3 && kind && kind->starts_with("GPT2Tokenizer");
  Vocabulary vocabulary = files.model_path && !is_bytes
                              ? sentencepiece_vocabulary(files, config, notes)
                              : json_vocabulary(files, config, notes);
  if (family == Family::Llama && files.config) {
    if (const auto prefix = files.config->fields().flag_if("add_prefix_space")) {
      vocabulary.add_space_prefix = prefix;
    }
  }
  if ((family == Family::Gemma2 || family == Family::Gemma3) && vocabulary.model == "llama") {
    vocabulary.add_space_prefix = false;
  }
  return vocabulary;
}

}  // namespace tl::saved
