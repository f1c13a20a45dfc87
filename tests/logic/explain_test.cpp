#include <gtest/gtest.h>

#include "logic/reader.h"

namespace tl::logic {
namespace {

std::string proof(Database& db, const std::string& fact) {
  auto [relation, tuple] = ProgramReader(db, fact).fact();
  const auto found = db.explain(relation, tuple);
  return found ? found->to_text() : "none";
}

TEST(Explain, ATreeOfRulesAndFacts) {
  Database db;
  read_program(db,
               "parent(ann, bob). parent(bob, cid).\n"
               "old(X, Y) :- parent(X, Y).\nold(X, Z) :- parent(X, Y), old(Y, Z).");
  EXPECT_EQ(proof(db, "old(ann, cid)"),
            "old(ann, cid)  [old(X, Z) :- parent(X, Y), old(Y, Z)]\n"
            "  parent(ann, bob)  [fact]\n"
            "  old(bob, cid)  [old(X, Y) :- parent(X, Y)]\n"
            "    parent(bob, cid)  [fact]\n");
  EXPECT_EQ(proof(db, "old(cid, ann)"), "none");
}

TEST(Explain, CyclesEnd) {
  Database db;
  read_program(db,
               "edge(a, b). edge(b, a).\n"
               "path(X, Y) :- path(Y, X).\npath(X, Z) :- path(X, Y), path(Y, Z).\n"
               "path(X, Y) :- edge(X, Y).");
  EXPECT_EQ(proof(db, "path(a, a)"),
            "path(a, a)  [path(X, Z) :- path(X, Y), path(Y, Z)]\n"
            "  path(a, b)  [path(X, Y) :- edge(X, Y)]\n"
            "    edge(a, b)  [fact]\n"
            "  path(b, a)  [path(X, Y) :- edge(X, Y)]\n"
            "    edge(b, a)  [fact]\n");
}

TEST(Explain, WhatIsAbsentAndWhatWasCompared) {
  Database db;
  read_program(db,
               "age(ann, 20). age(bob, 9). ill(bob).\n"
               "may(X, N + 1) :- age(X, N), N > 10, not ill(X).\n"
               "any() :- may(_, _).");
  EXPECT_EQ(proof(db, "may(ann, 21)"),
            "may(ann, 21)  [may(X, N + 1) :- age(X, N), N > 10, not ill(X)]\n"
            "  age(ann, 20)  [fact]\n"
            "  20 > 10\n"
            "  not ill(ann)\n");
  EXPECT_EQ(proof(db, "any()").substr(0, 40), "any()  [any() :- may(_, _)]\n  may(ann, 2");
}

TEST(Explain, AnAggregateRestsOnItsSolutions) {
  Database db;
  read_program(db, "pay(a, 1). pay(b, 2).\nt(sum(P)) :- pay(X, P).");
  EXPECT_EQ(proof(db, "t(3)"),
            "t(3)  [t(sum(P)) :- pay(X, P)]\n  pay(a, 1)  [fact]\n  pay(b, 2)  [fact]\n");
}

TEST(Explain, SharedPartsAreShownOnce) {
  Database db;
  read_program(db, "e(a).\np(X) :- e(X).\nq(X) :- p(X).\nr(X) :- p(X), q(X).");
  EXPECT_EQ(proof(db, "r(a)"),
            "r(a)  [r(X) :- p(X), q(X)]\n"
            "  p(a)  [p(X) :- e(X)]\n"
            "    e(a)  [fact]\n"
            "  q(a)  [q(X) :- p(X)]\n"
            "    p(a)  [shown above]\n");
}

}  // namespace
}  // namespace tl::logic
