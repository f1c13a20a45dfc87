// A Datalog database: relations with facts, rules that derive more, and answers to queries.
//
//   Database db;
//   const RelationId edge = db.declare("edge", {{}, {}});
//   db.add_fact(edge, {db.symbols().text("a"), db.symbols().text("b")});
//   ...
//   const Answers answers = db.ask(query);
//
// Rules may be recursive in any way, several may have the same head, and they may negate relations
// that do not depend on themselves through that negation. Evaluation is bottom-up and semi-naive,
// so it ends for every program; arithmetic that makes new numbers for ever ends at a bound.
// Derived tuples are kept until a fact or a rule they may depend on changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tl/logic/program.h"
#include "tl/logic/symbols.h"
#include "tl/logic/table.h"

namespace tl::logic {

struct Limits {
  std::size_t derived = 100'000'000;  // tuples of one evaluation
  std::size_t computed = 1'000'000;   // tuples of relations that feed numbers back to themselves
  // Called now and then; throws to end the evaluation.
  std::function<void()> check_interrupt = {};  // NOLINT(readability-redundant-member-init)
};

struct CsvOptions {
  bool header = false;  // the first line is left out
  char separator = ',';
  // Why a tuple cannot be a fact, empty when it can; and what to do with those that were added.
  std::function<std::string(std::span<const Id>)> refuse = {};  // NOLINT(*-redundant-member-init)
  std::function<void(std::span<const Id>)> on_fact = {};        // NOLINT(*-redundant-member-init)
};

struct Answers {
  std::vector<std::string> variables;
  std::size_t width = 0;
  std::vector<Id> values;  // row by row
  std::size_t count = 0;
  std::size_t derived = 0;  // tuples that had to be derived for it

  std::span<const Id> row(std::size_t i) const { return {values.data() + i * width, width}; }
};

// Why a tuple holds. Nodes are shared: one that several others rest on is there once, and the
// children of a node come after it or were there before.
struct Proof {
  struct Node {
    enum class Kind : std::uint8_t { Fact, Derived, Absent, Condition } kind = Kind::Fact;
    std::string text;                  // ancestor(alice, carol)
    std::int64_t rule = -1;            // Derived
    std::vector<std::size_t> because;  // Derived: nodes
  };
  std::vector<Node> nodes;         // the first is what was asked
  std::vector<std::string> rules;  // texts, by number

  std::string to_text() const;  // a tree, indented; what was shown before is not shown again
};

class Database {
 public:
  Database();
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  Symbols& symbols() noexcept;
  const Symbols& symbols() const noexcept;
  Limits limits;

  // ---- relations
  RelationId declare(std::string name, std::vector<ColumnType> columns);
  std::optional<RelationId> find(std::string_view name) const;
  std::size_t relation_count() const noexcept;
  const std::string& name(RelationId relation) const;
  const std::vector<ColumnType>& columns(RelationId relation) const;
  bool has_rules(RelationId relation) const;

  // ---- facts
  // False when it was there. Throws LogicError when the width or a constant's kind is wrong.
  bool add_fact(RelationId relation, std::span<const Id> tuple);
  bool remove_fact(RelationId relation, std::span<const Id> tuple);
  void clear_facts(RelationId relation);
  const Table& facts(RelationId relation) const;
  std::uint64_t changes(RelationId relation) const;  // grows with every fact that comes or goes
  // Every line of a CSV file is a fact: texts, whole numbers, numbers and true/false, or quoted
  // texts. The number of new facts. A bad line is BadFile with its place, and then no line is
  // added.
  std::size_t load_csv(RelationId relation, const std::string& path,
                       const CsvOptions& options = {});

  // ---- rules
  // Throws LogicError when the rule itself is wrong: unsafe, arity, types.
  std::size_t add_rule(Rule rule);
  std::size_t rule_count() const noexcept;
  const Rule& rule(std::size_t number) const;
  void remove_rules(std::size_t from);  // the last ones
  // Throws LogicError for negation that depends on itself; names the cycle.
  void check() const;

  // ---- answers
  const Table& tuples(RelationId relation);  // all of a relation: facts and what follows
  Answers ask(const Query& query);
  // The same answers, deriving only what the query's constants reach.
  Answers ask_on_demand(const Query& query);
  std::optional<Proof> explain(RelationId relation, std::span<const Id> tuple);

  std::string to_text(RelationId relation, std::span<const Id> tuple) const;  // edge(a, b)

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tl::logic
