// What can be said of a rule before it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tl/logic/program.h"

namespace tl::logic {

struct Signature {
  std::string name;
  std::vector<ColumnType> columns;
};

// Arity, types and safety: every variable of the head, of a negated atom and of a comparison must
// have its value from a positive atom or an equation. `number` goes into the errors.
void check_rule(const Symbols& symbols, const std::vector<Signature>& relations, const Rule& rule,
                std::int64_t number);
void check_query(const Symbols& symbols, const std::vector<Signature>& relations,
                 const Query& query);
void check_constant(const Symbols& symbols, const Signature& relation, std::size_t column, Id id,
                    std::int64_t number, std::int64_t literal);

// Arithmetic among the arguments of an atom becomes a variable and an equation: R(x, n - 1) is
// R(x, v), v == n - 1.
void flatten_arguments(std::vector<Literal>& body, std::vector<std::string>& variables);

// `_` in the atoms of a rule that aggregates becomes a variable: tuples that differ there are
// different solutions.
void name_wildcards(Rule& rule);

// Says of every term of the head whether its value may be of another kind than its column.
void set_fits(const std::vector<Signature>& relations, Rule& rule);

}  // namespace tl::logic
