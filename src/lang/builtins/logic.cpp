// Functions about entities, relations and what follows. Arguments may name a relation, an entity
// type or an entity as it is: load_facts("parents.csv", Parent).
#include "lang/builtins/library.h"
#include "lang/knowledge.h"
#include "lang/logic_forward.h"
#include "tl/ops/create.h"

namespace tl::lang {

namespace {

constexpr std::string_view kSection = "logic";

logic::RelationId relation(Context& context, const Args& args, std::size_t i) {
  const auto& relations = knowledge_of(context).program().relations;
  const auto found = relations.find(args.string(i));
  if (found != relations.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, id] : relations) known.push_back(name);
  throw RuntimeError(
      tl::join("unknown relation: ", args.string(i), did_you_mean(args.string(i), known)));
}

const EntitySet& entity_type(Context& context, const Args& args, std::size_t i) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  if (const EntitySet* set = k.entities(args.string(i))) return *set;
  throw RuntimeError(tl::join("Unknown entity type: ", args.string(i),
                              did_you_mean(args.string(i), k.program().type_order)));
}

Value call_load_facts(Context& context, Args& args) {
  const std::string& separator = args.string(3);
  if (separator.size() != 1) args.bad_value(3, "one character");
  const logic::RelationId to = relation(context, args, 1);
  return static_cast<std::int64_t>(
      knowledge_of(context).load_facts(context, to, args.string(0), args.boolean(2), separator[0]));
}

Value call_facts(Context& context, Args& args) {
  Knowledge& k = knowledge_of(context);
  const logic::RelationId from = relation(context, args, 0);
  return with_logic_errors([&] {
    const logic::Table& tuples = k.database(context).tuples(from);
    std::vector<Value> rows;
    for (std::size_t i = 0; i < tuples.size(); ++i) {
      std::vector<Value> row;
      for (const logic::Id id : tuples.tuple(i)) row.push_back(k.value(id));
      rows.push_back(make<TupleObject>(std::move(row)));
    }
    return list_of(std::move(rows));
  });
}

Value call_entities(Context& context, Args& args) {
  return list_of_texts(entity_type(context, args, 0).names());
}

Value call_entity_dim(Context& context, Args& args) {
  return static_cast<std::int64_t>(entity_type(context, args, 0).size());
}

Value call_entity_onehot(Context& context, Args& args) {
  const EntitySet& set = entity_type(context, args, 0);
  const std::int64_t at = args[1].is(Kind::String) ? set.place(args.string(1)) : args.integer(1);
  if (at < 0 || at >= static_cast<std::int64_t>(set.size())) {
    throw RuntimeError(tl::join("unknown entity '", text(args[1]), "': it is not one of ",
                                args.string(0), did_you_mean(text(args[1]), set.names())));
  }
  std::vector<float> values(set.size());
  values[static_cast<std::size_t>(at)] = 1;
  return tl::Tensor::from(values, context.device);
}

Value call_rule_tensor(Context& context, Args& args) {
  const logic::RelationId of = relation(context, args, 0);
  if (!args.has(1)) return forward_tensor(context, of);
  if (args.integer(1) < 0 || args.integer(1) > 100'000) args.bad_value(1, "0 to 100000 rounds");
  return forward_tensor(context, of, args.integer(1));
}

Value call_fact_tensor(Context& context, Args& args) {
  return knowledge_of(context).tensor(context, relation(context, args, 0));
}

// Of a relation its own embedding, of a type the rows of its entities.
Value call_embedding_of(Context& context, Args& args) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  const std::string& name = args.string(0);
  const LogicProgram& program = k.program();
  if (const auto found = program.relations.find(name); found != program.relations.end()) {
    if (k.is_soft(found->second)) return k.relation_embedding(context, found->second);
    throw RuntimeError(tl::join("relation '", name, "' has no embedding; declare it with one, as ",
                                "in: relation ", name, "(...) embed float32[16]"));
  }
  entity_type(context, args, 0);  // throws when there is none
  for (const auto& [of, embedding] : program.embedded) {
    const auto& columns = program.checked.columns(of);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].entity == name) return k.entity_table(context, of, c);
    }
  }
  throw RuntimeError(tl::join("no relation with an embedding is over ", name));
}

Value call_verbose(Context& context, Args& args) {
  const bool before = context.verbose;
  context.verbose = args.boolean(0);
  return before;
}

// The compiler makes something else of query(R(x)); this is what is left.
Value call_with_relation(Context&, Args& args) {
  throw type_error(args.name(), "() takes a relation with its arguments, as in: ", args.name(),
                   "(Parent(alice, bob))");
}

}  // namespace

BuiltinRows logic_builtins() {
  static const std::vector<Builtin> rows = {
      {"query", kSection, "(relation, ...conditions)",
       "The solutions of a query as a list of maps from variables to values.", call_with_relation},
      {"explain", kSection, "(relation)", "Why a fact follows, as a text that shows a tree.",
       call_with_relation},
      {"retract", kSection, "(relation)", "Takes a fact back; false when it was not there.",
       call_with_relation},
      {"facts", kSection, "(relation)",
       "All tuples of a relation, those that follow too, as a list.", call_facts},
      {"load_facts", kSection, "(path, relation, header = false, separator = \",\")",
       "Adds a fact for every line of a CSV file; the number of new ones.", call_load_facts},
      {"entities", kSection, "(type)", "The entities of a type as a list of names.", call_entities},
      {"entity_dim", kSection, "(type)", "How many entities a type has.", call_entity_dim},
      {"entity_onehot", kSection, "(type, entity)",
       "A vector with 1 at the place of an entity of the type.", call_entity_onehot},
      {"query_score", kSection, "(relation, depth = none)",
       "What a query's rules give without a step, as a tensor with a dimension for each variable.",
       call_with_relation},
      {"fact_tensor", kSection, "(relation)",
       "1 where a relation holds by facts and rules, whatever was learned of it.",
       call_fact_tensor},
      {"embedding_of", kSection, "(relation)",
       "The embedding of a relation that has one, or the rows of an entity type's entities.",
       call_embedding_of},
      {"verbose", kSection, "(on)",
       "Whether facts, files and models say that they were added or loaded; what it was before.",
       call_verbose},
      {"rule_tensor", kSection, "(relation, rounds = none)",
       "A relation's tensor by its rules as sums of products: with a step until nothing changes, "
       "or so many rounds without one, which counts derivations.",
       call_rule_tensor},
  };
  return rows;
}

}  // namespace tl::lang
