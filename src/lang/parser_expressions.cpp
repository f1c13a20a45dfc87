// Operators, from the weakest to the strongest: .., ||, &&, not, == != ≈, < <= > >=, as, + -,
// * / % @ ⊙, ** ⊗, then signs, then calls, fields and indices. All of them bind to the left.
#include <algorithm>
#include <array>
#include <utility>

#include "lang/parser_state.h"

namespace tl::lang {

namespace {

using ast::BinaryOp;

enum Level : std::uint8_t {
  OrLevel = 1,
  AndLevel,
  NotLevel,
  EqualityLevel,
  OrderLevel,
  CastLevel,
  SumLevel,
  ProductLevel,
  PowerLevel
};

struct Operator {
  TokenKind token;
  BinaryOp op;
  Level level;
  std::string_view symbol;
};
constexpr std::array<Operator, 18> kOperators = {{
    {TokenKind::OrOr, BinaryOp::Or, OrLevel, "||"},
    {TokenKind::AndAnd, BinaryOp::And, AndLevel, "&&"},
    {TokenKind::EqualEqual, BinaryOp::Equal, EqualityLevel, "=="},
    {TokenKind::NotEqual, BinaryOp::NotEqual, EqualityLevel, "!="},
    {TokenKind::Approx, BinaryOp::Approx, EqualityLevel, "\xE2\x89\x88"},
    {TokenKind::Less, BinaryOp::Less, OrderLevel, "<"},
    {TokenKind::LessEqual, BinaryOp::LessEqual, OrderLevel, "<="},
    {TokenKind::Greater, BinaryOp::Greater, OrderLevel, ">"},
    {TokenKind::GreaterEqual, BinaryOp::GreaterEqual, OrderLevel, ">="},
    {TokenKind::Plus, BinaryOp::Add, SumLevel, "+"},
    {TokenKind::Minus, BinaryOp::Subtract, SumLevel, "-"},
    {TokenKind::Star, BinaryOp::Multiply, ProductLevel, "*"},
    {TokenKind::Slash, BinaryOp::Divide, ProductLevel, "/"},
    {TokenKind::Percent, BinaryOp::Remainder, ProductLevel, "%"},
    {TokenKind::At, BinaryOp::MatrixProduct, ProductLevel, "@"},
    {TokenKind::Hadamard, BinaryOp::Hadamard, ProductLevel, "\xE2\x8A\x99"},
    {TokenKind::StarStar, BinaryOp::Power, PowerLevel, "**"},
    {TokenKind::Outer, BinaryOp::Outer, PowerLevel, "\xE2\x8A\x97"},
}};

const Operator* operator_of(const Token& token) {
  TokenKind kind = token.kind;
  if (kind == TokenKind::Word) {
    if (token.text == "and") kind = TokenKind::AndAnd;
    if (token.text == "or") kind = TokenKind::OrOr;
  }
  const auto* row = std::find_if(kOperators.begin(), kOperators.end(),
                                 [&](const Operator& o) { return o.token == kind; });
  return row == kOperators.end() ? nullptr : row;
}

}  // namespace

std::string_view ast::symbol(BinaryOp op) noexcept {
  const auto* row = std::find_if(kOperators.begin(), kOperators.end(),
                                 [&](const Operator& o) { return o.op == op; });
  return row == kOperators.end() ? std::string_view("?") : row->symbol;
}

ast::ExprPtr Parser::expression() { return expression_in({}); }

ast::ExprPtr Parser::expression_in(Context context) {
  const Nest nest(*this);
  const With with(*this, context);
  ast::ExprPtr first = binary(OrLevel);
  if (!skip(TokenKind::DotDot, TokenRole::Tight)) return first;
  ast::ExprPtr last = binary(OrLevel);
  grow();
  const Span span = cover(first->span, last->span);
  return std::make_unique<ast::RangeExpr>(span, std::move(first), std::move(last));
}

ast::ExprPtr Parser::head() {
  if (is(TokenKind::LeftBrace) && !opens_map()) expected("an expression before the block");
  return expression_in({.no_struct = true});
}

ast::ExprPtr Parser::condition() {
  ast::ExprPtr out = head();
  if (is(TokenKind::Assign)) {
    report(now().span, "expected '{', found '" + std::string(now().text) + "'",
           "two values are compared with '=='");
    next();
    head();
  }
  return out;
}

ast::ExprPtr Parser::binary(int least) {
  ast::ExprPtr left;
  if (least <= NotLevel && is_word("not")) {
    const Nest nest(*this);
    const Span first = now().span;
    next();
    ast::ExprPtr operand = binary(NotLevel);
    left = std::make_unique<ast::UnaryExpr>(cover(first, operand->span), ast::UnaryOp::Not,
                                            std::move(operand));
  } else {
    left = unary();
  }
  while (true) {
    if (is(TokenKind::LeftArrow) && !context_.no_arrow)  // a <-b
      split_token(TokenKind::Less, TokenKind::Minus);
    if (is_word("as") && least <= CastLevel) {
      left = cast(std::move(left));
      continue;
    }
    const Operator* op = operator_of(now());
    if (op == nullptr || op->level < least) return left;
    next();
    ast::ExprPtr right = binary(op->level + 1);
    grow();
    const Span span = cover(left->span, right->span);
    left = std::make_unique<ast::BinaryExpr>(span, op->op, std::move(left), std::move(right));
  }
}

ast::ExprPtr Parser::cast(ast::ExprPtr operand) {
  next();
  static constexpr std::string_view kIntegers[] = {"int",   "i32",   "i64",   "int16",
                                                   "int32", "int64", "uint8", "uint32"};
  static constexpr std::string_view kFloats[] = {"float",   "f16",     "f32",     "f64",
                                                 "float16", "float32", "float64", "bfloat16"};
  const auto is_one_of = [&](const auto& words) {
    return is(TokenKind::Word) &&
           std::find(std::begin(words), std::end(words), now().text) != std::end(words);
  };
  const bool to_integer = is_one_of(kIntegers);
  if (!to_integer && !is_one_of(kFloats)) {
    expected("'int' or 'float' after 'as'", is_word("string") ? "str(x) makes a string of x"
                                            : is_word("bool") ? "x != 0 makes a bool of x"
                                                              : "");
  }
  next();
  if (is_word("as")) {
    expected("one 'as' in a row", "put the first in parentheses: (x as int) as float");
  }
  grow();
  const Span span = since(operand->span);
  return std::make_unique<ast::CastExpr>(span, std::move(operand), to_integer);
}

// `inv` is not reserved: inv(x) calls a function, inv[i] and inv - x have a variable of that name.
// It is the operator before an operand on its line; a bracket or a sign must be apart from it.
bool Parser::opens_inverse() const {
  const Token& after = ahead();
  if (!is_word("inv") || after.newline_before) return false;
  const bool is_apart = now().span.end < after.span.begin;
  switch (after.kind) {
    case TokenKind::Word:
    case TokenKind::Integer:
    case TokenKind::Float:
    case TokenKind::String:
      return starts_expression(after);
    case TokenKind::LeftBracket:
      return is_apart;
    case TokenKind::Minus:
      return is_apart && after.span.end == ahead(2).span.begin;
    default:
      return false;
  }
}

ast::ExprPtr Parser::unary() {
  const Span first = now().span;
  ast::UnaryOp op = ast::UnaryOp::Negate;
  if (is(TokenKind::Bang) || is_word("not")) {
    op = ast::UnaryOp::Not;
  } else if (opens_inverse()) {
    op = ast::UnaryOp::Inverse;
  } else if (!is(TokenKind::Minus)) {
    return postfix(primary());
  }
  const Nest nest(*this);
  next(is(TokenKind::Word) ? TokenRole::Plain : TokenRole::Prefix);
  // The least integer has no positive counterpart.
  constexpr std::uint64_t kBound = std::uint64_t{1} << 63U;
  if (op == ast::UnaryOp::Negate && is(TokenKind::Integer) && now().integer == kBound) {
    ast::ExprPtr least = integer(true);
    least->span = cover(first, least->span);
    return postfix(std::move(least));
  }
  ast::ExprPtr operand = unary();
  const Span span = cover(first, operand->span);
  return std::make_unique<ast::UnaryExpr>(span, op, std::move(operand));
}

bool Parser::starts_expression(const Token& token) const {
  switch (token.kind) {
    case TokenKind::Word: {
      static constexpr std::string_view kOthers[] = {
          "and",   "as",  "break", "else", "for", "import", "in",   "infer",
          "learn", "let", "loop",  "main", "or",  "return", "void", "while"};
      return std::find(std::begin(kOthers), std::end(kOthers), token.text) == std::end(kOthers);
    }
    case TokenKind::Integer:
    case TokenKind::Float:
    case TokenKind::String:
    case TokenKind::LeftParen:
    case TokenKind::LeftBracket:
    case TokenKind::LeftBrace:
    case TokenKind::Minus:
    case TokenKind::Bang:
    case TokenKind::Pipe:
    case TokenKind::OrOr:
      return true;
    default:
      return false;
  }
}

// ---- calls, fields, indices

// A bracket belongs to what stands before it on its line; a field may begin the next line.
ast::ExprPtr Parser::postfix(ast::ExprPtr base) {
  while (true) {
    const bool is_number =
        base->kind == ast::Expr::Kind::Integer || base->kind == ast::Expr::Kind::Float;
    if (is(TokenKind::Dot)) {
      base = member(std::move(base));
    } else if (is_here(TokenKind::LeftParen) && !is_number &&
               base->kind != ast::Expr::Kind::String) {
      base = call(std::move(base));
    } else if (is_here(TokenKind::LeftBracket)) {
      base = index(std::move(base));
    } else {
      return base;
    }
    grow();
  }
}

ast::ExprPtr Parser::member(ast::ExprPtr base) {
  next(TokenRole::Postfix);
  if (is(TokenKind::Integer) || is(TokenKind::Float))
    expected("a name after '.'", "an element is read with [" + std::string(now().text) + "]");
  ast::Name name = want_any_word("a name after '.'");
  if (!is_here(TokenKind::LeftParen)) {
    const Span span = since(base->span);
    return std::make_unique<ast::FieldExpr>(span, std::move(base), std::move(name));
  }
  auto out = std::make_unique<ast::MethodExpr>(base->span);
  out->name = std::move(name);
  out->arguments = arguments();
  out->span = since(base->span);
  out->base = std::move(base);
  return out;
}

ast::ExprPtr Parser::call(ast::ExprPtr callee) {
  auto out = std::make_unique<ast::CallExpr>(callee->span);
  out->arguments = arguments();
  out->span = since(callee->span);
  out->callee = std::move(callee);
  return out;
}

std::vector<ast::Argument> Parser::arguments() {
  std::vector<ast::Argument> out;
  const std::size_t open = at_;
  want(TokenKind::LeftParen, "'('", TokenRole::Postfix);
  list(TokenKind::RightParen, open, "',' or ')'", [&] {
    ast::Argument argument;
    const bool is_named = is(TokenKind::Word) &&
                          (ahead().kind == TokenKind::Colon || ahead().kind == TokenKind::Assign);
    if (is_named) {
      argument.name = take_name();
      next(is(TokenKind::Assign) ? TokenRole::Tight : TokenRole::Plain);
    } else if (!out.empty() && out.back().name) {
      report(now().span, "expected the name of an argument, as the one before has a name",
             "arguments without names come first");
    }
    argument.value = expression();
    out.push_back(std::move(argument));
  });
  return out;
}

ast::ExprPtr Parser::index(ast::ExprPtr base) {
  auto out = std::make_unique<ast::IndexExpr>(base->span);
  const std::size_t open = at_;
  next(TokenRole::Postfix);
  if (is(TokenKind::RightBracket)) expected("an index");
  list(TokenKind::RightBracket, open, "',' or ']'", [&] { out->items.push_back(index_item()); });
  out->span = since(base->span);
  out->base = std::move(base);
  return out;
}

// i, a:b, a:b:c, a..b with every bound of a slice left out at will.
ast::IndexItem Parser::index_item() {
  const Nest nest(*this);
  const With with(*this, {});
  ast::IndexItem out;
  const Span first = now().span;
  const auto is_end = [&] { return is(TokenKind::Comma) || is(TokenKind::RightBracket); };
  const auto is_colon = [&] { return is(TokenKind::Colon) || is(TokenKind::ColonColon); };
  if (!is_colon() && !is(TokenKind::DotDot)) out.start = binary(OrLevel);
  if (is_colon()) {
    out.is_slice = true;
    bool has_step = is(TokenKind::ColonColon);
    next(TokenRole::Tight);
    if (!has_step) {
      if (!is_end() && !is(TokenKind::Colon)) out.stop = binary(OrLevel);
      has_step = skip(TokenKind::Colon, TokenRole::Tight);
    }
    if (has_step && !is_end()) out.step = binary(OrLevel);
  } else if (skip(TokenKind::DotDot, TokenRole::Tight)) {
    out.is_slice = true;
    if (!is_end()) out.stop = binary(OrLevel);
  } else {
    out.index = std::move(out.start);
  }
  out.span = since(first);
  return out;
}

}  // namespace tl::lang
