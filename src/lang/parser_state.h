// The parser: recursive descent over a list of tokens, one token at a time, without going back.
//
// A mistake is reported where it is found and thrown as a Failure to the statement or declaration
// around it, which looks for the place where the next one begins. Nothing else is thrown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/ast.h"
#include "lang/diagnostic.h"
#include "lang/lexer.h"
#include "lang/token.h"

namespace tl::lang {

class Parser {
 public:
  Parser(const Sources& sources, std::uint32_t source, std::vector<Diagnostic>& diagnostics);

  ast::Program program();
  ast::Program input(bool& incomplete);
  // After one of these: the tokens, with what they turned out to be.
  const Tokens& tokens() const noexcept { return tokens_; }

 private:
  struct Failure {
    enum class Until : std::uint8_t {
      Statement,    // go on with the next statement
      Declaration,  // the braces do not match: go on with the next declaration
      End,          // enough was said
    } until;
  };
  // Counts how deep the parser is in the text, and how high the tree is that it makes.
  struct Nest {
    explicit Nest(Parser& p);
    ~Nest();
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;
    Parser& parser;
    std::size_t height_before;
  };
  // Where some forms cannot stand: `{` after a name in the head of an `if`, `<-` in a rule.
  struct Context {
    bool no_struct = false;
    bool no_arrow = false;
  };
  struct With {
    With(Parser& p, Context context) : parser(p), before(p.context_) { p.context_ = context; }
    ~With() { parser.context_ = before; }
    With(const With&) = delete;
    With& operator=(const With&) = delete;
    Parser& parser;
    Context before;
  };

  // ---- tokens: parser.cpp

  const Token& now() const { return tokens_.list[at_]; }
  const Token& ahead(std::size_t count = 1) const;
  const Token& previous() const { return tokens_.list[at_ == 0 ? 0 : at_ - 1]; }
  bool is(TokenKind kind) const { return now().kind == kind; }
  bool is_word(std::string_view word) const { return is_word(now(), word); }
  static bool is_word(const Token& token, std::string_view word) {
    return token.kind == TokenKind::Word && token.text == word;
  }
  bool is_here(TokenKind kind) const { return is(kind) && !now().newline_before; }
  void next(TokenRole role = TokenRole::Plain);
  bool skip(TokenKind kind, TokenRole role = TokenRole::Plain);
  bool skip_word(std::string_view word);
  void want(TokenKind kind, std::string_view what, TokenRole role = TokenRole::Plain);
  void want_word(std::string_view word);
  // The bracket that ends what began with token `open`.
  void want_close(TokenKind kind, std::size_t open, std::string_view what,
                  TokenRole role = TokenRole::Plain);
  ast::Name want_name(std::string_view what);  // not a reserved word
  ast::Name want_any_word(std::string_view what);
  ast::Name take_name();
  Span since(const Span& first) const { return cover(first, previous().span); }
  void mark_statement() { tokens_.list[at_].starts_statement = true; }

  // ---- mistakes: parser.cpp

  void report(const Span& span, std::string message, std::string hint = {});
  [[noreturn]] void fail(const Span& span, std::string message, std::string hint = {});
  [[noreturn]] void expected(std::string_view what, std::string hint = {});
  std::string found() const;
  std::string place(std::size_t token) const;  // "3:14"
  std::uint32_t column(std::size_t token) const;
  std::uint32_t line_indent(std::size_t token) const;  // column of the first token of its line
  void grow();                                         // the tree became one higher
  void recover_statement(std::size_t start);
  void recover_declaration(std::size_t start);
  [[noreturn]] void unclosed_block(std::size_t open);
  static bool can_start_statement(const Token& token);
  static bool is_statement_word(const Token& token);
  template <class Part>
  void list(TokenKind close, std::size_t open, std::string_view what, Part part,
            TokenRole role = TokenRole::Plain);
  ast::Program finish(ast::Program program);

  // ---- types: parser_types.cpp

  ast::TypePtr type();
  ast::TypePtr tensor_type();  // one that tensors have
  void type_body(ast::Type& out);
  void named_type(ast::Type& out);
  void sizes(ast::Type& out);
  void trainable(ast::Type& out);
  std::vector<ast::TypePtr> type_arguments();
  std::vector<ast::Name> type_params();
  void close_angle(std::size_t open);
  void split_token(TokenKind first, TokenKind second);

  // ---- expressions: parser_expressions.cpp

  ast::ExprPtr expression();
  ast::ExprPtr expression_in(Context context);
  ast::ExprPtr head();  // of if, while, for, match
  ast::ExprPtr condition();
  ast::ExprPtr binary(int least);
  ast::ExprPtr cast(ast::ExprPtr operand);
  ast::ExprPtr unary();
  bool opens_inverse() const;
  ast::ExprPtr postfix(ast::ExprPtr base);
  ast::ExprPtr call(ast::ExprPtr callee);
  ast::ExprPtr member(ast::ExprPtr base);
  ast::ExprPtr index(ast::ExprPtr base);
  ast::IndexItem index_item();
  std::vector<ast::Argument> arguments();
  bool starts_expression(const Token& token) const;

  // ---- what expressions are made of: parser_primary.cpp

  ast::ExprPtr primary();
  ast::ExprPtr integer(bool is_negative);
  ast::ExprPtr word();
  ast::ExprPtr named();
  ast::ExprPtr path(ast::Name type, std::vector<ast::TypePtr> arguments);
  ast::ExprPtr struct_literal(ast::Name type, std::vector<ast::TypePtr> arguments);
  ast::ExprPtr parenthesised();
  ast::ExprPtr array();
  ast::ExprPtr map();
  ast::ExprPtr if_expression();
  ast::ExprPtr match();
  ast::ExprPtr arm_value();
  ast::ExprPtr lambda();      // fn(x) { ... }
  ast::ExprPtr bar_lambda();  // |x| e
  ast::PatternPtr pattern();
  ast::PatternPtr simple_pattern();
  void struct_pattern(ast::Pattern& out);
  bool has_type_arguments() const;  // `<` begins them, and `::` or a literal follows
  bool opens_struct(std::size_t token) const;
  bool opens_map() const;

  // ---- statements: parser_statements.cpp

  ast::Block block(std::string_view after);
  void statements(std::vector<ast::StatementPtr>& out, std::size_t open);
  ast::StatementPtr statement();
  ast::StatementPtr word_statement();  // null: not one that a word begins
  ast::StatementPtr let();
  ast::StatementPtr tensor_statement();
  template <class Node>
  void read_tensor(Node& out);  // of a statement or a declaration
  ast::StatementPtr return_statement();
  ast::StatementPtr panic();
  ast::StatementPtr if_statement();
  ast::Block else_branch();
  ast::StatementPtr for_statement();
  ast::StatementPtr while_statement();
  ast::StatementPtr python();
  ast::StatementPtr expression_statement(ast::ExprPtr expression);
  ast::StatementPtr assignment(ast::ExprPtr target);
  void check_target(const ast::Expr& target);
  void check_alone(const ast::Expr& expression);
  void misplaced_declaration();
  bool opens_else();
  bool opens_statement() const;

  // ---- logic and learning: parser_logic.cpp

  ast::Atom atom_of(ast::ExprPtr expression, std::string_view where);
  ast::Query query(ast::Atom atom);
  ast::ExprPtr infer_depth(ast::InferMethod method);
  ast::StatementPtr infer();
  ast::StatementPtr learn();
  void setting(ast::LearnStatement& out);
  bool opens_setting() const;
  bool opens_rule_body() const;
  void skip_rule_arrow();
  ast::DeclarationPtr rule(std::size_t start, ast::ExprPtr head);
  void body_term(ast::RuleDeclaration& out);
  void add_constraint(ast::RuleDeclaration& out, ast::ExprPtr expression);

  // ---- declarations: parser_declarations.cpp

  bool opens_declaration() const;  // with a word of its own
  void top_level(ast::Program& program, bool is_input);
  void item(ast::Program& program, bool is_input);
  bool named_block(ast::Program& program);
  ast::DeclarationPtr declaration();
  ast::DeclarationPtr import();
  ast::DeclarationPtr entity();
  ast::DeclarationPtr tensor();
  ast::DeclarationPtr relation();
  ast::DeclarationPtr embedding();
  void embedding_members(ast::EmbeddingDeclaration& out);
  void embedding_init(ast::EmbeddingDeclaration& out);
  ast::DeclarationPtr function();
  ast::DeclarationPtr structure();
  ast::DeclarationPtr impl();
  ast::DeclarationPtr constant();
  std::vector<ast::Name> name_set();  // {a, b}
  ast::FunctionBody function_body(bool is_method);
  void params(ast::FunctionBody& out, bool is_method);
  ast::Param param(bool needs_type);
  void outside_statement(ast::Program& program, bool is_input);

  const Sources& sources_;
  std::uint32_t source_;
  std::vector<Diagnostic>& diagnostics_;
  std::size_t diagnostics_before_;
  Tokens tokens_;
  std::size_t at_ = 0;
  Context context_;
  std::size_t depth_ = 0;
  std::size_t height_ = 0;                   // of the highest tree since the innermost Nest began
  std::optional<std::size_t> last_mistake_;  // the token it was found at
  std::optional<std::size_t> odd_brace_;     // a `{` whose `}` stands further left
  std::size_t item_start_ = 0;
  bool told_of_outside_ = false;
};

// Parts separated by commas up to `close`; a comma may stand before it too.
template <class Node>
void Parser::read_tensor(Node& out) {
  const Span first = now().span;
  next();
  out.name = want_name("the name of a tensor");
  want(TokenKind::Colon, "':' and a type after the name of a tensor");
  out.type = tensor_type();
  if (skip(TokenKind::Assign)) out.value = expression();
  out.span = since(first);
}

template <class Part>
void Parser::list(TokenKind close, std::size_t open, std::string_view what, Part part,
                  TokenRole role) {
  while (!is(close)) {
    part();
    if (!skip(TokenKind::Comma)) break;
  }
  want_close(close, open, what, role);
}

}  // namespace tl::lang
