// The body of a rule as steps: which atom is looked at first, through which index, and where
// conditions are tested. Running a plan visits every binding of the variables that makes the body
// true.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tl/logic/program.h"
#include "tl/logic/table.h"

namespace tl::logic {

enum class Part : std::uint8_t { All, Old, Delta };  // of a table's rows

// Which rows a round may see: [0, old) came before the last round, [old, end) in it. Rows past the
// end are being made now.
struct Window {
  std::size_t old = 0;
  std::size_t end = 0;
};

struct PlanInput {
  std::span<Table* const> tables;              // by relation
  const std::vector<bool>* growing = nullptr;  // relations whose windows matter; none: all whole
  const std::vector<Literal>* body = nullptr;
  std::size_t variables = 0;
  // Variables that have values before.
  std::vector<std::uint32_t> given = {};  // NOLINT(readability-redundant-member-init)
  std::int64_t delta = -1;                // the literal that sees the last round's rows alone
};

class Plan {
 public:
  explicit Plan(const PlanInput& input);

  void refresh();  // brings the indices up to date; before every run

  class Sink {
   public:
    virtual ~Sink() = default;
    virtual bool solution(const Id* bindings) = 0;  // false: enough
  };
  // `bindings` has room for all variables, those given set. `windows` are by relation and needed
  // for growing ones alone. False when the sink had enough.
  bool run(Symbols& symbols, std::span<const Window> windows, Id* bindings, Sink& sink,
           const std::function<void()>& check_interrupt) const;

 private:
  struct Value {  // of a constant or a variable
    bool is_constant = false;
    std::uint32_t at = 0;
    Id of(const Id* bindings) const noexcept { return is_constant ? at : bindings[at]; }
  };
  struct Column {
    std::uint32_t column = 0;
    bool binds = false;  // the variable `value.at`; else must be the value
    Value value;
  };
  struct Step {
    enum class Kind : std::uint8_t { Scan, Probe, Contains, Absent, AbsentTuple, Test, Assign };
    Kind kind = Kind::Scan;
    Table* table = nullptr;
    RelationId relation = 0;
    bool growing = false;
    Part part = Part::All;
    const Index* index = nullptr;
    std::vector<std::uint32_t> key_columns;
    std::vector<Value> key;
    std::vector<Column> columns;
    const Expression* condition = nullptr;
    std::uint32_t assigned = 0;
  };
  struct Running;

  void add_ready(const PlanInput& input, std::vector<bool>& done, std::vector<bool>& bound);
  bool add_constraint(const Literal& literal, std::vector<bool>& bound);
  bool add_negated(const PlanInput& input, const Literal& literal, const std::vector<bool>& bound);
  void add_atom(const PlanInput& input, std::size_t at, std::vector<bool>& bound);
  static bool visit(Running& run, std::size_t at);
  static bool visit_rows(Running& run, std::size_t at);
  static bool matches(Running& run, const Step& step, const Id* row);
  static std::uint64_t key_of(const Running& run, const Step& step);
  static bool is_absent(Running& run, const Step& step);

  std::vector<Step> steps_;
};

}  // namespace tl::logic
