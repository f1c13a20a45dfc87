// What a database is made of.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "logic/check.h"
#include "logic/evaluate.h"
#include "tl/logic/database.h"

namespace tl::logic {

struct Relation {
  explicit Relation(std::size_t width) : facts(width), all(width) {}
  Table facts;
  Table all;  // with what follows; not used without rules
  bool has_rules = false;
  std::uint64_t changes = 0;  // of the facts
  bool valid = false;         // is `all` what the facts and rules of now give?

  Table& tuples() noexcept { return has_rules ? all : facts; }
};

struct Database::State {
  Symbols symbols;
  std::vector<Signature> signatures;
  std::vector<std::unique_ptr<Relation>> relations;
  std::deque<Rule> rules;
  std::uint32_t round = 0;
  bool any_valid = false;

  std::vector<Table*> tables() const;
  std::function<std::string(RelationId)> namer() const;
  std::vector<const Rule*> rule_list() const;
  // Everything the relations are computed from, themselves included.
  std::vector<bool> reachable(const std::vector<RelationId>& from) const;
  // Makes sure that these relations, by id, are computed. The number of tuples derived.
  std::size_t compute(const std::vector<bool>& wanted, const Limits& allowed);
  void invalidate(RelationId changed);
};

std::vector<RelationId> relations_of(const std::vector<Literal>& body);
// The query as a rule with a head of its own; its atoms have simple arguments.
Rule rule_of(const Query& query);

// Deriving only what is needed: see magic.cpp. Throws LogicError (Limit) where the needed part of a
// program with arithmetic does not end, though all of it might.
Answers ask_by_need(Database::State& state, const Limits& limits, const Query& query);

std::optional<Proof> explain(Database::State& state, RelationId relation,
                             std::span<const Id> tuple);

}  // namespace tl::logic
