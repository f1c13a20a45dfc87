// Tokens of the language. Words are one kind: which of them mean something is a matter of where
// they stand, and the parser's to know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lang/source.h"

namespace tl::lang {

enum class TokenKind : std::uint8_t {
  End,
  Word,
  Integer,
  Float,
  String,
  Plus,
  Minus,
  Star,
  Slash,
  Percent,
  At,
  StarStar,
  Outer,     // ⊗
  Hadamard,  // ⊙
  EqualEqual,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Approx,  // ≈
  AndAnd,
  OrOr,
  Bang,
  Assign,  // = and :=
  PlusAssign,
  MinusAssign,
  StarAssign,
  SlashAssign,
  LeftArrow,   // <-
  RightArrow,  // ->
  FatArrow,    // =>
  Tilde,
  Question,
  Dot,
  DotDot,
  Comma,
  Colon,
  ColonColon,
  Semicolon,
  LeftParen,
  RightParen,
  LeftBracket,
  RightBracket,
  LeftBrace,
  RightBrace,
  Pipe,
};

// What a token turned out to be; the parser says so and the formatter reads it.
enum class TokenRole : std::uint8_t {
  Plain,
  Prefix,     // a sign or a `!` before its operand
  Postfix,    // the bracket of a call, of an index or of a type's sizes; the dot of a field
  Angle,      // < and > around type arguments
  Block,      // the braces around statements
  Members,    // the braces around fields, methods and arms
  Set,        // the braces around the entries of a map and the names of a set
  Bar,        // the | before the parameters of a lambda
  BarEnd,     // and the one after them
  Tight,      // : of a slice, .. of a range, = of a named argument
  RuleArrow,  // both tokens of :-
  Query,      // ? of a query or of an unknown size
};

struct Token {
  TokenKind kind = TokenKind::End;
  TokenRole role = TokenRole::Plain;
  bool newline_before = false;    // the first of its line
  bool starts_statement = false;  // or a declaration, a field, an arm
  bool after_mistake = false;     // characters before it were skipped, and told of
  Span span;
  std::string_view text;      // as written
  std::uint64_t integer = 0;  // at most 2^63; that alone only after a minus
  double real = 0;
  std::string string;  // escapes expanded
};

}  // namespace tl::lang
