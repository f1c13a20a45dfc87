// Small logic programs as text, for tests:
//
//   edge(a, b). path(X, Z) :- path(X, Y), edge(Y, Z), not blocked(Y), N < 3, M = N + 1.
//
// Names that begin with a capital are variables; relations are declared by their first use.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tl/logic/database.h"

namespace tl::logic {

class ProgramReader {
 public:
  ProgramReader(Database& db, std::string_view text) : db_(db), text_(text) {}

  void read() {
    while (skip_space(), at_ < text_.size()) clause();
  }
  Query query() {
    Query q;
    do literal(q.body);
    while (take(","));
    q.variables = variables_;
    for (std::uint32_t v = 0; v < variables_.size(); ++v) q.wanted.push_back(v);
    return q;
  }
  std::pair<RelationId, std::vector<Id>> fact() {
    const Literal l = atom();
    std::vector<Id> tuple;
    for (const Expression& e : l.arguments) tuple.push_back(e.constant);
    return {l.relation, tuple};
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string name() {
    skip_space();
    const std::size_t first = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    return std::string(text_.substr(first, at_ - first));
  }

  void clause() {
    variables_.clear();
    const std::size_t first = at_;
    Rule rule;
    const std::string relation = name();
    take("(");
    while (!take(")")) {
      rule.head.push_back(head_term());
      take(",");
    }
    rule.relation = declare(relation, rule.head.size());
    if (take(".")) {
      std::vector<Id> tuple;
      for (const HeadTerm& t : rule.head) tuple.push_back(t.value.constant);
      db_.add_fact(rule.relation, tuple);
      return;
    }
    if (!take(":-")) throw Error(ErrorKind::BadArgument, "reader", "expected :- at ", at_);
    do literal(rule.body);
    while (take(","));
    rule.text = std::string(text_.substr(first, at_ - first));
    rule.variables = variables_;
    if (!take(".")) throw Error(ErrorKind::BadArgument, "reader", "expected . at ", at_);
    db_.add_rule(std::move(rule));
  }

  HeadTerm head_term() {
    const std::pair<std::string_view, Aggregate> kinds[] = {{"count", Aggregate::Count},
                                                            {"sum", Aggregate::Sum},
                                                            {"min", Aggregate::Min},
                                                            {"max", Aggregate::Max},
                                                            {"avg", Aggregate::Avg}};
    for (const auto& [word, kind] : kinds) {
      if (!take(std::string(word) + "(")) continue;
      HeadTerm term{take(")") ? Expression::any() : sum(), kind};
      if (term.value.op != Expression::Op::Any) take(")");
      return term;
    }
    return {sum(), Aggregate::None};
  }

  RelationId declare(const std::string& relation, std::size_t width) {
    if (const auto known = db_.find(relation)) return *known;
    return db_.declare(relation, std::vector<ColumnType>(width));
  }

  Literal atom() {
    Literal l;
    const std::string relation = name();
    take("(");
    while (!take(")")) {
      l.arguments.push_back(sum());
      take(",");
    }
    l.relation = declare(relation, l.arguments.size());
    return l;
  }

  void literal(std::vector<Literal>& body) {
    Literal l;
    const bool negated = take("not ");
    const std::size_t before = at_;
    const std::string word = name();
    const bool is_atom = !word.empty() && take("(");
    at_ = before;
    if (is_atom) {
      l = atom();
      if (negated) l.kind = Literal::Kind::Negated;
    } else {
      l.kind = Literal::Kind::Constraint;
      Expression left = sum();
      using enum Expression::Op;
      const Expression::Op op = take("!=")   ? NotEqual
                                : take("<=") ? LessEqual
                                : take(">=") ? GreaterEqual
                                : take("<")  ? Less
                                : take(">")  ? Greater
                                             : (take("="), Equal);
      l.condition = Expression::of(op, {std::move(left), sum()});
    }
    body.push_back(std::move(l));
  }

  Expression sum() {
    Expression left = term();
    while (true) {
      const auto op = take("+")   ? Expression::Op::Add
                      : take("-") ? Expression::Op::Subtract
                      : take("*") ? Expression::Op::Multiply
                      : take("/") ? Expression::Op::Divide
                                  : Expression::Op::Any;
      if (op == Expression::Op::Any) return left;
      left = Expression::of(op, {std::move(left), term()});
    }
  }

  Expression term() {
    const std::string word = name();
    if (word == "_") return Expression::any();
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      if (at_ + 1 < text_.size() && text_[at_] == '.' &&
          std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0) {
        ++at_;
        return Expression::of_constant(db_.symbols().real(std::stod(word + "." + name())));
      }
      return Expression::of_constant(db_.symbols().integer(std::stoll(word)));
    }
    if (std::isupper(static_cast<unsigned char>(word[0])) == 0) {
      return Expression::of_constant(db_.symbols().text(word));
    }
    for (std::uint32_t v = 0; v < variables_.size(); ++v) {
      if (variables_[v] == word) return Expression::of_variable(v);
    }
    variables_.push_back(word);
    return Expression::of_variable(static_cast<std::uint32_t>(variables_.size() - 1));
  }

  Database& db_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> variables_;
};

inline void read_program(Database& db, std::string_view text) { ProgramReader(db, text).read(); }
inline Query query(Database& db, std::string_view text) { return ProgramReader(db, text).query(); }

using Texts = std::set<std::string>;

// All of a relation: {"path(a, b)", ...}.
inline Texts tuples(Database& db, std::string_view relation) {
  const RelationId r = db.find(relation).value();
  const Table& table = db.tuples(r);
  Texts out;
  for (std::size_t i = 0; i < table.size(); ++i) out.insert(db.to_text(r, table.tuple(i)));
  return out;
}

// The solutions: {"X=a Y=b", ...}.
inline Texts solutions(const Database& db, const Answers& answers) {
  Texts out;
  for (std::size_t i = 0; i < answers.count; ++i) {
    std::string row;
    for (std::size_t c = 0; c < answers.width; ++c) {
      row += (c > 0 ? " " : "") + answers.variables[c] + "=" +
             to_text(db.symbols()[answers.row(i)[c]]);
    }
    out.insert(row);
  }
  return out;
}

}  // namespace tl::logic
