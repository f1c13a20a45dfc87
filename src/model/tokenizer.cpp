#include "tl/model/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/tokenizer_encoders.h"
#include "model/tokenizer_special.h"
#include "model/tokenizer_utf8.h"
#include "model/tokenizer_vocabulary.h"
#include "tl/base/error.h"

namespace tl {

namespace tok {

struct State {
  explicit State(const GgufFile& file)
      : vocabulary(read_vocabulary(file)), special(vocabulary), encoder(make_encoder(file)) {}

  std::unique_ptr<Encoder> make_encoder(const GgufFile& file) const {
    switch (vocabulary.model) {
      case Model::SentencePiece:
        return make_sentencepiece(vocabulary);
      case Model::BytePairs:
        return make_byte_pairs(vocabulary, file);
      case Model::Unigram:
        break;
    }
    return make_unigram(vocabulary, file);
  }

  std::size_t index(TokenId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.size()) {
      throw Error(ErrorKind::InvalidIndex, "tokenizer", "there is no token ", id,
                  "; the vocabulary has ", vocabulary.size());
    }
    return static_cast<std::size_t>(id);
  }

  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;

  Vocabulary vocabulary;
  SpecialTokens special;
  std::unique_ptr<Encoder> encoder;
};

namespace {

std::string escaped_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) {
    if (c == ' ') {
      out += kEscapedSpace;
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<TokenId> if_any(TokenId id) {
  return id == kNoToken ? std::nullopt : std::optional<TokenId>(id);
}

}  // namespace

std::vector<TokenId> State::encode(std::string_view text, EncodeOptions options) const {
  const Vocabulary& v = vocabulary;
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) / 4) {
    throw Error(ErrorKind::BadArgument, "tokenizer", "a text of ", text.size(),
                " bytes is too long to be encoded at once");
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 2);
  if (options.add_special && v.add_bos && v.bos != kNoToken) ids.push_back(v.bos);
  bool after_special = true;
  for (const Fragment& fragment : special.split(text, options.parse_special)) {
    if (fragment.token != kNoToken) {
      ids.push_back(fragment.token);
      after_special = true;
      continue;
    }
    const bool prefix = v.model == Model::SentencePiece && v.add_space_prefix && after_special;
    const bool escape =
        v.escape_whitespaces && (v.model == Model::SentencePiece || v.model == Model::BytePairs);
    if (escape) {
      encoder->encode(
          (prefix ? std::string(kEscapedSpace) : std::string()) + escaped_spaces(fragment.text),
          ids);
    } else {
      encoder->encode(fragment.text, ids);
    }
    after_special = false;
  }
  if (options.add_special && v.add_eos && v.eos != kNoToken) ids.push_back(v.eos);
  return ids;
}

}  // namespace tok

std::string_view name(TokenKind kind) noexcept {
  switch (kind) {
    case TokenKind::Normal:
      return "normal";
    case TokenKind::Unknown:
      return "unknown";
    case TokenKind::Control:
      return "control";
    case TokenKind::UserDefined:
      return "user-defined";
    case TokenKind::Unused:
      return "unused";
    case TokenKind::Byte:
      return "byte";
    case TokenKind::Undefined:
      break;
  }
  return "undefined";
}

Tokenizer::Tokenizer(std::shared_ptr<const tok::State> state) noexcept : state_(std::move(state)) {}

Tokenizer Tokenizer::from_gguf(const GgufFile& file) {
  return Tokenizer(std::make_shared<const tok::State>(file));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  return state_->encode(text, options);
}

std::vector<TokenId> Tokenizer::encode_prompt(std::string_view text) const {
  std::vector<TokenId> ids = state_->encode(text, {.add_special = false, .parse_special = true});
  if (adds_bos() && (ids.empty() || ids.front() != *bos())) ids.insert(ids.begin(), *bos());
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string out;
  bool at_start = options.is_start && state_->vocabulary.add_space_prefix;
  for (const TokenId id : ids) {
    const std::string_view text = piece(id);
    if (is_special(id) && !options.special) continue;
    // No space goes before a token that stands in the text as it is.
    const bool is_text =
        !state_->vocabulary.has(id, tok::Control | tok::Unknown | tok::UserDefined);
    out += text.substr(at_start && is_text && text.starts_with(' ') ? 1 : 0);
    at_start = false;
  }
  return out;
}

std::size_t Tokenizer::size() const noexcept { return state_->vocabulary.size(); }
std::string_view Tokenizer::model() const noexcept { return state_->vocabulary.model_name; }
std::string_view Tokenizer::pre() const noexcept { return state_->vocabulary.pre_name; }

std::string_view Tokenizer::text(TokenId id) const {
  return state_->vocabulary.texts.text(state_->index(id));
}
std::string_view Tokenizer::piece(TokenId id) const {
  return state_->vocabulary.pieces.text(state_->index(id));
}
TokenKind Tokenizer::kind(TokenId id) const { return state_->vocabulary.kinds[state_->index(id)]; }
float Tokenizer::score(TokenId id) const { return state_->vocabulary.scores[state_->index(id)]; }
bool Tokenizer::is_special(TokenId id) const {
  state_->index(id);
  return state_->vocabulary.has(id, tok::Control | tok::Unknown);
}
std::optional<TokenId> Tokenizer::find(std::string_view text) const {
  return tok::if_any(state_->vocabulary.find(text));
}

std::optional<TokenId> Tokenizer::bos() const noexcept {
  return tok::if_any(state_->vocabulary.bos);
}
std::optional<TokenId> Tokenizer::eos() const noexcept {
  return tok::if_any(state_->vocabulary.eos);
}
std::optional<TokenId> Tokenizer::eot() const noexcept {
  return tok::if_any(state_->vocabulary.eot);
}
std::optional<TokenId> Tokenizer::unknown() const noexcept {
  return tok::if_any(state_->vocabulary.unknown);
}
std::optional<TokenId> Tokenizer::pad() const noexcept {
  return tok::if_any(state_->vocabulary.pad);
}
std::optional<TokenId> Tokenizer::separator() const noexcept {
  return tok::if_any(state_->vocabulary.separator);
}
std::optional<TokenId> Tokenizer::mask() const noexcept {
  return tok::if_any(state_->vocabulary.mask);
}

bool Tokenizer::adds_bos() const noexcept {
  return state_->vocabulary.add_bos && state_->vocabulary.bos != tok::kNoToken;
}
bool Tokenizer::adds_eos() const noexcept {
  return state_->vocabulary.add_eos && state_->vocabulary.eos != tok::kNoToken;
}

std::span<const TokenId> Tokenizer::end_tokens() const noexcept { return state_->vocabulary.ends; }
bool Tokenizer::is_end(TokenId id) const noexcept {
  const auto ends = end_tokens();
  return std::binary_search(ends.begin(), ends.end(), id);
}
std::span<const std::string> Tokenizer::warnings() const noexcept {
  return state_->vocabulary.warnings;
}

TextStream::TextStream(Tokenizer tokenizer, DecodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options), at_start_(options.is_start) {}

std::string TextStream::push(TokenId id) {
  DecodeOptions options = options_;
  options.is_start = at_start_;
  pending_ += tokenizer_.decode({&id, 1}, options);
  if (options_.special || !tokenizer_.is_special(id)) at_start_ = false;
  const std::size_t ready = pending_.size() - tok::unfinished_tail(pending_);
  std::string out = tok::valid_utf8(std::string_view(pending_).substr(0, ready));
  pending_.erase(0, ready);
  return out;
}

std::string TextStream::flush() {
  std::string out = tok::valid_utf8(pending_);
  pending_.clear();
  at_start_ = options_.is_start;
  return out;
}

}  // namespace tl
