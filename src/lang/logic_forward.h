// Rules as Einstein sums over the tensors of relations.
//
// A relation over entity types of sizes n1 ... nk is a tensor of that shape with 1 where it holds.
// Aunt(x, z) <- Sister(x, y), Parent(y, z) is einsum("xy,yz->xz", Sister, Parent); rules with one
// head are added, and a step makes 1 of what is greater than 0. Recursion goes on until nothing
// changes.
#pragma once

#include <optional>
#include <span>

#include "lang/knowledge.h"

namespace tl::lang {

// Can the relation and all it needs be tensors: entities alone, no negation, comparisons or
// aggregates, and a size that fits?
bool has_tensor_rules(Context& context, logic::RelationId relation);

// The relation's tensor, of its rules as sums. With `rounds` the rules are applied that many times
// without a step, so elements count derivations.
tl::Tensor forward_tensor(Context& context, logic::RelationId relation,
                          std::optional<std::int64_t> rounds = {});

// The sum of the elements that a query asks for, by rules without a step: what a gradient of the
// query is the gradient of. Recursion is followed as many rounds deep as there are relations.
tl::Tensor query_score(Context& context, const LogicSite& site, std::span<const Value> values);

// How many solutions a query has whose names are all variables, through tensors where the rules
// allow it and else through the engine.
std::size_t forward_solutions(Context& context, const LogicSite& site,
                              std::span<const Value> values);

}  // namespace tl::lang
