// What a program declares of logic: entity types, relations and rules, and what its statements ask.
// Made by the compiler; lang/knowledge.h has what is known while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lang/ast.h"
#include "lang/source.h"
#include "tl/base/dtype.h"
#include "tl/logic/database.h"

namespace tl::lang {

struct EntityType {
  std::string name;
  bool fixed = false;  // else it is filled by facts
  std::vector<std::string> members;

  bool has(std::string_view entity) const;
};

// A part of a fact or a query as it is written. Values of the program's variables and expressions
// are handed over when it runs, by number.
struct LogicTerm {
  enum class Kind : std::uint8_t {
    Constant,
    Value,      // number `slot` of what is handed over
    Name,       // a variable of the query, unless an entity of that name is known by then
    Any,        // _
    Operation,  // op over parts
  } kind = Kind::Any;
  logic::Constant constant;
  std::uint32_t slot = 0;
  std::string name;
  logic::Expression::Op op = logic::Expression::Op::Any;
  std::vector<LogicTerm> parts;
};

struct LogicSite {
  logic::RelationId relation = 0;
  std::vector<LogicTerm> arguments;
  std::vector<LogicTerm> where;
  std::string text;  // R(alice, X)
};

struct EmbeddingInfo {
  std::string name;
  bool of_relations = false;
  bool grows = false;  // with the entities of a type, or of all types
  std::string type;    // of entities; empty: listed, or all
  std::vector<std::string> members;
  std::int64_t dimension = 0;
  ast::Init init = ast::Init::Random;
};

// relation R(x: T, y: T) embed float16[64]: a vector, or a dimension for each argument.
struct RelationEmbedding {
  DType dtype = DType::F32;
  std::vector<std::int64_t> sizes;
  bool frozen = false;
  // By argument, the declared embedding that has the rows of its entities; empty: none has, and
  // relations of one dimension share a table for the type.
  std::vector<std::string> tables;

  std::int64_t dimension(std::size_t argument) const {
    return sizes.size() == 1 ? sizes[0] : sizes[argument];
  }
};

struct LogicProgram {
  logic::Database checked;  // with the relations and rules; it has no facts
  std::map<std::string, EntityType, std::less<>> entity_types;
  std::vector<std::string> type_order;  // of entity types
  std::map<std::string, logic::RelationId, std::less<>> relations;
  std::vector<std::vector<std::string>> parameters;  // names, by relation
  std::set<logic::RelationId> learnable;             // relations whose tensors training may change
  std::map<logic::RelationId, RelationEmbedding> embedded;  // relations that have an embedding
  std::vector<LogicSite> sites;
  std::map<std::string, EmbeddingInfo, std::less<>> embeddings;

  const EntityType* type(std::string_view name) const;
  // The fixed type that has it, of those that may stand in the column.
  const EntityType* fixed_type_of(std::string_view entity, const logic::ColumnType& column) const;
  bool is_fixed_entity(std::string_view name) const;
};

std::shared_ptr<LogicProgram> new_logic_program();

// The value as the column has it: an integer becomes a float where floats are wanted.
logic::Constant for_column(const logic::Constant& constant, const logic::ColumnType& column);

}  // namespace tl::lang
