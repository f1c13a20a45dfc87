#include <gtest/gtest.h>

#include "logic/reader.h"

namespace tl::logic {
namespace {

Texts result(const std::string& rule) {
  Database db;
  read_program(db,
               "pay(ann, dev, 3). pay(bob, dev, 3). pay(cid, ops, 5). pay(dan, ops, 2)."
               "half(a, 0.5). half(b, 1.5)." +
                   rule);
  return tuples(db, "t");
}

TEST(Aggregate, SumsGoOverSolutionsAndNotOverValues) {
  EXPECT_EQ(result("t(D, sum(P)) :- pay(X, D, P)."), (Texts{"t(dev, 6)", "t(ops, 7)"}));
  EXPECT_EQ(result("t(D, sum(P)) :- pay(_, D, P)."), (Texts{"t(dev, 6)", "t(ops, 7)"}));
}

TEST(Aggregate, CountIsOfDifferentValues) {
  EXPECT_EQ(result("t(D, count(P)) :- pay(X, D, P)."), (Texts{"t(dev, 1)", "t(ops, 2)"}));
  EXPECT_EQ(result("t(D, count()) :- pay(X, D, P)."), (Texts{"t(dev, 2)", "t(ops, 2)"}));
}

TEST(Aggregate, SmallestLargestAndMean) {
  EXPECT_EQ(result("t(D, min(P), max(P)) :- pay(X, D, P)."),
            (Texts{"t(dev, 3, 3)", "t(ops, 2, 5)"}));
  EXPECT_EQ(result("t(avg(P)) :- pay(X, D, P)."), Texts{"t(3.25)"});
  EXPECT_EQ(result("t(min(X)) :- pay(X, D, P)."), Texts{"t(ann)"});
  EXPECT_EQ(result("t(sum(H)) :- half(X, H)."), Texts{"t(2.0)"});
}

TEST(Aggregate, OfNothingIsNothing) { EXPECT_EQ(result("t(sum(P)) :- pay(X, none, P)."), Texts{}); }

TEST(Aggregate, FeedsOtherRules) {
  EXPECT_EQ(result("total(D, sum(P)) :- pay(X, D, P). best(max(T)) :- total(D, T)."
                   "t(D) :- total(D, T), best(T)."),
            Texts{"t(ops)"});
}

TEST(Aggregate, OfAComputedValue) {
  EXPECT_EQ(result("t(sum(P * P)) :- pay(X, D, P)."), Texts{"t(47)"});
}

TEST(Aggregate, OfTextsCannotBeSummed) {
  try {
    result("t(sum(X)) :- pay(X, D, P).");
    FAIL();
  } catch (const LogicError& e) {
    EXPECT_EQ(e.text(), "cannot add up string ann");
    EXPECT_EQ(e.rule, 0);
  }
}

TEST(Aggregate, OfItselfIsRefused) {
  try {
    result("t(sum(X)) :- t(X).");
    FAIL();
  } catch (const LogicError& e) {
    EXPECT_EQ(e.what_is, LogicError::What::Unstratified);
    EXPECT_EQ(e.text(), "'t' depends on an aggregate of itself: t <- aggregate of t");
  }
}

}  // namespace
}  // namespace tl::logic
