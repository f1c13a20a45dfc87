// Unigram: of all ways to spell a text in tokens, the one whose scores sum highest.
//
// Before that the text is normalised by a map in the file, tokenizer.ggml.precompiled_charsmap:
//   u32     bytes of the double array
//   u32...  the array: a trie of texts that are replaced
//   bytes   the replacements, each ending in a zero
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "model/tokenizer_encoders.h"
#include "model/tokenizer_tables.h"
#include "model/tokenizer_utf8.h"
#include "tl/base/error.h"

namespace tl::tok {

namespace {

constexpr std::string_view kMap = "tokenizer.ggml.precompiled_charsmap";
constexpr float kUnknownPenalty = 10;

// The map of texts to their normal forms. Nothing in it is believed: an index outside of it is an
// error.
class CharacterMap {
 public:
  explicit CharacterMap(const GgufFile& file) {
    const GgufValue* value = file.find_value(kMap);
    if (value == nullptr) return;
    std::vector<std::uint8_t> bytes;
    if (value->is_array() && value->element_type() == GgufType::I8) {
      const auto signed_bytes = value->to_vector<std::int8_t>();
      bytes.assign(signed_bytes.begin(), signed_bytes.end());
    } else {
      bytes = value->to_vector<std::uint8_t>();
    }
    if (bytes.empty()) return;
    const auto word = [&](std::size_t at) {
      return std::uint32_t{bytes[at]} | std::uint32_t{bytes[at + 1]} << 8 |
             std::uint32_t{bytes[at + 2]} << 16 | std::uint32_t{bytes[at + 3]} << 24;
    };
    if (bytes.size() < 4 || word(0) % 4 != 0 || word(0) > bytes.size() - 4) {
      throw Error(ErrorKind::BadFile, "tokenizer", kMap, " is damaged: it has ", bytes.size(),
                  " bytes");
    }
    const std::size_t end = 4 + std::size_t{word(0)};
    for (std::size_t at = 4; at < end; at += 4) nodes_.push_back(word(at));
    replacements_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(end), bytes.end());
  }

  // The longest text of the map that `text` begins with, and what takes its place; a length of 0
  // when there is none.
  struct Found {
    std::size_t length = 0;
    std::string_view replacement;
  };
  Found longest(std::string_view text) const {
    Found found;
    if (nodes_.empty()) return found;
    std::uint32_t node = offset(at(0));
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte == 0) break;
      node ^= byte;
      const std::uint32_t unit = at(node);
      if ((unit & (1U << 31 | 0xFF)) != byte) break;
      node ^= offset(unit);
      if ((unit >> 8 & 1) != 0) found = {i + 1, replacement(at(node) & 0x7FFFFFFFU)};
    }
    return found;
  }

 private:
  static std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); }
  std::uint32_t at(std::size_t index) const {
    if (index >= nodes_.size()) {
      throw Error(ErrorKind::BadFile, "tokenizer", kMap, " is damaged: it leads to entry ", index,
                  " of ", nodes_.size());
    }
    return nodes_[index];
  }
  std::string_view replacement(std::size_t start) const {
    const std::size_t end =
        start < replacements_.size() ? replacements_.find('\0', start) : std::string::npos;
    if (end == std::string::npos) {
      throw Error(ErrorKind::BadFile, "tokenizer", kMap, " is damaged: it leads to byte ", start,
                  " of ", replacements_.size());
    }
    return std::string_view(replacements_).substr(start, end - start);
  }

  std::vector<std::uint32_t> nodes_;
  std::string replacements_;
};

class Unigram final : public Encoder {
 public:
  Unigram(const Vocabulary& vocabulary, const GgufFile& file)
      : vocabulary_(vocabulary), map_(file) {
    float lowest = std::numeric_limits<float>::max();
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const TokenKind kind = vocabulary.kinds[i];
      const std::string_view text = vocabulary.texts.text(i);
      const auto id = static_cast<TokenId>(i);
      if (kind == TokenKind::Normal) lowest = std::min(lowest, vocabulary.scores[i]);
      if (kind == TokenKind::Normal || kind == TokenKind::UserDefined ||
          kind == TokenKind::Unused) {
        tokens_.add(text, id);
      }
      if (kind == TokenKind::UserDefined) user_.add(text, id);
    }
    unknown_score_ = double{lowest - kUnknownPenalty};
  }

  void encode(std::string_view raw, std::vector<TokenId>& ids) const override {
    const std::string text = normalised(raw);
    if (text.empty()) return;
    // The best way to spell the text up to each byte, by its last token.
    std::vector<Step> best(text.size() + 1);
    best[0].score = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t character = std::min(promised_length(text[at]), text.size() - at);
      bool has_character = false;
      auto node = ByteTrie::kRoot;
      for (std::size_t i = at; i < text.size(); ++i) {
        const auto next = tokens_.step(node, text[i]);
        if (!next) break;
        node = *next;
        const TokenId id = tokens_.value(node);
        if (id == ByteTrie::kNothing) continue;
        if (i + 1 - at == character) has_character = true;
        const auto index = static_cast<std::size_t>(id);
        const double score = vocabulary_.kinds[index] == TokenKind::UserDefined
                                 ? 0.0
                                 : double{vocabulary_.scores[index]};
        take(best[i + 1], {best[at].score + score, at, id});
      }
      if (!has_character) {
        take(best[at + character], {best[at].score + unknown_score_, at, vocabulary_.unknown});
      }
      at += character;
    }
    const std::size_t before = ids.size();
    bool after_unknown = false;  // several in a row are one
    for (std::size_t end = text.size(); end > 0; end = best[end].start) {
      const bool is_unknown = best[end].token == vocabulary_.unknown;
      if (!(is_unknown && after_unknown) && best[end].token != kNoToken)
        ids.push_back(best[end].token);
      after_unknown = is_unknown;
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  }

 private:
  struct Step {
    double score = -std::numeric_limits<double>::infinity();
    std::size_t start = 0;
    TokenId token = kNoToken;
  };
  static void take(Step& at, const Step& challenger) {
    if (challenger.score > at.score) at = challenger;
  }

  std::string normalised(std::string_view text) const {
    const std::string_view space = vocabulary_.escape_whitespaces ? kEscapedSpace : " ";
    std::string out;
    out.reserve(text.size() * 2);
    bool has_prefix = false, in_word = false;
    while (!text.empty()) {
      std::string_view normal;
      const std::size_t length = normal_prefix(text, normal);
      for (const char c : normal) {
        if (c == ' ') {
          in_word = false;
          if (!vocabulary_.remove_extra_whitespaces) out += space;
          continue;
        }
        if (!in_word) {
          in_word = true;
          if ((vocabulary_.add_space_prefix && !has_prefix) ||
              vocabulary_.remove_extra_whitespaces) {
            out += space;
            has_prefix = true;
          }
        }
        out += c;
      }
      text.remove_prefix(length);
    }
    return out;
  }

  // How many bytes of the text are taken, and their normal form.
  std::size_t normal_prefix(std::string_view text, std::string_view& normal) const {
    std::size_t user = 0;  // a user-defined token stays as it is
    auto node = ByteTrie::kRoot;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto next = user_.step(node, text[i]);
      if (!next) break;
      node = *next;
      if (user_.value(node) != ByteTrie::kNothing) user = i + 1;
    }
    if (user != 0) {
      normal = text.substr(0, user);
      return user;
    }
    if (const auto found = map_.longest(text); found.length != 0) {
      normal = found.replacement;
      return found.length;
    }
    const CodePoint point = first_code_point(text);
    normal = point.is_valid ? text.substr(0, point.length) : kReplacement;
    return point.length;
  }

  const Vocabulary& vocabulary_;
  CharacterMap map_;
  ByteTrie tokens_, user_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<Encoder> make_unigram(const Vocabulary& vocabulary, const GgufFile& file) {
  return std::make_unique<Unigram>(vocabulary, file);
}

}  // namespace tl::tok
