// What a running program knows: entities, facts and what follows from them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lang/builtin.h"
#include "lang/logic_program.h"
#include "lang/sparse.h"
#include "tl/logic/database.h"

namespace tl::lang {

// Names in the order in which they came; their places are the indices of tensors.
class EntitySet {
 public:
  bool add(const std::string& name);                // false when it was there
  std::int64_t place(std::string_view name) const;  // -1: not there
  const std::vector<std::string>& names() const noexcept { return names_; }
  std::size_t size() const noexcept { return names_.size(); }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int64_t> places_;
};

class Knowledge {
 public:
  explicit Knowledge(std::shared_ptr<const LogicProgram> program) : program_(std::move(program)) {}

  // The database, with all relations and rules that are declared by now.
  logic::Database& database(Context& context);
  const LogicProgram& program() const noexcept { return *program_; }
  void reset();  // to what is declared, without facts

  // ---- entities
  const EntitySet* entities(std::string_view type) const;  // nullptr: no such type
  const EntitySet& all_entities() const noexcept { return all_; }
  // Those that may stand in a column; nullptr for one that holds none.
  const EntitySet* domain(const logic::ColumnType& column) const;
  void register_type(const std::string& name);

  // ---- facts and queries of statements; `values` are what the site's terms ask for
  bool add_fact(Context& context, const LogicSite& site, std::span<const Value> values);
  bool remove_fact(Context& context, const LogicSite& site, std::span<const Value> values);
  logic::Answers ask(Context& context, const LogicSite& site, std::span<const Value> values,
                     bool on_demand);
  // Every name of the query is a variable.
  logic::Answers ask_open(Context& context, const LogicSite& site, std::span<const Value> values);
  std::string explain(Context& context, const LogicSite& site, std::span<const Value> values);
  std::size_t load_facts(Context& context, logic::RelationId relation, const std::string& path,
                         bool header, char separator);

  // ---- relations as tensors
  Shape shape(logic::RelationId relation) const;    // throws for one that is no tensor
  bool is_large(logic::RelationId relation) const;  // more elements than are made dense
  tl::Tensor tensor(Context& context, logic::RelationId relation);
  tl::Tensor facts_tensor(Context& context, logic::RelationId relation);  // without what follows
  // What stands for the facts in rules that are run as sums without a step: what was learned, or
  // the facts themselves. Sparse where it is large.
  AnyTensor weights(Context& context, logic::RelationId relation);
  // The relation as a value in an equation: what was learned, or all that follows.
  AnyTensor value_tensor(Context& context, logic::RelationId relation);
  // The tensor of a learnable relation, which begins as the facts; null: it is not learnable. That
  // of a large one is a vector with the weights of its facts, in their order.
  const Value* parameter(Context& context, logic::RelationId relation);
  void make_parameters(Context& context);  // of all relations that are learned
  // The facts become the tuples whose elements are greater than 0.
  void assign(Context& context, logic::RelationId relation, const tl::Tensor& given);
  // The same for one element, by places.
  void assign_cell(Context& context, logic::RelationId relation,
                   std::span<const std::string> entities, double value);

  // ---- relations with embeddings
  bool is_soft(logic::RelationId relation) const { return program_->embedded.contains(relation); }
  SoftTensor soft(Context& context, logic::RelationId relation);
  Value relation_embedding(Context& context, logic::RelationId relation);
  // The rows of a column's entities.
  Value entity_table(Context& context, logic::RelationId relation, std::size_t column);

  std::int64_t place(const logic::ColumnType& column, const std::string& entity) const;

  Value value(logic::Id id) const;

 private:
  class QueryMaker;
  void sync();
  std::string unknown_entity(std::span<const logic::ColumnType> columns,
                             std::span<const logic::Id> ids) const;
  void add_entities(std::span<const logic::ColumnType> columns, std::span<const logic::Id> ids);
  std::vector<logic::Id> tuple(const LogicSite& site, std::span<const Value> values);
  logic::Query query(const LogicSite& site, std::span<const Value> values, bool open);
  tl::Tensor tensor_of(Context& context, logic::RelationId relation, const logic::Table& tuples);
  SparseTensor sparse_of(Context& context, logic::RelationId relation, const logic::Table& tuples);
  std::vector<std::int64_t> places_of(logic::RelationId relation, const logic::Id* tuple) const;
  std::shared_ptr<const LogicProgram> program_;
  logic::Database database_;
  std::size_t rules_ = 0;
  std::unordered_map<std::string, EntitySet> types_;
  std::unordered_map<std::string, bool> fixed_;
  EntitySet all_;
  struct Weights {
    Value parameter;
    tl::Tensor facts;               // that it has seen, by place
    std::uint64_t changes = 0;      // of the facts by then
    bool by_fact = false;           // of a large relation: an element for each fact
    std::vector<logic::Id> tuples;  // those facts
  };
  std::map<std::vector<logic::Id>, float> learned_weights(logic::RelationId relation,
                                                          const Weights& known) const;
  const Value* large_parameter(Context& context, logic::RelationId relation);
  std::map<logic::RelationId, Weights> weights_;
  std::map<logic::RelationId, Value> vectors_;                    // of embedded relations
  std::map<std::pair<std::string, std::int64_t>, Value> tables_;  // by type and dimension
};

Knowledge& knowledge_of(Context& context);
// Runs it and gives errors of the logic engine the language's form.
template <class F>
auto with_logic_errors(F&& f) {
  try {
    return f();
  } catch (const logic::LogicError& e) {
    throw RuntimeError(e.text());
  } catch (const Error& e) {
    if (e.kind != ErrorKind::BadFile) throw;
    const std::string_view whole = e.what();
    throw RuntimeError(std::string(whole.substr(std::string_view("logic: ").size())));
  }
}

logic::Constant constant_of(const Value& value);  // throws a type error for what cannot be one
Value value_of(const logic::Constant& constant);

// ---- what statements print (docs/logic.md)
void print_solutions(Context& context, const logic::Answers& answers);

}  // namespace tl::lang
