// Random programs beside an evaluator that is too simple to be wrong: every rule, every
// combination of tuples, until nothing is new.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "logic/reader.h"

namespace tl::logic {
namespace {

using Tuples = std::set<std::vector<Id>>;

class Naive {
 public:
  Naive(const Database& db, const std::vector<Rule>& rules) : rules_(rules) {
    for (RelationId r = 0; r < db.relation_count(); ++r) {
      Tuples& to = all.emplace_back();
      for (std::size_t i = 0; i < db.facts(r).size(); ++i) {
        to.insert({db.facts(r).row(i), db.facts(r).row(i) + db.facts(r).width()});
      }
    }
  }

  // Relations of one layer at a time: lower layers are whole when they are negated.
  void run(const std::vector<std::vector<RelationId>>& layers) {
    for (const auto& layer : layers) {
      for (bool again = true; again;) {
        again = false;
        for (const Rule& rule : rules_) {
          if (std::find(layer.begin(), layer.end(), rule.relation) == layer.end()) continue;
          std::vector<Id> bindings(rule.variables.size(), kNoId);
          Tuples made;
          solve(rule, 0, bindings, made);
          for (const auto& t : made) again |= all[rule.relation].insert(t).second;
        }
      }
    }
  }

  std::vector<Tuples> all;

 private:
  void solve(const Rule& rule, std::size_t at, std::vector<Id>& bindings, Tuples& made) {
    if (at == rule.body.size()) {
      std::vector<Id> tuple;
      for (const HeadTerm& t : rule.head) tuple.push_back(value(t.value, bindings));
      made.insert(tuple);
      return;
    }
    const Literal& l = rule.body[at];
    if (l.kind == Literal::Kind::Constraint) {
      const bool same =
          value(l.condition.parts[0], bindings) == value(l.condition.parts[1], bindings);
      if (same == (l.condition.op == Expression::Op::Equal)) solve(rule, at + 1, bindings, made);
      return;
    }
    bool any = false;
    for (const auto& tuple : all[l.relation]) {
      std::vector<Id> next = bindings;
      bool fits = true;
      for (std::size_t c = 0; c < tuple.size() && fits; ++c) {
        const Expression& e = l.arguments[c];
        if (e.op == Expression::Op::Any) continue;
        if (e.is_variable() && next[e.variable] == kNoId) next[e.variable] = tuple[c];
        fits = value(e, next) == tuple[c];
      }
      any |= fits;
      if (fits && l.kind == Literal::Kind::Atom) solve(rule, at + 1, next, made);
    }
    if (l.kind == Literal::Kind::Negated && !any) solve(rule, at + 1, bindings, made);
  }
  static Id value(const Expression& e, const std::vector<Id>& bindings) {
    return e.is_variable() ? bindings[e.variable] : e.constant;
  }

  const std::vector<Rule>& rules_;
};

// Three layers of three relations; a rule may use its own layer and the ones below, and negate the
// ones below.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed) {
    for (int i = 0; i < 9; ++i) {
      const std::size_t width = 1 + below(3);
      db.declare(join("r", i), std::vector<ColumnType>(width));
    }
    for (int i = 0; i < 6; ++i) constants_.push_back(db.symbols().integer(i));
    for (RelationId r = 0; r < 9; ++r) {
      const std::size_t count = r < 3 ? 6 + below(20) : below(4);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<Id> tuple;
        for (std::size_t c = 0; c < db.columns(r).size(); ++c) tuple.push_back(constant());
        db.add_fact(r, tuple);
      }
    }
    for (RelationId r = 3; r < 9; ++r) {
      for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) add_rule(r);
    }
  }

  Database db;
  std::vector<Rule> rules;
  const std::vector<std::vector<RelationId>> layers = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}};

  std::size_t below(std::size_t n) { return random_() % n; }
  Id constant() { return constants_[below(constants_.size())]; }

 private:
  Expression argument(bool may_be_new) {
    const std::size_t what = below(16);
    if (what == 0) return Expression::of_constant(constant());
    if (what == 1 && may_be_new) return Expression::any();
    return Expression::of_variable(static_cast<std::uint32_t>(below(5)));
  }

  void add_rule(RelationId head) {
    const RelationId layer = head / 3 * 3;
    Rule rule;
    rule.relation = head;
    rule.variables = {"A", "B", "C", "D", "E"};
    for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) {
      Literal l;
      l.relation = static_cast<RelationId>(below(2) == 0 ? below(3) : below(layer + 3));
      for (std::size_t c = 0; c < db.columns(l.relation).size(); ++c) {
        l.arguments.push_back(argument(true));
      }
      rule.body.push_back(l);
    }
    if (below(4) == 0) {
      Literal l;
      l.kind = Literal::Kind::Negated;
      l.relation = static_cast<RelationId>(below(layer));
      for (std::size_t c = 0; c < db.columns(l.relation).size(); ++c) {
        l.arguments.push_back(argument(true));
      }
      rule.body.push_back(l);
    }
    if (below(4) == 0) {
      Literal l;
      l.kind = Literal::Kind::Constraint;
      l.condition = Expression::of(Expression::Op::NotEqual, {argument(false), argument(false)});
      rule.body.push_back(l);
    }
    for (std::size_t c = 0; c < db.columns(head).size(); ++c)
      rule.head.push_back({argument(false)});
    try {
      db.add_rule(rule);
      rules.push_back(rule);
    } catch (const LogicError& e) {
      EXPECT_EQ(e.what_is, LogicError::What::Unsafe);  // variables were drawn at random
    }
  }

  std::mt19937 random_;
  std::vector<Id> constants_;
};

TEST(Random, TheSameTuplesAsTheSimplestEvaluator) {
  std::size_t rules = 0;
  std::size_t derived = 0;
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    RandomProgram p(seed);
    Naive naive(p.db, p.rules);
    naive.run(p.layers);
    rules += p.rules.size();
    for (RelationId r = 0; r < 9; ++r) {
      Tuples found;
      const Table& table = p.db.tuples(r);
      for (std::size_t i = 0; i < table.size(); ++i) {
        found.insert({table.row(i), table.row(i) + table.width()});
      }
      ASSERT_EQ(found, naive.all[r]) << "seed " << seed << ", relation " << r;
      derived += found.size() - p.db.facts(r).size();
    }
  }
  EXPECT_GT(rules, 1000U);
  EXPECT_GT(derived, 10000U);
}

TEST(Random, OnDemandAnswersAreTheSame) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    RandomProgram whole(seed);
    RandomProgram part(seed);
    for (int i = 0; i < 5; ++i) {
      Query q;
      q.variables = {"A", "B"};
      Literal l;
      l.relation = static_cast<RelationId>(3 + whole.below(6));
      std::set<std::uint32_t> used;
      for (std::size_t c = 0; c < whole.db.columns(l.relation).size(); ++c) {
        const auto v = static_cast<std::uint32_t>(whole.below(2));
        const bool is_constant = whole.below(2) == 0;
        l.arguments.push_back(is_constant ? Expression::of_constant(whole.constant())
                                          : Expression::of_variable(v));
        if (!is_constant) used.insert(v);
      }
      q.wanted.assign(used.begin(), used.end());
      q.body = {l};
      ASSERT_EQ(solutions(part.db, part.db.ask_on_demand(q)), solutions(whole.db, whole.db.ask(q)))
          << "seed " << seed;
    }
  }
}

TEST(Random, EveryTupleHasAProofWhoseStepsAreSound) {
  std::size_t proved = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    RandomProgram p(seed);
    for (RelationId r = 3; r < 9; ++r) {
      const Table& table = p.db.tuples(r);
      for (std::size_t i = 0; i < table.size(); ++i) {
        const auto proof = p.db.explain(r, table.tuple(i));
        ASSERT_TRUE(proof);
        for (std::size_t n = 0; n < proof->nodes.size(); ++n) {
          const Proof::Node& node = proof->nodes[n];
          if (node.kind != Proof::Node::Kind::Fact) continue;
          auto [relation, tuple] = ProgramReader(p.db, node.text).fact();
          ASSERT_TRUE(p.db.facts(relation).contains(tuple.data())) << node.text;
        }
        proof->to_text();  // which ends only without circles
        ++proved;
      }
    }
  }
  EXPECT_GT(proved, 1000U);
}

}  // namespace
}  // namespace tl::logic
