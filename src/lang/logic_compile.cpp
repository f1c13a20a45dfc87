#include "lang/logic_compile.h"

#include <algorithm>
#include <functional>

#include "lang/ast_walk.h"

namespace tl::lang {

namespace {

using ast::Expr;
using logic::ColumnType;
using logic::Expression;
using logic::Literal;
using LogicOp = Expression::Op;

struct Reported {};  // thrown when a rule cannot be used and it was said why

// The first place where a name stands.
const Expr* find_name(const Expr& e, std::string_view name) {
  if (e.kind == Expr::Kind::Name) {
    return ast::as<ast::NameExpr>(e).name == name ? &e : nullptr;
  }
  const Expr* found = nullptr;
  for_each_part(
      e, [&](const Expr& part) { found = found != nullptr ? found : find_name(part, name); },
      [](const ast::Statement&) {});
  return found;
}

const Expr* find_name(const std::vector<ast::ExprPtr>& list, std::string_view name) {
  for (const ast::ExprPtr& e : list) {
    if (const Expr* found = find_name(*e, name)) return found;
  }
  return nullptr;
}

const Expr* find_name(const ast::BodyTerm& term, std::string_view name) {
  if (term.kind == ast::BodyTerm::Kind::Atom) return find_name(term.atom.arguments, name);
  return find_name(*term.left, name);
}

// One rule: variables get numbers in the order in which they come.
class RuleReader {
 public:
  RuleReader(Compilation& compilation, const ast::RuleDeclaration& d)
      : c_(compilation), program_(*compilation.world.logic), d_(d) {}

  logic::Rule read() {
    logic::Rule rule;
    rule.text = c_.world.sources.text(d_.span);
    rule.relation = relation(d_.head->name, d_.head->arguments.size());
    const auto& columns = program_.checked.columns(rule.relation);
    check_count(d_.head->name, columns.size(), d_.head->arguments.size(), d_.head->span);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      rule.head.push_back(head_term(*d_.head->arguments[i], rule.relation, i));
    }
    for (const ast::BodyTerm& term : d_.body) rule.body.push_back(literal(term));
    rule.variables = variables_;
    return rule;
  }

 private:
  [[noreturn]] void fail(const Span& span, std::string message, std::string hint = {}) {
    c_.error(span, std::move(message), std::move(hint));
    throw Reported();
  }

  logic::RelationId relation(const ast::Name& name, std::size_t arguments) {
    const auto found = program_.relations.find(name.text);
    if (found != program_.relations.end()) return found->second;
    if (const auto made = declare_undeclared(c_, name.text, arguments)) return *made;
    fail(name.span, join("unknown relation: ", name.text),
         suggestion(name.text, relation_names(program_)));
  }

  void check_count(const ast::Name& name, std::size_t wanted, std::size_t given, const Span& span) {
    if (wanted == given) return;
    fail(span, join("relation '", name.text, "' has ", wanted,
                    wanted == 1 ? " argument, got " : " arguments, got ", given));
  }

  std::uint32_t variable(const std::string& name) {
    const auto at = std::find(variables_.begin(), variables_.end(), name);
    if (at == variables_.end()) {
      variables_.push_back(name);
      return static_cast<std::uint32_t>(variables_.size() - 1);
    }
    return static_cast<std::uint32_t>(at - variables_.begin());
  }

  Expression constant(const logic::Constant& value) {
    return Expression::of_constant(program_.checked.symbols().intern(value));
  }

  // An argument of an atom: its column says what a constant must be.
  Expression argument(const Expr& e, logic::RelationId r, std::size_t at) {
    const ColumnType& column = program_.checked.columns(r)[at];
    Expression out = expression(e, &column);
    if (out.op != LogicOp::Value) return out;
    const logic::Constant value = for_column(program_.checked.symbols()[out.constant], column);
    if (!check_kind(c_, program_.checked.name(r), at, column, value, e.span)) throw Reported();
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && !check_entity(c_, *text, column, e.span)) throw Reported();
    return constant(value);
  }

  logic::HeadTerm head_term(const Expr& e, logic::RelationId r, std::size_t at) {
    using logic::Aggregate;
    if (e.kind == Expr::Kind::Call) {
      const auto& call = ast::as<ast::CallExpr>(e);
      const std::pair<std::string_view, Aggregate> kinds[] = {
          {"count", Aggregate::Count}, {"sum", Aggregate::Sum}, {"min", Aggregate::Min},
          {"max", Aggregate::Max},     {"avg", Aggregate::Avg}, {"mean", Aggregate::Avg}};
      for (const auto& [name, kind] : kinds) {
        if (call.callee->kind != Expr::Kind::Name ||
            ast::as<ast::NameExpr>(*call.callee).name != name) {
          continue;
        }
        if (call.arguments.empty() && kind == Aggregate::Count) return {Expression::any(), kind};
        if (call.arguments.size() != 1) fail(e.span, join(name, "() takes one value in a rule"));
        return {expression(*call.arguments[0].value, nullptr), kind};
      }
    }
    return {argument(e, r, at), Aggregate::None};
  }

  Literal literal(const ast::BodyTerm& term) {
    Literal out;
    switch (term.kind) {
      case ast::BodyTerm::Kind::Atom:
        out.kind = term.negated ? Literal::Kind::Negated : Literal::Kind::Atom;
        out.relation = relation(term.atom.name, term.atom.arguments.size());
        check_count(term.atom.name, program_.checked.columns(out.relation).size(),
                    term.atom.arguments.size(), term.atom.span);
        for (std::size_t i = 0; i < term.atom.arguments.size(); ++i) {
          out.arguments.push_back(argument(*term.atom.arguments[i], out.relation, i));
        }
        return out;
      case ast::BodyTerm::Kind::Equation:
        fail(term.left->span, "a tensor equation cannot stand in the body of a rule",
             "compare with == or write the equation as a rule of its own");
      case ast::BodyTerm::Kind::Constraint:
        out.kind = Literal::Kind::Constraint;
        out.condition = expression(*term.left, nullptr);
        if (out.condition.op < LogicOp::Equal && out.condition.op != LogicOp::Value) {
          fail(term.left->span, "expected a relation or a comparison in the body of a rule");
        }
        return out;
    }
    return out;
  }

  Expression expression(const Expr& e, const ColumnType* column) {
    switch (e.kind) {
      case Expr::Kind::Integer:
        return constant(ast::as<ast::IntegerExpr>(e).value);
      case Expr::Kind::Float:
        return constant(ast::as<ast::FloatExpr>(e).value);
      case Expr::Kind::Bool:
        return constant(ast::as<ast::BoolExpr>(e).value);
      case Expr::Kind::String:
        return constant(ast::as<ast::StringExpr>(e).value);
      case Expr::Kind::Name:
        return name(ast::as<ast::NameExpr>(e), column);
      case Expr::Kind::Unary: {
        const auto& u = ast::as<ast::UnaryExpr>(e);
        if (u.op == ast::UnaryOp::Inverse) break;
        const Expression part = expression(*u.operand, nullptr);
        if (u.op == ast::UnaryOp::Negate && part.op == LogicOp::Value) return negated(part, e);
        return Expression::of(u.op == ast::UnaryOp::Not ? LogicOp::Not : LogicOp::Negate, {part});
      }
      case Expr::Kind::Binary: {
        const auto& b = ast::as<ast::BinaryExpr>(e);
        if (const auto op = logic_operation(b.op)) {
          Expression left = expression(*b.left, nullptr);
          return Expression::of(*op, {std::move(left), expression(*b.right, nullptr)});
        }
        break;
      }
      case Expr::Kind::Call:
        if (const auto& callee = *ast::as<ast::CallExpr>(e).callee;
            callee.kind == Expr::Kind::Name &&
            program_.relations.contains(ast::as<ast::NameExpr>(callee).name)) {
          fail(e.span, "a relation cannot stand inside a condition",
               "write a rule for each alternative");
        }
        fail(e.span, "a rule cannot call functions",
             "relations stand alone or after 'not'; count, sum, min, max and avg in the head");
      default:
        break;
    }
    fail(e.span, "this cannot stand in a rule",
         "rules have names, numbers, strings, arithmetic and comparisons");
  }

  Expression negated(const Expression& part, const Expr& e) {
    const logic::Constant& value = program_.checked.symbols()[part.constant];
    if (const auto* i = std::get_if<std::int64_t>(&value)) return constant(-*i);
    if (const auto* r = std::get_if<double>(&value)) return constant(-*r);
    fail(e.span, join("cannot negate ", logic::to_text(value)));
  }

  Expression name(const ast::NameExpr& e, const ColumnType* column) {
    if (e.name == "_") {
      if (column == nullptr) fail(e.span, "'_' stands for no value");
      return Expression::any();
    }
    const ColumnType any;
    if (program_.fixed_type_of(e.name, column != nullptr ? *column : any) != nullptr) {
      return constant(e.name);
    }
    return Expression::of_variable(variable(e.name));
  }

  Compilation& c_;
  LogicProgram& program_;
  const ast::RuleDeclaration& d_;
  std::vector<std::string> variables_;
};

class LogicDeclarations {
 public:
  explicit LogicDeclarations(Compilation& compilation)
      : c_(compilation), program_(*compilation.world.logic) {}

  void declare(std::span<const ast::Program* const> programs) {
    using Declared = ast::Declaration::Kind;
    each(programs, Declared::Entity,
         [&](const auto& d) { entity(ast::as<ast::EntityDeclaration>(d)); });
    each(programs, Declared::Relation,
         [&](const auto& d) { relation(ast::as<ast::RelationDeclaration>(d)); });
    each(programs, Declared::Embedding,
         [&](const auto& d) { embedding(ast::as<ast::EmbeddingDeclaration>(d)); });
    const std::size_t before = program_.checked.rule_count();
    each(programs, Declared::Rule, [&](const auto& d) { rule(ast::as<ast::RuleDeclaration>(d)); });
    check_strata(before);
  }

 private:
  static void each(std::span<const ast::Program* const> programs, ast::Declaration::Kind kind,
                   const std::function<void(const ast::Declaration&)>& visit) {
    for (const ast::Program* p : programs) {
      for (const ast::DeclarationPtr& d : p->declarations) {
        if (d->kind == kind) visit(*d);
      }
    }
  }

  void entity(const ast::EntityDeclaration& d) {
    if (program_.entity_types.contains(d.name.text) && !c_.options.at_prompt) {
      c_.error(d.name.span, join("Entity type '", d.name.text, "' is already defined"));
      return;
    }
    EntityType type{d.name.text, d.has_members, {}};
    for (const ast::Name& member : d.members) {
      if (type.has(member.text)) {
        c_.error(member.span, join("Entity '", member.text, "' is listed twice"));
        continue;
      }
      type.members.push_back(member.text);
    }
    if (!program_.entity_types.contains(type.name)) program_.type_order.push_back(type.name);
    program_.entity_types[type.name] = std::move(type);
  }

  void relation(const ast::RelationDeclaration& d) {
    const std::string& name = d.name.text;
    if (!c_.options.at_prompt) {
      if (program_.relations.contains(name)) {
        c_.error(d.name.span, join("Relation '", name, "' is already defined"));
        return;
      }
      if (c_.world.functions.contains(name)) {
        c_.error(d.name.span, join("'", name, "' is a function; a relation needs another name"));
        return;
      }
    }
    std::vector<ColumnType> columns;
    std::vector<std::string> names;
    for (const ast::Param& p : d.params) {
      columns.push_back(column(*p.type));
      if (std::find(names.begin(), names.end(), p.name.text) != names.end()) {
        c_.error(p.name.span, join("Parameter '", p.name.text, "' is declared twice"));
      }
      names.push_back(p.name.text);
    }
    try {
      const bool has_tensor = std::all_of(columns.begin(), columns.end(), [](const ColumnType& c) {
        return c.kind == ColumnType::Kind::Entity;
      });
      if ((d.learnable || d.embed) && (!has_tensor || columns.empty())) {
        c_.error(d.name.span, join("relation '", name, "' cannot ",
                                   d.embed ? "have an embedding" : "be learnable",
                                   ": its tensor needs arguments that are entities"));
      }
      const logic::RelationId id = program_.checked.declare(name, std::move(columns));
      program_.relations[name] = id;
      // With an embedding it is this that is learned.
      if (d.learnable && !d.embed) program_.learnable.insert(id);
      if (d.embed && has_tensor) embed(id, *d.embed, d.params.size());
      program_.parameters.push_back(std::move(names));
    } catch (const Error& e) {
      c_.error(d.name.span, e.what());
    }
  }

  void embed(logic::RelationId id, const ast::Type& type, std::size_t arguments) {
    const TypeInfo info = c_.type(type);
    RelationEmbedding out;
    out.dtype = info.dtype;
    out.frozen = type.frozen;
    if (!is_float(info.dtype)) {
      c_.error(type.span, join("an embedding has floats, not ", tl::name(info.dtype)));
    }
    for (const TypeInfo::Dim& dim : info.dims) {
      if (dim.size <= 0) {
        c_.error(type.span, "the sizes of an embedding are numbers from 1 on");
        return;
      }
      out.sizes.push_back(dim.size);
    }
    if (out.sizes.size() != 1 && out.sizes.size() != arguments) {
      c_.error(type.span,
               join("the embedding of a relation with ", arguments,
                    " arguments has one dimension or ", arguments, ", not ", out.sizes.size()));
      return;
    }
    out.tables.resize(arguments);
    program_.embedded[id] = std::move(out);
  }

  // Embeddings of entities that are declared are those that relations use, the first that fits.
  void choose_tables(const ast::EmbeddingDeclaration& d) {
    using Over = ast::EmbeddingDeclaration::Over;
    if (d.of_relations || (d.over != Over::Type && d.over != Over::Auto)) return;
    const std::string type = d.over == Over::Type ? d.type.text : std::string();
    for (auto& [relation, embedding] : program_.embedded) {
      const auto& columns = program_.checked.columns(relation);
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (embedding.tables[i].empty() && columns[i].entity == type &&
            embedding.dimension(i) == d.dimension) {
          embedding.tables[i] = d.name.text;
        }
      }
    }
  }

  ColumnType column(const ast::Type& type) {
    using Holds = ColumnType::Kind;
    switch (type.kind) {
      case ast::Type::Kind::Entity:
        return {Holds::Entity, ""};
      case ast::Type::Kind::Named:
        if (program_.type(type.name) != nullptr) return {Holds::Entity, type.name};
        if (c_.world.structs.contains(type.name)) {
          c_.error(type.span, join("a relation cannot hold structs such as ", type.name));
        } else {
          std::vector<std::string_view> known = {"entity", "int", "float", "bool", "string"};
          for (const std::string& t : program_.type_order) known.push_back(t);
          c_.error(type.span, join("Unknown entity type: ", type.name),
                   suggestion(type.name, known));
        }
        return {};
      case ast::Type::Kind::Scalar: {
        const TypeInfo info = c_.type(type);
        if (info.scalar == tl::lang::Kind::String) return {Holds::String, ""};
        if (info.scalar == tl::lang::Kind::Bool) return {Holds::Bool, ""};
        return {info.scalar == tl::lang::Kind::Float ? Holds::Float : Holds::Int, ""};
      }
      default:
        c_.error(type.span, "a relation holds entities, numbers, strings and truth values",
                 "as in: relation Age(who: entity, years: int)");
        return {};
    }
  }

  void embedding(const ast::EmbeddingDeclaration& d) {
    EmbeddingInfo info;
    info.name = d.name.text;
    info.of_relations = d.of_relations;
    info.dimension = d.dimension;
    info.init = d.init;
    if (d.dimension <= 0) c_.error(d.span, "an embedding has at least one dimension");
    using Over = ast::EmbeddingDeclaration::Over;
    info.grows = d.over == Over::Auto || d.over == Over::Type;
    if (d.over == Over::Type) {
      info.type = d.type.text;
      if (program_.type(info.type) == nullptr) {
        std::vector<std::string_view> known(program_.type_order.begin(), program_.type_order.end());
        c_.error(d.type.span, join("Unknown entity type: ", info.type),
                 suggestion(info.type, known));
      } else if (program_.type(info.type)->fixed) {
        info.grows = false;
      }
    }
    for (const ast::Name& member : d.members) {
      if (d.of_relations && !program_.relations.contains(member.text)) {
        c_.error(member.span, join("unknown relation: ", member.text),
                 suggestion(member.text, relation_names(program_)));
      }
      info.members.push_back(member.text);
    }
    if (d.over == Over::All) {
      for (logic::RelationId r = 0; r < program_.checked.relation_count(); ++r) {
        info.members.push_back(program_.checked.name(r));
      }
    }
    program_.embeddings[info.name] = std::move(info);
    choose_tables(d);
  }

  void rule(const ast::RuleDeclaration& d) {
    if (!d.head) {
      if (!d.body.empty()) {
        c_.error(d.span, "a tensor equation has no conditions after it");
      }
      return;
    }
    try {
      program_.checked.add_rule(RuleReader(c_, d).read());
      rules_.push_back(&d);
    } catch (const logic::LogicError& e) {
      c_.error(place(d, e), e.text());
    } catch (const Reported&) {
    }
  }

  static Span place(const ast::RuleDeclaration& d, const logic::LogicError& e) {
    const auto literal = static_cast<std::size_t>(e.literal);
    const bool in_body = e.literal >= 0 && literal < d.body.size();
    if (!e.variable.empty()) {
      const Expr* at = in_body ? find_name(d.body[literal], e.variable)
                               : find_name(d.head->arguments, e.variable);
      for (std::size_t i = 0; at == nullptr && i < d.body.size(); ++i) {
        at = find_name(d.body[i], e.variable);
      }
      if (at != nullptr) return at->span;
    }
    if (!in_body) return d.head->span;
    const ast::BodyTerm& term = d.body[literal];
    return term.kind == ast::BodyTerm::Kind::Atom ? term.atom.span : term.left->span;
  }

  // Rules that were added are taken back where negation goes in a circle.
  void check_strata(std::size_t before) {
    try {
      program_.checked.check();
    } catch (const logic::LogicError& e) {
      const auto number = static_cast<std::size_t>(e.rule) - before;
      c_.error(number < rules_.size() ? place(*rules_[number], e) : Span(), e.text(),
               "a relation may only be negated by relations that it does not depend on");
      program_.checked.remove_rules(before);
    }
  }

  Compilation& c_;
  LogicProgram& program_;
  std::vector<const ast::RuleDeclaration*> rules_;
};

}  // namespace

std::optional<Expression::Op> logic_operation(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::Add:
      return LogicOp::Add;
    case ast::BinaryOp::Subtract:
      return LogicOp::Subtract;
    case ast::BinaryOp::Multiply:
      return LogicOp::Multiply;
    case ast::BinaryOp::Divide:
      return LogicOp::Divide;
    case ast::BinaryOp::Remainder:
      return LogicOp::Remainder;
    case ast::BinaryOp::Power:
      return LogicOp::Power;
    case ast::BinaryOp::Equal:
      return LogicOp::Equal;
    case ast::BinaryOp::NotEqual:
      return LogicOp::NotEqual;
    case ast::BinaryOp::Less:
      return LogicOp::Less;
    case ast::BinaryOp::LessEqual:
      return LogicOp::LessEqual;
    case ast::BinaryOp::Greater:
      return LogicOp::Greater;
    case ast::BinaryOp::GreaterEqual:
      return LogicOp::GreaterEqual;
    case ast::BinaryOp::Approx:
      return LogicOp::Near;
    case ast::BinaryOp::And:
      return LogicOp::And;
    case ast::BinaryOp::Or:
      return LogicOp::Or;
    default:
      return std::nullopt;
  }
}

std::optional<logic::RelationId> declare_undeclared(Compilation& c, const std::string& name,
                                                    std::size_t arguments) {
  World& world = c.world;
  if (!c.options.undeclared_relations || world.functions.contains(name) ||
      world.structs.contains(name) || BuiltinTable::instance().find(name) != nullptr) {
    return {};
  }
  LogicProgram& program = *world.logic;
  std::vector<std::string> names;  // that no name of a program is
  for (std::size_t i = 0; i < arguments; ++i) names.push_back(std::to_string(i + 1));
  const logic::RelationId id =
      program.checked.declare(name, std::vector<ColumnType>(arguments, ColumnType()));
  program.relations[name] = id;
  program.parameters.push_back(std::move(names));
  return id;
}

std::vector<std::string_view> relation_names(const LogicProgram& program) {
  std::vector<std::string_view> names;
  for (const auto& [name, id] : program.relations) names.push_back(name);
  return names;
}

bool check_entity(Compilation& c, const std::string& name, const ColumnType& column,
                  const Span& span) {
  if (column.kind != ColumnType::Kind::Entity || column.entity.empty()) return true;
  const EntityType* type = c.world.logic->type(column.entity);
  if (type == nullptr || !type->fixed || type->has(name)) return true;
  c.error(span, join("unknown entity '", name, "': it is not one of ", type->name),
          suggestion(name, {type->members.begin(), type->members.end()}));
  return false;
}

bool check_kind(Compilation& c, std::string_view relation, std::size_t column,
                const ColumnType& type, const logic::Constant& constant, const Span& span) {
  using Holds = ColumnType::Kind;
  const bool is_text = std::holds_alternative<std::string>(constant);
  const bool fits = type.kind == Holds::Any ||
                    (is_text && (type.kind == Holds::Entity || type.kind == Holds::String)) ||
                    (std::holds_alternative<std::int64_t>(constant) && type.kind == Holds::Int) ||
                    (logic::is_number(constant) && type.kind == Holds::Float) ||
                    (std::holds_alternative<bool>(constant) && type.kind == Holds::Bool);
  if (fits) return true;
  c.error(span, join("argument ", column + 1, " of ", relation, " is ", logic::to_text(type),
                     ", not ", logic::kind_name(constant), " ", logic::to_text(constant)));
  return false;
}

void declare_logic(Compilation& compilation, std::span<const ast::Program* const> programs) {
  LogicDeclarations(compilation).declare(programs);
}

}  // namespace tl::lang
