#include <gtest/gtest.h>

#include "logic/reader.h"

namespace tl::logic {
namespace {

const char* const kEdges = "edge(a, b). edge(b, c). edge(c, a). edge(c, d).";

Texts paths(const std::string& rules) {
  Database db;
  read_program(db, kEdges + rules);
  return tuples(db, "path");
}

TEST(Evaluate, ClosureOfACycleEnds) {
  const Texts found = paths("path(X, Y) :- edge(X, Y). path(X, Z) :- edge(X, Y), path(Y, Z).");
  EXPECT_EQ(found.size(), 12U);  // a, b, c reach a, b, c, d
  EXPECT_TRUE(found.contains("path(a, a)"));
  EXPECT_FALSE(found.contains("path(d, a)"));
}

TEST(Evaluate, EveryKindOfRecursionGivesTheSame) {
  const Texts right = paths("path(X, Y) :- edge(X, Y). path(X, Z) :- edge(X, Y), path(Y, Z).");
  EXPECT_EQ(paths("path(X, Z) :- path(X, Y), edge(Y, Z). path(X, Y) :- edge(X, Y)."), right);
  EXPECT_EQ(paths("path(X, Y) :- edge(X, Y). path(X, Z) :- path(X, Y), path(Y, Z)."), right);
  EXPECT_EQ(paths("path(X, Y) :- edge(X, Y). path(X, Z) :- other(X, Y), edge(Y, Z)."
                  "other(X, Y) :- path(X, Y)."),
            right);
}

TEST(Evaluate, FactsOfARelationWithRulesCount) {
  Database db;
  read_program(db, "path(x, a). edge(a, b). path(X, Z) :- path(X, Y), edge(Y, Z).");
  EXPECT_EQ(tuples(db, "path"), (Texts{"path(x, a)", "path(x, b)"}));
}

TEST(Evaluate, SameGeneration) {
  Database db;
  read_program(db,
               "up(a, p). up(b, p). up(c, q). up(p, r). up(q, r)."
               "same(X, Y) :- up(X, P), up(Y, P)."
               "same(X, Y) :- up(X, P), same(P, Q), up(Y, Q).");
  const Texts found = tuples(db, "same");
  EXPECT_TRUE(found.contains("same(a, c)"));
  EXPECT_FALSE(found.contains("same(a, p)"));
  EXPECT_EQ(found.size(), 9U + 4U);
}

TEST(Evaluate, NegationSeesTheWholeRelation) {
  Database db;
  read_program(db, std::string(kEdges) +
                       "node(X) :- edge(X, _). node(Y) :- edge(_, Y)."
                       "path(X, Y) :- edge(X, Y). path(X, Z) :- path(X, Y), edge(Y, Z)."
                       "apart(X, Y) :- node(X), node(Y), not path(X, Y)."
                       "end(X) :- node(X), not edge(X, _).");
  EXPECT_EQ(tuples(db, "apart"),
            (Texts{"apart(d, a)", "apart(d, b)", "apart(d, c)", "apart(d, d)"}));
  EXPECT_EQ(tuples(db, "end"), Texts{"end(d)"});
}

TEST(Evaluate, ConstantsAndRepeatedVariables) {
  Database db;
  read_program(
      db,
      "r(a, a, 1). r(a, b, 2). r(b, b, 1). twice(X) :- r(X, X, 1). from_a(Y) :- r(a, Y, _)."
      "yes() :- r(a, b, 2). no() :- r(b, a, _).");
  EXPECT_EQ(tuples(db, "twice"), (Texts{"twice(a)", "twice(b)"}));
  EXPECT_EQ(tuples(db, "from_a"), (Texts{"from_a(a)", "from_a(b)"}));
  EXPECT_EQ(tuples(db, "yes"), Texts{"yes()"});
  EXPECT_EQ(tuples(db, "no"), Texts{});
}

TEST(Evaluate, ComparisonsAndArithmetic) {
  Database db;
  read_program(db,
               "age(ann, 12). age(bob, 40). age(cid, 41). age(dan, 40)."
               "adult(X) :- age(X, N), N >= 18."
               "older(X, Y, D) :- age(X, N), age(Y, M), N > M, D = N - M."
               "next(X, N + 1) :- age(X, N), X != bob."
               "one_more(X, Y) :- age(X, N), age(Y, N + 1).");
  EXPECT_EQ(tuples(db, "adult"), (Texts{"adult(bob)", "adult(cid)", "adult(dan)"}));
  EXPECT_TRUE(tuples(db, "older").contains("older(cid, ann, 29)"));
  EXPECT_EQ(tuples(db, "next"), (Texts{"next(ann, 13)", "next(cid, 42)", "next(dan, 41)"}));
  EXPECT_EQ(tuples(db, "one_more"), (Texts{"one_more(bob, cid)", "one_more(dan, cid)"}));
}

TEST(Evaluate, RecursionWithABoundOnNumbers) {
  Database db;
  read_program(db, "n(0). n(X + 1) :- n(X), X < 100. sum(count(X)) :- n(X).");
  EXPECT_EQ(tuples(db, "sum"), Texts{"sum(101)"});
}

TEST(Evaluate, NumbersForEverEndAtALimit) {
  Database db;
  db.limits.computed = 5000;
  read_program(db, "n(0). n(X + 1) :- n(X).");
  try {
    tuples(db, "n");
    FAIL();
  } catch (const LogicError& e) {
    EXPECT_EQ(e.what_is, LogicError::What::Limit);
    EXPECT_EQ(e.rule, 0);
    EXPECT_EQ(e.text(),
              "more than 5000 facts follow for 'n'; do its rules make new numbers for ever?");
  }
}

TEST(Evaluate, AnInterruptEndsIt) {
  Database db;
  db.limits.check_interrupt = [] { throw std::runtime_error("stop"); };
  read_program(db, "n(0). n(X + 1) :- n(X).");
  EXPECT_THROW(tuples(db, "n"), std::runtime_error);
}

TEST(Evaluate, ArithmeticThatCannotBeDoneNamesTheRule) {
  Database db;
  read_program(db, "r(1, 0). r(2, 1). ok(X) :- r(X, _). q(X / Y) :- r(X, Y).");
  try {
    tuples(db, "q");
    FAIL();
  } catch (const LogicError& e) {
    EXPECT_EQ(e.rule, 1);
    EXPECT_EQ(e.text(), "Division by zero");
  }
}

TEST(Evaluate, NumbersFitTheirColumns) {
  using Kind = ColumnType::Kind;
  Database db;
  db.declare("n", {{Kind::Int, ""}});
  db.declare("half", {{Kind::Float, ""}});
  db.declare("whole", {{Kind::Int, ""}});
  db.declare("name", {{Kind::Entity, ""}});
  read_program(db,
               "n(2). n(3). half(X) :- n(X). half(Y) :- n(X), Y = X * 2. half(0.5)."
               "whole(count(X)) :- n(X).");
  EXPECT_EQ(tuples(db, "half"),
            (Texts{"half(0.5)", "half(2.0)", "half(3.0)", "half(4.0)", "half(6.0)"}));
  EXPECT_EQ(db.ask_on_demand(query(db, "half(4.0)")).count, 1U);
  auto [relation, tuple] = ProgramReader(db, "half(3.0)").fact();
  const auto proof = db.explain(relation, tuple);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->nodes[0].rule, 0);
  read_program(db, "whole(avg(X)) :- n(X).");
  EXPECT_THROW(tuples(db, "whole"), LogicError);
  read_program(db, "name(Y) :- n(X), Y = X + 1.");
  EXPECT_THROW(tuples(db, "name"), LogicError);
}

TEST(Evaluate, ChangesAreSeen) {
  Database db;
  read_program(db, std::string(kEdges) +
                       "out(X) :- edge(X, _). lone(X) :- out(X), not two(X)."
                       "two(X) :- edge(X, Y), edge(X, Z), Y != Z.");
  EXPECT_EQ(tuples(db, "lone"), (Texts{"lone(a)", "lone(b)"}));
  read_program(db, "edge(a, d).");
  EXPECT_EQ(tuples(db, "lone"), Texts{"lone(b)"});
  auto [relation, tuple] = ProgramReader(db, "edge(c, d)").fact();
  EXPECT_TRUE(db.remove_fact(relation, tuple));
  EXPECT_FALSE(db.remove_fact(relation, tuple));
  EXPECT_EQ(tuples(db, "lone"), (Texts{"lone(b)", "lone(c)"}));
  db.remove_rules(1);
  EXPECT_EQ(tuples(db, "out"), (Texts{"out(a)", "out(b)", "out(c)"}));
}

TEST(Evaluate, ChainOfTenThousandNeedsNoStack) {
  Database db;
  std::string text = "path(Y) :- path(X), edge(X, Y). path(0).";
  for (int i = 0; i < 10000; ++i) text += join("edge(", i, ", ", i + 1, ").");
  read_program(db, text);
  EXPECT_EQ(tuples(db, "path").size(), 10001U);
  auto [relation, tuple] = ProgramReader(db, "path(10000)").fact();
  const auto proof = db.explain(relation, tuple);
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->nodes.size(), 20001U);
}

}  // namespace
}  // namespace tl::logic
