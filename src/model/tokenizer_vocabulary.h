// What the metadata of a GGUF file says about tokens: texts, scores, kinds, special tokens and the
// switches of its tokenizer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer_tables.h"
#include "tl/model/gguf.h"
#include "tl/model/tokenizer.h"

namespace tl::tok {

inline constexpr TokenId kNoToken = -1;

enum class Model : std::uint8_t { SentencePiece, BytePairs, Unigram };

// A token may be several of these at once: a token that ends a turn is a control token, whatever
// else the file calls it.
enum Attribute : std::uint16_t {
  Unknown = 1,
  Unused = 2,
  Normal = 4,
  Control = 8,
  UserDefined = 16,
  Byte = 32,
  StripLeft = 64,    // the white space before it goes when it is found in a text
  StripRight = 128,  // and the white space after it
};

struct PreRule;  // tokenizer_pre.h

struct Vocabulary {
  Model model = Model::SentencePiece;
  std::string model_name, pre_name;
  const PreRule* pre = nullptr;  // of byte pairs

  TextTable texts;   // by id; every text is there once
  TextTable pieces;  // by id: the bytes each stands for
  std::vector<float> scores;
  std::vector<TokenKind> kinds;           // as the file has them
  std::vector<std::uint16_t> attributes;  // sums of Attribute
  std::size_t longest = 0;                // bytes of the longest text

  TokenId bos = kNoToken, eos = kNoToken, eot = kNoToken, eom = kNoToken, unknown = kNoToken;
  TokenId separator = kNoToken, pad = kNoToken, mask = kNoToken;
  std::vector<TokenId> ends;  // ascending

  bool add_bos = false, add_eos = false;
  bool add_space_prefix = false;
  bool remove_extra_whitespaces = false;
  bool escape_whitespaces = true;  // spaces are U+2581 in the texts

  std::vector<std::string> warnings;

  std::size_t size() const noexcept { return scores.size(); }
  TokenId find(std::string_view text) const noexcept;  // kNoToken when there is none
  bool has(TokenId id, unsigned any_of) const noexcept {
    return (attributes[static_cast<std::size_t>(id)] & any_of) != 0;
  }
  // The token <0x0A> for a byte; where there is none the token that is just that byte.
  TokenId byte_token(unsigned char byte) const noexcept;
};

Vocabulary read_vocabulary(const GgufFile& file);

// The character that stands for a byte in byte-level vocabularies, and the byte a character stands
// for.
std::uint32_t character_of_byte(unsigned char byte) noexcept;
std::optional<unsigned char> byte_of_character(std::uint32_t character) noexcept;

}  // namespace tl::tok
