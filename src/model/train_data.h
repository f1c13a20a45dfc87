// Texts to learn from: documents, their tokens, and the rows that steps are made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/model/tokenizer.h"
#include "tl/model/train.h"
#include "tl/tensor/tensor.h"

namespace tl::training_data {

// What stands between lines that are exactly <|end|>, without the line end before one. Documents
// of nothing but white space are left out.
std::vector<std::string_view> split_documents(std::string_view text);

struct TokenStream {
  std::vector<std::uint32_t> ids;    // of all documents, one after another
  std::vector<std::int64_t> starts;  // of each document in them
  TrainText text;
  std::string digest;  // of the texts and the vocabulary
};

// Each document with the token that begins a text before and the one that ends it after; once
// between two where that is one token. Tokens that are in the file `cache`, of the same texts and
// the same vocabulary, are taken from there; else it is written.
TokenStream tokenise(std::span<const std::string> paths, const Tokenizer& tokenizer,
                     const std::string& vocabulary_digest, const std::string& cache);

// Rows of `context` tokens and of those that follow each. A target that does not count is kNone.
struct Rows {
  static constexpr std::uint32_t kNone = 0xffffffff;  // cross_entropy leaves it out
  Tensor ids, targets;                                // (rows, context), u32
  std::uint64_t counted = 0;                          // targets
  std::uint64_t bytes = 0;                            // that the counted ones stand for
};
Rows pack_rows(const TokenStream& stream, const Tokenizer& tokenizer, const TrainConfig& config,
               const Device& device);

// In which order rows come: every epoch has all of them once, mixed by the seed and its number, and
// the next follows without a gap.
class RowOrder {
 public:
  RowOrder(std::uint64_t seed, std::int64_t rows) : seed_(seed), rows_(rows) {}
  // Row number `position` of all that ever come.
  std::int64_t at(std::int64_t position);

 private:
  std::uint64_t seed_;
  std::int64_t rows_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;  // of that epoch
};

}  // namespace tl::training_data
