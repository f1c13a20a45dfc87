// Proofs, made when they are asked for.
//
// A tuple is known with the round in which it came, and what it was derived from came in earlier
// rounds. So a proof is found by running its relation's rules backwards over the tuples of earlier
// rounds alone: there is one, and it cannot go in circles.
#include <map>
#include <utility>

#include "logic/aggregate.h"
#include "logic/expression.h"
#include "logic/state.h"

namespace tl::logic {

namespace {

constexpr std::size_t kMostSolutions = 100;  // of an aggregate that a proof shows

std::string_view symbol(Expression::Op op) {
  using enum Expression::Op;
  switch (op) {
    case Add:
      return " + ";
    case Subtract:
      return " - ";
    case Multiply:
      return " * ";
    case Divide:
      return " / ";
    case Remainder:
      return " % ";
    case Power:
      return " ** ";
    case Equal:
      return " == ";
    case NotEqual:
      return " != ";
    case Less:
      return " < ";
    case LessEqual:
      return " <= ";
    case Greater:
      return " > ";
    case GreaterEqual:
      return " >= ";
    case Near:
      return " ≈ ";
    case And:
      return " and ";
    case Or:
      return " or ";
    default:
      return "";
  }
}

// The condition with its variables' values in it.
std::string text_of(const Symbols& symbols, const Expression& e, const Id* bindings,
                    bool is_inner = false) {
  using enum Expression::Op;
  switch (e.op) {
    case Value:
      return to_text(symbols[e.constant]);
    case Variable:
      return to_text(symbols[bindings[e.variable]]);
    case Any:
      return "_";
    case Negate:
      return "-" + text_of(symbols, e.parts[0], bindings, true);
    case Not:
      return "not " + text_of(symbols, e.parts[0], bindings, true);
    default: {
      const std::string out = text_of(symbols, e.parts[0], bindings, true) +
                              std::string(symbol(e.op)) +
                              text_of(symbols, e.parts[1], bindings, true);
      return is_inner ? "(" + out + ")" : out;
    }
  }
}

// Keeps the solutions that give the head this tuple.
class ProofSink : public Plan::Sink {
 public:
  ProofSink(Symbols& symbols, const Rule& rule, std::span<const Id> tuple, std::size_t most)
      : symbols_(symbols), rule_(rule), tuple_(tuple), most_(most) {}

  bool solution(const Id* bindings) final {
    for (std::size_t c = 0; c < tuple_.size(); ++c) {
      const HeadTerm& term = rule_.head[c];
      if (term.aggregate != Aggregate::None) continue;
      if (head_id(symbols_, term, bindings) != tuple_[c]) return true;
    }
    found.emplace_back(bindings, bindings + rule_.variables.size());
    return found.size() < most_;
  }

  std::vector<std::vector<Id>> found;

 private:
  Symbols& symbols_;
  const Rule& rule_;
  std::span<const Id> tuple_;
  std::size_t most_;
};

class Prover {
 public:
  explicit Prover(Database::State& state) : state_(state), tables_(state.tables()) {}

  std::optional<Proof> prove(RelationId relation, std::span<const Id> tuple) {
    if (!tables_[relation]->contains(tuple.data())) return {};
    node(relation, tuple);
    for (std::size_t i = 0; i < goals_.size(); ++i) expand(i);
    for (const Rule& rule : state_.rules) proof_.rules.push_back(rule.text);
    return std::move(proof_);
  }

 private:
  struct Goal {
    std::size_t node;
    RelationId relation;
    std::vector<Id> tuple;
  };

  std::string text(RelationId relation, std::span<const Id> tuple) const {
    std::string out = state_.signatures[relation].name + "(";
    for (std::size_t i = 0; i < tuple.size(); ++i) {
      if (i > 0) out += ", ";
      out += to_text(state_.symbols[tuple[i]]);
    }
    return out + ")";
  }

  std::size_t node(RelationId relation, std::span<const Id> tuple) {
    const std::uint32_t row = tables_[relation]->find(tuple.data());
    const auto [at, is_new] = known_.try_emplace({relation, row}, proof_.nodes.size());
    if (is_new) {
      proof_.nodes.push_back({Proof::Node::Kind::Fact, text(relation, tuple), -1, {}});
      goals_.push_back({at->second, relation, {tuple.begin(), tuple.end()}});
    }
    return at->second;
  }

  std::size_t leaf(Proof::Node::Kind kind, std::string what) {
    proof_.nodes.push_back({kind, std::move(what), -1, {}});
    return proof_.nodes.size() - 1;
  }

  void expand(std::size_t which) {
    const Goal goal = goals_[which];
    if (state_.relations[goal.relation]->facts.contains(goal.tuple.data())) return;
    for (std::size_t r = 0; r < state_.rules.size(); ++r) {
      const Rule& rule = state_.rules[r];
      if (rule.relation == goal.relation && try_rule(goal, rule, r)) return;
    }
  }

  bool try_rule(const Goal& goal, const Rule& rule, std::size_t number) {
    std::vector<Id> bindings(rule.variables.size() + 1, kNoId);
    PlanInput input{tables_, nullptr, &rule.body, rule.variables.size(), {}, -1};
    for (std::size_t c = 0; c < rule.head.size(); ++c) {
      const HeadTerm& term = rule.head[c];
      if (!term.value.is_variable() || term.aggregate != Aggregate::None ||
          term.fit == ColumnType::Kind::Float) {
        continue;
      }
      Id& value = bindings[term.value.variable];
      if (value != kNoId && value != goal.tuple[c]) return false;
      value = goal.tuple[c];
      input.given.push_back(term.value.variable);
    }
    const bool aggregates = rule.aggregates();
    if (aggregates && !gives(rule, goal.tuple)) return false;

    const std::uint32_t round = round_of(goal);
    const std::vector<bool> growing(tables_.size(), true);
    std::vector<Window> windows;
    for (const Table* t : tables_) windows.push_back({0, t->rows_before(round)});
    input.growing = &growing;
    Plan plan(input);
    plan.refresh();
    ProofSink sink(state_.symbols, rule, goal.tuple, aggregates ? kMostSolutions : 1);
    plan.run(state_.symbols, windows, bindings.data(), sink, {});
    if (sink.found.empty()) return false;
    std::vector<std::size_t> because;
    for (const std::vector<Id>& solution : sink.found) {
      for (const Literal& l : rule.body) because.push_back(reason(l, solution.data()));
    }
    Proof::Node& proved = proof_.nodes[goal.node];
    proved.kind = Proof::Node::Kind::Derived;
    proved.rule = static_cast<std::int64_t>(number);
    proved.because = std::move(because);
    return true;
  }

  std::uint32_t round_of(const Goal& goal) {
    Table& table = *tables_[goal.relation];
    return table.round(table.find(goal.tuple.data()));
  }

  bool gives(const Rule& rule, const std::vector<Id>& tuple) {
    const std::vector<const Rule*> none;
    const Limits limits;
    Evaluation evaluation{state_.symbols, limits, tables_, none, state_.namer(), 0, 0};
    Table all(rule.head.size());
    aggregate(evaluation, rule, all);
    return all.contains(tuple.data());
  }

  std::size_t reason(const Literal& l, const Id* bindings) {
    if (l.kind == Literal::Kind::Constraint) {
      return leaf(Proof::Node::Kind::Condition, text_of(state_.symbols, l.condition, bindings));
    }
    std::vector<Id> tuple;
    std::string shown = state_.signatures[l.relation].name + "(";
    std::vector<std::uint32_t> columns;
    std::vector<Id> key;
    for (std::uint32_t c = 0; c < l.arguments.size(); ++c) {
      const Expression& e = l.arguments[c];
      if (c > 0) shown += ", ";
      shown += text_of(state_.symbols, e, bindings);
      if (e.op == Expression::Op::Any) continue;
      columns.push_back(c);
      key.push_back(evaluate_id(state_.symbols, e, bindings));
    }
    if (l.kind == Literal::Kind::Negated) {
      return leaf(Proof::Node::Kind::Absent, "not " + shown + ")");
    }
    if (key.size() == l.arguments.size()) return node(l.relation, key);
    return node(l.relation, oldest(*tables_[l.relation], columns, key));
  }

  // Of the tuples that a `_` leaves open: the first, which came in the earliest round.
  static std::span<const Id> oldest(Table& table, const std::vector<std::uint32_t>& columns,
                                    const std::vector<Id>& key) {
    const Index& index = table.index(columns);
    std::uint32_t row = index.first(Index::key(key));
    while (row != kNoRow) {
      bool same = true;
      for (std::size_t i = 0; i < columns.size(); ++i) same &= table.row(row)[columns[i]] == key[i];
      if (same) break;
      row = index.next(row);
    }
    return table.tuple(row);
  }

  Database::State& state_;
  std::vector<Table*> tables_;
  Proof proof_;
  std::map<std::pair<RelationId, std::uint32_t>, std::size_t> known_;
  std::vector<Goal> goals_;
};

}  // namespace

std::optional<Proof> explain(Database::State& state, RelationId relation,
                             std::span<const Id> tuple) {
  return Prover(state).prove(relation, tuple);
}

std::string Proof::to_text() const {
  std::string out;
  std::vector<bool> shown(nodes.size());
  // Depth first, with a stack of its own: proofs of long chains are deep.
  std::vector<std::pair<std::size_t, std::size_t>> waiting = {{0, 0}};
  while (!waiting.empty()) {
    const auto [at, depth] = waiting.back();
    waiting.pop_back();
    const Node& node = nodes[at];
    // A chain as deep as this is shown in steps of one space from here on.
    // Far in, the depth is a number: a proof as long as its chain must not be as wide.
    out += depth <= 40 ? std::string(2 * depth, ' ') : join(std::string(80, ' '), depth, ": ");
    out += node.text;
    const bool is_again = shown[at];
    shown[at] = true;
    if (node.kind == Node::Kind::Fact) out += "  [fact]";
    if (node.kind == Node::Kind::Derived) {
      out +=
          is_again ? "  [shown above]" : "  [" + rules[static_cast<std::size_t>(node.rule)] + "]";
    }
    out += "\n";
    if (is_again) continue;
    for (std::size_t i = node.because.size(); i-- > 0;) {
      waiting.emplace_back(node.because[i], depth + 1);
    }
  }
  return out;
}

}  // namespace tl::logic
