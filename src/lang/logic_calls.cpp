#include "lang/logic_calls.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "lang/builtins/library.h"
#include "lang/embeddings.h"
#include "lang/knowledge.h"
#include "lang/logic_forward.h"
#include "lang/relation_parts.h"
#include "lang/training.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"

namespace tl::lang {

namespace {

const LogicSite& site_of(Context& context, const Value& number) {
  return knowledge_of(context).program().sites[static_cast<std::size_t>(number.integer())];
}

void tell(Context& context, const std::string& line) {
  if (context.verbose) *context.out << line << '\n';
}

Value declare_entity(Context& context, Args& args) {
  Knowledge& k = knowledge_of(context);
  const EntityType& type = *k.program().type(args.string(0));
  k.register_type(type.name);
  tell(context, type.fixed ? tl::join("✓ Entity type '", type.name, "' registered with ",
                                      type.members.size(), " entities")
                           : tl::join("✓ Entity type '", type.name, "' registered (data-driven)"));
  return {};
}

// ---- embeddings

const EmbeddingInfo& embedding_info(Context& context, const std::string& name) {
  return knowledge_of(context).program().embeddings.find(name)->second;
}

Value declare_embedding(Context& context, Args& args) {
  const EmbeddingInfo& e = embedding_info(context, args.string(0));
  const auto count = static_cast<std::int64_t>(embedding_rows(context, e).size());
  if (count == 0 && !e.type.empty()) {
    tell(context, tl::join("Warning: entity type '", e.type, "' has no entities yet"));
  }
  tell(context, tl::join("Initialized ", e.of_relations ? "relation embedding" : "embedding", " '",
                         e.name, "': ", count, e.of_relations ? " relations" : " entities", " × ",
                         e.dimension, " dimensions"));
  return initial_embedding(context, e.init, {std::max<std::int64_t>(count, 1), e.dimension});
}

Value grow_embedding(Context& context, Args& args) {
  const EmbeddingInfo& e = embedding_info(context, args.string(0));
  const auto wanted = static_cast<std::int64_t>(embedding_rows(context, e).size());
  return grown_embedding(context, e.init, args[1], wanted);
}

// ---- facts and queries

Value fact(Context& context, Args& args) {
  const LogicSite& site = site_of(context, args[0]);
  Knowledge& k = knowledge_of(context);
  tell(context, tl::join("Adding fact: ", k.program().checked.name(site.relation)));
  k.add_fact(context, site, args.from(1));
  tell(context, "  ✓ Fact added to knowledge base");
  return {};
}

void run_query(Context& context, const LogicSite& site, std::span<const Value> values) {
  *context.out << "Query: " << site.text << '\n';
  const logic::Answers answers = knowledge_of(context).ask(context, site, values, false);
  if (!site.where.empty()) {
    *context.out << "  Applying " << site.where.size() << " constraint(s)\n";
  }
  print_solutions(context, answers);
}

Value query(Context& context, Args& args) {
  run_query(context, site_of(context, args[0]), args.from(1));
  return {};
}

Value holds(Context& context, Args& args) {
  const LogicSite& site = site_of(context, args[0]);
  const logic::Answers answers = knowledge_of(context).ask(context, site, args.from(1), true);
  if (answers.width > 0) {
    throw invalid_operation(site.text, " has the variable ", answers.variables[0], "; query(",
                            site.text, ") gives its values");
  }
  return answers.count > 0;
}

Value solutions(Context& context, Args& args) {
  const LogicSite& site = site_of(context, args[0]);
  Knowledge& k = knowledge_of(context);
  const logic::Answers answers = k.ask(context, site, args.from(1), true);
  std::vector<Value> rows;
  for (std::size_t i = 0; i < answers.count; ++i) {
    Value row = make<MapObject>();
    auto& map = static_cast<MapObject&>(*row.object());
    for (std::size_t c = 0; c < answers.width; ++c) {
      map.slot(Value(answers.variables[c])) = k.value(answers.row(i)[c]);
    }
    rows.push_back(std::move(row));
  }
  return list_of(std::move(rows));
}

Value explain(Context& context, Args& args) {
  return knowledge_of(context).explain(context, site_of(context, args[0]), args.from(1));
}

Value retract(Context& context, Args& args) {
  return knowledge_of(context).remove_fact(context, site_of(context, args[0]), args.from(1));
}

// ---- inference

void infer_forward(Context& context, const LogicSite& site, std::span<const Value> values) {
  std::ostream& out = *context.out;
  out << "Forward inference: Logic → Tensor\n";
  const std::size_t count = forward_solutions(context, site, values);
  out << "  Logic results: " << count << " solution(s)\n";
  if (count == 0) return;
  out << "  Converting to tensor representation...\n";
  out << "  ✓ Tensor conversion completed\n";
}

// grad(R) gives the gradient of a learnable relation afterwards.
void infer_gradient(Context& context, const LogicSite& site, std::span<const Value> values,
                    std::optional<std::int64_t> depth) {
  *context.out << "Gradient inference: Differentiable logic\n";
  const tl::Tensor score = sum_all(query_score(context, site, values, depth));
  if (!score.has_history()) {
    throw RuntimeError(tl::join("nothing that ", site.text,
                                " depends on is learnable: declare a relation of its rules with "
                                "'learnable' or 'embed'"));
  }
  if (!std::isfinite(score.item().real())) {
    throw RuntimeError(tl::join("the score of ", site.text,
                                " is not finite: its rules have too many derivations; follow them "
                                "less deep, as in: infer gradient(depth: 3) ",
                                site.text, "?"));
  }
  context.learning->differentiate(score);
  *context.out << "    Gradient computed for logic predicates\n"
               << "  ✓ Gradient propagation through logic completed\n";
}

// How often rules are applied; nothing where it is not said.
std::optional<std::int64_t> depth_in(const Args& args, std::size_t i) {
  if (!args.has(i)) return {};
  if (!args[i].is(Kind::Int) || args[i].integer() < 0 || args[i].integer() > 100'000) {
    throw invalid_operation("depth is a whole number from 0 to 100000, not ", text(args[i]));
  }
  return args[i].integer();
}

Value score(Context& context, Args& args) {
  return query_score(context, site_of(context, args[1]), args.from(2), depth_in(args, 0));
}

Value infer(Context& context, Args& args) {
  const LogicSite& site = site_of(context, args[2]);
  const std::span<const Value> values = args.from(3);
  std::ostream& out = *context.out;
  switch (static_cast<ast::InferMethod>(args[0].integer())) {
    case ast::InferMethod::Forward:
      infer_forward(context, site, values);
      break;
    case ast::InferMethod::Backward:
      out << "Backward inference: Tensor → Logic\n";
      print_solutions(context, knowledge_of(context).ask(context, site, values, true));
      out << "    Created logic facts from tensor predictions\n"
          << "  ✓ Tensor to logic conversion completed\n";
      break;
    case ast::InferMethod::Gradient:
      infer_gradient(context, site, values, depth_in(args, 1));
      break;
    case ast::InferMethod::Symbolic:
      out << "Symbolic inference: Symbolic reasoning\n";
      run_query(context, site, values);
      out << "  Symbolic reasoning completed\n";
      break;
  }
  return {};
}

Value infer_note(Context& context, Args& args) {
  *context.out << args.string(0) << '\n';
  return {};
}

// ---- with

// ["a", "b"]: ten at most.
std::string listed(std::span<const std::string> names) {
  std::string out = "[";
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 10); ++i) {
    out += tl::join(i > 0 ? ", " : "", '"', names[i], '"');
  }
  return out + "]";
}

Value with_begin(Context& context, Args& args) {
  const std::string& type = args.string(0);
  *context.out << "\n=== With block: " << type << " ===\n";
  Knowledge& k = knowledge_of(context);
  k.database(context);
  const EntitySet* set = k.entities(type);
  return set == nullptr ? std::int64_t{-1} : static_cast<std::int64_t>(set->size());
}

Value with_end(Context& context, Args& args) {
  const std::string& type = args.string(0);
  std::ostream& out = *context.out;
  const EntitySet* set = knowledge_of(context).entities(type);
  if (set == nullptr) {
    out << "\n  ℹ️  Entity type '" << type << "' not found in registry\n";
  } else {
    const std::span<const std::string> names = set->names();
    const auto before = static_cast<std::size_t>(std::max<std::int64_t>(args[1].integer(), 0));
    if (names.size() > before) {
      out << "\n  📊 Entity Statistics:\n"
          << "     • Initial: " << before << "\n     • Final: " << names.size()
          << "\n     • New: " << names.size() - before
          << "\n     • Added: " << listed(names.subspan(before)) << '\n';
    } else {
      out << "\n  📊 Total entities in " << type << ": " << names.size() << '\n';
      if (!names.empty()) out << "     • Entities: " << listed(names) << '\n';
    }
  }
  out << "=== With block completed ===\n\n";
  return {};
}

// ---- tensors

logic::RelationId relation_of(Context& context, const std::string& name) {
  return knowledge_of(context).program().relations.find(name)->second;
}

Value relation_tensor(Context& context, Args& args) {
  Knowledge& k = knowledge_of(context);
  const logic::RelationId relation = relation_of(context, args.string(0));
  if (const Value* learned = k.parameter(context, relation)) return *learned;
  if (!k.is_soft(relation)) return k.tensor(context, relation);
  if (k.is_large(relation)) {
    throw type_error("relation '", args.string(0), "' would be a tensor of shape ",
                     k.shape(relation), ", which is too large; take a part, as in ", args.string(0),
                     "[a, :], or query_score(", args.string(0), "(a, X))");
  }
  return k.soft(context, relation).dense();
}

// The places that stand between brackets, names of entities as they are.
std::vector<IndexArg> index_args(const std::string& slices, std::span<const Value> from) {
  std::vector<IndexArg> out;
  std::size_t next = 0;
  for (const char kind : slices) {
    IndexArg arg;
    arg.is_slice = kind == ':';
    if (arg.is_slice) {
      arg.start = from[next++];
      arg.stop = from[next++];
      arg.step = from[next++];
    } else {
      arg.index = from[next++];
    }
    out.push_back(std::move(arg));
  }
  return out;
}

Value read_part(Context& context, Args& args) {
  const logic::RelationId relation = relation_of(context, args.string(0));
  return relation_part(context, relation, index_args(args.string(1), args.from(2)));
}

Value assign_part(Context& context, Args& args) {
  const logic::RelationId relation = relation_of(context, args.string(0));
  const std::vector<IndexArg> at = index_args(args.string(1), args.from(4));
  Value value = args[3];
  if (args.has(2)) {
    value = binary(context, static_cast<ast::BinaryOp>(args[2].integer()),
                   relation_part(context, relation, at), value);
  }
  assign_relation_part(context, relation, at, value);
  return {};
}

// Factors of a product in a tensor equation; a text is a relation's name.
Value contract_factors(Context& context, Args& args) {
  std::vector<Factor> factors;
  std::string_view equation = args.string(0);
  const std::size_t arrow = equation.find("->");
  const std::string output(equation.substr(arrow + 2));
  equation = equation.substr(0, arrow);
  for (std::size_t i = 1; i < args.size(); ++i) {
    const std::size_t end = std::min(equation.find(','), equation.size());
    Factor f{std::string(equation.substr(0, end)), tl::Tensor()};
    equation.remove_prefix(std::min(end + 1, equation.size()));
    if (args[i].is(Kind::String)) {
      f.value = relation_value(context, relation_of(context, args.string(i)));
    } else {
      f.value = args.tensor(context, i);
    }
    if (sizes_of(f.value).size() != f.letters.size()) {
      throw type_error(
          "a tensor equation has ", f.letters.size(), " indices for ",
          args[i].is(Kind::String) ? "relation '" + args.string(i) + "' of " : "a tensor of ",
          sizes_of(f.value).size(), " dimensions");
    }
    factors.push_back(std::move(f));
  }
  return contract(context, factors, output);
}

Value assign_relation(Context& context, Args& args) {
  const logic::RelationId relation = relation_of(context, args.string(0));
  knowledge_of(context).assign(context, relation, to_tensor(context, "relation", args[1]));
  return {};
}

Value entities(Context& context, Args& args) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  return list_of_texts(k.entities(args.string(0))->names());
}

Value place(Context& context, Args& args) {
  if (!args[2].is(Kind::String)) return args[2];  // a number: it is what it is
  Knowledge& k = knowledge_of(context);
  const std::string& name = args.string(0);
  const auto column = static_cast<std::size_t>(args[1].integer());
  if (const auto e = k.program().embeddings.find(name); e != k.program().embeddings.end()) {
    const std::int64_t row = embedding_row(context, e->second, args.string(2));
    if (row < 0) {
      throw RuntimeError(
          tl::join("embedding '", name, "' has no row for '", args.string(2), "'",
                   did_you_mean(args.string(2), embedding_rows(context, e->second))));
    }
    return row;
  }
  k.database(context);
  const auto& columns = k.program().checked.columns(relation_of(context, name));
  if (column >= columns.size()) {
    throw RuntimeError(tl::join("relation '", name, "' has ", columns.size(), " dimensions"));
  }
  return k.place(columns[column], args.string(2));
}

Value align(Context& context, Args& args) {
  const std::string& have = args.string(1);
  const std::string& want = args.string(2);
  const tl::Tensor x = args.tensor(context, 0);
  std::vector<std::int64_t> sizes;
  int next = 0;
  for (const char index : want) {
    const bool is_there = have.find(index) != std::string::npos;
    sizes.push_back(is_there ? x.shape()[next++] : 1);
  }
  return reshape(x, Shape(sizes));
}

}  // namespace

const Builtin& logic_call(LogicCall call) {
  constexpr std::string_view kSection = "logic";
  static const Builtin rows[] = {
      {"entity", kSection, "(...)", "", declare_entity},
      {"embedding", kSection, "(...)", "", declare_embedding},
      {"embedding", kSection, "(...)", "", grow_embedding},
      {"fact", kSection, "(...)", "", fact},
      {"query", kSection, "(...)", "", query},
      {"query", kSection, "(...)", "", holds},
      {"query", kSection, "(...)", "", solutions},
      {"explain", kSection, "(...)", "", explain},
      {"retract", kSection, "(...)", "", retract},
      {"query_score", kSection, "(...)", "", score},
      {"infer", kSection, "(...)", "", infer},
      {"infer", kSection, "(...)", "", infer_note},
      {"with", kSection, "(...)", "", with_begin},
      {"with", kSection, "(...)", "", with_end},
      {"relation", kSection, "(...)", "", relation_tensor},
      {"relation", kSection, "(...)", "", assign_relation},
      {"relation", kSection, "(...)", "", read_part},
      {"relation", kSection, "(...)", "", assign_part},
      {"entities", kSection, "(...)", "", entities},
      {"index", kSection, "(...)", "", place},
      {"equation", kSection, "(...)", "", contract_factors},
      {"equation", kSection, "(...)", "", align},
  };
  return rows[static_cast<std::size_t>(call)];
}

}  // namespace tl::lang
