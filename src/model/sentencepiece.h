// Reads tokenizer.model: the vocabulary of a SentencePiece model, a message of protocol buffers.
//
//   message   fields one after another, each: varint (number * 8 + wire type), then by wire type
//             0  a varint    1  8 bytes    2  varint length and that many bytes    5  4 bytes
//   1  piece       (repeated)  1 text, 2 score (f32), 3 type
//   2  trainer     3 kind of model, 40 to 43 ids of unknown, begin, end and padding
//   3  normalizer  3 add a space before the text, 4 remove extra spaces
//
// Fields that are not known are passed over. What does not hold throws BadFile with the file and
// the byte; nothing is allocated for before it is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tl::saved {

// The values are the codes in the files, and those of GGUF.
enum class TokenType : std::int32_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6,
};

struct SentencePieceModel {
  struct Piece {
    std::string_view text;  // in the bytes that were read
    float score = 0;
    TokenType type = TokenType::Normal;
  };
  enum class Kind : std::uint8_t { Unigram = 1, Bpe = 2, Word = 3, Char = 4 };

  std::vector<Piece> pieces;
  Kind kind = Kind::Unigram;
  std::int32_t unknown_id = 0, begin_id = 1, end_id = 2, padding_id = -1;  // below 0: none
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
};

// The bytes must stay where they are. `file` stands for them in messages.
SentencePieceModel read_sentencepiece(std::string_view file, std::span<const std::byte> bytes);

}  // namespace tl::saved
