// Text to token ids and back, by the vocabulary in a GGUF file's metadata.
//
//   const Tokenizer tokenizer = Tokenizer::from_gguf(GgufFile::open("model.gguf"));
//   const std::vector<TokenId> ids = tokenizer.encode("Hello");
//   tokenizer.decode(ids);  // "Hello"
//
// Three kinds of vocabulary are known, by tokenizer.ggml.model: "llama" (SentencePiece pairs by
// score), "gpt2" and "gemma4" (byte pairs by rank, cut first by expressions that tokenizer.ggml.pre
// names) and "t5" (unigram). Anything else is Unsupported with the names that are known.
//
// Text is UTF-8. Bytes that are none do not fail: "llama" has a token for every byte and keeps
// them, the others see U+FFFD for each. docs/tokenizers.md has the rules and where they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/gguf.h"

namespace tl {

namespace tok {
struct State;
}

using TokenId = std::int32_t;

enum class TokenKind : std::uint8_t {
  Normal,
  Unknown,      // stands for what the vocabulary cannot say
  Control,      // <s>, <|im_end|>: read in a text only when asked
  UserDefined,  // added later: always read in a text
  Unused,
  Byte,       // <0x0A>
  Undefined,  // the file gives no kind
};

std::string_view name(TokenKind kind) noexcept;  // "normal", "user-defined"

struct EncodeOptions {
  bool add_special = true;     // the tokens the model wants at the start and at the end
  bool parse_special = false;  // control tokens written in the text are those tokens
};

struct DecodeOptions {
  bool special = false;  // show control and unknown tokens too
  // The ids begin a text: the space that encode() put before it is dropped. Not so for an answer
  // that goes on after a prompt.
  bool is_start = true;
};

// A handle: copies share the vocabulary. Safe to use from several threads.
class Tokenizer {
 public:
  // Keeps nothing of the file. Throws BadFile for a vocabulary that is missing, damaged or at odds
  // with itself, Unsupported for a kind that is not known.
  static Tokenizer from_gguf(const GgufFile& file);

  // ---- text and ids
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;
  // A prompt that a chat template wrote: control tokens are read, and the first token is added only
  // where the text does not begin with it.
  std::vector<TokenId> encode_prompt(std::string_view text) const;
  // The bytes of the ids one after another; exact, so they need not be UTF-8 when the ids are not
  // of a text. Throws InvalidIndex for an id that is not in the vocabulary.
  std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  // ---- the vocabulary
  std::size_t size() const noexcept;
  std::string_view model() const noexcept;   // tokenizer.ggml.model
  std::string_view pre() const noexcept;     // tokenizer.ggml.pre, "default" where there is none
  std::string_view text(TokenId id) const;   // as the file has it: "▁the", "Ġthe"
  std::string_view piece(TokenId id) const;  // the bytes it stands for: " the"
  TokenKind kind(TokenId id) const;
  float score(TokenId id) const;
  bool is_special(TokenId id) const;  // control or unknown: not shown by decode()
  std::optional<TokenId> find(std::string_view text) const;

  // ---- special tokens; nothing where the vocabulary has none
  std::optional<TokenId> bos() const noexcept;  // begins a text
  std::optional<TokenId> eos() const noexcept;  // ends a text
  std::optional<TokenId> eot() const noexcept;  // ends a turn of a chat
  std::optional<TokenId> unknown() const noexcept;
  std::optional<TokenId> pad() const noexcept;
  std::optional<TokenId> separator() const noexcept;
  std::optional<TokenId> mask() const noexcept;
  bool adds_bos() const noexcept;  // encode() puts bos() first
  bool adds_eos() const noexcept;  // and eos() last
  // Generation stops at these, in ascending order.
  std::span<const TokenId> end_tokens() const noexcept;
  bool is_end(TokenId id) const noexcept;

  // What is odd about the file, a sentence each; the ids may then differ from what the model was
  // trained with.
  std::span<const std::string> warnings() const noexcept;

 private:
  explicit Tokenizer(std::shared_ptr<const tok::State> state) noexcept;
  std::shared_ptr<const tok::State> state_;
};

// Ids one at a time into text that can be shown at once: a character is given out when its last
// byte is there, never in parts. All text given out is valid UTF-8; bytes that cannot be part of it
// are U+FFFD.
class TextStream {
 public:
  explicit TextStream(Tokenizer tokenizer,
                      DecodeOptions options = {.special = false, .is_start = false});

  std::string push(TokenId id);  // what is complete now; often empty for parts of a character
  std::string flush();           // what is left, when no more ids come; the stream begins anew

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  bool at_start_;
  std::string pending_;  // at most three bytes of a character that is not complete
};

}  // namespace tl
