// Rules as Einstein sums over the tensors of relations.
//
// A relation over entity types of sizes n1 ... nk is a tensor of that shape with 1 where it holds.
// Aunt(x, z) <- Sister(x, y), Parent(y, z) is einsum("xy,yz->xz", Sister, Parent); rules with one
// head are added, and a step makes 1 of what is greater than 0. Recursion goes on until nothing
// changes. Relations that are too large to be dense are kept sparse (lang/sparse.h).
#pragma once

#include <optional>
#include <span>

#include "lang/knowledge.h"

namespace tl::lang {

// The relation's tensor, of its rules as sums. With `rounds` the rules are applied that many times
// without a step, so elements count derivations.
tl::Tensor forward_tensor(Context& context, logic::RelationId relation,
                          std::optional<std::int64_t> rounds = {});

// The elements that a query asks for, by rules without a step: a dimension for each variable of the
// query. Rules are applied `depth` times; where none is given, as often as rules without recursion
// need, and kRecursion times where they have some.
inline constexpr std::int64_t kRecursion = 10;
tl::Tensor query_score(Context& context, const LogicSite& site, std::span<const Value> values,
                       std::optional<std::int64_t> depth = {});

// How many solutions a query has whose names are all variables, through tensors where the rules
// allow it and else through the engine.
std::size_t forward_solutions(Context& context, const LogicSite& site,
                              std::span<const Value> values);

}  // namespace tl::lang
