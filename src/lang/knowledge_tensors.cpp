// Relations as tensors: what is known, what was learned, and what is assigned.
#include <algorithm>
#include <map>

#include "lang/builtins/library.h"
#include "lang/embeddings.h"
#include "lang/knowledge.h"
#include "lang/training.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/indexing.h"
#include "tl/ops/where.h"

namespace tl::lang {

using logic::RelationId;

Shape Knowledge::shape(RelationId relation) const {
  std::vector<std::int64_t> sizes;
  const auto& columns = program_->checked.columns(relation);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const EntitySet* set = domain(columns[i]);
    if (set == nullptr) {
      throw type_error("relation '", program_->checked.name(relation), "' is no tensor: argument ",
                       i + 1, " is ", logic::to_text(columns[i]), ", not an entity");
    }
    sizes.push_back(static_cast<std::int64_t>(set->size()));
  }
  return Shape(sizes);
}

bool Knowledge::is_large(RelationId relation) const {
  const Shape sizes = shape(relation);
  return lang::is_large(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
}

// ---- from facts

std::vector<std::int64_t> Knowledge::places_of(RelationId relation, const logic::Id* tuple) const {
  const auto& columns = database_.columns(relation);
  std::vector<std::int64_t> out;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    out.push_back(place(columns[c], std::get<std::string>(database_.symbols()[tuple[c]])));
  }
  return out;
}

tl::Tensor Knowledge::tensor(Context& context, RelationId relation) {
  return with_logic_errors([&] {
    logic::Database& db = database(context);
    return tensor_of(context, relation, db.tuples(relation));
  });
}

tl::Tensor Knowledge::facts_tensor(Context& context, RelationId relation) {
  return tensor_of(context, relation, database(context).facts(relation));
}

tl::Tensor Knowledge::tensor_of(Context& context, RelationId relation, const logic::Table& tuples) {
  const Shape sizes = shape(relation);
  const std::int64_t count = element_count("relation", sizes);
  if (count > kMostElements) {
    throw type_error("relation '", database_.name(relation), "' would be a tensor of shape ", sizes,
                     ", which is too large");
  }
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tuples.size(); ++i) {
    std::int64_t at = 0;
    int dim = 0;
    for (const std::int64_t place : places_of(relation, tuples.row(i))) {
      at = at * sizes[dim++] + place;
    }
    values[static_cast<std::size_t>(at)] = 1;
  }
  return tl::Tensor::from(values, sizes, context.device);
}

SparseTensor Knowledge::sparse_of(Context& context, RelationId relation,
                                  const logic::Table& tuples) {
  const Shape sizes = shape(relation);
  SparseTensor out;
  out.sizes.assign(sizes.begin(), sizes.end());
  out.places.reserve(tuples.size() * out.sizes.size());
  for (std::size_t i = 0; i < tuples.size(); ++i) {
    const std::vector<std::int64_t> places = places_of(relation, tuples.row(i));
    out.places.insert(out.places.end(), places.begin(), places.end());
  }
  out.values = ones({static_cast<std::int64_t>(tuples.size())}, DType::F32, context.device);
  return out;
}

AnyTensor Knowledge::weights(Context& context, RelationId relation) {
  logic::Database& db = database(context);
  const bool large = is_large(relation);
  if (is_soft(relation)) {
    const SoftTensor soft_one = soft(context, relation);
    return large ? AnyTensor(soft_one) : AnyTensor(soft_one.dense());
  }
  if (!large) {
    const Value* learned = parameter(context, relation);
    return learned != nullptr ? learned->tensor() : facts_tensor(context, relation);
  }
  SparseTensor out = sparse_of(context, relation, db.facts(relation));
  if (const Value* learned = parameter(context, relation)) out.values = learned->tensor();
  return out;
}

AnyTensor Knowledge::value_tensor(Context& context, RelationId relation) {
  logic::Database& db = database(context);
  if (is_soft(relation)) return soft(context, relation);
  if (program_->learnable.contains(relation)) return weights(context, relation);
  if (!is_large(relation)) return tensor(context, relation);
  return with_logic_errors(
      [&]() -> AnyTensor { return sparse_of(context, relation, db.tuples(relation)); });
}

// ---- what is learned

namespace {

// `x` in the corner of zeros of another shape: entities came to its types.
tl::Tensor enlarged(const tl::Tensor& x, const Shape& shape) {
  tl::Tensor out = tl::Tensor::zeros(shape, x.dtype(), x.device());
  Layout corner = out.layout();
  for (int d = 0; d < shape.size(); ++d) corner = corner.narrow(d, 0, x.shape()[d]);
  assign_at(out, corner, x);
  return out;
}

}  // namespace

const Value* Knowledge::parameter(Context& context, RelationId relation) {
  if (!program_->learnable.contains(relation)) return nullptr;
  const std::uint64_t changes = database(context).changes(relation);
  if (is_large(relation)) return large_parameter(context, relation);
  const auto at = weights_.find(relation);
  if (at == weights_.end()) {
    const tl::Tensor facts = facts_tensor(context, relation);
    const Value value = context.learning->add(context, database_.name(relation), facts);
    return &weights_.emplace(relation, Weights{value, facts, changes, false, {}})
                .first->second.parameter;
  }
  Weights& known = at->second;
  const Shape now = shape(relation);
  if (known.changes != changes || known.parameter.tensor().shape() != now) {
    // A fact that came is 1 and one that went is 0; what was learned of the others stays.
    const NoHistory none;
    const tl::Tensor before = enlarged(known.parameter.tensor().detach(), now);
    const tl::Tensor seen = enlarged(known.facts, now);
    const tl::Tensor facts = to(facts_tensor(context, relation), before.device());
    const tl::Tensor kept = where(lt(facts, seen), 0, before);
    Learning::assign(context, known.parameter, where(gt(facts, seen), 1, kept));
    known.facts = facts;
    known.changes = changes;
  }
  return &known.parameter;
}

// What is known of the facts' weights, of a tensor with an element for each or for each place.
std::map<std::vector<logic::Id>, float> Knowledge::learned_weights(RelationId relation,
                                                                   const Weights& known) const {
  const logic::Table& facts = database_.facts(relation);
  const std::size_t width = facts.width();
  const tl::Tensor old = to_dtype(known.parameter.tensor().detach(), DType::F32);
  const std::vector<float> values = old.to_vector<float>();
  std::map<std::vector<logic::Id>, float> out;
  if (known.by_fact) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto first = known.tuples.begin() + static_cast<std::ptrdiff_t>(i * width);
      out[{first, first + static_cast<std::ptrdiff_t>(width)}] = values[i];
    }
    return out;
  }
  const std::vector<float> had = known.facts.to_vector<float>();
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::vector<std::int64_t> places = places_of(relation, facts.row(i));
    std::int64_t at = 0;
    bool inside = true;
    for (int d = 0; d < old.rank(); ++d) {
      const std::int64_t place = places[static_cast<std::size_t>(d)];
      inside &= place < old.shape()[d];
      at = at * old.shape()[d] + place;
    }
    if (!inside || had[static_cast<std::size_t>(at)] == 0) continue;
    const auto tuple = facts.tuple(i);
    out[{tuple.begin(), tuple.end()}] = values[static_cast<std::size_t>(at)];
  }
  return out;
}

// A weight for each fact: 1 for one that came, and what was learned of the others stays. A relation
// that has become large since keeps what its tensor has where there are facts.
const Value* Knowledge::large_parameter(Context& context, RelationId relation) {
  const logic::Table& facts = database_.facts(relation);
  const std::uint64_t changes = database_.changes(relation);
  const auto known = weights_.find(relation);
  const bool is_new = known == weights_.end();
  if (!is_new && known->second.by_fact && known->second.changes == changes)
    return &known->second.parameter;
  std::map<std::vector<logic::Id>, float> learned;
  if (!is_new) learned = learned_weights(relation, known->second);
  std::vector<float> values;
  Weights now;
  now.changes = changes;
  now.by_fact = true;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const auto tuple = facts.tuple(i);
    const auto found = learned.find({tuple.begin(), tuple.end()});
    values.push_back(found == learned.end() ? 1.0F : found->second);
    now.tuples.insert(now.tuples.end(), tuple.begin(), tuple.end());
  }
  const tl::Tensor elements = tl::Tensor::from(values, context.device);
  if (is_new) {
    now.parameter = context.learning->add(context, database_.name(relation), elements);
  } else {
    now.parameter = known->second.parameter;
    Learning::assign(context, now.parameter, elements);
  }
  return &weights_.insert_or_assign(relation, std::move(now)).first->second.parameter;
}

void Knowledge::make_parameters(Context& context) {
  for (const RelationId relation : program_->learnable) parameter(context, relation);
  for (const auto& [relation, embedding] : program_->embedded) soft(context, relation);
}

// ---- assignment

void Knowledge::assign(Context& context, RelationId relation, const tl::Tensor& given) {
  logic::Database& db = database(context);
  const Shape sizes = shape(relation);
  if (given.shape() != sizes) {
    throw type_error("relation '", db.name(relation), "' is a tensor of shape ", sizes, ", not ",
                     given.shape());
  }
  const std::vector<float> values = to_dtype(given, DType::F32).to_vector<float>();
  const auto& columns = db.columns(relation);
  db.clear_facts(relation);
  std::vector<logic::Id> ids(columns.size());
  std::vector<float> of_facts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0)) continue;
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t c = columns.size(); c-- > 0;) {
      const std::int64_t size = sizes[static_cast<int>(c)];
      const auto& names = domain(columns[c])->names();
      ids[c] = db.symbols().text(names[static_cast<std::size_t>(rest % size)]);
      rest /= size;
    }
    db.add_fact(relation, ids);
    of_facts.push_back(values[i]);
  }
  if (const Value* learned = parameter(context, relation)) {
    Learning::assign(context, *learned,
                     is_large(relation) ? Value(tl::Tensor::from(of_facts)) : Value(given));
  }
}

void Knowledge::assign_cell(Context& context, RelationId relation,
                            std::span<const std::string> entities, double value) {
  logic::Database& db = database(context);
  std::vector<logic::Id> ids;
  for (const std::string& name : entities) ids.push_back(db.symbols().text(name));
  if (value > 0) {
    const std::string unknown = unknown_entity(db.columns(relation), ids);
    if (!unknown.empty()) throw RuntimeError(unknown);
    db.add_fact(relation, ids);
    add_entities(db.columns(relation), ids);
  } else {
    places_of(relation, ids.data());  // throws for entities that are not known
    db.remove_fact(relation, ids);
  }
  const Value* learned = parameter(context, relation);
  if (learned == nullptr) return;
  tl::Tensor elements = copy(learned->tensor().detach());
  Layout part = elements.layout();
  if (!is_large(relation)) {
    for (const std::int64_t place : places_of(relation, ids.data())) part = part.drop(0, place);
  } else {
    const logic::Table& facts = db.facts(relation);
    std::int64_t row = 0;
    const auto size = static_cast<std::int64_t>(facts.size());
    while (row < size &&
           !std::equal(ids.begin(), ids.end(), facts.row(static_cast<std::size_t>(row)))) {
      ++row;
    }
    if (row == size) return;  // no fact, no weight
    part = part.drop(0, row);
  }
  fill_at(elements, part, value);
  Learning::assign(context, *learned, elements);
}

// ---- embeddings of relations

Value Knowledge::relation_embedding(Context& context, RelationId relation) {
  const RelationEmbedding& e = program_->embedded.at(relation);
  if (const auto known = vectors_.find(relation); known != vectors_.end()) return known->second;
  const Shape shape(e.sizes);
  Shape drawn = shape;
  if (drawn.size() == 1) drawn.insert(0, 1);
  const tl::Tensor begin =
      to_dtype(reshape(initial_embedding(context, ast::Init::Xavier, drawn), shape), e.dtype);
  const Value made =
      e.frozen ? Value(begin)
               : context.learning->add(context, program_->checked.name(relation) + ".embed", begin);
  vectors_.emplace(relation, made);
  return made;
}

Value Knowledge::entity_table(Context& context, RelationId relation, std::size_t column) {
  const RelationEmbedding& e = program_->embedded.at(relation);
  const logic::ColumnType& type = database(context).columns(relation)[column];
  const auto rows = static_cast<std::int64_t>(domain(type)->size());
  if (const std::string& name = e.tables[column]; !name.empty()) {
    for (const LearnParameter& p : context.learning->parameters()) {
      if (p.name != name) continue;
      return grown_embedding(context, program_->embeddings.at(name).init, p.value, rows);
    }
    throw RuntimeError(join("embedding '", name, "', which relation '",
                            program_->checked.name(relation),
                            "' takes its entities' rows from, is no parameter any more"));
  }
  const std::int64_t dimension = e.dimension(column);
  const auto key = std::pair(type.entity, dimension);
  auto known = tables_.find(key);
  if (known == tables_.end()) {
    const tl::Tensor begin =
        initial_embedding(context, ast::Init::Xavier, {std::max<std::int64_t>(rows, 1), dimension});
    const std::string name = (type.entity.empty() ? "entity" : type.entity) + ".embed";
    known = tables_.emplace(key, context.learning->add(context, name, begin)).first;
  }
  return grown_embedding(context, ast::Init::Xavier, known->second, rows);
}

SoftTensor Knowledge::soft(Context& context, RelationId relation) {
  database(context);
  SoftTensor out;
  out.weights = relation_embedding(context, relation).tensor();
  const Shape sizes = shape(relation);
  for (int d = 0; d < sizes.size(); ++d) {
    const tl::Tensor table = entity_table(context, relation, static_cast<std::size_t>(d)).tensor();
    // A type without entities has a row all the same.
    const bool fits = table.shape()[0] == sizes[d];
    out.tables.push_back(fits ? table : tl::index(table, {At::range(0, sizes[d])}));
  }
  return out;
}

}  // namespace tl::lang
