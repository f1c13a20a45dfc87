#include "logic/check.h"

#include <string_view>
#include <utility>

#include "logic/expression.h"

namespace tl::logic {

namespace {

using Op = Expression::Op;
using What = LogicError::What;

std::string plural(std::size_t count, std::string_view noun) {
  return join(count, " ", noun, count == 1 ? "" : "s");
}

class Checker {
 public:
  Checker(const Symbols& symbols, const std::vector<Signature>& relations,
          const std::vector<std::string>& variables, std::int64_t number)
      : symbols_(symbols),
        relations_(relations),
        variables_(variables),
        number_(number),
        bound_(variables.size()),
        types_(variables.size()) {}

  void check_body(const std::vector<Literal>& body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i].kind != Literal::Kind::Constraint) check_atom(body[i], i);
    }
    bind(body);
    for (std::size_t i = 0; i < body.size(); ++i) check_bound(body[i], i);
  }

  void check_head(const Rule& rule) {
    const Signature& relation = relations_[rule.relation];
    check_arity(relation, rule.head.size(), -1);
    for (std::size_t c = 0; c < rule.head.size(); ++c) {
      const HeadTerm& term = rule.head[c];
      if (term.value.op == Op::Any && term.aggregate != Aggregate::Count) {
        throw LogicError(What::Unsafe, number_, "unsafe rule: '_' in the head of ", relation.name,
                         " stands for no value");
      }
      need_bound(term.value, "in the head", -1);
      if (term.aggregate == Aggregate::None) check_argument(relation, c, term.value, -1);
    }
  }

 private:
  void check_arity(const Signature& relation, std::size_t given, std::int64_t literal) const {
    if (given == relation.columns.size()) return;
    throw LogicError(What::Arity, number_, "relation '", relation.name, "' has ",
                     plural(relation.columns.size(), "argument"), ", got ", given)
        .at(literal);
  }

  void check_atom(const Literal& literal, std::size_t at) {
    const Signature& relation = relations_[literal.relation];
    check_arity(relation, literal.arguments.size(), static_cast<std::int64_t>(at));
    for (std::size_t c = 0; c < literal.arguments.size(); ++c) {
      check_argument(relation, c, literal.arguments[c], static_cast<std::int64_t>(at));
    }
  }

  void check_argument(const Signature& relation, std::size_t column, const Expression& e,
                      std::int64_t literal) {
    if (e.op == Op::Value) {
      check_constant(symbols_, relation, column, e.constant, number_, literal);
    }
    if (!e.is_variable()) return;
    auto& [known, where] = types_[e.variable];
    const ColumnType& type = relation.columns[column];
    if (!where.empty() && !go_together(known, type)) {
      throw LogicError(What::Type, number_, "variable '", variables_[e.variable], "' is ",
                       to_text(known), " in ", where, " and ", to_text(type), " in ", relation.name)
          .at(literal, variables_[e.variable]);
    }
    const bool says_more = known.kind == ColumnType::Kind::Any ||
                           (known.kind == ColumnType::Kind::Entity && known.entity.empty());
    if (where.empty() || says_more) {
      known = type;
      where = relation.name;
    }
  }

  bool all_bound(const Expression& e) const {
    bool all = true;
    for_each_variable(e, [&](std::uint32_t v) { all &= bound_[v]; });
    return all;
  }

  // Atoms give values, and then equations may.
  void bind(const std::vector<Literal>& body) {
    for (const Literal& l : body) {
      if (l.kind != Literal::Kind::Atom) continue;
      for (const Expression& e : l.arguments) {
        if (e.is_variable()) bound_[e.variable] = true;
      }
    }
    for (bool again = true; again;) {
      again = false;
      for (const Literal& l : body) {
        if (l.kind != Literal::Kind::Constraint || l.condition.op != Op::Equal) continue;
        for (const std::size_t side : {0, 1}) {
          const Expression& to = l.condition.parts[side];
          if (!to.is_variable() || bound_[to.variable]) continue;
          if (!all_bound(l.condition.parts[1 - side])) continue;
          bound_[to.variable] = again = true;
        }
      }
    }
  }

  void check_bound(const Literal& literal, std::size_t at) const {
    const auto place = static_cast<std::int64_t>(at);
    if (literal.kind == Literal::Kind::Constraint) {
      need_bound(literal.condition, "in a comparison", place);
    }
    const std::string_view where =
        literal.kind == Literal::Kind::Negated ? "under 'not'" : "in an argument";
    for (const Expression& e : literal.arguments) need_bound(e, where, place);
  }

  void need_bound(const Expression& e, std::string_view where, std::int64_t literal) const {
    for_each_variable(e, [&](std::uint32_t v) {
      if (bound_[v]) return;
      throw LogicError(What::Unsafe, number_, "unsafe rule: no atom of the body gives variable '",
                       variables_[v], "' ", where, " a value")
          .at(literal, variables_[v]);
    });
  }

  const Symbols& symbols_;
  const std::vector<Signature>& relations_;
  const std::vector<std::string>& variables_;
  std::int64_t number_;
  std::vector<bool> bound_;
  std::vector<std::pair<ColumnType, std::string>> types_;  // and the relation that said so
};

}  // namespace

void check_constant(const Symbols& symbols, const Signature& relation, std::size_t column, Id id,
                    std::int64_t number, std::int64_t literal) {
  const Constant& value = symbols[id];
  const ColumnType& type = relation.columns[column];
  if (holds(type.kind, value)) return;
  throw LogicError(What::Type, number, "argument ", column + 1, " of ", relation.name, " is ",
                   to_text(type), ", not ", kind_name(value), " ", to_text(value))
      .at(literal);
}

void check_rule(const Symbols& symbols, const std::vector<Signature>& relations, const Rule& rule,
                std::int64_t number) {
  Checker checker(symbols, relations, rule.variables, number);
  checker.check_body(rule.body);
  checker.check_head(rule);
}

void check_query(const Symbols& symbols, const std::vector<Signature>& relations,
                 const Query& query) {
  Checker(symbols, relations, query.variables, -1).check_body(query.body);
}

void set_fits(const std::vector<Signature>& relations, Rule& rule) {
  const auto gives = [&](std::uint32_t variable, ColumnType::Kind kind) {
    for (const Literal& l : rule.body) {
      if (l.kind != Literal::Kind::Atom) continue;
      for (std::size_t c = 0; c < l.arguments.size(); ++c) {
        const Expression& e = l.arguments[c];
        if (!e.is_variable() || e.variable != variable) continue;
        if (relations[l.relation].columns[c].kind == kind) return true;
      }
    }
    return false;
  };
  for (std::size_t c = 0; c < rule.head.size(); ++c) {
    HeadTerm& term = rule.head[c];
    const ColumnType::Kind kind = relations[rule.relation].columns[c].kind;
    const bool is_sure = term.aggregate == Aggregate::None && term.value.is_variable() &&
                         gives(term.value.variable, kind);
    term.fit = is_sure ? ColumnType::Kind::Any : kind;
  }
}

void name_wildcards(Rule& rule) {
  for (Literal& l : rule.body) {
    if (l.kind != Literal::Kind::Atom) continue;
    for (Expression& e : l.arguments) {
      if (e.op != Op::Any) continue;
      e = Expression::of_variable(static_cast<std::uint32_t>(rule.variables.size()));
      rule.variables.push_back(join("_", rule.variables.size()));
    }
  }
}

void flatten_arguments(std::vector<Literal>& body, std::vector<std::string>& variables) {
  for (std::size_t i = 0, count = body.size(); i < count; ++i) {
    if (body[i].kind == Literal::Kind::Constraint) continue;
    for (std::size_t c = 0; c < body[i].arguments.size(); ++c) {
      if (body[i].arguments[c].is_simple()) continue;
      const auto fresh = static_cast<std::uint32_t>(variables.size());
      variables.push_back(join("_", fresh));
      Literal equation;
      equation.kind = Literal::Kind::Constraint;
      equation.condition = Expression::of(
          Op::Equal, {Expression::of_variable(fresh), std::move(body[i].arguments[c])});
      body[i].arguments[c] = Expression::of_variable(fresh);
      body.push_back(std::move(equation));
    }
  }
}

}  // namespace tl::logic
