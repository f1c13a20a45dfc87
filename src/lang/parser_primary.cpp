#include <algorithm>
#include <cstdint>
#include <utility>

#include "lang/parser_state.h"

namespace tl::lang {

ast::ExprPtr Parser::primary() {
  const Span span = now().span;
  switch (now().kind) {
    case TokenKind::Integer:
      return integer(false);
    case TokenKind::Float: {
      const double value = now().real;
      next();
      return std::make_unique<ast::FloatExpr>(span, value);
    }
    case TokenKind::String: {
      std::string value = now().string;
      next();
      return std::make_unique<ast::StringExpr>(span, std::move(value));
    }
    case TokenKind::Word:
      return word();
    case TokenKind::LeftParen:
      return parenthesised();
    case TokenKind::LeftBracket:
      return array();
    case TokenKind::LeftBrace:
      return map();
    case TokenKind::Pipe:
    case TokenKind::OrOr:
      return bar_lambda();
    case TokenKind::Plus:
      expected("an expression", previous().kind == TokenKind::Plus
                                    ? "a variable grows by one with x += 1"
                                    : "leave the '+' out");
    case TokenKind::Dot:
      expected("an expression", ahead().kind == TokenKind::Integer
                                    ? "write 0." + std::string(ahead().text)
                                    : std::string());
    default:
      expected("an expression");
  }
}

ast::ExprPtr Parser::integer(bool is_negative) {
  const std::uint64_t value = is_negative ? 0 - now().integer : now().integer;
  if (!is_negative && value > static_cast<std::uint64_t>(INT64_MAX)) {
    report(now().span, "the integer is too large: the largest is " + std::to_string(INT64_MAX),
           "write it with a point to make it a float");
  }
  auto out = std::make_unique<ast::IntegerExpr>(now().span, static_cast<std::int64_t>(value));
  next();
  return out;
}

ast::ExprPtr Parser::word() {
  const std::string_view text = now().text;
  const Span span = now().span;
  if (text == "true" || text == "false") {
    next();
    return std::make_unique<ast::BoolExpr>(span, text == "true");
  }
  if (text == "if") return if_expression();
  if (text == "match") return match();
  if (text == "fn") return lambda();
  if (text == "python" && ahead().kind != TokenKind::Dot)
    expected("an expression", "a module's function is called with python.call(\"m.f\", x)");
  if (!starts_expression(now())) expected("an expression");
  return named();
}

ast::ExprPtr Parser::named() {
  ast::Name name = take_name();
  if (is_here(TokenKind::ColonColon)) return path(std::move(name), {});
  if (is_here(TokenKind::Less) && has_type_arguments()) {
    std::vector<ast::TypePtr> arguments = type_arguments();
    if (is(TokenKind::ColonColon)) return path(std::move(name), std::move(arguments));
    return struct_literal(std::move(name), std::move(arguments));
  }
  if (!context_.no_struct && opens_struct(at_)) return struct_literal(std::move(name), {});
  return std::make_unique<ast::NameExpr>(name.span, name.text);
}

// `{` on the line of the name before it, with what a struct's literal has inside. Anything else is
// a block.
bool Parser::opens_struct(std::size_t token) const {
  const Token& brace = tokens_.list[token];
  if (brace.kind != TokenKind::LeftBrace || brace.newline_before) return false;
  const Token& first = tokens_.list[token + 1];
  if (first.kind == TokenKind::RightBrace) return true;
  return first.kind == TokenKind::Word && tokens_.list[token + 2].kind == TokenKind::Colon;
}

bool Parser::has_type_arguments() const {
  constexpr std::size_t kMostTokens = 64;  // more are no type
  std::size_t depth = 0;
  for (std::size_t i = at_; i < std::min(at_ + kMostTokens, tokens_.list.size()); ++i) {
    switch (tokens_.list[i].kind) {
      case TokenKind::Less:
        ++depth;
        break;
      case TokenKind::Greater:
        if (--depth == 0) {
          return tokens_.list[i + 1].kind == TokenKind::ColonColon ||
                 (!context_.no_struct && opens_struct(i + 1));
        }
        break;
      case TokenKind::Word:
      case TokenKind::Comma:
      case TokenKind::LeftBracket:
      case TokenKind::RightBracket:
      case TokenKind::Integer:
      case TokenKind::Question:
        break;
      default:
        return false;
    }
  }
  return false;
}

ast::ExprPtr Parser::path(ast::Name type, std::vector<ast::TypePtr> arguments) {
  auto out = std::make_unique<ast::PathExpr>(type.span);
  next();
  if (is(TokenKind::Less)) {
    expected("a name after '::'", "type arguments come before it: " + type.text + "<int>::name()");
  }
  out->name = want_any_word("a name after '::'");
  if (!is_here(TokenKind::LeftParen)) expected("'(' after '" + out->name.text + "'");
  out->arguments = this->arguments();
  out->span = since(type.span);
  out->type = std::move(type);
  out->type_arguments = std::move(arguments);
  return out;
}

ast::ExprPtr Parser::struct_literal(ast::Name type, std::vector<ast::TypePtr> arguments) {
  auto out = std::make_unique<ast::StructExpr>(type.span);
  const std::size_t open = at_;
  next(TokenRole::Members);
  list(
      TokenKind::RightBrace, open, "',' or '}'",
      [&] {
        ast::Name field = want_any_word("the name of a field");
        want(TokenKind::Colon, "':' after the name of a field");
        out->fields.emplace_back(std::move(field), expression());
      },
      TokenRole::Members);
  out->span = since(type.span);
  out->type = std::move(type);
  out->arguments = std::move(arguments);
  return out;
}

ast::ExprPtr Parser::parenthesised() {
  const std::size_t open = at_;
  const Span first = now().span;
  next();
  std::vector<ast::ExprPtr> parts;
  bool is_tuple = is(TokenKind::RightParen);
  if (!is_tuple) {
    do {
      parts.push_back(expression());
      if (is(TokenKind::Assign) && parts.size() == 1)
        expected("',' or ')'", "two values are compared with '=='");
      if (!skip(TokenKind::Comma)) break;
      is_tuple = true;
    } while (!is(TokenKind::RightParen));
  }
  want_close(TokenKind::RightParen, open, "',' or ')'");
  if (!is_tuple) {
    parts[0]->span = since(first);
    return std::move(parts[0]);
  }
  auto out = std::make_unique<ast::TupleExpr>(since(first));
  out->elements = std::move(parts);
  return out;
}

ast::ExprPtr Parser::array() {
  auto out = std::make_unique<ast::ArrayExpr>(now().span);
  const std::size_t open = at_;
  const Span first = now().span;
  next();
  while (!is(TokenKind::RightBracket)) {
    out->elements.push_back(expression());
    if (out->elements.size() == 1 && skip_word("for")) {
      auto all = std::make_unique<ast::ComprehensionExpr>(first);
      all->element = std::move(out->elements[0]);
      const std::size_t names = at_;
      if (skip(TokenKind::LeftParen)) {  // (k, v)
        do {
          all->variables.push_back(want_name("the name of a variable"));
        } while (skip(TokenKind::Comma));
        want_close(TokenKind::RightParen, names, "',' or ')'");
      } else {
        all->variables.push_back(want_name("the name of a variable"));
      }
      want_word("in");
      all->iterable = expression();
      if (skip_word("if")) all->condition = expression();
      want_close(TokenKind::RightBracket, open, "']'");
      all->span = since(first);
      return all;
    }
    if (!skip(TokenKind::Comma)) break;
  }
  want_close(TokenKind::RightBracket, open, "',' or ']'");
  out->span = since(first);
  return out;
}

// Does the `{` here begin a map? A block has no `:` after its first word.
bool Parser::opens_map() const {
  switch (ahead().kind) {
    case TokenKind::Colon:
      return true;
    case TokenKind::Word:
    case TokenKind::String:
    case TokenKind::Integer:
    case TokenKind::Float:
      return ahead(2).kind == TokenKind::Colon;
    case TokenKind::Minus:
      return ahead(3).kind == TokenKind::Colon;
    default:
      return false;
  }
}

ast::ExprPtr Parser::map() {
  auto out = std::make_unique<ast::MapExpr>(now().span);
  const std::size_t open = at_;
  const Span first = now().span;
  next(TokenRole::Set);
  if (is(TokenKind::RightBrace)) {
    report(now().span, "expected the entries of a map, found '}'", "an empty map is written {:}");
  }
  if (is(TokenKind::Colon)) {
    next(TokenRole::Tight);
    want_close(TokenKind::RightBrace, open, "'}'", TokenRole::Set);
  } else {
    list(
        TokenKind::RightBrace, open, "',' or '}'",
        [&] {
          ast::ExprPtr key = expression();
          want(TokenKind::Colon, "':' after the key of a map");
          out->entries.emplace_back(std::move(key), expression());
        },
        TokenRole::Set);
  }
  out->span = since(first);
  return out;
}

ast::ExprPtr Parser::if_expression() {
  const Nest nest(*this);
  auto out = std::make_unique<ast::IfExpr>(now().span);
  const Span first = now().span;
  next();
  out->condition = condition();
  out->then = block("the condition");
  if (!opens_else())
    expected("'else'", "an 'if' that gives a value says which it is in either case");
  if (is_word("if")) {
    ast::ExprPtr other = if_expression();
    out->otherwise.span = other->span;
    out->otherwise.statements.push_back(
        std::make_unique<ast::ExpressionStatement>(other->span, std::move(other)));
  } else {
    out->otherwise = block("'else'");
  }
  out->span = since(first);
  return out;
}

// ---- functions as values

ast::ExprPtr Parser::lambda() {
  const Span first = now().span;
  next();
  if (is(TokenKind::Word)) {
    expected("'(' after 'fn'",
             "a function with a name is declared outside of main; one without is a value");
  }
  auto out = std::make_unique<ast::LambdaExpr>(first);
  const With with(*this, {});
  out->function = function_body(false);
  out->span = since(first);
  return out;
}

ast::ExprPtr Parser::bar_lambda() {
  const Span first = now().span;
  const std::size_t open = at_;
  auto out = std::make_unique<ast::LambdaExpr>(first);
  if (!skip(TokenKind::OrOr)) {
    next(TokenRole::Bar);
    const With with(*this, {});
    while (!is(TokenKind::Pipe)) {
      out->function.params.push_back(param(false));
      if (is(TokenKind::OrOr)) split_token(TokenKind::Pipe, TokenKind::Pipe);  // |x||y| e
      if (!skip(TokenKind::Comma)) break;
    }
    want_close(TokenKind::Pipe, open, "',' or '|'", TokenRole::BarEnd);
  }
  if (is(TokenKind::LeftBrace) && !opens_map()) {
    out->function.body = block("the parameters");
  } else {
    ast::ExprPtr value = expression_in(context_);
    out->function.body.span = value->span;
    out->function.body.statements.push_back(
        std::make_unique<ast::ExpressionStatement>(value->span, std::move(value)));
  }
  out->span = since(first);
  return out;
}

// ---- match

ast::ExprPtr Parser::match() {
  auto out = std::make_unique<ast::MatchExpr>(now().span);
  const Span first = now().span;
  next();
  out->subject = head();
  const std::size_t open = at_;
  want(TokenKind::LeftBrace, "'{' after the value to match", TokenRole::Members);
  const With with(*this, {});
  while (!is(TokenKind::RightBrace)) {
    mark_statement();
    ast::MatchArm arm;
    arm.pattern = pattern();
    if (skip_word("if")) arm.guard = expression();
    if (is(TokenKind::RightArrow) || is(TokenKind::Colon))
      expected("'=>' after the pattern", "an arm is written: pattern => value");
    want(TokenKind::FatArrow, "'=>' after the pattern");
    arm.value = arm_value();
    out->arms.push_back(std::move(arm));
    // As after a statement, the end of the line or of a block is enough.
    const bool is_block = previous().role == TokenRole::Block;
    if (!skip(TokenKind::Comma) && !now().newline_before && !is_block) break;
    if (is(TokenKind::End)) break;
  }
  want_close(TokenKind::RightBrace, open, "',' or '}'", TokenRole::Members);
  out->span = since(first);
  return out;
}

// An expression; or a block or a jump, which the tree has as `if true { ... } else {}`.
ast::ExprPtr Parser::arm_value() {
  const bool is_block = is(TokenKind::LeftBrace) && !opens_map();
  const bool is_jump = is_word("return") || is_word("break") ||
                       (is_word("continue") && ahead().kind != TokenKind::LeftParen);
  if (!is_block && !is_jump) return expression();
  const Span first = now().span;
  auto out = std::make_unique<ast::IfExpr>(first);
  out->condition = std::make_unique<ast::BoolExpr>(first, true);
  if (is_block) {
    out->then = block("'=>'");
  } else {
    out->then.statements.push_back(statement());
    out->then.span = since(first);
  }
  out->span = since(first);
  out->otherwise.span = out->span;
  return out;
}

ast::PatternPtr Parser::pattern() {
  const Nest nest(*this);
  ast::PatternPtr first = simple_pattern();
  if (!is(TokenKind::Pipe)) return first;
  auto out = std::make_unique<ast::Pattern>();
  out->kind = ast::Pattern::Kind::Either;
  const Span begin = first->span;
  out->parts.push_back(std::move(first));
  while (skip(TokenKind::Pipe)) out->parts.push_back(simple_pattern());
  out->span = since(begin);
  return out;
}

ast::PatternPtr Parser::simple_pattern() {
  using Kind = ast::Pattern::Kind;
  auto out = std::make_unique<ast::Pattern>();
  const Span first = now().span;
  const bool is_negative = skip(TokenKind::Minus, TokenRole::Prefix);
  if (is(TokenKind::Integer)) {
    out->kind = Kind::Integer;
    const std::uint64_t most = static_cast<std::uint64_t>(INT64_MAX) + (is_negative ? 1 : 0);
    if (now().integer > most) fail(now().span, "the integer is too large");
    out->integer = static_cast<std::int64_t>(is_negative ? 0 - now().integer : now().integer);
    next();
  } else if (is(TokenKind::Float)) {
    out->kind = Kind::Float;
    out->real = is_negative ? -now().real : now().real;
    next();
  } else if (is_negative) {
    expected("a number after '-'");
  } else if (is(TokenKind::String)) {
    out->kind = Kind::String;
    out->text = now().string;
    next();
  } else if (is(TokenKind::LeftParen)) {
    out->kind = Kind::Tuple;
    const std::size_t open = at_;
    next();
    list(TokenKind::RightParen, open, "',' or ')'", [&] { out->parts.push_back(pattern()); });
    const bool has_comma = tokens_.list[at_ - 2].kind == TokenKind::Comma;
    if (out->parts.size() == 1 && !has_comma) out = std::move(out->parts[0]);
  } else if (is_word("true") || is_word("false")) {
    out->kind = Kind::Bool;
    out->boolean = now().text == "true";
    next();
  } else if (skip_word("_")) {
    out->kind = Kind::Any;
  } else {
    out->text = want_name("a pattern").text;
    out->kind = Kind::Bind;
    if (is(TokenKind::Less)) type_arguments();
    if (is(TokenKind::LeftBrace)) struct_pattern(*out);
  }
  out->span = since(first);
  return out;
}

void Parser::struct_pattern(ast::Pattern& out) {
  out.kind = ast::Pattern::Kind::Struct;
  const std::size_t open = at_;
  next(TokenRole::Members);
  list(
      TokenKind::RightBrace, open, "',' or '}'",
      [&] {
        ast::Name field = want_any_word("the name of a field");
        if (skip(TokenKind::Colon)) {
          out.parts.push_back(pattern());
        } else {  // P { x } binds the field to a variable of its name
          auto bind = std::make_unique<ast::Pattern>();
          bind->kind = ast::Pattern::Kind::Bind;
          bind->span = field.span;
          bind->text = field.text;
          out.parts.push_back(std::move(bind));
        }
        out.fields.push_back(std::move(field));
      },
      TokenRole::Members);
}

}  // namespace tl::lang
