#include "logic/plan.h"

#include <algorithm>
#include <array>

#include "logic/expression.h"

namespace tl::logic {

namespace {

using Op = Expression::Op;

constexpr std::size_t kMostKey = 64;       // columns of an index
constexpr std::uint64_t kLook = 1U << 16;  // rows between two looks at interruption

bool all_bound(const Expression& e, const std::vector<bool>& bound) {
  bool all = true;
  for_each_variable(e, [&](std::uint32_t v) { all &= bound[v]; });
  return all;
}

bool has_value(const Expression& e, const std::vector<bool>& bound) {
  return e.op == Op::Value || (e.is_variable() && bound[e.variable]);
}

std::size_t bound_columns(const Literal& literal, const std::vector<bool>& bound) {
  return static_cast<std::size_t>(
      std::count_if(literal.arguments.begin(), literal.arguments.end(),
                    [&](const Expression& e) { return has_value(e, bound); }));
}

}  // namespace

struct Plan::Running {
  const Plan& plan;
  Symbols& symbols;
  std::span<const Window> windows;
  Id* bindings;
  Sink& sink;
  const std::function<void()>& check_interrupt;
  std::uint64_t visited = 0;  // rows

  void count() {
    if ((++visited & (kLook - 1)) == 0 && check_interrupt) check_interrupt();
  }
};

// Greedy: what is ready is tested at once, and the next atom is the one with the most columns that
// are known by then; of several the one with the fewest tuples.
Plan::Plan(const PlanInput& input) {
  const std::vector<Literal>& body = *input.body;
  std::vector<bool> bound(input.variables);
  for (const std::uint32_t v : input.given) bound[v] = true;
  std::vector<bool> done(body.size());
  if (input.delta >= 0) {
    add_atom(input, static_cast<std::size_t>(input.delta), bound);
    done[static_cast<std::size_t>(input.delta)] = true;
  }
  while (true) {
    add_ready(input, done, bound);
    std::size_t best = body.size();
    std::size_t best_bound = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (done[i] || body[i].kind != Literal::Kind::Atom) continue;
      const std::size_t known = bound_columns(body[i], bound);
      const bool is_better = best == body.size() || known > best_bound ||
                             (known == best_bound && input.tables[body[i].relation]->size() <
                                                         input.tables[body[best].relation]->size());
      if (!is_better) continue;
      best = i;
      best_bound = known;
    }
    if (best == body.size()) break;
    add_atom(input, best, bound);
    done[best] = true;
  }
}

void Plan::add_ready(const PlanInput& input, std::vector<bool>& done, std::vector<bool>& bound) {
  const std::vector<Literal>& body = *input.body;
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (done[i] || body[i].kind == Literal::Kind::Atom) continue;
      const bool added = body[i].kind == Literal::Kind::Constraint
                             ? add_constraint(body[i], bound)
                             : add_negated(input, body[i], bound);
      done[i] = added;
      again |= added;
    }
  }
}

bool Plan::add_constraint(const Literal& literal, std::vector<bool>& bound) {
  const Expression& e = literal.condition;
  Step step;
  if (all_bound(e, bound)) {
    step.kind = Step::Kind::Test;
    step.condition = &e;
    steps_.push_back(std::move(step));
    return true;
  }
  if (e.op != Op::Equal) return false;
  for (const std::size_t side : {0, 1}) {
    const Expression& to = e.parts[side];
    if (!to.is_variable() || bound[to.variable] || !all_bound(e.parts[1 - side], bound)) continue;
    step.kind = Step::Kind::Assign;
    step.condition = &e.parts[1 - side];
    step.assigned = to.variable;
    bound[to.variable] = true;
    steps_.push_back(std::move(step));
    return true;
  }
  return false;
}

bool Plan::add_negated(const PlanInput& input, const Literal& literal,
                       const std::vector<bool>& bound) {
  for (const Expression& e : literal.arguments) {
    if (e.op != Op::Any && !has_value(e, bound)) return false;
  }
  Step step;
  step.table = input.tables[literal.relation];
  step.relation = literal.relation;
  for (std::uint32_t c = 0; c < literal.arguments.size(); ++c) {
    const Expression& e = literal.arguments[c];
    if (e.op == Op::Any) continue;
    const Value value = {e.op == Op::Value, e.op == Op::Value ? e.constant : e.variable};
    step.key_columns.push_back(c);
    step.key.push_back(value);
    step.columns.push_back({c, false, value});
  }
  const bool is_whole = step.key.size() == literal.arguments.size();
  step.kind = is_whole ? Step::Kind::AbsentTuple : Step::Kind::Absent;
  steps_.push_back(std::move(step));
  return true;
}

void Plan::add_atom(const PlanInput& input, std::size_t at, std::vector<bool>& bound) {
  const Literal& literal = (*input.body)[at];
  Step step;
  step.table = input.tables[literal.relation];
  step.relation = literal.relation;
  step.growing = input.growing != nullptr && (*input.growing)[literal.relation];
  const bool is_delta = input.delta == static_cast<std::int64_t>(at);
  if (is_delta) step.part = Part::Delta;
  // A binding of which two tuples are new must be visited once: of the atoms before the one that
  // sees the new tuples, old tuples count.
  if (step.growing && static_cast<std::int64_t>(at) < input.delta) step.part = Part::Old;
  std::vector<Column> checks;
  const std::vector<bool> before = bound;
  for (std::uint32_t c = 0; c < literal.arguments.size(); ++c) {
    const Expression& e = literal.arguments[c];
    if (e.op == Op::Any) continue;
    const Value value = {e.op == Op::Value, e.op == Op::Value ? e.constant : e.variable};
    if (has_value(e, before) && !is_delta && step.key.size() < kMostKey) {
      step.key_columns.push_back(c);
      step.key.push_back(value);
      checks.push_back({c, false, value});
      continue;
    }
    const bool binds = e.is_variable() && !bound[e.variable];
    if (binds) bound[e.variable] = true;
    step.columns.push_back({c, binds, value});
  }
  const bool is_whole = step.key.size() == literal.arguments.size();
  if (step.key.empty() && !(is_whole && !is_delta)) {
    step.kind = Step::Kind::Scan;
  } else if (is_whole && !step.growing) {
    step.kind = Step::Kind::Contains;
  } else {
    step.kind = step.key.empty() ? Step::Kind::Scan : Step::Kind::Probe;
    // Keys of more columns are hashes.
    if (step.key.size() > 2)
      step.columns.insert(step.columns.begin(), checks.begin(), checks.end());
  }
  steps_.push_back(std::move(step));
}

void Plan::refresh() {
  for (Step& step : steps_) {
    if (step.kind == Step::Kind::Probe || step.kind == Step::Kind::Absent) {
      step.index = &step.table->index(step.key_columns);
    }
  }
}

bool Plan::run(Symbols& symbols, std::span<const Window> windows, Id* bindings, Sink& sink,
               const std::function<void()>& check_interrupt) const {
  Running running{*this, symbols, windows, bindings, sink, check_interrupt};
  return visit(running, 0);
}

std::uint64_t Plan::key_of(const Running& run, const Step& step) {
  std::array<Id, kMostKey> values;  // NOLINT(cppcoreguidelines-pro-type-member-init): of those read
  for (std::size_t i = 0; i < step.key.size(); ++i) values[i] = step.key[i].of(run.bindings);
  return Index::key({values.data(), step.key.size()});
}

bool Plan::matches(Running& run, const Step& step, const Id* row) {
  for (const Column& c : step.columns) {
    if (c.binds) {
      run.bindings[c.value.at] = row[c.column];
    } else if (c.value.of(run.bindings) != row[c.column]) {
      return false;
    }
  }
  return true;
}

bool Plan::is_absent(Running& run, const Step& step) {
  if (step.kind == Step::Kind::AbsentTuple) {
    std::vector<Id> tuple;
    for (const Value& v : step.key) tuple.push_back(v.of(run.bindings));
    return !step.table->contains(tuple.data());
  }
  std::uint32_t row = step.index->first(key_of(run, step));
  while (row != kNoRow && !matches(run, step, step.table->row(row))) row = step.index->next(row);
  return row == kNoRow;
}

// False: the sink had enough.
bool Plan::visit(Running& run, std::size_t at) {
  if (at == run.plan.steps_.size()) return run.sink.solution(run.bindings);
  const Step& step = run.plan.steps_[at];
  switch (step.kind) {
    case Step::Kind::Test:
      return !holds(run.symbols, *step.condition, run.bindings) || visit(run, at + 1);
    case Step::Kind::Assign:
      run.bindings[step.assigned] = evaluate_id(run.symbols, *step.condition, run.bindings);
      return visit(run, at + 1);
    case Step::Kind::Absent:
    case Step::Kind::AbsentTuple:
      return !is_absent(run, step) || visit(run, at + 1);
    case Step::Kind::Contains: {
      std::array<Id, kMostKey> tuple;  // NOLINT(cppcoreguidelines-pro-type-member-init): as above
      for (std::size_t i = 0; i < step.key.size(); ++i) tuple[i] = step.key[i].of(run.bindings);
      return !step.table->contains(tuple.data()) || visit(run, at + 1);
    }
    default:
      return visit_rows(run, at);
  }
}

// A table may grow meanwhile, so rows are asked for one by one.
bool Plan::visit_rows(Running& run, std::size_t at) {
  const Step& step = run.plan.steps_[at];
  std::size_t low = 0;
  std::size_t high = step.table->size();
  if (step.growing) {
    const Window& window = run.windows[step.relation];
    low = step.part == Part::Delta ? window.old : 0;
    high = step.part == Part::Old ? window.old : window.end;
  }
  if (step.kind == Step::Kind::Scan) {
    for (std::size_t row = low; row < high; ++row) {
      run.count();
      if (matches(run, step, step.table->row(row)) && !visit(run, at + 1)) return false;
    }
    return true;
  }
  for (std::uint32_t row = step.index->first(key_of(run, step)); row != kNoRow;
       row = step.index->next(row)) {
    run.count();
    if (row >= high) break;
    if (row < low) continue;
    if (matches(run, step, step.table->row(row)) && !visit(run, at + 1)) return false;
  }
  return true;
}

}  // namespace tl::logic
