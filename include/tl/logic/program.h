// Rules as data. Who reads a language makes these and gives them to a Database, which checks and
// runs them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tl/base/error.h"
#include "tl/logic/symbols.h"

namespace tl::logic {

using RelationId = std::uint32_t;

// What a column of a relation holds.
struct ColumnType {
  enum class Kind : std::uint8_t { Any, Entity, Int, Float, Bool, String } kind = Kind::Any;
  std::string entity;  // Entity: of one type; empty: of any

  friend bool operator==(const ColumnType&, const ColumnType&) = default;
};
std::string to_text(const ColumnType& type);  // Person, entity, int
// Can a value be in both? An int column takes no floats; a float column takes ints too.
bool go_together(const ColumnType& a, const ColumnType& b) noexcept;

bool holds(ColumnType::Kind kind, const Constant& value) noexcept;

// A tree over the variables of one rule, which are numbered; Rule::variables has their names.
struct Expression {
  enum class Op : std::uint8_t {
    Value,  // a constant
    Variable,
    Any,  // `_`: something, no matter what; only as an argument of an atom in a body
    Add,
    Subtract,
    Multiply,
    Divide,  // of two ints: towards zero
    Remainder,
    Power,
    Negate,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Near,  // |a - b| <= 1e-6 max(1, |a|, |b|)
    And,
    Or,
    Not,
  } op = Op::Any;
  Id constant = kNoId;
  std::uint32_t variable = 0;
  std::vector<Expression> parts;

  static Expression of_constant(Id id);
  static Expression of_variable(std::uint32_t variable);
  static Expression any();
  static Expression of(Op op, std::vector<Expression> parts);

  bool is_variable() const noexcept { return op == Op::Variable; }
  bool is_simple() const noexcept { return op <= Op::Any; }
};

enum class Aggregate : std::uint8_t { None, Count, Sum, Min, Max, Avg };

struct HeadTerm {
  Expression value;  // of count() it is Any
  Aggregate aggregate = Aggregate::None;
  // What the column holds, where the value may be something else; set by the database.
  ColumnType::Kind fit = ColumnType::Kind::Any;
};

struct Literal {
  enum class Kind : std::uint8_t { Atom, Negated, Constraint } kind = Kind::Atom;
  RelationId relation = 0;            // Atom, Negated
  std::vector<Expression> arguments;  // Atom, Negated
  Expression condition;               // Constraint: true or false; x == e may give x its value
};

struct Rule {
  RelationId relation = 0;
  std::vector<HeadTerm> head;
  std::vector<Literal> body;
  std::vector<std::string> variables;
  std::string text;  // as it is shown in proofs

  bool aggregates() const noexcept;
};

// What is asked: the bindings of `wanted` for which all of the body holds.
struct Query {
  std::vector<Literal> body;
  std::vector<std::uint32_t> wanted;
  std::vector<std::string> variables;
};

// A program that cannot be run, with what a language needs to point at the place.
struct LogicError : Error {
  enum class What : std::uint8_t { Unsafe, Unstratified, Arity, Type, Limit, Value };
  template <class... Parts>
  LogicError(What w, std::int64_t rule_number, const Parts&... parts)
      : Error(ErrorKind::BadArgument, "logic", parts...), what_is(w), rule(rule_number) {}

  What what_is;
  std::int64_t rule;          // by the order in which rules were added; -1: a query or no rule
  std::string variable = {};  // NOLINT(readability-redundant-member-init): unsafe or of two types
  std::int64_t literal = -1;  // in the body; -1: the head
  // The same with the place.
  LogicError at(std::int64_t place, std::string name = {}) const;
  // The message without "logic: ".
  std::string text() const;
};

}  // namespace tl::logic
