// R[ada, :] and R[ada, ben] = 1: parts of a relation's tensor, read and written without making the
// whole of a large one.
#pragma once

#include <span>

#include "lang/knowledge.h"
#include "lang/operators.h"

namespace tl::lang {

// What stands for a relation in a sum: dense where it is not too large.
AnyTensor relation_value(Context& context, logic::RelationId relation);

Value relation_part(Context& context, logic::RelationId relation, std::vector<IndexArg> at);
// Elements that become greater than 0 become facts, others are facts no more.
void assign_relation_part(Context& context, logic::RelationId relation, std::vector<IndexArg> at,
                          const Value& value);

}  // namespace tl::lang
