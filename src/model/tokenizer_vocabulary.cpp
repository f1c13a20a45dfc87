#include "model/tokenizer_vocabulary.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "model/tokenizer_pre.h"
#include "model/tokenizer_utf8.h"
#include "tl/base/error.h"

namespace tl::tok {

namespace {

constexpr std::string_view kWhere = "tokenizer";

template <class... Parts>
[[noreturn]] void bad_file(const Parts&... parts) {
  throw Error(ErrorKind::BadFile, kWhere, parts...);
}

void read_model(const GgufFile& file, Vocabulary& v) {
  if (file.find_value("tokenizer.ggml.model") == nullptr) {
    bad_file("the file has no vocabulary: there is no key tokenizer.ggml.model");
  }
  v.model_name = file.get<std::string>("tokenizer.ggml.model");
  v.pre_name = file.get_or<std::string>("tokenizer.ggml.pre", "");
  const std::string& model = v.model_name;
  if (model == "llama") {
    v.model = Model::SentencePiece;
    v.bos = 1;
    v.eos = 2;
    v.unknown = 0;
    v.add_space_prefix = true;
    v.add_bos = true;
  } else if (model == "gpt2" || model == "gemma4") {
    v.model = Model::BytePairs;
    if (model == "gemma4") v.pre_name = "gemma4";
    if (v.pre_name.empty()) {
      v.warnings.emplace_back(
          "the file does not name its pre-tokenizer (tokenizer.ggml.pre); the default one may cut "
          "words otherwise than the model learned them");
      v.pre_name = "default";
    }
    v.pre = &find_pre_rule(v.pre_name);
    if (model == "gpt2") v.bos = v.eos = 11;
    if (v.pre->no_bos) v.bos = kNoToken;
    v.add_bos = v.pre->add_bos;
    v.escape_whitespaces = v.pre->escape_whitespaces;
  } else if (model == "t5") {
    v.model = Model::Unigram;
    v.eos = 1;
    v.unknown = 2;
    v.pad = 0;
    v.add_eos = true;
  } else {
    throw Error(ErrorKind::Unsupported, kWhere, "the vocabulary is of the kind '", model,
                "' (tokenizer.ggml.model); there are llama, gpt2, gemma4 and t5");
  }
  if (v.pre_name.empty()) v.pre_name = "default";
}

std::vector<float> read_scores(const GgufFile& file, std::size_t tokens) {
  const GgufValue* value = file.find_value("tokenizer.ggml.scores");
  if (value == nullptr) return std::vector<float>(tokens, 0.0F);
  std::vector<float> scores;
  if (value->is_array() && is_integer(value->element_type())) {
    const auto whole = value->to_vector<std::int32_t>();
    scores.assign(whole.begin(), whole.end());
  } else {
    scores = value->to_vector<float>();
  }
  if (scores.size() < tokens) {
    bad_file("tokenizer.ggml.scores has ", scores.size(), " entries for ", tokens, " tokens");
  }
  scores.resize(tokens);
  const auto bad =
      std::find_if(scores.begin(), scores.end(), [](float s) { return std::isnan(s); });
  if (bad != scores.end()) {
    bad_file("tokenizer.ggml.scores: the score of token ", bad - scores.begin(), " is no number");
  }
  return scores;
}

struct KindRow {
  TokenKind kind;
  unsigned attributes;
};

// By the numbers in the files.
constexpr std::array<KindRow, 7> kKinds{{{TokenKind::Undefined, 0},
                                         {TokenKind::Normal, Normal},
                                         {TokenKind::Unknown, Unknown},
                                         {TokenKind::Control, Control},
                                         {TokenKind::UserDefined, UserDefined},
                                         {TokenKind::Unused, Unused},
                                         {TokenKind::Byte, Byte}}};

void read_kinds(const GgufFile& file, Vocabulary& v, std::size_t tokens) {
  v.kinds.assign(tokens, TokenKind::Normal);
  v.attributes.assign(tokens, Normal);
  const GgufValue* value = file.find_value("tokenizer.ggml.token_type");
  if (value == nullptr) return;
  const auto codes = value->to_vector<std::int32_t>();
  if (codes.size() < tokens) {
    bad_file("tokenizer.ggml.token_type has ", codes.size(), " entries for ", tokens, " tokens");
  }
  for (std::size_t i = 0; i < tokens; ++i) {
    const auto code = static_cast<std::size_t>(std::max(codes[i], 0));
    const KindRow& row = kKinds[code < kKinds.size() ? code : 0];
    v.kinds[i] = row.kind;
    v.attributes[i] = static_cast<std::uint16_t>(row.attributes);
  }
}

void read_texts(const GgufFile& file, Vocabulary& v) {
  if (file.find_value("tokenizer.ggml.tokens") == nullptr) {
    bad_file("the file has no vocabulary: there is no key tokenizer.ggml.tokens");
  }
  const auto words = file.value("tokenizer.ggml.tokens").to_vector<std::string_view>();
  if (words.empty()) bad_file("tokenizer.ggml.tokens is empty");
  if (words.size() > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    bad_file("tokenizer.ggml.tokens has ", words.size(), " entries, more than ids can number");
  }
  v.texts.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    // Nothing can be found by an empty text: it gets a name that no text has.
    const std::string stand_in = words[i].empty() ? join("[EMPTY_", i, "]") : std::string();
    const std::string_view word = words[i].empty() ? std::string_view(stand_in) : words[i];
    const std::size_t index = v.texts.add(word);
    if (index != i)
      bad_file("tokenizer.ggml.tokens: ", index, " and ", i, " are both '", word, "'");
    v.longest = std::max(v.longest, word.size());
  }
}

void read_special(const GgufFile& file, Vocabulary& v) {
  const auto tokens = static_cast<TokenId>(v.size());
  const auto read = [&](std::string_view key, TokenId& id) {
    if (id >= tokens) id = kNoToken;  // the customary id, in a small vocabulary
    const std::string full = join("tokenizer.ggml.", key);
    const GgufValue* value = file.find_value(full);
    if (value == nullptr) return;
    const auto given = value->to<std::int64_t>();
    if (given >= 0 && given < tokens) {
      id = static_cast<TokenId>(given);
    } else if (given >= 0) {
      v.warnings.push_back(join(full, " is ", given, ", but there are only ", tokens, " tokens"));
    }
  };
  read("bos_token_id", v.bos);
  read("eos_token_id", v.eos);
  read("eot_token_id", v.eot);
  read("eom_token_id", v.eom);
  read("unknown_token_id", v.unknown);
  read("seperator_token_id", v.separator);  // spelled like this in the files
  read("padding_token_id", v.pad);
  read("mask_token_id", v.mask);

  v.add_bos = file.get_or<bool>("tokenizer.ggml.add_bos_token", v.add_bos);
  v.add_eos = file.get_or<bool>("tokenizer.ggml.add_eos_token", v.add_eos);
  if (v.pre_name == "gemma4") v.add_bos = true;  // whatever the early files of it say
  v.add_space_prefix = file.get_or<bool>("tokenizer.ggml.add_space_prefix", v.add_space_prefix);
  v.remove_extra_whitespaces =
      file.get_or<bool>("tokenizer.ggml.remove_extra_whitespaces", v.remove_extra_whitespaces);
}

// Files often do not say which tokens end a turn: they are known by their texts.
constexpr std::string_view kEndOfTurn[] = {"<|eot_id|>",
                                           "<|im_end|>",
                                           "<|end|>",
                                           "<end_of_turn>",
                                           "<|endoftext|>",
                                           "<EOT>",
                                           "_<EOT>",
                                           "[EOT]",
                                           "<｜end▁of▁sentence｜>",
                                           "<|end_of_text|>",
                                           "<end_of_utterance>"};
constexpr std::string_view kEnds[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>", "</s>", "<|endoftext|>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<|end_of_text|>", "<eos>", "<end_of_utterance>", "<turn|>", "<|tool_response>",
    "<｜end▁of▁sentence｜>", "[e~[",
    // of the tasks that fill a gap: padding, the name of a repository, the next file
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
    "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"};
// These are shown although they are control tokens: the answer's form is made of them.
constexpr std::string_view kShown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

void find_end_tokens(Vocabulary& v) {
  const auto attributes_of = [&](TokenId id) -> std::uint16_t& {
    return v.attributes[static_cast<std::size_t>(id)];
  };
  const auto make_control = [&](TokenId id) {
    attributes_of(id) = static_cast<std::uint16_t>(attributes_of(id) | Control);
  };
  for (const std::string_view text : kEndOfTurn) {
    if (v.eot != kNoToken) break;
    v.eot = v.find(text);
    if (v.eot != kNoToken) make_control(v.eot);
  }
  if (v.eom == kNoToken) v.eom = v.find("<|eom_id|>");
  for (const std::string_view text : kEnds) {
    const TokenId id = v.find(text);
    if (id == kNoToken) continue;
    v.ends.push_back(id);
    make_control(id);
  }
  for (const TokenId id : {v.eos, v.eot, v.eom}) {
    if (id != kNoToken) v.ends.push_back(id);
  }
  for (const std::string_view text : kShown) {
    if (const TokenId id = v.find(text); id != kNoToken) attributes_of(id) = UserDefined;
  }
  const auto drop = [&](TokenId id, Attribute attribute) {
    std::erase(v.ends, id);
    attributes_of(id) = attribute;
  };
  const auto there = [&](std::string_view text) { return v.find(text) != kNoToken; };
  // Where answers are made of several messages, <|end|> ends a message and not the answer.
  const bool calls = there("<|call|>") || there("<|calls|>");
  if (const TokenId end = v.find("<|end|>");
      end != kNoToken && calls && (there("<|return|>") || there("<|flush|>"))) {
    drop(end, UserDefined);
  }
  if (const TokenId old = v.find("</s>"); old != kNoToken && there("<|tool_response>")) {
    drop(old, Normal);
  }
  std::sort(v.ends.begin(), v.ends.end());
  v.ends.erase(std::unique(v.ends.begin(), v.ends.end()), v.ends.end());
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What the files do not say about single tokens, by the names of models that need it.
void find_strips(const GgufFile& file, Vocabulary& v) {
  const auto set = [&](std::string_view text, unsigned attribute, bool on) {
    const TokenId id = v.find(text);
    if (id == kNoToken) return;
    std::uint16_t& all = v.attributes[static_cast<std::size_t>(id)];
    all = static_cast<std::uint16_t>(on ? all | attribute : all & ~attribute);
  };
  std::string model = file.get_or<std::string>("general.name", "");
  std::transform(model.begin(), model.end(), model.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto architecture = file.get_or<std::string>("general.architecture", "");
  if (contains(v.pre_name, "jina-v2-de") || contains(v.pre_name, "jina-v2-es") ||
      contains(v.pre_name, "jina-v2-code") || contains(architecture, "nomic-bert-moe") ||
      contains(architecture, "jina-bert-v3")) {
    set("<mask>", StripLeft, true);
  } else if (contains(model, "phi-3") || contains(model, "phi3")) {
    for (std::uint16_t& all : v.attributes) {
      if ((all & (Control | UserDefined | Unknown)) != 0) {
        all = static_cast<std::uint16_t>(all | StripRight);
      }
    }
    set("</s>", StripRight, true);
    for (const std::string_view text : {"<unk>", "<s>", "<|endoftext|>"}) {
      set(text, StripRight, false);
    }
  } else if (contains(model, "modern-bert")) {
    set("[MASK]", StripLeft, true);
  }
}

// "<0x0A>" as a byte.
std::optional<unsigned char> named_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    const auto digit = static_cast<unsigned char>(c);
    if (std::isxdigit(digit) == 0) return std::nullopt;
    value = 16 * value + static_cast<unsigned>(
                             std::isdigit(digit) != 0 ? digit - '0' : (digit | 0x20) - 'a' + 10);
  }
  return static_cast<unsigned char>(value);
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = text.find(kEscapedSpace, at);
    out += text.substr(at, next - at);
    if (next == std::string_view::npos) break;
    out += ' ';
    at = next + kEscapedSpace.size();
  }
  return out;
}

// Characters that stand for bytes become those bytes; others stay what they are.
std::string from_byte_characters(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (const auto byte = byte_of_character(point.value); byte && point.is_valid) {
      out += static_cast<char>(*byte);
    } else {
      out += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return out;
}

// The kind as the file has it decides: a token that only looks like a control token still stands
// for its own text.
void make_pieces(Vocabulary& v) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::string_view text = v.texts.text(i);
    const auto byte = v.kinds[i] == TokenKind::Byte ? named_byte(text) : std::nullopt;
    if (byte) {
      v.pieces.append(std::string(1, static_cast<char>(*byte)));
    } else if ((v.attributes[i] & (Control | Unknown | UserDefined)) != 0 ||
               v.kinds[i] == TokenKind::Byte) {
      v.pieces.append(text);
    } else if (v.kinds[i] != TokenKind::Normal) {
      v.pieces.append("");  // unused, or of no kind: they stand for nothing
    } else if (v.model == Model::BytePairs && !v.escape_whitespaces) {
      v.pieces.append(from_byte_characters(text));
    } else {
      v.pieces.append(unescaped(text));
    }
  }
}

}  // namespace

TokenId Vocabulary::find(std::string_view text) const noexcept {
  const auto index = texts.find(text);
  return index ? static_cast<TokenId>(*index) : kNoToken;
}

TokenId Vocabulary::byte_token(unsigned char byte) const noexcept {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const char named[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
  if (const TokenId id = find({named, sizeof named}); id != kNoToken) return id;
  const char itself = static_cast<char>(byte);
  return find({&itself, 1});
}

Vocabulary read_vocabulary(const GgufFile& file) {
  Vocabulary v;
  read_model(file, v);
  read_texts(file, v);
  v.scores = read_scores(file, v.texts.size());
  read_kinds(file, v, v.texts.size());
  read_special(file, v);
  find_end_tokens(v);
  make_pieces(v);
  find_strips(file, v);
  return v;
}

// Printable bytes of Latin-1 stand for themselves, the others for U+0100 and on.
std::uint32_t character_of_byte(unsigned char byte) noexcept {
  const unsigned b = byte;
  if ((b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD)) return b;
  if (b <= 0x20) return 0x100 + b;
  if (b <= 0xA0) return 0x100 + 0x21 + (b - 0x7F);
  return 0x100 + 0x43;
}

std::optional<unsigned char> byte_of_character(std::uint32_t character) noexcept {
  const auto byte = [](std::uint32_t value) { return static_cast<unsigned char>(value); };
  if (character < 0x100) {
    const bool itself =
        (character > 0x20 && character < 0x7F) || (character > 0xA0 && character != 0xAD);
    return itself ? std::optional(byte(character)) : std::nullopt;
  }
  if (character <= 0x120) return byte(character - 0x100);
  if (character <= 0x142) return byte(character - 0x121 + 0x7F);
  if (character == 0x143) return byte(0xAD);
  return std::nullopt;
}

}  // namespace tl::tok
