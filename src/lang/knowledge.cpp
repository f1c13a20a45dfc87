#include "lang/knowledge.h"

#include <algorithm>
#include <ostream>

#include "lang/builtins/library.h"

namespace tl::lang {

using logic::ColumnType;
using logic::Expression;

// ---- entities

bool EntitySet::add(const std::string& name) {
  if (!places_.emplace(name, static_cast<std::int64_t>(names_.size())).second) return false;
  names_.push_back(name);
  return true;
}

std::int64_t EntitySet::place(std::string_view name) const {
  const auto found = places_.find(std::string(name));
  return found == places_.end() ? -1 : found->second;
}

const EntitySet* Knowledge::entities(std::string_view type) const {
  const auto found = types_.find(std::string(type));
  return found == types_.end() ? nullptr : &found->second;
}

const EntitySet* Knowledge::domain(const ColumnType& column) const {
  if (column.kind != ColumnType::Kind::Entity) return nullptr;
  return column.entity.empty() ? &all_ : entities(column.entity);
}

void Knowledge::register_type(const std::string& name) {
  const EntityType* type = program_->type(name);
  EntitySet& set = types_[name] = EntitySet();  // declared anew at the prompt, it begins anew
  fixed_[name] = type->fixed;
  for (const std::string& member : type->members) {
    set.add(member);
    all_.add(member);
  }
}

// Before anything is added: an entity that a fixed type does not have, as a message.
std::string Knowledge::unknown_entity(std::span<const ColumnType> columns,
                                      std::span<const logic::Id> ids) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto* name = std::get_if<std::string>(&database_.symbols()[ids[i]]);
    const ColumnType& column = columns[i];
    if (name == nullptr || column.kind != ColumnType::Kind::Entity || column.entity.empty())
      continue;
    const EntitySet& set = types_.at(column.entity);
    if (fixed_.at(column.entity) && set.place(*name) < 0) {
      return join("unknown entity '", *name, "': it is not one of ", column.entity,
                  did_you_mean(*name, set.names()));
    }
  }
  return {};
}

void Knowledge::add_entities(std::span<const ColumnType> columns, std::span<const logic::Id> ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto* name = std::get_if<std::string>(&database_.symbols()[ids[i]]);
    const ColumnType& column = columns[i];
    if (name == nullptr || column.kind != ColumnType::Kind::Entity) continue;
    if (!column.entity.empty()) {
      types_[column.entity].add(*name);  // a fixed one has it
    } else {
      for (const std::string& type : program_->type_order) {
        if (!fixed_[type]) types_[type].add(*name);
      }
    }
    all_.add(*name);
  }
}

std::int64_t Knowledge::place(const ColumnType& column, const std::string& entity) const {
  const EntitySet* set = domain(column);
  const std::int64_t at = set != nullptr ? set->place(entity) : -1;
  if (at < 0) {
    throw RuntimeError(join("unknown entity '", entity, "'",
                            column.entity.empty() ? "" : ": it is not one of " + column.entity));
  }
  return at;
}

// ---- declarations

namespace {

// A rule of the checked program over the symbols of the running one.
class RuleCopier {
 public:
  RuleCopier(const logic::Symbols& from, logic::Symbols& to) : from_(from), to_(to) {}

  logic::Rule copy(logic::Rule rule) {
    for (logic::HeadTerm& t : rule.head) copy(t.value);
    for (logic::Literal& l : rule.body) {
      for (Expression& e : l.arguments) copy(e);
      copy(l.condition);
    }
    return rule;
  }

 private:
  void copy(Expression& e) {
    if (e.op == Expression::Op::Value) e.constant = to_.intern(from_[e.constant]);
    for (Expression& part : e.parts) copy(part);
  }
  const logic::Symbols& from_;
  logic::Symbols& to_;
};

}  // namespace

void Knowledge::sync() {
  const logic::Database& declared = program_->checked;
  for (const std::string& type : program_->type_order) {
    if (!types_.contains(type)) register_type(type);
  }
  while (database_.relation_count() < declared.relation_count()) {
    const auto next = static_cast<logic::RelationId>(database_.relation_count());
    database_.declare(declared.name(next), declared.columns(next));
  }
  RuleCopier copier(declared.symbols(), database_.symbols());
  for (; rules_ < declared.rule_count(); ++rules_) {
    database_.add_rule(copier.copy(declared.rule(rules_)));
  }
}

logic::Database& Knowledge::database(Context& context) {
  sync();
  database_.limits.check_interrupt = [&context] { context.count_work(); };
  return database_;
}

void Knowledge::reset() {
  database_ = logic::Database();
  rules_ = 0;
  types_.clear();
  fixed_.clear();
  all_ = EntitySet();
  weights_.clear();
  vectors_.clear();
  tables_.clear();
}

Knowledge& knowledge_of(Context& context) {
  if (!context.knowledge) throw invalid_operation("there is no program that declares relations");
  return *context.knowledge;
}

// ---- values

logic::Constant constant_of(const Value& value) {
  switch (value.kind()) {
    case Kind::String:
      return value.string();
    case Kind::Int:
      return value.integer();
    case Kind::Float:
      return value.real();
    case Kind::Bool:
      return value.boolean();
    case Kind::Tensor:
      if (value.tensor().count() == 1) return constant_of(from_tensor_item(value.tensor()));
      break;
    default:
      break;
  }
  throw type_error("a relation holds strings, numbers and truth values, not ", type_name(value));
}

Value value_of(const logic::Constant& constant) {
  return std::visit([](const auto& v) { return Value(v); }, constant);
}

Value Knowledge::value(logic::Id id) const { return value_of(database_.symbols()[id]); }

// ---- facts

std::vector<logic::Id> Knowledge::tuple(const LogicSite& site, std::span<const Value> values) {
  const auto& columns = database_.columns(site.relation);
  std::vector<logic::Id> out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const LogicTerm& term = site.arguments[i];
    logic::Constant constant;
    if (term.kind == LogicTerm::Kind::Value) {
      constant = constant_of(values[term.slot]);
    } else if (term.kind == LogicTerm::Kind::Constant) {
      constant = term.constant;
    } else {
      throw invalid_operation(site.text, " has an argument without a value");
    }
    out.push_back(database_.symbols().intern(for_column(constant, columns[i])));
  }
  return out;
}

bool Knowledge::add_fact(Context& context, const LogicSite& site, std::span<const Value> values) {
  return with_logic_errors([&] {
    logic::Database& db = database(context);
    const std::vector<logic::Id> ids = tuple(site, values);
    const std::string unknown = unknown_entity(db.columns(site.relation), ids);
    if (!unknown.empty()) throw RuntimeError(unknown);
    const bool is_new = db.add_fact(site.relation, ids);
    add_entities(db.columns(site.relation), ids);
    return is_new;
  });
}

bool Knowledge::remove_fact(Context& context, const LogicSite& site,
                            std::span<const Value> values) {
  logic::Database& db = database(context);
  return db.remove_fact(site.relation, tuple(site, values));
}

std::size_t Knowledge::load_facts(Context& context, logic::RelationId relation,
                                  const std::string& path, bool header, char separator) {
  return with_logic_errors([&] {
    logic::Database& db = database(context);
    const auto& columns = db.columns(relation);
    logic::CsvOptions options{.header = header, .separator = separator};
    options.refuse = [&](std::span<const logic::Id> ids) { return unknown_entity(columns, ids); };
    options.on_fact = [&](std::span<const logic::Id> ids) { add_entities(columns, ids); };
    return db.load_csv(relation, path, options);
  });
}

// ---- queries

class Knowledge::QueryMaker {
 public:
  QueryMaker(Knowledge& knowledge, std::span<const Value> values, bool open)
      : k_(knowledge), values_(values), open_(open) {}

  logic::Query make(const LogicSite& site) {
    logic::Query q;
    logic::Literal atom;
    atom.relation = site.relation;
    const auto& columns = k_.database_.columns(site.relation);
    for (std::size_t i = 0; i < site.arguments.size(); ++i) {
      atom.arguments.push_back(expression(site.arguments[i], &columns[i]));
    }
    q.body.push_back(std::move(atom));
    for (const LogicTerm& condition : site.where) {
      logic::Literal l;
      l.kind = logic::Literal::Kind::Constraint;
      l.condition = expression(condition, nullptr);
      q.body.push_back(std::move(l));
    }
    q.variables = variables_;
    for (std::uint32_t v = 0; v < variables_.size(); ++v) q.wanted.push_back(v);
    return q;
  }

 private:
  Expression constant(const logic::Constant& value, const ColumnType* column) {
    return Expression::of_constant(
        k_.database_.symbols().intern(column != nullptr ? for_column(value, *column) : value));
  }

  Expression expression(const LogicTerm& term, const ColumnType* column) {
    switch (term.kind) {
      case LogicTerm::Kind::Constant:
        if (open_ && column != nullptr && !term.name.empty()) return variable(term.name);
        return constant(term.constant, column);
      case LogicTerm::Kind::Value:
        if (open_ && column != nullptr && !term.name.empty()) return variable(term.name);
        return constant(constant_of(values_[term.slot]), column);
      case LogicTerm::Kind::Any:
        return Expression::any();
      case LogicTerm::Kind::Name:
        return name(term.name, column);
      case LogicTerm::Kind::Operation:
        break;
    }
    std::vector<Expression> parts;
    for (const LogicTerm& part : term.parts) parts.push_back(expression(part, nullptr));
    return Expression::of(term.op, std::move(parts));
  }

  Expression variable(const std::string& name) {
    const auto at = std::find(variables_.begin(), variables_.end(), name);
    const auto number = static_cast<std::uint32_t>(at - variables_.begin());
    if (at == variables_.end()) variables_.push_back(name);
    return Expression::of_variable(number);
  }

  // A variable, unless there is an entity of that name by now.
  Expression name(const std::string& name, const ColumnType* column) {
    const bool is_known_variable =
        std::find(variables_.begin(), variables_.end(), name) != variables_.end();
    if (!open_ && !is_known_variable) {
      const EntitySet* set = column != nullptr ? k_.domain(*column) : &k_.all_;
      if (set != nullptr && set->place(name) >= 0) return constant(name, column);
    }
    return variable(name);
  }

  Knowledge& k_;
  std::span<const Value> values_;
  bool open_;
  std::vector<std::string> variables_;
};

logic::Query Knowledge::query(const LogicSite& site, std::span<const Value> values, bool open) {
  return QueryMaker(*this, values, open).make(site);
}

logic::Answers Knowledge::ask(Context& context, const LogicSite& site,
                              std::span<const Value> values, bool on_demand) {
  return with_logic_errors([&] {
    logic::Database& db = database(context);
    const logic::Query q = query(site, values, false);
    return on_demand ? db.ask_on_demand(q) : db.ask(q);
  });
}

logic::Answers Knowledge::ask_open(Context& context, const LogicSite& site,
                                   std::span<const Value> values) {
  return with_logic_errors([&] { return database(context).ask(query(site, values, true)); });
}

std::string Knowledge::explain(Context& context, const LogicSite& site,
                               std::span<const Value> values) {
  return with_logic_errors([&]() -> std::string {
    logic::Database& db = database(context);
    const std::vector<logic::Id> ids = tuple(site, values);
    const auto proof = db.explain(site.relation, ids);
    if (!proof) return db.to_text(site.relation, ids) + " does not follow";
    std::string text = proof->to_text();
    text.pop_back();  // the last line's end
    return text;
  });
}

void print_solutions(Context& context, const logic::Answers& answers) {
  std::ostream& out = *context.out;
  const Knowledge& knowledge = knowledge_of(context);
  if (answers.count == 0) {
    out << "  No solutions found\n";
    return;
  }
  out << "  Found " << answers.count << " solution(s)\n";
  for (std::size_t i = 0; i < answers.count; ++i) {
    if (answers.width == 0) {
      out << "  Solution " << i + 1 << ": Yes\n";
      continue;
    }
    out << "  Solution " << i + 1 << ":\n";
    for (std::size_t c = 0; c < answers.width; ++c) {
      out << "    " << answers.variables[c] << " = " << text(knowledge.value(answers.row(i)[c]))
          << "\n";
    }
  }
}

}  // namespace tl::lang
