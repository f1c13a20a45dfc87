// Answers that derive only what a query needs.
//
// The rules are written anew for the query ("magic sets"). A relation that is asked for with some
// arguments known gets a copy, named by which they are, that holds only tuples someone asks for; a
// second relation holds the values asked for. path(a, X) with path(x, z) <- path(x, y), edge(y, z)
// becomes
//
//   asked(a).
//   path_bf(x, z) <- asked(x), path_bf(x, y), edge(y, z).
//
// What stands under a negation or in an aggregate is computed whole first: half a relation would
// make them wrong.
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "logic/expression.h"
#include "logic/state.h"

namespace tl::logic {

namespace {

using Op = Expression::Op;

bool all_bound(const Expression& e, const std::vector<bool>& bound) {
  bool all = true;
  for_each_variable(e, [&](std::uint32_t v) { all &= bound[v]; });
  return all;
}

bool has_value(const Expression& e, const std::vector<bool>& bound) {
  return e.op == Op::Value || (e.is_variable() && bound[e.variable]);
}

class Rewriter {
 public:
  Rewriter(Database::State& state, const Limits& limits) : state_(state), limits_(limits) {}

  Answers ask(const Query& query) {
    Rule rule = rule_of(query);
    check_query(state_.symbols, state_.signatures, {rule.body, query.wanted, rule.variables});
    Answers out;
    out.derived = compute_whole(rule);
    add_tables();
    rule.relation = add_table(rule.head.size());
    const RelationId answer = rule.relation;
    add_rewritten(std::move(rule), {});
    while (!waiting_.empty()) {
      const Copy copy = waiting_.front();
      waiting_.pop_front();
      rewrite(copy);
    }
    run(out);
    const Table& found = *tables_[answer];
    out.width = found.width();
    out.count = found.size();
    out.values.assign(found.row(0), found.row(found.size()));
    for (const std::uint32_t v : query.wanted) out.variables.push_back(query.variables[v]);
    return out;
  }

 private:
  using Pattern = std::vector<bool>;  // which arguments are known
  struct Copy {
    RelationId of = 0;
    Pattern pattern;
    RelationId tuples = 0;
    RelationId asked = 0;
  };

  // Relations under a negation and those of aggregates, with all they need.
  std::size_t compute_whole(const Rule& query) {
    const std::vector<bool> near = state_.reachable(relations_of(query.body));
    std::vector<RelationId> from;
    const auto look = [&](const Rule& rule) {
      for (const Literal& l : rule.body) {
        if (l.kind == Literal::Kind::Negated) from.push_back(l.relation);
      }
      if (rule.aggregates()) from.push_back(rule.relation);
    };
    look(query);
    for (const Rule& rule : state_.rules) {
      if (near[rule.relation]) look(rule);
    }
    whole_ = state_.reachable(from);
    return state_.compute(whole_, limits_);
  }

  bool is_rewritten(RelationId r) const { return state_.relations[r]->has_rules && !whole_[r]; }

  // Of a relation that is rewritten the original's id means its facts.
  void add_tables() {
    for (RelationId r = 0; r < state_.relations.size(); ++r) {
      Relation& relation = *state_.relations[r];
      tables_.push_back(is_rewritten(r) ? &relation.facts : &relation.tuples());
    }
  }

  RelationId add_table(std::size_t width) {
    made_.push_back(std::make_unique<Table>(width));
    tables_.push_back(made_.back().get());
    return static_cast<RelationId>(tables_.size() - 1);
  }

  const Copy& copy(RelationId of, const Pattern& pattern) {
    const auto [at, is_new] = copies_.try_emplace({of, pattern});
    if (is_new) {
      const auto known = static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), true));
      at->second = {of, pattern, add_table(pattern.size()), add_table(known)};
      waiting_.push_back(at->second);
    }
    return at->second;
  }

  static Literal asked_literal(const Copy& copy, const std::vector<Expression>& arguments) {
    Literal l;
    l.relation = copy.asked;
    for (std::size_t c = 0; c < arguments.size(); ++c) {
      if (copy.pattern[c]) l.arguments.push_back(arguments[c]);
    }
    return l;
  }

  void rewrite(const Copy& copy) {
    add_facts(copy);
    for (const Rule& rule : state_.rules) {
      if (rule.relation != copy.of) continue;
      Rule made = rule;
      made.relation = copy.tuples;
      // A term that is known and computed: its variable is asked for and compared.
      std::vector<Expression> arguments;
      for (HeadTerm& term : made.head) {
        if (!term.value.is_simple()) {
          const auto fresh = static_cast<std::uint32_t>(made.variables.size());
          made.variables.push_back(join("_", fresh));
          Literal equation;
          equation.kind = Literal::Kind::Constraint;
          equation.condition =
              Expression::of(Op::Equal, {Expression::of_variable(fresh), std::move(term.value)});
          made.body.push_back(std::move(equation));
          term.value = Expression::of_variable(fresh);
        }
        arguments.push_back(term.value);
      }
      add_rewritten(std::move(made), {asked_literal(copy, arguments)});
    }
  }

  void add_facts(const Copy& copy) {
    if (state_.relations[copy.of]->facts.size() == 0) return;
    Rule rule;
    rule.relation = copy.tuples;
    Literal facts;
    facts.relation = copy.of;
    for (std::uint32_t c = 0; c < copy.pattern.size(); ++c) {
      rule.variables.push_back(join("_", c));
      rule.head.push_back({Expression::of_variable(c), Aggregate::None});
      facts.arguments.push_back(Expression::of_variable(c));
    }
    rule.body = {asked_literal(copy, facts.arguments), facts};
    rules_.push_back(std::move(rule));
  }

  // Puts the body's atoms in an order in which values flow, and asks for each what it needs.
  void add_rewritten(Rule rule, std::vector<Literal> body) {
    std::vector<bool> bound(rule.variables.size());
    for (const Literal& l : body) bind(l, bound);
    std::vector<Literal> left = std::move(rule.body);
    while (!left.empty()) {
      const std::size_t next = choose(left, bound);
      Literal l = std::move(left[next]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(next));
      if (l.kind == Literal::Kind::Atom && is_rewritten(l.relation)) {
        Pattern pattern;
        for (const Expression& e : l.arguments) pattern.push_back(has_value(e, bound));
        const Copy& to = copy(l.relation, pattern);
        Rule ask;
        ask.relation = to.asked;
        ask.variables = rule.variables;
        ask.body = body;
        const Literal wanted = asked_literal(to, l.arguments);
        for (const Expression& e : wanted.arguments) ask.head.push_back({e, Aggregate::None});
        if (!asks_itself(ask)) rules_.push_back(std::move(ask));
        l.relation = to.tuples;
      }
      bind(l, bound);
      body.push_back(std::move(l));
    }
    rule.body = std::move(body);
    rules_.push_back(std::move(rule));
  }

  static bool asks_itself(const Rule& ask) {
    if (ask.body.size() != 1 || ask.body[0].relation != ask.relation) return false;
    for (std::size_t c = 0; c < ask.head.size(); ++c) {
      const Expression& a = ask.head[c].value;
      const Expression& b = ask.body[0].arguments[c];
      if (!a.is_variable() || !b.is_variable() || a.variable != b.variable) return false;
    }
    return true;
  }

  static void bind(const Literal& l, std::vector<bool>& bound) {
    if (l.kind == Literal::Kind::Negated) return;
    for (const Expression& e : l.arguments) {
      if (e.is_variable()) bound[e.variable] = true;
    }
    if (l.kind == Literal::Kind::Constraint) {
      for_each_variable(l.condition, [&](std::uint32_t v) { bound[v] = true; });
    }
  }

  static bool is_ready(const Literal& l, const std::vector<bool>& bound) {
    if (l.kind == Literal::Kind::Negated) {
      for (const Expression& e : l.arguments) {
        if (e.op != Op::Any && !has_value(e, bound)) return false;
      }
      return true;
    }
    const Expression& e = l.condition;
    if (all_bound(e, bound)) return true;
    if (e.op != Op::Equal) return false;
    for (const std::size_t side : {0, 1}) {
      if (e.parts[side].is_variable() && all_bound(e.parts[1 - side], bound)) return true;
    }
    return false;
  }

  // What can be tested now, else the atom of which most is known; stored ones before rewritten.
  std::size_t choose(const std::vector<Literal>& left, const std::vector<bool>& bound) const {
    std::size_t best = left.size();
    std::size_t best_score = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Literal& l = left[i];
      if (l.kind != Literal::Kind::Atom) {
        if (is_ready(l, bound)) return i;
        continue;
      }
      std::size_t known = 0;
      for (const Expression& e : l.arguments) known += has_value(e, bound) ? 1 : 0;
      const std::size_t score = 1 + 2 * known + (is_rewritten(l.relation) ? 0 : 1);
      if (score > best_score) {
        best = i;
        best_score = score;
      }
    }
    return best;
  }

  void run(Answers& out) {
    std::vector<const Rule*> list;
    for (const Rule& rule : rules_) list.push_back(&rule);
    Evaluation evaluation{state_.symbols, limits_, tables_, list, state_.namer(), 0, 0};
    try {
      for (const Stratum& s : stratify(list, tables_.size(), state_.namer())) {
        evaluate(evaluation, s);
      }
    } catch (LogicError& e) {
      e.rule = -1;  // not the number of a rule that anyone wrote
      throw;
    }
    out.derived += evaluation.derived;
  }

  Database::State& state_;
  const Limits& limits_;
  std::vector<bool> whole_;
  std::vector<Table*> tables_;
  std::vector<std::unique_ptr<Table>> made_;
  std::map<std::pair<RelationId, Pattern>, Copy> copies_;
  std::deque<Copy> waiting_;
  std::deque<Rule> rules_;
};

}  // namespace

Answers ask_by_need(Database::State& state, const Limits& limits, const Query& query) {
  return Rewriter(state, limits).ask(query);
}

}  // namespace tl::logic
