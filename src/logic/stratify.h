// The order in which relations can be computed: each stratum is a set of relations that depend on
// each other, and negation and aggregates look at earlier strata alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tl/logic/program.h"

namespace tl::logic {

struct Stratum {
  std::vector<RelationId> relations;
  std::vector<std::size_t> rules;  // whose heads are among them
  bool recursive = false;
};

// Throws LogicError (Unstratified) with the cycle, for which `name` gives the relations' names.
// The numbers of rules are places in `rules`; those that are null are left out.
std::vector<Stratum> stratify(const std::vector<const Rule*>& rules, std::size_t relation_count,
                              const std::function<std::string(RelationId)>& name);

}  // namespace tl::logic
