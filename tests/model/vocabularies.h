// Vocabularies made for tests, as GGUF files.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_files.h"
#include "tl/model/gguf.h"
#include "tl/model/gguf_writer.h"
#include "tl/model/tokenizer.h"

namespace tl::test {

struct Entry {
  std::string text;
  float score = 0;
  std::int32_t kind = 1;  // by the numbers of the files
};
constexpr std::int32_t kUnknownKind = 2, kControlKind = 3, kUserKind = 4, kUnusedKind = 5,
                       kByteKind = 6;

class VocabularyFile {
 public:
  explicit VocabularyFile(std::string model) { writer_.add("tokenizer.ggml.model", model); }

  VocabularyFile& tokens(const std::vector<Entry>& entries) {
    std::vector<std::string> texts;
    std::vector<float> scores;
    std::vector<std::int32_t> kinds;
    for (const Entry& each : entries) {
      texts.push_back(each.text);
      scores.push_back(each.score);
      kinds.push_back(each.kind);
    }
    add("tokens", GgufValue::array(std::span<const std::string>(texts)));
    add("scores", GgufValue::array(std::span<const float>(scores)));
    return add("token_type", GgufValue::array(std::span<const std::int32_t>(kinds)));
  }
  VocabularyFile& merges(const std::vector<std::string>& merges) {
    return add("merges", GgufValue::array(std::span<const std::string>(merges)));
  }
  VocabularyFile& add(std::string_view key, const GgufValue& value) {
    return add_full(join("tokenizer.ggml.", key), value);
  }
  VocabularyFile& add_full(std::string_view key, const GgufValue& value) {
    writer_.add(key, value);
    return *this;
  }
  GgufFile open() const {
    const Folder folder;
    const std::string path = folder.file("vocabulary.gguf");
    writer_.write(path);
    return GgufFile::open(path);  // it is mapped: the name may go
  }
  void write(const std::string& path) const { writer_.write(path); }
  Tokenizer tokenizer() const { return Tokenizer::from_gguf(open()); }

 private:
  GgufWriter writer_;
};

// <unk> <s> </s>, a token for each byte, and then what is given: ids from 259.
inline std::vector<Entry> with_bytes(const std::vector<Entry>& more) {
  std::vector<Entry> out{
      {"<unk>", 0, kUnknownKind}, {"<s>", 0, kControlKind}, {"</s>", 0, kControlKind}};
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < 256; ++byte) {
    out.push_back({join("<0x", kDigits[byte / 16], kDigits[byte % 16], ">"), 0, kByteKind});
  }
  out.insert(out.end(), more.begin(), more.end());
  return out;
}
constexpr TokenId kFirst = 259;

inline TokenId byte_id(unsigned char byte) { return 3 + TokenId{byte}; }

using Ids = std::vector<TokenId>;

}  // namespace tl::test
