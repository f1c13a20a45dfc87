// What statements about logic become: calls of functions that programs cannot name. The first
// argument is the number of a LogicSite or a name; the values that the site asks for come last.
#pragma once

#include "lang/builtin.h"

namespace tl::lang {

enum class LogicCall : std::uint8_t {
  DeclareEntity,     // (type)
  DeclareEmbedding,  // (embedding): its matrix
  GrowEmbedding,     // (embedding, matrix, entity): the matrix with a row for every entity
  Fact,              // (site, values...)
  Query,             // (site, values...): prints the solutions
  Holds,             // (site, values...): is there a solution?
  Solutions,         // (site, values...): a list of maps
  Explain,           // (site, values...): a text
  Retract,           // (site, values...): was it there?
  Score,             // (depth, site, values...): a tensor
  Infer,             // (method, depth, site, values...)
  InferNote,         // (text): lines around inference
  WithBegin,         // (type): what WithEnd is given
  WithEnd,           // (type, that)
  RelationTensor,    // (relation)
  AssignRelation,    // (relation, tensor)
  RelationPart,      // (relation, which are slices, indices...): R[a, :]
  AssignPart,        // (relation, which are slices, operator, value, indices...): R[a, b] = x
  Entities,          // (type): a list
  Place,             // (relation or embedding, column, entity or number): a number
  Contract,          // (indices of the factors and the result, factors or names of relations...)
  Align,             // (tensor, indices, all indices): with dimensions of size 1 for those missing
};

const Builtin& logic_call(LogicCall call);

}  // namespace tl::lang
