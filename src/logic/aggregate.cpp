#include "logic/aggregate.h"

#include <unordered_set>

#include "logic/expression.h"

namespace tl::logic {

namespace {

class SolutionSink : public Plan::Sink {
 public:
  explicit SolutionSink(std::size_t variables) : solutions(variables) {}
  bool solution(const Id* bindings) final {
    solutions.insert(bindings);
    return true;
  }
  Table solutions;
};

// One aggregate of one group.
struct Fold {
  std::size_t count = 0;
  std::unordered_set<Id> different;
  Constant value;

  void add(Aggregate what, Symbols& symbols, const Expression& e, const Id* bindings) {
    if (what == Aggregate::Count) {
      if (e.op != Expression::Op::Any) different.insert(evaluate_id(symbols, e, bindings));
      ++count;
      return;
    }
    const Constant next = evaluate(symbols, e, bindings);
    if ((what == Aggregate::Sum || what == Aggregate::Avg) && !is_number(next)) {
      throw LogicError(LogicError::What::Value, -1, "cannot add up ", kind_name(next), " ",
                       to_text(next));
    }
    const bool is_first = count++ == 0;
    const bool adds = what == Aggregate::Sum || what == Aggregate::Avg;
    if (!is_first && adds) {
      value = logic::add(value, next);
    } else if (is_first || is_better(what, next)) {
      value = next;
    }
  }

  bool is_better(Aggregate what, const Constant& next) const {
    int order = 0;
    try {
      order = compare(next, value);
    } catch (const Error&) {
      throw LogicError(LogicError::What::Value, -1, "cannot order ", kind_name(next), " ",
                       to_text(next), " and ", kind_name(value), " ", to_text(value));
    }
    return what == Aggregate::Min ? order < 0 : order > 0;
  }

  Id result(Aggregate what, Symbols& symbols, const Expression& e) const {
    if (what == Aggregate::Count) {
      const std::size_t n = e.op == Expression::Op::Any ? count : different.size();
      return symbols.integer(static_cast<std::int64_t>(n));
    }
    if (what == Aggregate::Avg) return symbols.real(number(value) / static_cast<double>(count));
    return symbols.intern(value);
  }
};

}  // namespace

void aggregate(Evaluation& evaluation, const Rule& rule, Table& into) {
  const std::size_t variables = rule.variables.size();
  SolutionSink sink(variables);
  Plan plan({evaluation.tables, nullptr, &rule.body, variables, {}, -1});
  plan.refresh();
  std::vector<Id> bindings(variables + 1);
  plan.run(evaluation.symbols, {}, bindings.data(), sink, evaluation.limits.check_interrupt);

  Table groups(rule.head.size());  // aggregated terms are 0 in it
  std::vector<std::vector<Fold>> folds;
  std::vector<Id> key(rule.head.size());
  for (std::size_t i = 0; i < sink.solutions.size(); ++i) {
    const Id* solution = sink.solutions.row(i);
    for (std::size_t c = 0; c < key.size(); ++c) {
      const HeadTerm& term = rule.head[c];
      key[c] = term.aggregate == Aggregate::None ? head_id(evaluation.symbols, term, solution) : 0;
    }
    if (groups.insert(key.data())) folds.emplace_back(rule.head.size());
    std::vector<Fold>& group = folds[groups.find(key.data())];
    for (std::size_t c = 0; c < key.size(); ++c) {
      const HeadTerm& term = rule.head[c];
      if (term.aggregate == Aggregate::None) continue;
      group[c].add(term.aggregate, evaluation.symbols, term.value, solution);
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    key.assign(groups.row(g), groups.row(g) + key.size());
    for (std::size_t c = 0; c < key.size(); ++c) {
      const HeadTerm& term = rule.head[c];
      if (term.aggregate == Aggregate::None) continue;
      const Id value = folds[g][c].result(term.aggregate, evaluation.symbols, term.value);
      key[c] =
          term.fit == ColumnType::Kind::Any ? value : fitted(evaluation.symbols, value, term.fit);
    }
    evaluation.derived += into.insert(key.data());
  }
}

}  // namespace tl::logic
