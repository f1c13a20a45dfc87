// Byte pairs: a text is cut into words, and in each word the neighbours whose merge has the lowest
// rank merge first.
//
// Merges work on numbers, not on texts: the texts of the merges are numbered, tokens by their ids
// and the others after them, so that a step is one look into a table.
#include <array>
#include <cstdint>

#include "model/tokenizer_encoders.h"
#include "model/tokenizer_merge.h"
#include "model/tokenizer_pre.h"
#include "model/tokenizer_utf8.h"
#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::tok {

namespace {

constexpr std::string_view kMerges = "tokenizer.ggml.merges";

class BytePairs final : public Encoder {
 public:
  BytePairs(const Vocabulary& vocabulary, const GgufFile& file)
      : vocabulary_(vocabulary), rule_(*vocabulary.pre), pre_(rule_) {
    read_merges(file);
    for (unsigned byte = 0; byte < 256; ++byte) {
      characters_[byte] = to_utf8(character_of_byte(static_cast<unsigned char>(byte)));
      symbols_[byte] = symbol(characters_[byte]);
      const TokenId id = rule_.raw ? vocabulary.byte_token(static_cast<unsigned char>(byte))
                                   : vocabulary.find(characters_[byte]);
      bytes_[byte] = id == kNoToken ? vocabulary.unknown : id;
    }
  }

  void encode(std::string_view text, std::vector<TokenId>& ids) const override {
    std::string valid;
    if (first_invalid_utf8(text) != text.size()) {
      valid = valid_utf8(text);
      text = valid;
    }
    Merger merger;
    std::string encoded;
    std::size_t start = 0;
    for (const std::size_t end : pre_.split(text)) {
      encode_word(text.substr(start, end - start), merger, encoded, ids);
      start = end;
    }
  }

 private:
  void read_merges(const GgufFile& file) {
    if (file.find_value(kMerges) == nullptr) {
      throw Error(ErrorKind::BadFile, "tokenizer", "a vocabulary of byte pairs needs the key ",
                  kMerges, ", which the file does not have");
    }
    const auto merges = file.value(kMerges).to_vector<std::string_view>();
    merges_.reserve(merges.size());
    std::string both;
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const std::size_t space = merges[i].find(' ', 1);
      if (space == std::string_view::npos) {
        throw Error(ErrorKind::BadFile, "tokenizer", kMerges, ": entry ", i, " is '", merges[i],
                    "', not two texts with a space between");
      }
      const std::string_view left = merges[i].substr(0, space), right = merges[i].substr(space + 1);
      both.assign(left).append(right);
      const std::uint64_t pair = key(number(left), number(right));
      merges_.add(pair, {static_cast<std::uint32_t>(i), number(both)});
    }
  }

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }
  // The number of a text: its id, or one after all ids.
  std::int32_t number(std::string_view text) {
    const TokenId id = vocabulary_.find(text);
    return id != kNoToken ? id : static_cast<std::int32_t>(vocabulary_.size() + others_.add(text));
  }
  // The same for a text that may be in no merge: -1 then.
  std::int32_t symbol(std::string_view text) const {
    if (const TokenId id = vocabulary_.find(text); id != kNoToken) return id;
    const auto other = others_.find(text);
    return other ? static_cast<std::int32_t>(vocabulary_.size() + *other) : -1;
  }

  // A word that is a token is taken whole where the rule says so.
  TokenId whole(std::string_view word, std::string& encoded) const {
    const bool lines = rule_.whole_lines && word.find_first_not_of('\n') == std::string_view::npos;
    if (!rule_.ignore_merges && !lines) return kNoToken;
    if (rule_.raw) return vocabulary_.find(word);
    if (word.size() > vocabulary_.longest) return kNoToken;
    encoded.clear();
    for (const char byte : word) encoded += characters_[static_cast<unsigned char>(byte)];
    return vocabulary_.find(encoded);
  }

  void encode_word(std::string_view word, Merger& merger, std::string& encoded,
                   std::vector<TokenId>& ids) const {
    if (const TokenId id = whole(word, encoded); id != kNoToken) {
      ids.push_back(id);
      return;
    }
    merger.begin();
    if (rule_.raw) {
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t length = promised_length(word[at]);
        merger.add(at, length, symbol(word.substr(at, length)));
        at += length;
      }
    } else {
      for (std::size_t at = 0; at < word.size(); ++at) {
        merger.add(at, 1, symbols_[static_cast<unsigned char>(word[at])]);
      }
    }
    merger.merge([&](const Symbol& left, const Symbol& right) -> Merge {
      if (left.id < 0 || right.id < 0) return {};
      const Merge* found = merges_.find(key(left.id, right.id));
      return found == nullptr ? Merge{} : *found;
    });
    for (const Symbol& each : merger.symbols) {
      if (each.length == 0) continue;
      if (each.id >= 0 && static_cast<std::size_t>(each.id) < vocabulary_.size()) {
        ids.push_back(each.id);
        continue;
      }
      for (const char byte : word.substr(each.start, each.length)) {
        const TokenId id = bytes_[static_cast<unsigned char>(byte)];
        if (id != kNoToken) ids.push_back(id);
      }
    }
  }

  const Vocabulary& vocabulary_;
  const PreRule& rule_;
  PreTokenizer pre_;
  TextTable others_;                         // texts of merges that are no tokens
  KeyTable<Merge> merges_;                   // by the numbers of both sides
  std::array<std::string, 256> characters_;  // by byte: the character that stands for it
  std::array<std::int32_t, 256> symbols_{};  // and its number
  std::array<TokenId, 256> bytes_{};  // the token of a byte alone; the unknown one where none is
};

}  // namespace

std::unique_ptr<Encoder> make_byte_pairs(const Vocabulary& vocabulary, const GgufFile& file) {
  return std::make_unique<BytePairs>(vocabulary, file);
}

}  // namespace tl::tok
