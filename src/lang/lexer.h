// Source text as tokens.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lang/diagnostic.h"
#include "lang/token.h"

namespace tl::lang {

struct Comment {
  Span span;  // without the end of the line
  bool is_block = false;
};

struct Tokens {
  std::vector<Token> list;  // the last is End
  std::vector<Comment> comments;
  bool is_cut = false;  // the text ends inside a string or a comment
};

// What is wrong is added to `diagnostics`; the tokens then are what was likely meant, so that one
// mistake is told of once.
Tokens tokenize(const Sources& sources, std::uint32_t source, std::vector<Diagnostic>& diagnostics);

// One of the 48 words that cannot be declared as names.
bool is_reserved(std::string_view word) noexcept;
std::span<const std::string_view> reserved_words() noexcept;

}  // namespace tl::lang
