#include <utility>

#include "lang/parser_state.h"

namespace tl::lang {

// ---- the outermost level

bool Parser::opens_declaration() const {
  if (!is(TokenKind::Word)) return false;
  const std::string_view word = now().text;
  const TokenKind after = ahead().kind;
  const TokenKind second = ahead(2).kind;
  if (word == "fn" || word == "relation" || word == "rule" || word == "entity" || word == "const")
    return after == TokenKind::Word;
  if (word == "struct")
    return after == TokenKind::Word &&
           (second == TokenKind::LeftBrace || second == TokenKind::Less);
  if (word == "impl") return after == TokenKind::Word || after == TokenKind::Less;
  if (word == "import") return true;
  if (word == "main") return after == TokenKind::LeftBrace;
  if (word == "embedding" || word == "relation_embedding" || word == "test" || word == "bench")
    return after == TokenKind::Word && second == TokenKind::LeftBrace;
  return false;
}

void Parser::top_level(ast::Program& program, bool is_input) {
  while (!is(TokenKind::End)) {
    if (skip(TokenKind::Semicolon)) continue;
    const std::size_t start = at_;
    item_start_ = at_;
    try {
      mark_statement();
      item(program, is_input);
    } catch (const Failure& failure) {
      if (failure.until == Failure::Until::End) return;
      if (failure.until == Failure::Until::Statement) {
        if (is_input)
          recover_statement(start);
        else
          recover_declaration(start);
      }
      odd_brace_.reset();
      if (at_ == start) next();
    }
  }
}

void Parser::item(ast::Program& program, bool is_input) {
  if (is(TokenKind::RightBrace)) {
    report(now().span, "unexpected '}'", "it has no '{' before it");
    while (skip(TokenKind::RightBrace)) {
    }
    return;
  }
  // Words that begin nothing else in a file, whatever follows them.
  const bool is_declaration =
      !is_input && (is_word("let") || is_word("tensor") || is_word("fn") || is_word("main") ||
                    is_word("relation") || is_word("entity") || is_word("rule"));
  if (opens_declaration() || is_declaration) {
    if (named_block(program)) return;
    program.declarations.push_back(declaration());
    return;
  }
  outside_statement(program, is_input);
}

bool Parser::named_block(ast::Program& program) {
  const Span first = now().span;
  if (is_word("main")) {
    if (program.main) report(first, "'main' is there already", "a program has one main block");
    next();
    ast::Block body = block("'main'");
    if (!program.main) {
      program.main = std::move(body);
    } else {
      for (ast::StatementPtr& statement : body.statements)
        program.main->statements.push_back(std::move(statement));
    }
    return true;
  }
  const bool is_test = is_word("test");
  if (!is_test && !is_word("bench")) return false;
  next();
  ast::NamedBlock out;
  out.name = take_name();
  out.body = block("the name");
  out.span = since(first);
  (is_test ? program.tests : program.benches).push_back(std::move(out));
  return true;
}

// A rule; a statement at the prompt; a statement where none may be.
void Parser::outside_statement(ast::Program& program, bool is_input) {
  const std::size_t start = at_;
  if (!is_input &&
      (is_word("struct") || is_word("embedding") || is_word("relation_embedding") ||
       is_word("test") || is_word("bench")) &&
      ahead().kind == TokenKind::Word) {
    next();
    next();
    expected("'{' after the name");
  }
  ast::StatementPtr statement = word_statement();
  if (statement == nullptr) {
    ast::ExprPtr expression = expression_in({.no_arrow = true});
    if (opens_rule_body() || (!is_input && is(TokenKind::Tilde))) {
      program.declarations.push_back(rule(start, std::move(expression)));
      return;
    }
    statement = expression_statement(std::move(expression));
  }
  if (is_input) {
    if (!program.main) program.main.emplace();
    program.main->statements.push_back(std::move(statement));
    program.main->span = since(tokens_.list[start].span);
  } else if (!told_of_outside_) {
    told_of_outside_ = true;
    last_mistake_.reset();
    report(statement->span, "statements cannot stand outside of a block",
           "put them into main { ... }");
  }
}

ast::DeclarationPtr Parser::declaration() {
  const std::string_view word = now().text;
  if (word == "import") return import();
  if (word == "entity") return entity();
  if (word == "tensor") return tensor();
  if (word == "relation") return relation();
  if (word == "embedding" || word == "relation_embedding") return embedding();
  if (word == "fn") return function();
  if (word == "struct") return structure();
  if (word == "impl") return impl();
  if (word == "const" || word == "let") return constant();
  const std::size_t start = at_;  // rule
  next();
  return rule(start, expression_in({.no_arrow = true}));
}

// ---- names of things

ast::DeclarationPtr Parser::import() {
  auto out = std::make_unique<ast::ImportDeclaration>(now().span);
  const Span first = now().span;
  next();
  if (!is(TokenKind::String)) expected("the path of a file, as a string, after 'import'");
  out->path = now().string;
  next();
  out->span = since(first);
  return out;
}

std::vector<ast::Name> Parser::name_set() {
  std::vector<ast::Name> out;
  const std::size_t open = at_;
  want(TokenKind::LeftBrace, "'{'", TokenRole::Set);
  list(
      TokenKind::RightBrace, open, "',' or '}'", [&] { out.push_back(want_name("a name")); },
      TokenRole::Set);
  return out;
}

ast::DeclarationPtr Parser::entity() {
  auto out = std::make_unique<ast::EntityDeclaration>(now().span);
  const Span first = now().span;
  next();
  out->name = want_name("the name of an entity type");
  if (skip(TokenKind::Assign)) {
    out->has_members = true;
    out->members = name_set();
  } else if (is_here(TokenKind::LeftBrace)) {
    expected("'=' before the set of entities");
  }
  out->span = since(first);
  return out;
}

ast::DeclarationPtr Parser::tensor() {
  auto out = std::make_unique<ast::TensorDeclaration>(now().span);
  read_tensor(*out);
  return out;
}

ast::DeclarationPtr Parser::constant() {
  auto out = std::make_unique<ast::ConstDeclaration>(now().span);
  const Span first = now().span;
  next();
  out->name = want_name("the name of a constant");
  if (skip(TokenKind::Colon)) out->type = type();
  want(TokenKind::Assign, "'=' after the name of a constant");
  out->value = expression();
  out->span = since(first);
  return out;
}

ast::DeclarationPtr Parser::relation() {
  auto out = std::make_unique<ast::RelationDeclaration>(now().span);
  const Span first = now().span;
  next();
  out->name = want_name("the name of a relation");
  const std::size_t open = at_;
  want(TokenKind::LeftParen, "'(' after the name of a relation", TokenRole::Postfix);
  list(TokenKind::RightParen, open, "',' or ')'", [&] { out->params.push_back(param(true)); });
  if (skip_word("embed")) {
    out->embed = tensor_type();
    out->learnable = out->embed->learnable;
  }
  if (is_word("learnable") && ahead().kind != TokenKind::LeftParen) {
    next();
    out->learnable = true;
  }
  out->span = since(first);
  return out;
}

// ---- embeddings

ast::DeclarationPtr Parser::embedding() {
  auto out = std::make_unique<ast::EmbeddingDeclaration>(now().span);
  const Span first = now().span;
  out->of_relations = is_word("relation_embedding");
  next();
  out->name = want_name("the name of an embedding");
  const std::size_t open = at_;
  want(TokenKind::LeftBrace, "'{' after the name of an embedding", TokenRole::Members);
  const std::string_view members = out->of_relations ? "relations" : "entities";
  bool has_members = false;
  bool has_dimension = false;
  while (!is(TokenKind::RightBrace)) {
    mark_statement();
    const bool is_members = is_word(members);
    const bool is_dimension = is_word("dimension");
    if (!is_members && !is_dimension && !is_word("init"))
      expected("'" + std::string(members) + "', 'dimension', 'init' or '}'");
    next();
    want(TokenKind::Colon, "':'");
    if (is_members) {
      has_members = true;
      embedding_members(*out);
    } else if (is_dimension) {
      has_dimension = true;
      if (!is(TokenKind::Integer) || now().integer == 0 || now().integer > INT32_MAX)
        expected("the number of dimensions");
      out->dimension = static_cast<std::int64_t>(now().integer);
      next();
    } else {
      embedding_init(*out);
    }
    skip(TokenKind::Comma);
  }
  if (!has_members) fail(now().span, "expected '" + std::string(members) + ":' before '}'");
  if (!has_dimension) fail(now().span, "expected 'dimension:' before '}'");
  want_close(TokenKind::RightBrace, open, "'}'", TokenRole::Members);
  out->span = since(first);
  return out;
}

void Parser::embedding_members(ast::EmbeddingDeclaration& out) {
  using Over = ast::EmbeddingDeclaration::Over;
  if (is(TokenKind::LeftBrace)) {
    out.over = Over::Listed;
    out.members = name_set();
  } else if (out.of_relations) {
    if (!skip_word("all")) expected("'all' or a set of relations");
    out.over = Over::All;
  } else if (skip_word("auto")) {
    out.over = Over::Auto;
  } else {
    out.over = Over::Type;
    out.type = want_name("'auto', an entity type or a set of entities");
  }
}

void Parser::embedding_init(ast::EmbeddingDeclaration& out) {
  static constexpr std::pair<std::string_view, ast::Init> kInits[] = {
      {"random", ast::Init::Random}, {"xavier", ast::Init::Xavier}, {"he", ast::Init::He},
      {"zeros", ast::Init::Zeros},   {"ones", ast::Init::Ones},
  };
  for (const auto& [word, init] : kInits) {
    if (!skip_word(word)) continue;
    out.init = init;
    return;
  }
  expected("'random', 'xavier', 'he', 'zeros' or 'ones'");
}

// ---- functions and structs

ast::DeclarationPtr Parser::function() {
  auto out = std::make_unique<ast::FunctionDeclaration>(now().span);
  const Span first = now().span;
  next();
  out->name = want_name("the name of a function");
  out->function = function_body(false);
  out->span = since(first);
  return out;
}

ast::FunctionBody Parser::function_body(bool is_method) {
  ast::FunctionBody out;
  params(out, is_method);
  if (skip(TokenKind::RightArrow)) out.result = type();
  if (is(TokenKind::Colon)) expected("'->' or '{'", "the type of the result follows '->'");
  out.body = block(out.result ? "the type of the result" : "the parameters");
  return out;
}

void Parser::params(ast::FunctionBody& out, bool is_method) {
  const std::size_t open = at_;
  want(TokenKind::LeftParen, "'('", TokenRole::Postfix);
  list(TokenKind::RightParen, open, "',' or ')'", [&] {
    if (is_method && is_word("self") && ahead().kind != TokenKind::Colon) {
      if (out.has_self || !out.params.empty())
        report(now().span, "'self' is the first parameter, once");
      out.has_self = true;
      next();
      return;
    }
    out.params.push_back(param(false));
    if (out.params.back().default_value == nullptr && out.params.size() > 1 &&
        out.params[out.params.size() - 2].default_value != nullptr) {
      report(out.params.back().name.span, "'" + out.params.back().name.text +
                                              "' needs a default value, as the parameter "
                                              "before it has one");
    }
  });
}

ast::Param Parser::param(bool needs_type) {
  ast::Param out;
  out.name = want_name("the name of a parameter");
  if (needs_type && !is(TokenKind::Colon))
    expected("':' and a type after '" + out.name.text + "'",
             "as in: " + out.name.text + ": entity");
  if (skip(TokenKind::Colon)) out.type = type();
  if (!needs_type && skip(TokenKind::Assign)) out.default_value = expression();
  return out;
}

ast::DeclarationPtr Parser::structure() {
  auto out = std::make_unique<ast::StructDeclaration>(now().span);
  const Span first = now().span;
  next();
  out->name = want_name("the name of a struct");
  out->type_params = type_params();
  const std::size_t open = at_;
  want(TokenKind::LeftBrace, "'{' after the name of a struct", TokenRole::Members);
  while (!is(TokenKind::RightBrace)) {
    if (!is(TokenKind::Word)) break;
    mark_statement();
    ast::Field field;
    field.name = want_any_word("the name of a field");
    want(TokenKind::Colon, "':' and a type after the name of a field");
    field.type = type();
    out->fields.push_back(std::move(field));
    if (!skip(TokenKind::Comma)) skip(TokenKind::Semicolon);
  }
  want_close(TokenKind::RightBrace, open, "the name of a field or '}'", TokenRole::Members);
  out->span = since(first);
  return out;
}

ast::DeclarationPtr Parser::impl() {
  auto out = std::make_unique<ast::ImplDeclaration>(now().span);
  const Span first = now().span;
  next();
  type_params();
  out->type = want_name("the name of a struct");
  if (is(TokenKind::Less)) type_arguments();
  if (skip_word("for")) {
    out->trait = std::move(out->type);
    out->type = want_name("the name of a struct");
    if (is(TokenKind::Less)) type_arguments();
  }
  const std::size_t open = at_;
  want(TokenKind::LeftBrace, "'{' after the name of a struct", TokenRole::Members);
  while (!is(TokenKind::RightBrace)) {
    while (skip(TokenKind::Semicolon)) {
    }
    if (is(TokenKind::RightBrace)) break;
    if (is(TokenKind::End)) unclosed_block(open);
    if (now().newline_before && opens_declaration() && column(at_) <= column(item_start_))
      unclosed_block(open);
    const std::size_t start = at_;
    mark_statement();
    try {
      if (!skip_word("fn")) expected("'fn' or '}'");
      ast::Name name = want_any_word("the name of a method");
      out->methods.emplace_back(std::move(name), function_body(true));
    } catch (const Failure& failure) {
      if (failure.until != Failure::Until::Statement) throw;
      recover_statement(start);
    }
  }
  next(TokenRole::Members);
  out->span = since(first);
  return out;
}

}  // namespace tl::lang
