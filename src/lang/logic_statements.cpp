// Facts, queries and inference in functions, and names of logic in expressions.
#include <algorithm>
#include <cctype>

#include "lang/ast_walk.h"
#include "lang/logic_calls.h"
#include "lang/logic_compile.h"

namespace tl::lang {

using ast::Expr;

namespace {

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

LogicTerm constant_term(logic::Constant value) {
  LogicTerm term;
  term.kind = LogicTerm::Kind::Constant;
  term.constant = std::move(value);
  return term;
}

const ast::NameExpr* as_name(const Expr& e) {
  return e.kind == Expr::Kind::Name ? &ast::as<ast::NameExpr>(e) : nullptr;
}

}  // namespace

std::optional<logic::RelationId> FunctionCompiler::find_relation(const std::string& name) {
  const auto found = c_.world.logic->relations.find(name);
  if (found == c_.world.logic->relations.end() || find_local(name)) return {};
  return found->second;
}

// The call's relation, when it is of one.
const ast::CallExpr* FunctionCompiler::relation_call(const Expr& e) {
  if (e.kind != Expr::Kind::Call) return nullptr;
  const auto& call = ast::as<ast::CallExpr>(e);
  const ast::NameExpr* name = as_name(*call.callee);
  return name != nullptr && find_relation(name->name) ? &call : nullptr;
}

// A fact of a relation that nothing declares becomes one where that is asked for.
const ast::CallExpr* FunctionCompiler::fact_call(const Expr& e) {
  if (const ast::CallExpr* call = relation_call(e)) return call;
  if (e.kind != Expr::Kind::Call || !c_.options.undeclared_relations) return nullptr;
  const auto& call = ast::as<ast::CallExpr>(e);
  const ast::NameExpr* name = as_name(*call.callee);
  const bool is_free = name != nullptr && !is_program_name(name->name);
  return is_free && declare_undeclared(c_, name->name, call.arguments.size()) ? &call : nullptr;
}

// ---- terms

// Is the name something to the program: a variable, a constant?
bool FunctionCompiler::is_program_name(const std::string& name) {
  if (find_local(name) || captured_.contains(name)) return true;
  for (const FunctionCompiler* f = outer_; f != nullptr; f = f->outer_) {
    if (f->find_local(name)) return true;
  }
  if (!c_.world.globals.contains(name)) return false;
  return !in_program_block() || c_.world.top_level.contains(name);
}

// The same, or a name of logic: a relation, an entity type, an entity.
bool FunctionCompiler::has_meaning(const std::string& name) {
  const LogicProgram& program = *c_.world.logic;
  return is_program_name(name) || program.is_fixed_entity(name) ||
         program.relations.contains(name) || program.type(name) != nullptr ||
         c_.world.equations.contains(name);
}

// Does the expression have a name that can only be a variable of the query?
bool FunctionCompiler::has_query_name(const Expr& e) {
  if (const ast::NameExpr* name = as_name(e)) {
    return !has_meaning(name->name);
  }
  bool found = false;
  for_each_part(
      e,
      [&](const Expr& part) {
        const bool is_callee =
            e.kind == Expr::Kind::Call && ast::as<ast::CallExpr>(e).callee.get() == &part;
        found |= !is_callee && has_query_name(part);
      },
      [](const ast::Statement&) {});
  return found;
}

// The value of a program's expression, handed over with the others.
LogicTerm FunctionCompiler::value_term(const Expr& e, SiteInProgress& site) {
  LogicTerm term;
  term.kind = LogicTerm::Kind::Value;
  term.slot = site.count++;
  own(e);
  return term;
}

LogicTerm FunctionCompiler::name_term(const ast::NameExpr& e, std::size_t column,
                                      SiteInProgress& site) {
  const LogicProgram& program = *c_.world.logic;
  const logic::ColumnType& type = program.checked.columns(site.relation)[column];
  const bool is_text = type.kind == logic::ColumnType::Kind::Entity ||
                       type.kind == logic::ColumnType::Kind::String ||
                       type.kind == logic::ColumnType::Kind::Any;
  LogicTerm term;
  term.name = e.name;
  if (e.name == "_" && site.is_query) {
    term.name.clear();
    return term;
  }
  if (site.all_open) {
    term.kind = LogicTerm::Kind::Name;
    return term;
  }
  if (is_program_name(e.name)) {
    term = value_term(e, site);
    term.name = e.name;
    return term;
  }
  term.constant = e.name;
  term.kind = LogicTerm::Kind::Constant;
  if (program.fixed_type_of(e.name, type) != nullptr && is_text) return term;
  if (site.is_query) {
    const auto& parameters = program.parameters[site.relation];
    const bool is_parameter = !site.is_truth && std::any_of(parameters.begin(), parameters.end(),
                                                            [&](const std::string& p) {
                                                              return same_but_for_case(p, e.name);
                                                            });
    const bool is_capital = std::isupper(static_cast<unsigned char>(e.name[0])) != 0;
    if (is_capital || is_parameter || !is_text) {
      term.kind = LogicTerm::Kind::Name;
      return term;
    }
  }
  check_kind(c_, program.checked.name(site.relation), column, type, term.constant, e.span) &&
      check_entity(c_, e.name, type, e.span);
  return term;
}

LogicTerm FunctionCompiler::argument_term(const Expr& e, std::size_t column, SiteInProgress& site) {
  const LogicProgram& program = *c_.world.logic;
  const logic::ColumnType& type = program.checked.columns(site.relation)[column];
  if (const ast::NameExpr* name = as_name(e)) return name_term(*name, column, site);
  LogicTerm term = condition_term(e, site);
  if (term.kind == LogicTerm::Kind::Constant) {
    const logic::Constant value = for_column(term.constant, type);
    const auto* text = std::get_if<std::string>(&value);
    if (check_kind(c_, program.checked.name(site.relation), column, type, value, e.span) &&
        text != nullptr) {
      check_entity(c_, *text, type, e.span);
    }
  }
  if (term.kind == LogicTerm::Kind::Operation && !site.is_query) {
    bad(e.span, "a fact needs values",
        "names in it are entities; other names in an expression must be variables");
  }
  return term;
}

LogicTerm FunctionCompiler::condition_term(const Expr& e, SiteInProgress& site) {
  switch (e.kind) {
    case Expr::Kind::Integer:
      return constant_term(ast::as<ast::IntegerExpr>(e).value);
    case Expr::Kind::Float:
      return constant_term(ast::as<ast::FloatExpr>(e).value);
    case Expr::Kind::Bool:
      return constant_term(ast::as<ast::BoolExpr>(e).value);
    case Expr::Kind::String:
      return constant_term(ast::as<ast::StringExpr>(e).value);
    default:
      break;
  }
  if (!has_query_name(e)) return value_term(e, site);
  LogicTerm term;
  if (const ast::NameExpr* name = as_name(e)) {
    term.kind = LogicTerm::Kind::Name;
    term.name = name->name;
    return term;
  }
  term.kind = LogicTerm::Kind::Operation;
  if (e.kind == Expr::Kind::Binary) {
    const auto& b = ast::as<ast::BinaryExpr>(e);
    if (const auto op = logic_operation(b.op)) {
      term.op = *op;
      term.parts.push_back(condition_term(*b.left, site));
      term.parts.push_back(condition_term(*b.right, site));
      return term;
    }
  } else if (e.kind == Expr::Kind::Unary) {
    const auto& u = ast::as<ast::UnaryExpr>(e);
    if (u.op != ast::UnaryOp::Inverse) {
      term.op =
          u.op == ast::UnaryOp::Not ? logic::Expression::Op::Not : logic::Expression::Op::Negate;
      term.parts.push_back(condition_term(*u.operand, site));
      return term;
    }
  }
  bad(e.span, "a condition over variables of a query has arithmetic and comparisons alone");
  return term;
}

// ---- sites

// The number of a site and the values it asks for, in registers one after another.
std::optional<FunctionCompiler::SiteInProgress> FunctionCompiler::logic_site(
    const ast::Name& name, const std::vector<const Expr*>& arguments,
    const std::vector<const Expr*>& where, const Span& span, bool is_query, bool all_open,
    bool is_truth) {
  auto relation = find_relation(name.text);
  if (!relation && !is_program_name(name.text)) {
    relation = declare_undeclared(c_, name.text, arguments.size());
  }
  if (!relation) {
    bad(name.span, join("unknown relation: ", name.text),
        suggestion(name.text, relation_names(*c_.world.logic)));
    return {};
  }
  const std::size_t wanted = c_.world.logic->checked.columns(*relation).size();
  if (arguments.size() != wanted) {
    bad(span, join("relation '", name.text, "' has ", wanted,
                   wanted == 1 ? " argument, got " : " arguments, got ", arguments.size()));
    return {};
  }
  SiteInProgress site;
  site.relation = *relation;
  site.is_query = is_query;
  site.all_open = all_open;
  site.is_truth = is_truth;
  site.first = temporary();  // the number
  LogicSite made;
  made.relation = *relation;
  made.text = name.text + "(";
  std::set<std::string> names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    made.text += (i > 0 ? ", " : "") + std::string(c_.world.sources.text(arguments[i]->span));
    made.arguments.push_back(argument_term(*arguments[i], i, site));
    if (const ast::NameExpr* n = as_name(*arguments[i])) names.insert(n->name);
  }
  made.text += ")";
  for (const Expr* condition : where) {
    check_where(*condition, names);
    made.where.push_back(condition_term(*condition, site));
  }
  auto& sites = c_.world.logic->sites;
  emit(Op::Move, span, site.first, constant(static_cast<std::int64_t>(sites.size())));
  sites.push_back(std::move(made));
  return site;
}

// Names of a condition are variables of the query, of the program, or entities.
void FunctionCompiler::check_where(const Expr& e, const std::set<std::string>& names) {
  if (const ast::NameExpr* name = as_name(e)) {
    if (names.contains(name->name) || has_meaning(name->name)) return;
    std::vector<std::string_view> known(names.begin(), names.end());
    bad(e.span, join("'", name->name, "' is no variable of the query"),
        suggestion(name->name, known));
    return;
  }
  for_each_part(
      e,
      [&](const Expr& part) {
        const bool is_callee =
            e.kind == Expr::Kind::Call && ast::as<ast::CallExpr>(e).callee.get() == &part;
        if (!is_callee) check_where(part, names);
      },
      [](const ast::Statement&) {});
}

void FunctionCompiler::call_logic(LogicCall call, Operand first, std::uint32_t count,
                                  const Span& span, Operand to) {
  CallSite site;
  site.builtin = &lang::logic_call(call);
  site.count = count;
  f_.calls.push_back(std::move(site));
  put({Op::CallBuiltin, 0, to, first, static_cast<Operand>(f_.calls.size() - 1)}, span);
}

// A call with texts and numbers that are known now.
void FunctionCompiler::call_logic(LogicCall call, const std::vector<Value>& values,
                                  const Span& span, Operand to) {
  const Operand first = operand(Where::Register, top_);
  for (const Value& value : values) emit(Op::Move, span, temporary(), constant(value));
  call_logic(call, first, static_cast<std::uint32_t>(values.size()), span, to);
}

void FunctionCompiler::site_call(LogicCall call, const Expr& atom,
                                 const std::vector<const Expr*>& where, bool is_query,
                                 const Span& span, Operand to, std::optional<Operand> before) {
  const auto& e = ast::as<ast::CallExpr>(atom);
  std::vector<const Expr*> arguments;
  for (const ast::Argument& a : e.arguments) {
    if (a.name) {
      bad(a.name->span, "the arguments of a relation have no names");
      return;
    }
    arguments.push_back(a.value.get());
  }
  const ast::Name name{as_name(*e.callee)->name, e.callee->span};
  const bool is_truth = call == LogicCall::Holds;
  if (const auto site = logic_site(name, arguments, where, atom.span, is_query, false, is_truth)) {
    // What comes before the site lies in the registers before it.
    const auto extra = static_cast<std::uint32_t>(before ? site->first - *before : 0);
    call_logic(call, before.value_or(site->first), site->count + 1 + extra, span, to);
  }
}

// ---- statements

void FunctionCompiler::fact(const ast::CallExpr& e) {
  const std::uint32_t before = mark();
  const Operand result = temporary();
  site_call(LogicCall::Fact, e, {}, false, e.span, result);
  reset(before);
}

// How often rules are to be applied, where that is said.
void FunctionCompiler::depth(const Expr* e, const Span& span) {
  if (e != nullptr) {
    own(*e);
  } else {
    emit(Op::Missing, span, temporary());
  }
}

void FunctionCompiler::query(const ast::Query& q, LogicCall call,
                             std::optional<ast::InferMethod> method) {
  const std::uint32_t before = mark();
  const Operand result = temporary();
  Operand first = 0;
  if (method) {
    first = temporary();
    emit(Op::Move, q.span, first, constant(static_cast<std::int64_t>(*method)));
    depth(q.depth.get(), q.span);
  }
  std::vector<const Expr*> arguments;
  std::vector<const Expr*> where;
  for (const ast::ExprPtr& e : q.atom.arguments) arguments.push_back(e.get());
  for (const ast::ExprPtr& e : q.where) where.push_back(e.get());
  const bool all_open = method == ast::InferMethod::Forward;
  if (const auto site = logic_site(q.atom.name, arguments, where, q.atom.span, true, all_open)) {
    const std::uint32_t count = site->count + (method ? 3 : 1);
    call_logic(call, method ? first : site->first, count, q.span, result);
  }
  reset(before);
}

void FunctionCompiler::infer(const ast::InferStatement& s) {
  const auto note = [&](const std::string& text) {
    const std::uint32_t before = mark();
    const Operand result = temporary();
    call_logic(LogicCall::InferNote, {Value(text)}, s.span, result);
    reset(before);
  };
  const std::size_t count = s.items.size();
  if (s.is_block) {
    note(join("\n=== Inference Block Started ===\nTotal inference operations: ", count, "\n"));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (s.is_block) note(join("--- Inference ", i + 1, "/", count, " ---"));
    c_.world.differentiates |= s.items[i].first == ast::InferMethod::Gradient;
    query(s.items[i].second, LogicCall::Infer, s.items[i].first);
    if (s.is_block) note("");
  }
  if (s.is_block) note("=== Inference Block Completed ===\n");
}

void FunctionCompiler::with(const ast::WithStatement& s) {
  const Operand name = temporary();
  const Operand state = temporary();
  call_logic(LogicCall::WithBegin, {Value(s.type.text)}, s.type.span, state);
  // In the scope around it: variables of the block stay.
  statements(s.body.statements);
  emit(Op::Move, s.span, name, text_constant(s.type.text));
  call_logic(LogicCall::WithEnd, name, 2, s.span, name);
}

// ---- expressions

// query(R(x), ...), explain(R(x)), retract(R(x)) and R(x) alone. False: it is none of them.
bool FunctionCompiler::logic_expression(const ast::CallExpr& e, Operand to) {
  if (relation_call(e) != nullptr) {
    site_call(LogicCall::Holds, e, {}, true, e.span, to);
    return true;
  }
  const ast::NameExpr* callee = as_name(*e.callee);
  if (callee == nullptr || e.arguments.empty() || is_program_name(callee->name) ||
      c_.world.functions.contains(callee->name)) {
    return false;
  }
  const std::pair<std::string_view, LogicCall> kinds[] = {{"query", LogicCall::Solutions},
                                                          {"explain", LogicCall::Explain},
                                                          {"retract", LogicCall::Retract},
                                                          {"query_score", LogicCall::Score}};
  for (const auto& [name, call] : kinds) {
    if (callee->name != name) continue;
    const Expr& atom = *e.arguments[0].value;
    if (relation_call(atom) == nullptr) {
      bad(atom.span, join(name, "() takes a relation with its arguments"),
          "as in: " + std::string(name) + "(Parent(alice, bob))");
      return true;
    }
    if (call == LogicCall::Score) {
      score(e, to);
      return true;
    }
    std::vector<const Expr*> where;
    for (std::size_t i = 1; i < e.arguments.size(); ++i) {
      where.push_back(e.arguments[i].value.get());
    }
    if (call != LogicCall::Solutions && !where.empty()) {
      bad(where[0]->span, join(name, "() takes one relation"));
      return true;
    }
    site_call(call, atom, where, call == LogicCall::Solutions, e.span, to);
    return true;
  }
  return false;
}

// query_score(R(a, X), depth: 3)
void FunctionCompiler::score(const ast::CallExpr& e, Operand to) {
  const ast::Argument* last = e.arguments.size() > 1 ? &e.arguments[1] : nullptr;
  if (e.arguments.size() > 2 || (last != nullptr && last->name && last->name->text != "depth")) {
    bad(e.span, "query_score() takes a relation and a depth",
        "as in: query_score(Old(ada, X), depth: 3)");
    return;
  }
  const std::uint32_t before = mark();
  const Operand first = operand(Where::Register, top_);
  depth(last != nullptr ? last->value.get() : nullptr, e.span);
  site_call(LogicCall::Score, *e.arguments[0].value, {}, true, e.span, to, first);
  reset(before);
}

// Arguments of functions about logic that name a relation, an entity type or an entity.
bool FunctionCompiler::logic_argument(const Builtin& builtin, const Expr& e, Operand to) {
  const ast::NameExpr* name = as_name(e);
  if (name == nullptr || builtin.section != "logic" || is_program_name(name->name)) return false;
  emit(Op::Move, e.span, to, text_constant(name->name));
  return true;
}

// A relation's tensor, the entities of a type, an entity. False: the name is none of them.
bool FunctionCompiler::logic_name(const ast::NameExpr& e, Operand to) {
  if (const auto defined = c_.world.equations.find(e.name); defined != c_.world.equations.end()) {
    CallSite site;
    site.function = defined->second;
    f_.calls.push_back(std::move(site));
    put({Op::Call, 0, to, operand(Where::Register, top_),
         static_cast<Operand>(f_.calls.size() - 1)},
        e.span);
    return true;
  }
  const LogicProgram& program = *c_.world.logic;
  if (program.relations.contains(e.name)) {
    call_logic(LogicCall::RelationTensor, {Value(e.name)}, e.span, to);
    return true;
  }
  if (program.type(e.name) != nullptr) {
    call_logic(LogicCall::Entities, {Value(e.name)}, e.span, to);
    return true;
  }
  if (program.is_fixed_entity(e.name)) {
    emit(Op::Move, e.span, to, text_constant(e.name));
    return true;
  }
  return false;
}

// ---- declarations

void FunctionCompiler::declare_entities(const ast::EntityDeclaration& d) {
  const std::uint32_t before = mark();
  call_logic(LogicCall::DeclareEntity, {Value(d.name.text)}, d.span, temporary());
  reset(before);
}

void FunctionCompiler::declare_embedding(const ast::EmbeddingDeclaration& d) {
  const Operand matrix = temporary();
  call_logic(LogicCall::DeclareEmbedding, {Value(d.name.text)}, d.span, matrix);
  const Operand to = declare(d.name.text, d.name.span);
  put({Op::Learnable, kTemporaryB, to, matrix, text_constant(d.name.text)}, d.span);
}

}  // namespace tl::lang
