// SentencePiece pairs: neighbours whose text is a token merge, the token with the highest score
// first. What is no token in the end is spelled in bytes.
#include <bit>
#include <cstdint>
#include <cstring>

#include "model/tokenizer_encoders.h"
#include "model/tokenizer_merge.h"
#include "model/tokenizer_utf8.h"

namespace tl::tok {

namespace {

// Numbers that order like the scores, highest first.
std::uint32_t order_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // no negative zero
  const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return ~ascending;
}

// The bytes of a character as a number.
std::uint32_t packed(std::string_view character) {
  std::uint32_t value = 0;
  std::memcpy(&value, character.data(), character.size());
  return value;
}

class SentencePiece final : public Encoder {
 public:
  explicit SentencePiece(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    orders_.reserve(vocabulary.size());
    for (const float score : vocabulary.scores) orders_.push_back(order_of(score));
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const std::string_view text = vocabulary.texts.text(i);
      std::uint32_t before = 0;
      for (std::size_t at = 0; at < text.size();) {
        const std::string_view character = character_at(text, at);
        if (at != 0) neighbours_.add(key(before, packed(character)), true);
        before = packed(character);
        at += character.size();
      }
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
      const TokenId id = vocabulary.byte_token(static_cast<unsigned char>(byte));
      bytes_.push_back(id == kNoToken ? vocabulary.unknown : id);
    }
  }

  // Between two characters that are neighbours in no token nothing can merge, so the text is cut
  // there and the parts are merged one by one; the result is the same.
  void encode(std::string_view text, std::vector<TokenId>& ids) const override {
    Merger merger;
    std::uint32_t before = 0;
    merger.begin();
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view character = character_at(text, at);
      const std::uint32_t code = packed(character);
      if (at != 0 && neighbours_.find(key(before, code)) == nullptr) finish(text, merger, ids);
      merger.add(at, character.size(), 0);
      before = code;
      at += character.size();
    }
    finish(text, merger, ids);
  }

 private:
  static std::uint64_t key(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
  }
  static std::string_view character_at(std::string_view text, std::size_t at) {
    return text.substr(at, first_code_point(text.substr(at)).length);
  }

  void finish(std::string_view text, Merger& merger, std::vector<TokenId>& ids) const {
    if (merger.symbols.size() > 1) {
      merger.merge([&](const Symbol& left, const Symbol& right) -> Merge {
        const std::size_t size = std::size_t{left.length} + right.length;
        if (size > vocabulary_.longest) return {};
        const TokenId id = vocabulary_.find(text.substr(left.start, size));
        return id == kNoToken ? Merge{} : Merge{orders_[static_cast<std::size_t>(id)], id};
      });
    }
    for (const Symbol& symbol : merger.symbols) {
      if (symbol.length == 0) continue;
      const std::string_view part = text.substr(symbol.start, symbol.length);
      if (const TokenId id = vocabulary_.find(part); id != kNoToken) {
        ids.push_back(id);
        continue;
      }
      for (const char byte : part) {
        const TokenId id = bytes_[static_cast<unsigned char>(byte)];
        if (id != kNoToken) ids.push_back(id);
      }
    }
    merger.begin();
  }

  const Vocabulary& vocabulary_;
  std::vector<std::uint32_t> orders_;  // by id
  std::vector<TokenId> bytes_;         // by byte; the unknown token where there is none
  KeyTable<bool> neighbours_;          // pairs of characters that stand side by side in some token
};

}  // namespace

std::unique_ptr<Encoder> make_sentencepiece(const Vocabulary& vocabulary) {
  return std::make_unique<SentencePiece>(vocabulary);
}

}  // namespace tl::tok
