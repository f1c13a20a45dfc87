#include "logic/evaluate.h"

#include <algorithm>

#include "logic/aggregate.h"
#include "logic/expression.h"

namespace tl::logic {

namespace {

constexpr std::size_t kBatch = 256;  // tuples on their way to a table

// Turns solutions into tuples of the head. They go to the table in batches, so that the memory
// where each will be looked for is on its way when it is its turn.
class HeadSink : public Plan::Sink {
 public:
  HeadSink(Evaluation& evaluation, const Rule& rule, Table& into, std::size_t most)
      : evaluation_(evaluation), rule_(rule), into_(into), most_(most) {
    batch_.reserve(kBatch * rule.head.size());
  }

  bool solution(const Id* bindings) final {
    for (const HeadTerm& term : rule_.head) {
      const bool is_plain = term.value.is_variable() && term.fit == ColumnType::Kind::Any;
      batch_.push_back(is_plain ? bindings[term.value.variable]
                                : head_id(evaluation_.symbols, term, bindings));
    }
    if (++waiting_ == kBatch) flush();
    return true;
  }

  void flush() {
    const std::size_t width = rule_.head.size();
    for (std::size_t i = 0; i < waiting_; ++i) into_.prefetch(batch_.data() + i * width);
    std::size_t added = 0;
    for (std::size_t i = 0; i < waiting_; ++i) added += into_.insert(batch_.data() + i * width);
    evaluation_.derived += added;
    waiting_ = 0;
    batch_.clear();
    check();
  }

 private:
  void check() {
    const Limits& limits = evaluation_.limits;
    if (evaluation_.derived > limits.derived || into_.size() > most_) {
      throw LogicError(LogicError::What::Limit, number(), "more than ",
                       std::min(limits.derived, most_), " facts follow for '",
                       evaluation_.name(rule_.relation),
                       "'; do its rules make new numbers for ever?");
    }
  }
  std::int64_t number() const {
    const auto& rules = evaluation_.rules;
    const auto at = std::find(rules.begin(), rules.end(), &rule_);
    return at == rules.end() ? -1 : at - rules.begin();
  }

  Evaluation& evaluation_;
  const Rule& rule_;
  Table& into_;
  std::size_t most_;
  std::vector<Id> batch_;
  std::size_t waiting_ = 0;
};

// A rule of the stratum as a plan: once for each atom that may have new tuples.
struct Version {
  std::size_t rule;
  RelationId delta;  // whose new tuples it looks at
  Plan plan;
};

// Adds the rule to errors that conditions throw.
template <class F>
void with_rule(std::int64_t number, F&& run) {
  try {
    run();
  } catch (LogicError& e) {
    if (e.rule < 0) e.rule = number;
    throw;
  }
}

bool makes_numbers(const Rule& rule) {
  const auto in_head = [](const HeadTerm& t) { return computes(t.value); };
  const auto in_body = [](const Literal& l) {
    return l.kind == Literal::Kind::Constraint && l.condition.op == Expression::Op::Equal &&
           (computes(l.condition.parts[0]) || computes(l.condition.parts[1]));
  };
  return std::any_of(rule.head.begin(), rule.head.end(), in_head) ||
         std::any_of(rule.body.begin(), rule.body.end(), in_body);
}

class StratumRun {
 public:
  StratumRun(Evaluation& evaluation, const Stratum& stratum)
      : e_(evaluation),
        stratum_(stratum),
        growing_(evaluation.tables.size()),
        windows_(evaluation.tables.size()),
        most_(evaluation.limits.derived) {
    for (const RelationId r : stratum.relations) growing_[r] = true;
    for (const std::size_t r : stratum.rules) {
      if (stratum.recursive && makes_numbers(*e_.rules[r])) most_ = e_.limits.computed;
    }
  }

  void run() {
    ++e_.round;
    for (const RelationId r : stratum_.relations) {
      windows_[r] = {0, e_.tables[r]->size()};
      e_.tables[r]->mark(e_.round);
    }
    for (const std::size_t r : stratum_.rules) first(r);
    while (advance()) {
      for (Version& v : versions_) {
        const Window& window = windows_[v.delta];
        if (window.old < window.end) run_plan(v.rule, v.plan);
      }
    }
  }

 private:
  // A rule that does not depend on its own stratum runs once; the others begin with the facts.
  void first(std::size_t number) {
    const Rule& rule = *e_.rules[number];
    bool is_recursive = false;
    for (std::size_t i = 0; i < rule.body.size(); ++i) {
      const Literal& l = rule.body[i];
      if (l.kind != Literal::Kind::Atom || !growing_[l.relation]) continue;
      is_recursive = true;
      PlanInput input{e_.tables, &growing_, &rule.body, rule.variables.size(), {}, 0};
      input.delta = static_cast<std::int64_t>(i);
      versions_.push_back({number, l.relation, Plan(input)});
      const Window& window = windows_[l.relation];
      if (window.end > 0) run_plan(number, versions_.back().plan);
    }
    if (is_recursive) return;
    with_rule(static_cast<std::int64_t>(number), [&] {
      if (rule.aggregates()) {
        aggregate(e_, rule, *e_.tables[rule.relation]);
        return;
      }
      Plan plan({e_.tables, &growing_, &rule.body, rule.variables.size(), {}, -1});
      run_plan(number, plan);
    });
  }

  void run_plan(std::size_t number, Plan& plan) {
    const Rule& rule = *e_.rules[number];
    with_rule(static_cast<std::int64_t>(number), [&] {
      plan.refresh();
      HeadSink sink(e_, rule, *e_.tables[rule.relation], most_);
      std::vector<Id> bindings(rule.variables.size() + 1);
      plan.run(e_.symbols, windows_, bindings.data(), sink, e_.limits.check_interrupt);
      sink.flush();
    });
  }

  // What came in the last round is what the next one looks at. False: nothing came.
  bool advance() {
    bool any = false;
    ++e_.round;
    for (const RelationId r : stratum_.relations) {
      Window& window = windows_[r];
      window = {window.end, e_.tables[r]->size()};
      any |= window.old < window.end;
      e_.tables[r]->mark(e_.round);
    }
    if (e_.round % 256 == 0 && e_.limits.check_interrupt) e_.limits.check_interrupt();
    return any;
  }

  Evaluation& e_;
  const Stratum& stratum_;
  std::vector<bool> growing_;
  std::vector<Window> windows_;
  std::size_t most_;
  std::vector<Version> versions_;
};

}  // namespace

void evaluate(Evaluation& evaluation, const Stratum& stratum) {
  StratumRun(evaluation, stratum).run();
}

void evaluate_once(Evaluation& evaluation, const Rule& rule, Table& into) {
  Plan plan({evaluation.tables, nullptr, &rule.body, rule.variables.size(), {}, -1});
  plan.refresh();
  HeadSink sink(evaluation, rule, into, evaluation.limits.derived);
  std::vector<Id> bindings(rule.variables.size() + 1);
  plan.run(evaluation.symbols, {}, bindings.data(), sink, evaluation.limits.check_interrupt);
  sink.flush();
}

}  // namespace tl::logic
