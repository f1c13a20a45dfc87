// The kinds of vocabulary, each a way from text to ids. Texts come without special tokens; what a
// kind does with spaces at the start of a text was done before.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "model/tokenizer_vocabulary.h"
#include "tl/model/gguf.h"

namespace tl::tok {

class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the ids of the text, which is at most 2^31 bytes.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) const = 0;
};

// Each keeps a reference to the vocabulary.
std::unique_ptr<Encoder> make_sentencepiece(const Vocabulary& vocabulary);
std::unique_ptr<Encoder> make_byte_pairs(const Vocabulary& vocabulary, const GgufFile& file);
std::unique_ptr<Encoder> make_unigram(const Vocabulary& vocabulary, const GgufFile& file);

}  // namespace tl::tok
