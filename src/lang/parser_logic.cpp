#include <utility>

#include "lang/parser_state.h"

namespace tl::lang {

// ---- atoms and queries

ast::Atom Parser::atom_of(ast::ExprPtr expression, std::string_view where) {
  const auto no_atom = [&] {
    fail(expression->span, "expected a relation with its arguments " + std::string(where),
         "as in: Parent(alice, X)");
  };
  if (expression->kind != ast::Expr::Kind::Call) no_atom();
  auto& call = static_cast<ast::CallExpr&>(*expression);
  if (call.callee->kind != ast::Expr::Kind::Name) no_atom();
  ast::Atom out;
  out.name = {ast::as<ast::NameExpr>(*call.callee).name, call.callee->span};
  out.span = call.span;
  for (ast::Argument& argument : call.arguments) {
    if (argument.name) fail(argument.name->span, "the arguments of a relation have no names");
    out.arguments.push_back(std::move(argument.value));
  }
  return out;
}

// At the `?` after the atom.
ast::Query Parser::query(ast::Atom atom) {
  ast::Query out;
  const Span first = atom.span;
  out.atom = std::move(atom);
  want(TokenKind::Question, "'?' after a query", TokenRole::Query);
  if (is_word("where") && ahead().kind != TokenKind::Assign) {
    next();
    do out.where.push_back(expression());
    while (skip(TokenKind::Comma));
  }
  out.span = since(first);
  return out;
}

// (depth: 5) after `gradient`: how often rules are applied.
ast::ExprPtr Parser::infer_depth(ast::InferMethod method) {
  if (!is_here(TokenKind::LeftParen)) return nullptr;
  const Span first = now().span;
  std::vector<ast::Argument> given = arguments();
  const bool is_depth = given.size() == 1 && given[0].name && given[0].name->text == "depth";
  if (!is_depth || method != ast::InferMethod::Gradient) {
    fail(since(first), "only 'gradient' takes a setting here, which is its depth",
         "as in: infer gradient(depth: 5) Old(ada, X)?");
  }
  return std::move(given[0].value);
}

ast::StatementPtr Parser::infer() {
  auto out = std::make_unique<ast::InferStatement>(now().span);
  const Span first = now().span;
  next();
  const auto item = [&] {
    using enum ast::InferMethod;
    const ast::InferMethod method = is_word("forward")    ? Forward
                                    : is_word("backward") ? Backward
                                    : is_word("gradient") ? Gradient
                                                          : Symbolic;
    if (method == Symbolic && !is_word("symbolic"))
      expected("'forward', 'backward', 'gradient' or 'symbolic'");
    next();
    ast::ExprPtr depth = infer_depth(method);
    out->items.emplace_back(method, query(atom_of(expression(), "to infer")));
    out->items.back().second.depth = std::move(depth);
  };
  const std::size_t open = at_;
  if (skip(TokenKind::LeftBrace, TokenRole::Block)) {
    out->is_block = true;
    while (!is(TokenKind::RightBrace)) {
      if (is(TokenKind::End)) unclosed_block(open);
      mark_statement();
      item();
      while (skip(TokenKind::Semicolon) || skip(TokenKind::Comma)) {
      }
    }
    next(TokenRole::Block);
  } else {
    item();
  }
  out->span = since(first);
  return out;
}

// ---- rules

// `<-`, or the `:-` of two tokens that touch.
bool Parser::opens_rule_body() const {
  return is(TokenKind::LeftArrow) || (is(TokenKind::Colon) && ahead().kind == TokenKind::Minus &&
                                      now().span.end == ahead().span.begin);
}

void Parser::skip_rule_arrow() {
  if (is(TokenKind::Colon)) next(TokenRole::RuleArrow);
  next(TokenRole::RuleArrow);
}

// At what follows the first expression of the head.
ast::DeclarationPtr Parser::rule(std::size_t start, ast::ExprPtr head) {
  const Span first = tokens_.list[start].span;
  auto out = std::make_unique<ast::RuleDeclaration>(first);
  if (skip(TokenKind::Tilde)) {
    out->left = std::move(head);
    out->right = expression_in({.no_arrow = true});
  } else {
    out->head = atom_of(std::move(head), "as the head of a rule");
    if (!opens_rule_body()) expected("'<-' after the head of a rule");
  }
  if (opens_rule_body()) {
    skip_rule_arrow();
    do body_term(*out);
    while (skip(TokenKind::Comma));
    if (opens_rule_body()) expected("',' or the end of the rule");
  }
  out->span = since(first);
  return out;
}

void Parser::body_term(ast::RuleDeclaration& out) {
  ast::ExprPtr left = expression_in({.no_arrow = true});
  if (!skip(TokenKind::Tilde)) {
    add_constraint(out, std::move(left));
    return;
  }
  ast::BodyTerm term;
  term.kind = ast::BodyTerm::Kind::Equation;
  term.left = std::move(left);
  term.right = expression_in({.no_arrow = true});
  out.body.push_back(std::move(term));
}

// R(x) and not R(x) are atoms; what `and` joins are terms of their own.
void Parser::add_constraint(ast::RuleDeclaration& out, ast::ExprPtr expression) {
  using Kind = ast::Expr::Kind;
  if (expression->kind == Kind::Binary) {
    auto& both = static_cast<ast::BinaryExpr&>(*expression);
    if (both.op == ast::BinaryOp::And) {
      add_constraint(out, std::move(both.left));
      add_constraint(out, std::move(both.right));
      return;
    }
  }
  ast::BodyTerm term;
  ast::ExprPtr* call = &expression;
  if (expression->kind == Kind::Unary) {
    auto& unary = static_cast<ast::UnaryExpr&>(*expression);
    if (unary.op == ast::UnaryOp::Not) call = &unary.operand;
  }
  const bool is_atom =
      (*call)->kind == Kind::Call && ast::as<ast::CallExpr>(**call).callee->kind == Kind::Name;
  if (is_atom) {
    term.kind = ast::BodyTerm::Kind::Atom;
    term.negated = call != &expression;
    term.atom = atom_of(std::move(*call), "in the body of a rule");
  } else {
    term.kind = ast::BodyTerm::Kind::Constraint;
    term.left = std::move(expression);
  }
  out.body.push_back(std::move(term));
}

// ---- learning

// name: value, where no statement has a colon.
bool Parser::opens_setting() const {
  return is(TokenKind::Word) && ahead().kind == TokenKind::Colon;
}

ast::StatementPtr Parser::learn() {
  const Nest nest(*this);
  auto out = std::make_unique<ast::LearnStatement>(now().span);
  const Span first = now().span;
  next();
  const std::size_t open = at_;
  want(TokenKind::LeftBrace, "'{' after 'learn'", TokenRole::Block);
  const With with(*this, {});
  while (true) {
    while (skip(TokenKind::Semicolon)) {
    }
    if (is(TokenKind::RightBrace)) break;
    if (is(TokenKind::End) || (opens_declaration() && !opens_setting())) unclosed_block(open);
    const std::size_t start = at_;
    mark_statement();
    try {
      if (opens_setting()) {
        setting(*out);
        skip(TokenKind::Comma);
      } else {
        out->body.statements.push_back(statement());
      }
    } catch (const Failure& failure) {
      if (failure.until != Failure::Until::Statement) throw;
      recover_statement(start);
    }
  }
  next(TokenRole::Block);
  out->span = since(first);
  out->body.span = since(tokens_.list[open].span);
  return out;
}

void Parser::setting(ast::LearnStatement& out) {
  ast::Setting setting;
  setting.name = take_name();
  const std::string& name = setting.name.text;
  bool is_twice = name == "objective" && out.objective;
  for (const ast::Setting& other : out.settings) is_twice |= other.name.text == name;
  if (is_twice) report(setting.name.span, "'" + name + "' is set twice");
  next();
  if (name == "objective") {
    out.objective = expression();
    return;
  }
  if ((name == "optimizer" || name == "scheduler") && is(TokenKind::Word)) {
    setting.maker =
        want_name("the name of " + std::string(name == "optimizer" ? "an " : "a ") + name);
    if (is_here(TokenKind::LeftParen)) setting.arguments = arguments();
  } else {
    setting.value = expression();
  }
  out.settings.push_back(std::move(setting));
}

}  // namespace tl::lang
