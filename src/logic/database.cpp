#include "tl/logic/database.h"

#include <algorithm>
#include <utility>

#include "logic/state.h"

namespace tl::logic {

namespace {

constexpr std::size_t kMostColumns = 64;

}  // namespace

// ---- what follows from what

std::vector<Table*> Database::State::tables() const {
  std::vector<Table*> out;
  out.reserve(relations.size());
  for (const auto& r : relations) out.push_back(&r->tuples());
  return out;
}

std::function<std::string(RelationId)> Database::State::namer() const {
  return [this](RelationId r) { return r < signatures.size() ? signatures[r].name : "query"; };
}

std::vector<const Rule*> Database::State::rule_list() const {
  std::vector<const Rule*> out;
  out.reserve(rules.size());
  for (const Rule& r : rules) out.push_back(&r);
  return out;
}

std::vector<RelationId> relations_of(const std::vector<Literal>& body) {
  std::vector<RelationId> out;
  for (const Literal& l : body) {
    if (l.kind != Literal::Kind::Constraint) out.push_back(l.relation);
  }
  return out;
}

std::vector<bool> Database::State::reachable(const std::vector<RelationId>& from) const {
  std::vector<bool> seen(relations.size());
  for (const RelationId r : from) seen[r] = true;
  for (bool again = true; again;) {
    again = false;
    for (const Rule& rule : rules) {
      if (!seen[rule.relation]) continue;
      for (const RelationId r : relations_of(rule.body)) {
        again |= !seen[r];
        seen[r] = true;
      }
    }
  }
  return seen;
}

std::size_t Database::State::compute(const std::vector<bool>& wanted, const Limits& allowed) {
  std::vector<const Rule*> needed = rule_list();
  bool any = false;
  for (const Rule*& rule : needed) {
    if (!wanted[rule->relation] || relations[rule->relation]->valid) rule = nullptr;
    any |= rule != nullptr;
  }
  if (!any) return 0;
  const std::vector<Stratum> strata = stratify(needed, relations.size(), namer());
  const std::vector<Table*> all = tables();
  Evaluation evaluation{symbols, allowed, all, needed, namer(), round, 0};
  for (const Stratum& stratum : strata) {
    for (const RelationId r : stratum.relations) {
      const Table& facts = relations[r]->facts;
      relations[r]->all.clear();
      for (std::size_t i = 0; i < facts.size(); ++i) relations[r]->all.insert(facts.row(i));
    }
    evaluate(evaluation, stratum);
    round = evaluation.round;
    any_valid = true;
    for (const RelationId r : stratum.relations) relations[r]->valid = true;
  }
  return evaluation.derived;
}

void Database::State::invalidate(RelationId changed) {
  if (!any_valid) return;
  std::vector<bool> stale(relations.size());
  stale[changed] = true;
  for (bool again = true; again;) {
    again = false;
    for (const Rule& rule : rules) {
      if (stale[rule.relation]) continue;
      const std::vector<RelationId> from = relations_of(rule.body);
      if (std::any_of(from.begin(), from.end(), [&](RelationId r) { return stale[r]; })) {
        stale[rule.relation] = again = true;
      }
    }
  }
  any_valid = false;
  for (RelationId r = 0; r < relations.size(); ++r) {
    if (stale[r]) relations[r]->valid = false;
    any_valid |= relations[r]->valid;
  }
}

// ---- the database

Database::Database() : state_(std::make_unique<State>()) {}
Database::~Database() = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;

Symbols& Database::symbols() noexcept { return state_->symbols; }
const Symbols& Database::symbols() const noexcept { return state_->symbols; }

RelationId Database::declare(std::string name, std::vector<ColumnType> columns) {
  if (columns.size() > kMostColumns) {
    throw Error(ErrorKind::BadArgument, "logic", "relation '", name, "' has ", columns.size(),
                " arguments; at most ", kMostColumns, " are possible");
  }
  state_->relations.push_back(std::make_unique<Relation>(columns.size()));
  state_->signatures.push_back({std::move(name), std::move(columns)});
  return static_cast<RelationId>(state_->relations.size() - 1);
}

std::optional<RelationId> Database::find(std::string_view name) const {
  // The last of that name, so that one can be declared anew.
  for (std::size_t i = state_->signatures.size(); i-- > 0;) {
    if (state_->signatures[i].name == name) return static_cast<RelationId>(i);
  }
  return {};
}

std::size_t Database::relation_count() const noexcept { return state_->relations.size(); }
const std::string& Database::name(RelationId relation) const {
  return state_->signatures.at(relation).name;
}
const std::vector<ColumnType>& Database::columns(RelationId relation) const {
  return state_->signatures.at(relation).columns;
}
bool Database::has_rules(RelationId relation) const {
  return state_->relations.at(relation)->has_rules;
}

bool Database::add_fact(RelationId relation, std::span<const Id> tuple) {
  const Signature& signature = state_->signatures.at(relation);
  const std::size_t width = signature.columns.size();
  if (tuple.size() != width) {
    throw LogicError(LogicError::What::Arity, -1, "relation '", signature.name, "' has ", width,
                     width == 1 ? " argument" : " arguments", ", got ", tuple.size());
  }
  for (std::size_t c = 0; c < width; ++c) {
    check_constant(state_->symbols, signature, c, tuple[c], -1, -1);
  }
  if (!state_->relations[relation]->facts.insert(tuple.data())) return false;
  ++state_->relations[relation]->changes;
  state_->invalidate(relation);
  return true;
}

bool Database::remove_fact(RelationId relation, std::span<const Id> tuple) {
  Table& facts = state_->relations.at(relation)->facts;
  if (tuple.size() != facts.width() || !facts.erase(tuple.data())) return false;
  ++state_->relations[relation]->changes;
  state_->invalidate(relation);
  return true;
}

void Database::clear_facts(RelationId relation) {
  state_->relations.at(relation)->facts.clear();
  ++state_->relations[relation]->changes;
  state_->invalidate(relation);
}

std::uint64_t Database::changes(RelationId relation) const {
  return state_->relations.at(relation)->changes;
}

const Table& Database::facts(RelationId relation) const {
  return state_->relations.at(relation)->facts;
}

std::size_t Database::add_rule(Rule rule) {
  flatten_arguments(rule.body, rule.variables);
  if (rule.aggregates()) name_wildcards(rule);
  const auto number = static_cast<std::int64_t>(state_->rules.size());
  check_rule(state_->symbols, state_->signatures, rule, number);
  set_fits(state_->signatures, rule);
  state_->relations[rule.relation]->has_rules = true;
  const RelationId changed = rule.relation;
  state_->rules.push_back(std::move(rule));
  state_->invalidate(changed);
  return state_->rules.size() - 1;
}

std::size_t Database::rule_count() const noexcept { return state_->rules.size(); }
const Rule& Database::rule(std::size_t number) const { return state_->rules.at(number); }

void Database::remove_rules(std::size_t from) {
  while (state_->rules.size() > from) {
    state_->invalidate(state_->rules.back().relation);
    state_->rules.pop_back();
  }
  for (const auto& r : state_->relations) r->has_rules = false;
  for (const Rule& rule : state_->rules) state_->relations[rule.relation]->has_rules = true;
}

void Database::check() const {
  stratify(state_->rule_list(), state_->relations.size(), state_->namer());
}

// ---- answers

Rule rule_of(const Query& query) {
  Rule rule;
  rule.relation = 0xFFFFFFFF;  // of no relation
  rule.body = query.body;
  rule.variables = query.variables;
  for (const std::uint32_t v : query.wanted) {
    rule.head.push_back({Expression::of_variable(v), Aggregate::None});
  }
  flatten_arguments(rule.body, rule.variables);
  return rule;
}

const Table& Database::tuples(RelationId relation) {
  state_->compute(state_->reachable({relation}), limits);
  return state_->relations.at(relation)->tuples();
}

Answers Database::ask(const Query& query) {
  const Rule rule = rule_of(query);
  check_query(state_->symbols, state_->signatures, {rule.body, query.wanted, rule.variables});
  Answers out;
  out.derived = state_->compute(state_->reachable(relations_of(rule.body)), limits);
  const std::vector<Table*> tables = state_->tables();
  const std::vector<const Rule*> rules;
  Evaluation evaluation{state_->symbols, limits, tables, rules, state_->namer(), 0, 0};
  Table found(query.wanted.size());
  evaluate_once(evaluation, rule, found);
  out.width = found.width();
  out.count = found.size();
  out.values.assign(found.row(0), found.row(found.size()));
  for (const std::uint32_t v : query.wanted) out.variables.push_back(query.variables[v]);
  return out;
}

Answers Database::ask_on_demand(const Query& query) {
  try {
    return ask_by_need(*state_, limits, query);
  } catch (const LogicError& e) {
    if (e.what_is != LogicError::What::Limit) throw;
    return ask(query);
  }
}

std::optional<Proof> Database::explain(RelationId relation, std::span<const Id> tuple) {
  if (tuple.size() != state_->signatures.at(relation).columns.size()) return {};
  state_->compute(state_->reachable({relation}), limits);
  return logic::explain(*state_, relation, tuple);
}

std::string Database::to_text(RelationId relation, std::span<const Id> tuple) const {
  std::string out = name(relation) + "(";
  for (std::size_t i = 0; i < tuple.size(); ++i) {
    if (i > 0) out += ", ";
    out += logic::to_text(state_->symbols[tuple[i]]);
  }
  return out + ")";
}

}  // namespace tl::logic
