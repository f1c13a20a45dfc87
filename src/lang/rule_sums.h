// Rules and queries as Einstein sums: every variable is an index.
//
// Aunt(x, z) <- Sister(x, y), Parent(y, z) is "ab,bc->ac" over Sister and Parent. A constant is a
// vector with a 1 at its place, and a head that names a variable twice has an identity for it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lang/knowledge.h"

namespace tl::lang {

struct RuleSum {
  std::vector<logic::RelationId> relations;
  std::vector<std::string> letters;  // of their dimensions
  std::string output;
  struct Chosen {
    char letter;
    const EntitySet* domain;
    std::int64_t place;
  };
  std::vector<Chosen> chosen;
  struct Equal {
    char one, other;
    const EntitySet* domain;
  };
  std::vector<Equal> equal;
  std::vector<const EntitySet*> domains;  // of a query: those of its arguments
};

// Nothing for a rule that is no sum of products: negation, comparisons, numbers, aggregates.
std::optional<RuleSum> sum_of_rule(const Knowledge& knowledge, const logic::Database& db,
                                   const logic::Rule& rule);

// The elements that a query asks for, with a dimension for each of its variables in the order in
// which they come. With `open` every name is a variable, an entity's too. Nothing for a query with
// conditions, or over something else than entities. Throws for an entity that is not known.
std::optional<RuleSum> sum_of_query(const Knowledge& knowledge, const LogicSite& site,
                                    std::span<const Value> values, bool open);

// The elements that the query asks for of what the rule gives, in one sum: a constant of the query
// then chooses among the rule's relations, before they are joined.
RuleSum asked_of_rule(const RuleSum& query, RuleSum rule);

// The sum's factors: `value_of` gives those of its relations.
template <class F>
std::vector<Factor> factors_of(Context& context, const RuleSum& sum, F&& value_of);

// A vector of a domain's size with one 1, and an identity matrix; few places are kept of them.
SparseTensor one_hot_sparse(Context& context, std::int64_t size, std::int64_t place);
SparseTensor identity_sparse(Context& context, std::int64_t size);

template <class F>
std::vector<Factor> factors_of(Context& context, const RuleSum& sum, F&& value_of) {
  std::vector<Factor> out;
  bool all_dense = true;
  for (std::size_t i = 0; i < sum.relations.size(); ++i) {
    out.push_back({sum.letters[i], value_of(sum.relations[i])});
    all_dense &= is_dense(out.back().value);
  }
  const auto add = [&](std::string letters, const SparseTensor& x) {
    out.push_back({std::move(letters), all_dense ? AnyTensor(to_dense(context, x)) : AnyTensor(x)});
  };
  for (const RuleSum::Chosen& c : sum.chosen) {
    add(std::string(1, c.letter),
        one_hot_sparse(context, static_cast<std::int64_t>(c.domain->size()), c.place));
  }
  for (const RuleSum::Equal& e : sum.equal) {
    add({e.one, e.other}, identity_sparse(context, static_cast<std::int64_t>(e.domain->size())));
  }
  return out;
}

}  // namespace tl::lang
