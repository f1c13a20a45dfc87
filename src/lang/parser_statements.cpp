#include <algorithm>
#include <utility>

#include "lang/parser_state.h"

namespace tl::lang {

namespace {

// What people who come from other languages write, and what it is here.
std::string other_language(std::string_view word) {
  if (word == "var" || word == "val" || word == "int" || word == "float" || word == "string" ||
      word == "auto" || word == "set" || word == "mut")
    return "a variable is declared with: let x = 1";
  if (word == "def" || word == "func" || word == "function" || word == "fun")
    return "a function is declared with 'fn', outside of main";
  if (word == "switch" || word == "case") return "write: match x { 1 => a, _ => b }";
  if (word == "elif" || word == "elseif" || word == "elsif") return "write 'else if'";
  if (word == "until" || word == "do" || word == "repeat") return "write: while condition { ... }";
  if (word == "class") return "a type is declared with 'struct', outside of main";
  return {};
}

bool is_assignment(TokenKind kind) {
  return kind == TokenKind::Assign || kind == TokenKind::PlusAssign ||
         kind == TokenKind::MinusAssign || kind == TokenKind::StarAssign ||
         kind == TokenKind::SlashAssign;
}

// `continue` is not reserved: does what follows show that it is a variable here?
bool names_variable(const Token& after) {
  const bool is_bracket = after.kind == TokenKind::LeftParen ||
                          after.kind == TokenKind::LeftBracket || after.kind == TokenKind::Dot;
  return is_assignment(after.kind) || (is_bracket && !after.newline_before);
}

}  // namespace

// ---- blocks

ast::Block Parser::block(std::string_view after) {
  const Nest nest(*this);
  const With with(*this, {});
  ast::Block out;
  const std::size_t open = at_;
  if (!is(TokenKind::LeftBrace)) {
    expected("'{' after " + std::string(after), is_word("then") || is(TokenKind::Colon)
                                                    ? "a block is written in braces: { ... }"
                                                    : "");
  }
  next(TokenRole::Block);
  statements(out.statements, open);
  next(TokenRole::Block);
  out.span = since(tokens_.list[open].span);
  return out;
}

// Up to the `}` of the block, which is left.
void Parser::statements(std::vector<ast::StatementPtr>& out, std::size_t open) {
  while (true) {
    while (skip(TokenKind::Semicolon)) {
    }
    if (is(TokenKind::RightBrace)) {
      if (now().newline_before && !odd_brace_ && column(at_) < line_indent(open)) odd_brace_ = open;
      return;
    }
    if (is(TokenKind::End)) unclosed_block(open);
    const std::size_t start = at_;
    mark_statement();
    try {
      if (opens_declaration()) {
        if (now().newline_before && column(at_) <= column(item_start_)) unclosed_block(open);
        misplaced_declaration();
      } else {
        out.push_back(statement());
      }
    } catch (const Failure& failure) {
      if (failure.until != Failure::Until::Statement) throw;
      recover_statement(start);
    }
  }
}

void Parser::misplaced_declaration() {
  const std::string word(now().text);
  report(now().span, "'" + word + "' cannot stand inside of a block",
         word == "fn"      ? "declare it outside, or as a value: let f = fn(x) { ... }"
         : word == "const" ? "inside of a block, use 'let'"
                           : "move it out of the block");
  ast::Program none;
  item(none, false);
}

ast::StatementPtr Parser::statement() {
  if (ast::StatementPtr out = word_statement()) return out;
  return expression_statement(expression_in({.no_arrow = true}));
}

ast::StatementPtr Parser::word_statement() {
  const Span first = now().span;
  if (is(TokenKind::LeftBrace)) {
    auto out = std::make_unique<ast::BlockStatement>(first);
    out->body = block("");
    out->span = out->body.span;
    return out;
  }
  if (!is(TokenKind::Word)) return nullptr;
  const TokenKind after = ahead().kind;
  const std::string_view word = now().text;
  if (word == "let") return let();
  if (word == "tensor" && after == TokenKind::Word) return tensor_statement();
  if (word == "return") return return_statement();
  if (word == "panic" && after == TokenKind::LeftParen) return panic();
  if (word == "if") return if_statement();
  if (word == "for") return for_statement();
  if (word == "while") return while_statement();
  if (word == "infer") return infer();
  if (word == "learn") return learn();
  if (word == "python" && after != TokenKind::Dot) return python();
  if (word == "break") {
    next();
    return std::make_unique<ast::BreakStatement>(first);
  }
  if (word == "continue" && !names_variable(ahead())) {
    next();
    return std::make_unique<ast::ContinueStatement>(first);
  }
  if (word == "loop") {
    auto out = std::make_unique<ast::LoopStatement>(first);
    next();
    out->body = block("'loop'");
    out->span = since(first);
    return out;
  }
  if (word == "with" && after == TokenKind::Word && ahead(2).kind == TokenKind::LeftBrace) {
    auto out = std::make_unique<ast::WithStatement>(first);
    next();
    out->type = want_name("the name of an entity type");
    out->body = block("the name");
    out->span = since(first);
    return out;
  }
  if (word == "else") fail(first, "'else' has no 'if' before it");
  return nullptr;
}

// ---- variables

ast::StatementPtr Parser::let() {
  auto out = std::make_unique<ast::LetStatement>(now().span);
  const Span first = now().span;
  next();
  if (is_word("mut") && ahead().kind == TokenKind::Word) {
    report(now().span, "expected the name of a variable, found 'mut'",
           "leave it out: every variable can be assigned");
    next();
  }
  const std::size_t open = at_;
  if (skip(TokenKind::LeftParen)) {
    out->is_tuple = true;
    list(TokenKind::RightParen, open, "',' or ')'",
         [&] { out->names.push_back(want_name("the name of a variable")); });
    if (out->names.empty()) fail(since(first), "expected the name of a variable, found ')'");
  } else {
    do out->names.push_back(want_name("the name of a variable"));
    while (skip(TokenKind::Comma));
    out->is_tuple = out->names.size() > 1;
  }
  if (skip(TokenKind::Colon)) out->type = type();
  want(TokenKind::Assign, "'=' after the name of a variable");
  out->value = expression();
  out->span = since(first);
  return out;
}

ast::StatementPtr Parser::tensor_statement() {
  auto out = std::make_unique<ast::TensorStatement>(now().span);
  read_tensor(*out);
  return out;
}

ast::StatementPtr Parser::assignment(ast::ExprPtr target) {
  auto out = std::make_unique<ast::AssignStatement>(target->span);
  check_target(*target);
  switch (now().kind) {
    case TokenKind::PlusAssign:
      out->op = ast::BinaryOp::Add;
      break;
    case TokenKind::MinusAssign:
      out->op = ast::BinaryOp::Subtract;
      break;
    case TokenKind::StarAssign:
      out->op = ast::BinaryOp::Multiply;
      break;
    case TokenKind::SlashAssign:
      out->op = ast::BinaryOp::Divide;
      break;
    default:
      break;
  }
  if (out->op && target->kind == ast::Expr::Kind::Tuple)
    report(now().span, "expected '=', found " + found(), "several places are assigned with '='");
  next();
  out->value = expression();
  if (is(TokenKind::Assign))
    expected("one '=' in a statement", "assign one after the other, or compare with '=='");
  out->span = since(target->span);
  out->target = std::move(target);
  return out;
}

void Parser::check_target(const ast::Expr& target) {
  using Kind = ast::Expr::Kind;
  switch (target.kind) {
    case Kind::Name: {
      const std::string& name = ast::as<ast::NameExpr>(target).name;
      if (is_reserved(name)) {
        report(target.span, "'" + name + "' is a reserved word and cannot be assigned",
               "choose another name, such as '" + name + "_'");
      }
      return;
    }
    case Kind::Index:
    case Kind::Field:
      return;
    case Kind::Tuple:
      for (const ast::ExprPtr& part : ast::as<ast::TupleExpr>(target).elements) check_target(*part);
      return;
    default:
      report(target.span, "a value can be given to a variable, a field or an element, not to this",
             target.kind == Kind::Binary || target.kind == Kind::Unary
                 ? "two values are compared with '=='"
                 : "");
  }
}

// ---- control

// Does a statement begin here, other than an expression?
bool Parser::opens_statement() const {
  if (!is(TokenKind::Word)) return false;
  const TokenKind after = ahead().kind;
  const bool has_word = after == TokenKind::Word;
  return is_statement_word(now()) || is_assignment(after) ||
         (has_word && (is_word("tensor") || is_word("with") || is_word("python"))) ||
         (is_word("panic") && after == TokenKind::LeftParen) ||
         (is_word("continue") && !names_variable(ahead()));
}

ast::StatementPtr Parser::return_statement() {
  auto out = std::make_unique<ast::ReturnStatement>(now().span);
  const Span first = now().span;
  next();
  // The value may be on the next line, where a statement may be just as well.
  const bool is_statement = now().newline_before &&
                            (opens_statement() || opens_declaration() || is(TokenKind::LeftBrace));
  if (starts_expression(now()) && !is_statement) out->value = expression();
  out->span = since(first);
  return out;
}

ast::StatementPtr Parser::panic() {
  auto out = std::make_unique<ast::PanicStatement>(now().span);
  const Span first = now().span;
  next();
  const std::size_t open = at_;
  next(TokenRole::Postfix);
  if (is(TokenKind::RightParen)) expected("a message");
  list(TokenKind::RightParen, open, "',' or ')'", [&] { out->arguments.push_back(expression()); });
  out->span = since(first);
  return out;
}

// Is there an `else`? It is taken; the `if` of an `else if` is not.
bool Parser::opens_else() {
  if (skip_word("else")) return true;
  for (const std::string_view word : {"elif", "elseif", "elsif"}) {
    if (!is_word(word) || ahead().kind == TokenKind::Assign) continue;
    report(now().span, "expected 'else if', found " + found(), "write 'else if'");
    tokens_.list[at_].text = "if";
    return true;
  }
  return false;
}

ast::Block Parser::else_branch() {
  if (!is_word("if")) return block("'else'");
  ast::Block out;
  const Nest nest(*this);
  out.statements.push_back(if_statement());
  out.span = out.statements[0]->span;
  return out;
}

ast::StatementPtr Parser::if_statement() {
  auto out = std::make_unique<ast::IfStatement>(now().span);
  const Span first = now().span;
  next();
  out->condition = condition();
  out->then = block("the condition");
  if (opens_else()) out->otherwise = else_branch();
  out->span = since(first);
  return out;
}

ast::StatementPtr Parser::for_statement() {
  auto out = std::make_unique<ast::ForStatement>(now().span);
  const Span first = now().span;
  next();
  const std::size_t open = at_;
  const auto variable = [&] { out->variables.push_back(want_name("the name of a variable")); };
  if (skip(TokenKind::LeftParen)) {
    list(TokenKind::RightParen, open, "',' or ')'", variable);
    if (out->variables.empty()) fail(since(first), "expected the name of a variable, found ')'");
  } else {
    do variable();
    while (skip(TokenKind::Comma));
  }
  if (!is_word("in")) {
    expected("'in' after the variable",
             is(TokenKind::Assign) ? "write: for i in 0..10 { ... }" : "");
  }
  next();
  const TokenKind second = ahead(2).kind;
  const bool is_set = is(TokenKind::LeftBrace) &&
                      (ahead().kind == TokenKind::RightBrace ||
                       (ahead().kind == TokenKind::Word &&
                        (second == TokenKind::Comma || second == TokenKind::RightBrace)));
  if (is_set)
    out->entities = name_set();
  else
    out->iterable = head();
  out->body = block("what is gone through");
  out->span = since(first);
  return out;
}

ast::StatementPtr Parser::while_statement() {
  auto out = std::make_unique<ast::WhileStatement>(now().span);
  const Span first = now().span;
  next();
  out->condition = condition();
  out->body = block("the condition");
  out->span = since(first);
  return out;
}

ast::StatementPtr Parser::python() {
  auto out = std::make_unique<ast::PythonStatement>(now().span);
  const Span first = now().span;
  next();
  if (!is_word("import")) expected("'import' or '.call' after 'python'");
  next();
  out->module = want_any_word("the name of a module").text;
  while (skip(TokenKind::Dot, TokenRole::Postfix))
    out->module += "." + want_any_word("the name of a module").text;
  if (skip_word("as")) out->alias = want_name("a name for the module").text;
  out->span = since(first);
  return out;
}

// ---- what begins with an expression

ast::StatementPtr Parser::expression_statement(ast::ExprPtr expression) {
  const Span first = expression->span;
  if (is_assignment(now().kind)) return assignment(std::move(expression));
  switch (now().kind) {
    case TokenKind::Question: {
      auto out = std::make_unique<ast::QueryStatement>(first);
      out->query = query(atom_of(std::move(expression), "before '?'"));
      out->span = since(first);
      return out;
    }
    case TokenKind::Tilde: {
      auto out = std::make_unique<ast::EquationStatement>(first);
      next();
      out->left = std::move(expression);
      out->right = expression_in({.no_arrow = true});
      if (opens_rule_body())
        fail(now().span, "a rule cannot stand inside of a block", "move it out of the block");
      out->span = since(first);
      return out;
    }
    default:
      break;
  }
  if (opens_rule_body())
    fail(now().span, "a rule cannot stand inside of a block", "move it out of the block");
  check_alone(*expression);
  return std::make_unique<ast::ExpressionStatement>(first, std::move(expression));
}

// Statements may share a line, but a lone name with something after it is a mistake.
void Parser::check_alone(const ast::Expr& expression) {
  if (expression.kind != ast::Expr::Kind::Name || now().newline_before) return;
  const bool is_operand = is(TokenKind::Word) || is(TokenKind::String) || is(TokenKind::Integer) ||
                          is(TokenKind::Float);
  if (!is_operand || is_word("else")) return;
  const std::string& name = ast::as<ast::NameExpr>(expression).name;
  if (name == "print" || name == "println")
    expected("'(' after '" + name + "'", "write: print(...)");
  expected("an operator or a new line after '" + name + "'", other_language(name));
}

}  // namespace tl::lang
