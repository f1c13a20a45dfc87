// Pre-tokenizers: the expressions that cut a text into words before byte pairs are merged, by the
// name in tokenizer.ggml.pre.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tl::tok {

// One pass over the words so far. What the expression finds becomes a word, and so does what lies
// between.
struct Cut {
  std::string_view expression;
  bool thousands = false;  // then each find is cut into groups of three characters, from its end
};

struct PreRule {
  std::span<const std::string_view> names;  // the first is what others are called after
  std::span<const Cut> cuts;
  bool ignore_merges = false;       // a word that is a token is that token
  bool add_bos = false;             // where the file does not say
  bool no_bos = false;              // there is no customary bos
  bool raw = false;                 // texts are UTF-8, and bytes are tokens <0x0A>
  bool escape_whitespaces = false;  // spaces are U+2581
  bool whole_lines = false;         // new lines that are a token together are that token
};

std::span<const PreRule> pre_rules() noexcept;
// Throws Unsupported with the names there are.
const PreRule& find_pre_rule(std::string_view name);

// The compiled expressions of one rule. Safe to use from several threads.
class PreTokenizer {
 public:
  explicit PreTokenizer(const PreRule& rule);
  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;

  // The ends of the words of a text, which must be UTF-8, in ascending order; the last is its size.
  std::vector<std::size_t> split(std::string_view text) const;

 private:
  struct Expression;
  std::vector<std::unique_ptr<Expression>> expressions_;
};

}  // namespace tl::tok
