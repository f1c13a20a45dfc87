#include <gtest/gtest.h>

#include "logic/reader.h"

namespace tl::logic {
namespace {

const char* const kRules =
    "path(X, Y) :- edge(X, Y). path(X, Z) :- path(X, Y), edge(Y, Z)."
    "node(X) :- edge(X, _). node(Y) :- edge(_, Y). apart(X, Y) :- node(X), node(Y), not path(X, Y)."
    "degree(X, count(Y)) :- edge(X, Y).";

// A chain of 100 and a cycle of three apart from it.
std::string graph() {
  std::string text = kRules;
  for (int i = 0; i < 100; ++i) text += join("edge(", i, ", ", i + 1, ").");
  return text + "edge(a, b). edge(b, c). edge(c, a).";
}

TEST(Query, AnswersComeInTheOrderOfFacts) {
  Database db;
  read_program(db, "edge(a, z). edge(b, q). edge(a, k). edge(a, b).");
  const Answers found = db.ask(query(db, "edge(a, X)"));
  ASSERT_EQ(found.count, 3U);
  EXPECT_EQ(to_text(db.symbols()[found.row(0)[0]]), "z");
  EXPECT_EQ(to_text(db.symbols()[found.row(2)[0]]), "b");
}

TEST(Query, OfConstantsAloneIsYesOrNo) {
  Database db;
  read_program(db, graph());
  EXPECT_EQ(db.ask(query(db, "path(0, 100)")).count, 1U);
  EXPECT_EQ(db.ask(query(db, "path(0, a)")).count, 0U);
  EXPECT_EQ(db.ask_on_demand(query(db, "path(0, 100)")).count, 1U);
  EXPECT_EQ(db.ask_on_demand(query(db, "path(0, a)")).count, 0U);
}

TEST(Query, OnDemandGivesTheSameAndDerivesLess) {
  const std::string queries[] = {"path(a, X)",
                                 "path(X, b)",
                                 "path(97, X)",
                                 "path(X, X)",
                                 "path(X, Y), edge(Y, a)",
                                 "path(98, X), X != 99",
                                 "apart(a, X)",
                                 "degree(a, N)",
                                 "path(95, X), not path(a, X)"};
  for (const std::string& text : queries) {
    Database whole;
    read_program(whole, graph());
    Database part;
    read_program(part, graph());
    const Answers all = whole.ask(query(whole, text));
    const Answers needed = part.ask_on_demand(query(part, text));
    EXPECT_EQ(solutions(part, needed), solutions(whole, all)) << text;
    EXPECT_GT(all.count, 0U) << text;
    if (text.starts_with("path(a") || text.starts_with("path(X, b)")) {
      EXPECT_GT(all.derived, 5000U);
      EXPECT_LT(needed.derived, 20U) << text;
    }
  }
}

TEST(Query, OnDemandFallsBackWhereNeedsDoNotEnd) {
  Database db;
  db.limits.computed = 1000;
  // Asking for p(1) asks for p(2), p(3) and so on without an end; the facts do end.
  read_program(db, "p(X) :- p(X + 1), t(X). t(X) :- s(X). s(1). s(2). s(3). p(3).");
  EXPECT_EQ(db.ask_on_demand(query(db, "p(1)")).count, 1U);
  EXPECT_EQ(db.ask_on_demand(query(db, "p(0)")).count, 0U);
}

TEST(Query, UnsafeOnesAreRefused) {
  Database db;
  read_program(db, graph());
  EXPECT_THROW(db.ask(query(db, "path(a, X), Y < 3")), LogicError);
  EXPECT_THROW(db.ask_on_demand(query(db, "path(a, X), not edge(X, Y)")), LogicError);
}

}  // namespace
}  // namespace tl::logic
