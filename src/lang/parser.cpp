#include "lang/parser.h"

#include <algorithm>
#include <tuple>

#include "lang/parser_state.h"

namespace tl::lang {

namespace {

constexpr std::size_t kMostMistakes = 20;
constexpr std::size_t kMostDepth = 400;    // of brackets and blocks in each other
constexpr std::size_t kMostHeight = 1000;  // of a tree: a + b + c is one higher than a + b

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

bool is_open(TokenKind kind) {
  return kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket ||
         kind == TokenKind::LeftBrace;
}

std::string_view close_of(TokenKind open) {
  switch (open) {
    case TokenKind::LeftParen:
      return ")";
    case TokenKind::LeftBracket:
      return "]";
    case TokenKind::LeftBrace:
      return "}";
    default:
      return "";
  }
}

// Brackets that are open after `token`, where those in `open` were before it. A brace closes what
// was left open inside of it.
void follow_brackets(std::vector<TokenKind>& open, const Token& token) {
  if (is_open(token.kind)) {
    open.push_back(token.kind);
  } else if (token.kind == TokenKind::RightBrace) {
    const auto brace = std::find(open.rbegin(), open.rend(), TokenKind::LeftBrace);
    if (brace != open.rend()) open.erase(std::next(brace).base(), open.end());
  } else if (!open.empty() && token.text == close_of(open.back())) {
    open.pop_back();
  }
}

bool has_brace(const std::vector<TokenKind>& open) {
  return std::find(open.begin(), open.end(), TokenKind::LeftBrace) != open.end();
}

}  // namespace

// ---- nesting

Parser::Nest::Nest(Parser& p) : parser(p), height_before(p.height_) {
  if (p.depth_ >= kMostDepth) {
    p.fail(p.now().span,
           "expressions and blocks are nested more than " + std::to_string(kMostDepth) + " deep");
  }
  ++p.depth_;
  p.height_ = 0;
}

Parser::Nest::~Nest() {
  --parser.depth_;
  parser.height_ = std::max(height_before, parser.height_ + 1);
}

void Parser::grow() {
  if (++height_ > kMostHeight) {
    fail(now().span,
         "the expression has more than " + std::to_string(kMostHeight) + " operators in a row",
         "give parts of it names with 'let'");
  }
}

// ---- tokens

Parser::Parser(const Sources& sources, std::uint32_t source, std::vector<Diagnostic>& diagnostics)
    : sources_(sources),
      source_(source),
      diagnostics_(diagnostics),
      diagnostics_before_(diagnostics.size()),
      tokens_(tokenize(sources, source, diagnostics)) {}

const Token& Parser::ahead(std::size_t count) const {
  return tokens_.list[std::min(at_ + count, tokens_.list.size() - 1)];
}

void Parser::next(TokenRole role) {
  if (role != TokenRole::Plain) tokens_.list[at_].role = role;
  if (at_ + 1 < tokens_.list.size()) ++at_;
}

bool Parser::skip(TokenKind kind, TokenRole role) { return is(kind) && (next(role), true); }
bool Parser::skip_word(std::string_view word) { return is_word(word) && (next(), true); }

void Parser::want(TokenKind kind, std::string_view what, TokenRole role) {
  if (!is(kind)) expected(what);
  next(role);
}

void Parser::want_word(std::string_view word) {
  if (!skip_word(word)) expected(quoted(word));
}

void Parser::want_close(TokenKind kind, std::size_t open, std::string_view what, TokenRole role) {
  if (!is(kind)) {
    expected(what, quoted(tokens_.list[open].text) + " was opened at " + place(open));
  }
  next(role);
}

ast::Name Parser::take_name() {
  ast::Name name{std::string(now().text), now().span};
  next();
  return name;
}

ast::Name Parser::want_name(std::string_view what) {
  if (!is(TokenKind::Word)) expected(what);
  if (is_reserved(now().text)) {
    const std::string word(now().text);
    const std::string hint = "choose another name, such as '" + word + "_'";
    const TokenKind after = ahead().kind;
    // Where a name stands beyond doubt, it is taken for one, so that the rest can be looked at.
    const bool is_name = after == TokenKind::Assign || after == TokenKind::Colon ||
                         after == TokenKind::Comma || after == TokenKind::RightParen ||
                         after == TokenKind::LeftParen || after == TokenKind::LeftBrace ||
                         after == TokenKind::RightBrace || is_word(ahead(), "in");
    if (!is_name) expected(what, hint);
    report(now().span, "expected " + std::string(what) + ", found " + found(), hint);
  }
  return take_name();
}

ast::Name Parser::want_any_word(std::string_view what) {
  if (!is(TokenKind::Word)) expected(what);
  return take_name();
}

// ---- mistakes

std::string Parser::found() const {
  switch (now().kind) {
    case TokenKind::End:
      return "the end of the file";
    case TokenKind::String:
      return "a string";
    case TokenKind::Word:
      return (is_reserved(now().text) ? "the reserved word " : "") + quoted(now().text);
    default:
      return quoted(now().text);
  }
}

void Parser::report(const Span& span, std::string message, std::string hint) {
  if (last_mistake_ && *last_mistake_ >= at_) return;  // said already
  last_mistake_ = at_;
  // The lexer told of what was not closed, and of what is not there.
  if ((is(TokenKind::End) && tokens_.is_cut) || now().after_mistake) return;
  if (diagnostics_.size() - diagnostics_before_ >= kMostMistakes)
    throw Failure{Failure::Until::End};
  diagnostics_.push_back(
      {.message = "Parse error: " + std::move(message), .span = span, .hint = std::move(hint)});
}

void Parser::fail(const Span& span, std::string message, std::string hint) {
  report(span, std::move(message), std::move(hint));
  throw Failure{Failure::Until::Statement};
}

void Parser::expected(std::string_view what, std::string hint) {
  fail(now().span, "expected " + std::string(what) + ", found " + found(), std::move(hint));
}

std::uint32_t Parser::column(std::size_t token) const {
  return sources_[source_].position(tokens_.list[token].span.begin).column;
}

std::string Parser::place(std::size_t token) const {
  const Position at = sources_[source_].position(tokens_.list[token].span.begin);
  return std::to_string(at.line) + ":" + std::to_string(at.column);
}

std::uint32_t Parser::line_indent(std::size_t token) const {
  while (token > 0 && !tokens_.list[token].newline_before) --token;
  return column(token);
}

void Parser::unclosed_block(std::size_t open) {
  const std::size_t brace = odd_brace_.value_or(open);
  report(now().span, "expected '}', found " + found(),
         "the '{' at " + place(brace) + (odd_brace_ ? " may be" : " is") + " without its '}'");
  throw Failure{Failure::Until::Declaration};
}

bool Parser::is_statement_word(const Token& token) {
  static constexpr std::string_view kWords[] = {"let",    "if",    "for",   "while", "loop",
                                                "return", "break", "match", "infer", "learn"};
  return token.kind == TokenKind::Word &&
         std::find(std::begin(kWords), std::end(kWords), token.text) != std::end(kWords);
}

bool Parser::can_start_statement(const Token& token) {
  switch (token.kind) {
    case TokenKind::Word:
      return token.text != "else" && token.text != "and" && token.text != "or" &&
             token.text != "as" && token.text != "in";
    case TokenKind::LeftParen:
    case TokenKind::LeftBrace:
    case TokenKind::RightBrace:
      return true;
    default:
      return false;
  }
}

// Goes to where the next statement seems to begin, or to the end of the block. Lines that are
// indented more than the statement that failed belong to it.
void Parser::recover_statement(std::size_t start) {
  std::vector<TokenKind> open;
  for (std::size_t i = start; i < at_; ++i) follow_brackets(open, tokens_.list[i]);
  const std::uint32_t indent = line_indent(start);
  for (; !is(TokenKind::End); next()) {
    const Token& token = now();
    if (at_ > start) {
      if (token.kind == TokenKind::RightBrace && !has_brace(open)) return;
      if (token.kind == TokenKind::Semicolon && open.empty()) return;
      if (token.newline_before && can_start_statement(token)) {
        const std::uint32_t here = column(at_);
        if (token.kind == TokenKind::RightBrace ? here < indent : here <= indent) return;
        if (open.empty()) return;
        if (is_statement_word(token) && !has_brace(open)) return;
      }
    }
    follow_brackets(open, token);
  }
}

void Parser::recover_declaration(std::size_t start) {
  std::vector<TokenKind> open;
  for (std::size_t i = start; i < at_; ++i) follow_brackets(open, tokens_.list[i]);
  const std::uint32_t indent = line_indent(start);
  for (; !is(TokenKind::End); next()) {
    const Token& token = now();
    if (at_ > start && token.newline_before && can_start_statement(token) &&
        token.kind != TokenKind::RightBrace) {
      if (!has_brace(open)) return;
      if (opens_declaration() && column(at_) <= indent) return;
    }
    follow_brackets(open, token);
  }
}

// ---- whole texts

ast::Program Parser::finish(ast::Program program) {
  const auto first = diagnostics_.begin() + static_cast<std::ptrdiff_t>(diagnostics_before_);
  std::sort(first, diagnostics_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.span.begin, a.span.end, a.message) <
           std::tie(b.span.begin, b.span.end, b.message);
  });
  if (diagnostics_.size() - diagnostics_before_ > kMostMistakes)
    diagnostics_.resize(diagnostics_before_ + kMostMistakes);
  program.source = source_;
  return program;
}

ast::Program Parser::program() {
  ast::Program program;
  top_level(program, false);
  return finish(std::move(program));
}

ast::Program Parser::input(bool& incomplete) {
  ast::Program program;
  top_level(program, true);
  program = finish(std::move(program));
  incomplete = false;
  if (diagnostics_.size() == diagnostics_before_) return program;
  // More lines help when nothing is wrong but that the text ends too soon.
  const bool is_at_end =
      diagnostics_[diagnostics_before_].span.begin == tokens_.list.back().span.begin;
  incomplete = diagnostics_.size() == diagnostics_before_ + 1 && (tokens_.is_cut || is_at_end);
  if (incomplete) diagnostics_.resize(diagnostics_before_);
  return program;
}

ast::Program parse_program(const Sources& sources, std::uint32_t source,
                           std::vector<Diagnostic>& diagnostics) {
  return Parser(sources, source, diagnostics).program();
}

ast::Program parse_input(const Sources& sources, std::uint32_t source,
                         std::vector<Diagnostic>& diagnostics, bool& incomplete) {
  return Parser(sources, source, diagnostics).input(incomplete);
}

}  // namespace tl::lang
