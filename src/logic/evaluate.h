// Runs rules until nothing new follows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "logic/plan.h"
#include "logic/stratify.h"
#include "tl/logic/database.h"

namespace tl::logic {

struct Evaluation {
  Symbols& symbols;
  const Limits& limits;
  std::span<Table* const> tables;         // by relation; those of heads are filled
  const std::vector<const Rule*>& rules;  // numbers in errors are places in it
  std::function<std::string(RelationId)> name;
  std::uint32_t round = 0;  // the last one; goes on counting
  std::size_t derived = 0;  // tuples made so far
};

// Facts of the stratum's own relations are in their tables already.
void evaluate(Evaluation& evaluation, const Stratum& stratum);

// One rule over whole tables into a table, without recursion: what aggregates and queries need.
void evaluate_once(Evaluation& evaluation, const Rule& rule, Table& into);

}  // namespace tl::logic
