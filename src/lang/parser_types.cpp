#include <algorithm>
#include <array>
#include <utility>

#include "lang/parser_state.h"

namespace tl::lang {

namespace {

// What the elements of tensors are called, and the one name that the tree has for each.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kBaseTypes = {{
    {"float16", "float16"},   {"f16", "float16"},         {"float32", "float32"},
    {"f32", "float32"},       {"float64", "float64"},     {"f64", "float64"},
    {"bfloat16", "bfloat16"}, {"bf16", "bfloat16"},       {"int16", "int16"},
    {"i16", "int16"},         {"int32", "int32"},         {"i32", "int32"},
    {"int64", "int64"},       {"i64", "int64"},           {"uint8", "uint8"},
    {"u8", "uint8"},          {"uint32", "uint32"},       {"u32", "uint32"},
    {"bool", "bool"},         {"complex16", "complex16"},
}};

std::string_view base_type(std::string_view word) {
  const auto* row = std::find_if(kBaseTypes.begin(), kBaseTypes.end(),
                                 [&](const auto& r) { return r.first == word; });
  return row == kBaseTypes.end() ? std::string_view() : row->second;
}

}  // namespace

ast::TypePtr Parser::type() {
  const Nest nest(*this);
  auto out = std::make_unique<ast::Type>();
  const Span first = now().span;
  type_body(*out);
  trainable(*out);
  out->span = since(first);
  return out;
}

ast::TypePtr Parser::tensor_type() {
  const Span first = now().span;
  ast::TypePtr out = type();
  if (out->kind != ast::Type::Kind::Tensor && out->kind != ast::Type::Kind::Any &&
      out->kind != ast::Type::Kind::Scalar) {
    fail(since(first), "expected the type of a tensor, such as float32[2, 3]");
  }
  return out;
}

void Parser::type_body(ast::Type& out) {
  using Kind = ast::Type::Kind;
  if (is(TokenKind::LeftParen)) {
    const std::size_t open = at_;
    next();
    out.kind = Kind::Tuple;
    list(TokenKind::RightParen, open, "',' or ')'", [&] { out.arguments.push_back(type()); });
    return;
  }
  if (!is(TokenKind::Word)) expected("a type");
  const std::string_view word = now().text;
  if (const std::string_view base = base_type(word); !base.empty()) {
    out.name = base;
    next();
    out.kind = is_here(TokenKind::LeftBracket) ? Kind::Tensor : Kind::Scalar;
    if (out.kind == Kind::Tensor) sizes(out);
  } else if (word == "int" || word == "float" || word == "string") {
    out.kind = Kind::Scalar;
    out.name = word;
    next();
    if (is_here(TokenKind::LeftBracket)) {
      fail(now().span, "expected no sizes after '" + out.name + "', found '['",
           out.name == "string" ? "a list of strings is list<string>"
           : out.name == "int"  ? "a tensor of integers is int64[...]"
                                : "a tensor of floats is float32[...]");
    }
  } else if (word == "entity" || word == "concept") {
    out.kind = Kind::Entity;
    out.name = word;
    next();
  } else if (word == "void") {
    out.kind = Kind::Void;
    next();
  } else if (word == "fn") {
    out.kind = Kind::Function;
    next();
    if (is_here(TokenKind::LeftParen)) {  // fn(int) -> float: the last is the result
      const std::size_t open = at_;
      next(TokenRole::Postfix);
      list(TokenKind::RightParen, open, "',' or ')'", [&] { out.arguments.push_back(type()); });
      want(TokenKind::RightArrow, "'->'");
      out.arguments.push_back(type());
    }
  } else {
    named_type(out);
  }
}

void Parser::named_type(ast::Type& out) {
  using Kind = ast::Type::Kind;
  const ast::Name name = want_name("a type");
  out.name = name.text;
  out.kind = name.text == "Tensor" ? Kind::Any
             : name.text == "list" ? Kind::List
             : name.text == "map"  ? Kind::Map
                                   : Kind::Named;
  if (is_here(TokenKind::Less) && out.kind != Kind::Any) out.arguments = type_arguments();
  if (is_here(TokenKind::LeftBracket)) {
    expected("no sizes after '" + out.name + "'",
             "a tensor's type names its elements: float32[2, 3]");
  }
}

void Parser::sizes(ast::Type& out) {
  const std::size_t open = at_;
  next(TokenRole::Postfix);
  list(TokenKind::RightBracket, open, "',' or ']'", [&] {
    ast::Dim dim;
    dim.span = now().span;
    if (is(TokenKind::Integer)) {
      if (now().integer >= std::uint64_t{1} << 63U) fail(now().span, "the size is too large");
      dim.kind = ast::Dim::Kind::Size;
      dim.size = static_cast<std::int64_t>(now().integer);
      next();
    } else if (skip(TokenKind::Question, TokenRole::Query)) {
      dim.kind = ast::Dim::Kind::Any;
    } else {
      dim.kind = ast::Dim::Kind::Name;
      dim.name = want_name("a size: a number, a name or '?'").text;
    }
    out.dims.push_back(std::move(dim));
  });
}

void Parser::trainable(ast::Type& out) {
  while (is_word("learnable") || is_word("frozen")) {
    // The next field or statement may begin with the same word.
    if (ahead().kind == TokenKind::Colon || ahead().kind == TokenKind::LeftParen) return;
    (now().text == "learnable" ? out.learnable : out.frozen) = true;
    next();
  }
}

// Makes two tokens of one whose first character stands for itself.
void Parser::split_token(TokenKind first, TokenKind second) {
  Token head = now();
  head.kind = first;
  head.text = head.text.substr(0, 1);
  head.span.end = head.span.begin + 1;
  Token& tail = tokens_.list[at_];
  tail.kind = second;
  tail.newline_before = false;
  tail.starts_statement = false;
  tail.text = tail.text.substr(1);
  ++tail.span.begin;
  tokens_.list.insert(tokens_.list.begin() + static_cast<std::ptrdiff_t>(at_), std::move(head));
}

void Parser::close_angle(std::size_t open) {
  if (is(TokenKind::GreaterEqual))  // let x: list<int>= e
    split_token(TokenKind::Greater, TokenKind::Assign);
  want_close(TokenKind::Greater, open, "',' or '>'", TokenRole::Angle);
}

std::vector<ast::TypePtr> Parser::type_arguments() {
  std::vector<ast::TypePtr> out;
  const std::size_t open = at_;
  next(TokenRole::Angle);
  do out.push_back(type());
  while (skip(TokenKind::Comma));
  close_angle(open);
  return out;
}

std::vector<ast::Name> Parser::type_params() {
  std::vector<ast::Name> out;
  if (!is(TokenKind::Less)) return out;
  const std::size_t open = at_;
  next(TokenRole::Angle);
  do out.push_back(want_name("the name of a type parameter"));
  while (skip(TokenKind::Comma));
  close_angle(open);
  return out;
}

}  // namespace tl::lang
