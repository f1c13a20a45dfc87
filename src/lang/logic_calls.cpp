#include "lang/logic_calls.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "lang/builtins/library.h"
#include "lang/knowledge.h"
#include "lang/logic_forward.h"
#include "lang/training.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/join.h"
#include "tl/ops/random.h"

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

const EmbeddingInfo& embedding_of(Context& context, const std::string& name) {
  return knowledge_of(context).program().embeddings.find(name)->second;
}

std::vector<std::string> rows_of(Context& context, const EmbeddingInfo& e) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  if (e.grows && e.type.empty()) return k.all_entities().names();
  if (!e.type.empty()) return k.entities(e.type)->names();
  return e.members;
}

std::int64_t row_of(Context& context, const EmbeddingInfo& e, const std::string& name) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  if (e.grows && e.type.empty()) return k.all_entities().place(name);
  if (!e.type.empty()) return k.entities(e.type)->place(name);
  const auto at = std::find(e.members.begin(), e.members.end(), name);
  return at == e.members.end() ? -1 : at - e.members.begin();
}

tl::Tensor initial(Context& context, const EmbeddingInfo& e, std::int64_t rows) {
  const Shape shape = {rows, e.dimension};
  const double n = static_cast<double>(rows);
  const double bound = std::sqrt(6.0 / (n + static_cast<double>(e.dimension)));
  switch (e.init) {
    case ast::Init::Random:
      return rand_uniform(-0.1, 0.1, shape, DType::F32, context.device);
    case ast::Init::Xavier:
      return rand_uniform(-bound, bound, shape, DType::F32, context.device);
    case ast::Init::He:
      return rand_normal(0, std::sqrt(2.0 / n), shape, DType::F32, context.device);
    case ast::Init::Zeros:
      return tl::Tensor::zeros(shape, DType::F32, context.device);
    case ast::Init::Ones:
      break;
  }
  return ones(shape, DType::F32, context.device);
}

Value declare_embedding(Context& context, Args& args) {
  const EmbeddingInfo& e = embedding_of(context, args.string(0));
  const auto count = static_cast<std::int64_t>(rows_of(context, e).size());
  if (count == 0 && !e.type.empty()) {
    tell(context, tl::join("Warning: entity type '", e.type, "' has no entities yet"));
  }
  tell(context, tl::join("Initialized ", e.of_relations ? "relation embedding" : "embedding", " '",
                         e.name, "': ", count, e.of_relations ? " relations" : " entities", " × ",
                         e.dimension, " dimensions"));
  return initial(context, e, std::max<std::int64_t>(count, 1));
}

Value grow_embedding(Context& context, Args& args) {
  const EmbeddingInfo& e = embedding_of(context, args.string(0));
  if (!args[1].is(Kind::Tensor)) return args[1];
  const tl::Tensor& matrix = args[1].tensor();
  const auto wanted = static_cast<std::int64_t>(rows_of(context, e).size());
  const std::int64_t rows = matrix.shape()[0];
  if (wanted <= rows) return args[1];
  const NoHistory none;
  const tl::Tensor more = to(initial(context, e, wanted - rows), matrix.device());
  Value grown = cat({matrix, more}, 0);
  if (!args[1].as<TensorObject>().is_parameter) return grown;
  Learning::assign(context, args[1], grown);
  return args[1];
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
void infer_gradient(Context& context, const LogicSite& site, std::span<const Value> values) {
  *context.out << "Gradient inference: Differentiable logic\n";
  const tl::Tensor score = query_score(context, site, values);
  if (!score.has_history()) {
    throw RuntimeError(tl::join("nothing that ", site.text,
                                " depends on is learnable: declare a relation of its rules with "
                                "'learnable'"));
  }
  context.learning->differentiate(score);
  *context.out << "    Gradient computed for logic predicates\n"
               << "  ✓ Gradient propagation through logic completed\n";
}

Value infer(Context& context, Args& args) {
  const LogicSite& site = site_of(context, args[1]);
  const std::span<const Value> values = args.from(2);
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
      infer_gradient(context, site, values);
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
  const Value* learned = k.parameter(context, relation);
  return learned != nullptr ? *learned : Value(k.tensor(context, relation));
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
    const std::int64_t row = row_of(context, e->second, args.string(2));
    if (row < 0) {
      throw RuntimeError(tl::join("embedding '", name, "' has no row for '", args.string(2), "'",
                                  did_you_mean(args.string(2), rows_of(context, e->second))));
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
      {"infer", kSection, "(...)", "", infer},
      {"infer", kSection, "(...)", "", infer_note},
      {"with", kSection, "(...)", "", with_begin},
      {"with", kSection, "(...)", "", with_end},
      {"relation", kSection, "(...)", "", relation_tensor},
      {"relation", kSection, "(...)", "", assign_relation},
      {"entities", kSection, "(...)", "", entities},
      {"index", kSection, "(...)", "", place},
      {"equation", kSection, "(...)", "", align},
  };
  return rows[static_cast<std::size_t>(call)];
}

}  // namespace tl::lang
