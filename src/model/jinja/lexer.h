// A template as tokens. White space around tags is dealt with here, as Hugging Face's settings have
// it: the first new line after a block goes (trim_blocks), and so does the space before a block
// that begins its line (lstrip_blocks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tl/base/error.h"

namespace tl::jinja {

struct Place {
  std::uint32_t line = 1, column = 1;
};

// A failure whose message says where in the template it was.
struct PlacedError : Error {
  template <class... Parts>
  PlacedError(ErrorKind k, Place place, const Parts&... parts)
      : Error(k, "template", "line ", place.line, ", column ", place.column, ": ", parts...) {}
};

template <class... Parts>
[[noreturn]] void fail_at(ErrorKind kind, Place place, const Parts&... parts) {
  throw PlacedError(kind, place, parts...);
}

enum class TokenType : std::uint8_t {
  Data,           // text outside of tags
  VariableBegin,  // {{
  VariableEnd,    // }}
  BlockBegin,     // {%
  BlockEnd,       // %}
  Name,
  String,  // without quotes, escapes resolved
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenType type = TokenType::End;
  std::string text;
  Place place;
};

// Throws BadArgument with line and column for what is not a template.
std::vector<Token> tokenize(std::string_view source);

}  // namespace tl::jinja
