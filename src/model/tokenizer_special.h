// Special tokens that are written in a text.
#pragma once

#include <string_view>
#include <vector>

#include "model/tokenizer_tables.h"
#include "model/tokenizer_vocabulary.h"

namespace tl::tok {

// A part of a text: a token, or what lies between tokens.
struct Fragment {
  std::string_view text;
  TokenId token = kNoToken;
};

class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);

  // Longer tokens are found before shorter ones, in the whole text; of equal ones the lower id,
  // then the one further left. Control and unknown tokens are found only with `control`.
  std::vector<Fragment> split(std::string_view text, bool control) const;

 private:
  const Vocabulary& vocabulary_;
  ByteTrie all_, user_;  // user-defined tokens are always found
};

}  // namespace tl::tok
