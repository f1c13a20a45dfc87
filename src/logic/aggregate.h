// Rules whose heads count, add or compare.
//
// The solutions of the body, each counted once, are grouped by the other terms of the head. Sums,
// averages, smallest and largest values go over the solutions of a group; count(x) is the number of
// different values of x in it, count() the number of solutions.
#pragma once

#include "logic/evaluate.h"

namespace tl::logic {

void aggregate(Evaluation& evaluation, const Rule& rule, Table& into);

}  // namespace tl::logic
