#include <gtest/gtest.h>

#include "logic/reader.h"

namespace tl::logic {
namespace {

void expect_wrong(const std::string& program, LogicError::What what, const std::string& text,
                  const std::string& variable = "", std::int64_t rule = 0) {
  Database db;
  try {
    read_program(db, program);
    db.check();
    ADD_FAILURE() << "no error for " << program;
  } catch (const LogicError& e) {
    EXPECT_EQ(e.what_is, what);
    EXPECT_EQ(e.text(), text);
    EXPECT_EQ(e.variable, variable);
    EXPECT_EQ(e.rule, rule);
  }
}

TEST(Check, UnsafeRulesNameTheVariable) {
  using enum LogicError::What;
  expect_wrong("p(X, Y) :- q(X).", Unsafe,
               "unsafe rule: no atom of the body gives variable 'Y' in the head a value", "Y");
  expect_wrong("p(X) :- q(X), not r(X, Y).", Unsafe,
               "unsafe rule: no atom of the body gives variable 'Y' under 'not' a value", "Y");
  expect_wrong("p(X) :- q(X), Z < 3.", Unsafe,
               "unsafe rule: no atom of the body gives variable 'Z' in a comparison a value", "Z");
  expect_wrong("p(X) :- q(X), Y = Z, Z = Y.", Unsafe,
               "unsafe rule: no atom of the body gives variable 'Y' in a comparison a value", "Y");
}

TEST(Check, EquationsGiveValues) {
  Database db;
  read_program(db, "q(1). p(Z) :- Z = Y + 1, Y = X + 1, q(X).");
  EXPECT_EQ(tuples(db, "p"), Texts{"p(3)"});
}

TEST(Check, UnstratifiedNegationNamesTheCycle) {
  using enum LogicError::What;
  expect_wrong("p(X) :- q(X), not p(X).", Unstratified,
               "'p' depends on the negation of itself: p <- not p");
  expect_wrong("a(X) :- b(X). b(X) :- c(X). c(X) :- d(X), not a(X).", Unstratified,
               "'c' depends on the negation of itself: c <- not a <- b <- c", "", 2);
}

TEST(Check, Arity) {
  expect_wrong("q(a, b). p(X) :- q(X).", LogicError::What::Arity,
               "relation 'q' has 2 arguments, got 1");
  expect_wrong("q(a). q(a, b).", LogicError::What::Arity, "relation 'q' has 1 argument, got 2", "",
               -1);
}

TEST(Check, TypesOfVariablesAndConstants) {
  using Kind = ColumnType::Kind;
  Database db;
  const RelationId lives = db.declare("lives", {{Kind::Entity, "Person"}, {Kind::Entity, "City"}});
  db.declare("age", {{Kind::Entity, "Person"}, {Kind::Int, ""}});
  db.declare("knows", {{Kind::Entity, "Person"}, {Kind::Entity, "Person"}});
  try {
    read_program(db, "knows(X, Y) :- lives(X, Y).");
    FAIL();
  } catch (const LogicError& e) {
    EXPECT_EQ(e.what_is, LogicError::What::Type);
    EXPECT_EQ(e.text(), "variable 'Y' is City in lives and Person in knows");
    EXPECT_EQ(e.variable, "Y");
  }
  EXPECT_THROW(read_program(db, "knows(X, X) :- age(X, paris)."), LogicError);
  EXPECT_THROW(read_program(db, "age(ann, 1.5)."), LogicError);
  const Id pair[] = {db.symbols().text("ann"), db.symbols().integer(3)};
  EXPECT_THROW(db.add_fact(lives, pair), LogicError);
  EXPECT_EQ(db.rule_count(), 0U);
}

TEST(Check, TooManyColumns) {
  Database db;
  EXPECT_THROW(db.declare("wide", std::vector<ColumnType>(65)), Error);
}

}  // namespace
}  // namespace tl::logic
