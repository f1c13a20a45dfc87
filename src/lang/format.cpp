#include "lang/format.h"

#include <algorithm>
#include <string_view>

#include "lang/parser_state.h"

namespace tl::lang {

namespace {

constexpr std::size_t kIndent = 4;

// A token or a comment.
struct Item {
  const Token* token = nullptr;
  const Comment* comment = nullptr;
  std::size_t new_lines = 0;  // before it in the source
  bool is_expanded = false;   // a brace: what it holds goes on lines of its own
  bool has_items = false;     // a brace: it holds statements, fields, arms
};

bool is_open(TokenKind kind) {
  return kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket ||
         kind == TokenKind::LeftBrace;
}
bool is_close(TokenKind kind) {
  return kind == TokenKind::RightParen || kind == TokenKind::RightBracket ||
         kind == TokenKind::RightBrace;
}
bool is_brace(const Token& token, TokenKind kind) {
  return token.kind == kind && (token.role == TokenRole::Block || token.role == TokenRole::Members);
}

class Formatter {
 public:
  Formatter(const Source& source, const Tokens& tokens) : text_(source.text()) {
    collect(tokens);
    drop_semicolons();
    find_expanded();
  }

  std::string run() {
    for (at_ = 0; at_ < items_.size(); ++at_) {
      const Item& item = items_[at_];
      if (item.token != nullptr && item.token->kind == TokenKind::End) break;
      separate(item);
      if (item.comment != nullptr)
        write(trimmed(text_of(item.comment->span)));
      else
        write_token(*item.token);
    }
    if (!out_.empty()) out_ += '\n';
    return std::move(out_);
  }

 private:
  // ---- what there is

  std::string_view text_of(const Span& span) const {
    return std::string_view(text_).substr(span.begin, span.end - span.begin);
  }
  static std::string_view trimmed(std::string_view comment) {
    const std::size_t last = comment.find_last_not_of(" \t\r");
    return comment.substr(0, last == std::string_view::npos ? 0 : last + 1);
  }
  static Span span_of(const Item& item) {
    return item.token != nullptr ? item.token->span : item.comment->span;
  }

  void collect(const Tokens& tokens) {
    std::size_t comment = 0;
    for (const Token& token : tokens.list) {
      while (comment < tokens.comments.size() &&
             tokens.comments[comment].span.begin < token.span.begin)
        items_.push_back({.comment = &tokens.comments[comment++]});
      if (token.kind == TokenKind::End) {
        for (; comment < tokens.comments.size(); ++comment)
          items_.push_back({.comment = &tokens.comments[comment]});
      }
      items_.push_back({.token = &token});
    }
    std::size_t end = 0;
    for (Item& item : items_) {
      const Span span = span_of(item);
      const std::string_view between =
          text_of({span.source, static_cast<std::uint32_t>(end), span.begin});
      item.new_lines = static_cast<std::size_t>(std::count(between.begin(), between.end(), '\n'));
      end = span.end;
    }
  }

  // A `;` after a statement goes, unless what follows would become part of the statement.
  void drop_semicolons() {
    std::vector<Item> kept;
    std::vector<const Token*> open;
    std::size_t lines = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      Item item = items_[i];
      item.new_lines += lines;
      lines = 0;
      if (item.token != nullptr) {
        const bool in_block = open.empty() || open.back()->role == TokenRole::Block;
        if (item.token->kind == TokenKind::Semicolon && in_block &&
            is_needless(kept, next_token(i))) {
          lines = item.new_lines;
          continue;
        }
        if (is_open(item.token->kind)) open.push_back(item.token);
        if (is_close(item.token->kind) && !open.empty()) open.pop_back();
      }
      kept.push_back(item);
    }
    items_ = std::move(kept);
  }
  const Token& next_token(std::size_t i) const {
    for (++i; items_[i].token == nullptr;) ++i;  // the last item is the token End
    return *items_[i].token;
  }
  static bool is_needless(const std::vector<Item>& before, const Token& next) {
    switch (next.kind) {
      case TokenKind::End:
      case TokenKind::RightBrace:
      case TokenKind::Semicolon:
        return true;
      case TokenKind::Word:
        break;
      default:
        return false;
    }
    for (const std::string_view word : {"and", "or", "as", "where", "learnable", "frozen", "embed"})
      if (next.text == word) return false;
    const auto last = std::find_if(before.rbegin(), before.rend(),
                                   [](const Item& item) { return item.token != nullptr; });
    if (last == before.rend()) return true;
    // A word alone may be the beginning of what follows: return, tensor, with.
    const Token& token = *last->token;
    if (token.kind != TokenKind::Word || token.text == "break" || token.text == "continue")
      return true;
    return !token.starts_statement && token.text != "tensor" && token.text != "with" &&
           token.text != "python";
  }

  // Which braces hold lines: those that do in the source, and blocks of several statements.
  void find_expanded() {
    struct Open {
      std::size_t item;
      std::size_t statements = 0;
      bool has_lines = false;
      bool has_block = false;
    };
    std::vector<Open> open;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      const bool has_line = item.new_lines > 0 ||
                            (item.comment != nullptr &&
                             (!item.comment->is_block ||
                              text_of(item.comment->span).find('\n') != std::string_view::npos));
      if (has_line && !open.empty()) open.back().has_lines = true;
      if (item.token == nullptr) continue;
      const Token& token = *item.token;
      if (token.starts_statement && !open.empty()) ++open.back().statements;
      if (is_open(token.kind)) {
        open.push_back({.item = i});
      } else if (is_close(token.kind) && !open.empty()) {
        const Open done = open.back();
        open.pop_back();
        const Token& opener = *items_[done.item].token;
        bool is_expanded = done.has_lines;
        if (is_brace(opener, TokenKind::LeftBrace)) {
          const bool is_block = opener.role == TokenRole::Block;
          const bool is_empty = done.item + 1 == i;
          is_expanded = !is_empty &&
                        (done.has_lines || ((is_block || done.has_block) && done.statements > 1));
          items_[done.item].has_items = items_[i].has_items = is_block || done.statements > 0;
          items_[done.item].is_expanded = items_[i].is_expanded = is_expanded;
          if (!open.empty() && is_block) open.back().has_block = true;
        }
        if (!open.empty()) {
          open.back().has_lines |= is_expanded;
          open.back().has_block |= done.has_block;
        }
      }
    }
  }

  // ---- what goes between

  struct Bracket {
    std::size_t item;
    std::size_t outer, inner;  // columns of the line it began in and of lines in it
  };

  bool in_items() const { return brackets_.empty() || items_[brackets_.back().item].has_items; }

  // Must this item begin a line, whatever the source has?
  bool begins_line(const Item& item) const {
    if (item.token == nullptr || !line_has_token_) return false;
    const Token& token = *item.token;
    if (token.starts_statement && brackets_.empty()) return true;
    if (brackets_.empty()) return false;
    const Item& opener = items_[brackets_.back().item];
    if (!opener.is_expanded || !opener.has_items) return false;
    return token.starts_statement || is_close(token.kind);
  }

  // May it not begin one?
  bool joins_line(const Item& item) const {
    if (item.token == nullptr || at_ == 0 || items_[at_ - 1].token == nullptr) return false;
    const Token& token = *item.token;
    const Token& before = *items_[at_ - 1].token;
    if (token.kind == TokenKind::Comma || token.kind == TokenKind::Semicolon) return true;
    if (token.text == "else" && token.kind == TokenKind::Word)
      return is_brace(before, TokenKind::RightBrace);
    if (is_brace(token, TokenKind::RightBrace)) return is_brace(before, TokenKind::LeftBrace);
    return is_brace(token, TokenKind::LeftBrace) && !token.starts_statement &&
           !is_open(before.kind) && before.kind != TokenKind::Comma;
  }

  void separate(const Item& item) {
    if (at_ == 0) return;
    bool is_line = item.new_lines > 0;
    if (joins_line(item))
      is_line = false;
    else if (begins_line(item))
      is_line = true;
    if (!is_line) {
      if (has_space(items_[at_ - 1], item)) out_ += ' ';
      return;
    }
    out_ += '\n';
    const Token* before = items_[at_ - 1].token;
    const bool is_after_open = before != nullptr && is_open(before->kind);
    const bool is_before_close = item.token != nullptr && is_close(item.token->kind);
    if (item.new_lines > 1 && !is_after_open && !is_before_close) out_ += '\n';
    line_indent_ = indent_of(at_);
    out_.append(line_indent_, ' ');
    line_has_token_ = false;
  }

  std::size_t indent_of(std::size_t index) const {
    const Item& item = items_[index];
    const std::size_t inner = brackets_.empty() ? 0 : brackets_.back().inner;
    if (item.comment != nullptr) {  // as what it is about
      std::size_t next = index + 1;
      while (items_[next].token == nullptr) ++next;
      const TokenKind kind = items_[next].token->kind;
      return is_close(kind) || kind == TokenKind::End ? inner : indent_of(next);
    }
    const Token& token = *item.token;
    if (is_close(token.kind) && !brackets_.empty()) return brackets_.back().outer;
    const bool continues = in_items() && !token.starts_statement &&
                           !is_brace(token, TokenKind::LeftBrace) && token.text != "else" &&
                           token.kind != TokenKind::End;
    return continues ? inner + kIndent : inner;
  }

  static bool has_space(const Item& before, const Item& item) {
    if (before.token == nullptr || item.token == nullptr) return has_space_at_comment(before, item);
    const Token& left = *before.token;
    const Token& right = *item.token;
    // What touches the token before it.
    switch (right.kind) {
      case TokenKind::Comma:
      case TokenKind::Semicolon:
      case TokenKind::RightParen:
      case TokenKind::RightBracket:
        return false;
      default:
        break;
    }
    if (right.kind == TokenKind::RightBrace && right.role == TokenRole::Set) return false;
    if (left.kind == TokenKind::Comma || left.kind == TokenKind::Semicolon) return true;
    switch (right.kind) {
      case TokenKind::ColonColon:
        return false;
      case TokenKind::Colon:
        return right.role == TokenRole::RuleArrow;
      default:
        break;
    }
    if (right.role == TokenRole::Postfix || right.role == TokenRole::Tight ||
        right.role == TokenRole::Angle || right.role == TokenRole::BarEnd ||
        right.role == TokenRole::Query)
      return false;
    if (right.role == TokenRole::RuleArrow && left.role == TokenRole::RuleArrow) return false;
    // What touches the token after it.
    if (left.kind == TokenKind::LeftParen || left.kind == TokenKind::LeftBracket ||
        left.kind == TokenKind::ColonColon || left.kind == TokenKind::Dot)
      return false;
    if (left.role == TokenRole::Prefix || left.role == TokenRole::Tight ||
        left.role == TokenRole::Bar)
      return false;
    if (left.role == TokenRole::Angle && left.kind == TokenKind::Less) return false;
    if (left.kind == TokenKind::LeftBrace)
      return left.role != TokenRole::Set && right.kind != TokenKind::RightBrace;
    return true;
  }
  static bool has_space_at_comment(const Item& before, const Item& item) {
    if (item.comment != nullptr && !item.comment->is_block) return true;
    const auto is_bracket = [](const Token* token, auto is_kind) {
      return token != nullptr && is_kind(token->kind) && token->kind != TokenKind::LeftBrace &&
             token->kind != TokenKind::RightBrace;
    };
    const bool is_comma = item.token != nullptr && (item.token->kind == TokenKind::Comma ||
                                                    item.token->kind == TokenKind::Semicolon);
    return !is_comma && !is_bracket(before.token, is_open) && !is_bracket(item.token, is_close);
  }

  void write(std::string_view text) { out_ += text; }
  void write_token(const Token& token) {
    if (is_close(token.kind) && !brackets_.empty()) brackets_.pop_back();
    if (is_open(token.kind)) brackets_.push_back({at_, line_indent_, line_indent_ + kIndent});
    write(token.text);
    line_has_token_ = true;
  }

  const std::string& text_;
  std::vector<Item> items_;
  std::vector<Bracket> brackets_;
  std::size_t at_ = 0;
  std::size_t line_indent_ = 0;  // of the line that is being written
  bool line_has_token_ = false;
  std::string out_;
};

}  // namespace

std::string format(const Sources& sources, std::uint32_t source,
                   std::vector<Diagnostic>& diagnostics) {
  const std::size_t before = diagnostics.size();
  Parser parser(sources, source, diagnostics);
  parser.program();
  if (diagnostics.size() > before) return sources[source].text();
  return Formatter(sources[source], parser.tokens()).run();
}

}  // namespace tl::lang
