#include "lang/relation_parts.h"

#include <algorithm>

#include "lang/operators_index.h"
#include "lang/rule_sums.h"
#include "lang/training.h"
#include "tl/ops/copy.h"

namespace tl::lang {

using logic::RelationId;

namespace {

void expect_places(Knowledge& k, RelationId relation, std::size_t count) {
  const std::size_t wanted = k.program().checked.columns(relation).size();
  if (count <= wanted) return;
  throw RuntimeError(
      join("relation '", k.program().checked.name(relation), "' has ", wanted, " dimensions"));
}

// Names of entities become places.
void find_places(Knowledge& k, RelationId relation, std::vector<IndexArg>& at) {
  const auto& columns = k.program().checked.columns(relation);
  expect_places(k, relation, at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i].is_slice || !at[i].index.is(Kind::String)) continue;
    at[i].index = Value(k.place(columns[i], at[i].index.string()));
  }
}

bool is_cell(std::span<const IndexArg> at, std::size_t columns) {
  return at.size() == columns && std::all_of(at.begin(), at.end(), [](const IndexArg& a) {
           return !a.is_slice && (a.index.is(Kind::String) || is_whole_index(a.index));
         });
}

std::string entity_at(Knowledge& k, RelationId relation, std::size_t column, const Value& index) {
  if (index.is(Kind::String)) return index.string();
  const EntitySet* set = k.domain(k.program().checked.columns(relation)[column]);
  const auto size = static_cast<std::int64_t>(set->size());
  return set->names()[static_cast<std::size_t>(index_of(index, size))];
}

// Of a tensor that is not dense: places that are fixed are chosen first, so that only what is left
// is made.
Value part_of(Context& context, const AnyTensor& whole, std::span<const IndexArg> at,
              const std::string& name) {
  const std::vector<std::int64_t> sizes = sizes_of(whole);
  std::string letters;
  for (std::size_t d = 0; d < sizes.size(); ++d) letters += static_cast<char>('a' + d);
  std::vector<Factor> factors = {{letters, whole}};
  std::string left;
  std::vector<std::int64_t> left_sizes;
  std::vector<IndexArg> rest;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (d < at.size() && !at[d].is_slice && is_whole_index(at[d].index)) {
      factors.push_back({std::string(1, letters[d]),
                         one_hot_sparse(context, sizes[d], index_of(at[d].index, sizes[d]))});
      continue;
    }
    left += letters[d];
    left_sizes.push_back(sizes[d]);
    rest.push_back(d < at.size()
                       ? at[d]
                       : IndexArg{true, {}, Value::missing(), Value::missing(), Value::missing()});
  }
  if (is_large(left_sizes)) {
    throw type_error("a part of relation '", name, "' would be a tensor of shape ",
                     Shape(left_sizes), ", which is too large");
  }
  const tl::Tensor part = contract(context, factors, left);
  return left.empty() ? number_of(part) : index_tensor_at(context, part, rest);
}

}  // namespace

AnyTensor relation_value(Context& context, RelationId relation) {
  Knowledge& k = knowledge_of(context);
  AnyTensor value = k.value_tensor(context, relation);
  if (const auto* soft = std::get_if<SoftTensor>(&value); soft && !k.is_large(relation)) {
    return soft->dense();
  }
  return value;
}

Value relation_part(Context& context, RelationId relation, std::vector<IndexArg> at) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  find_places(k, relation, at);
  k.shape(relation);  // throws for one that is no tensor
  const AnyTensor whole = k.value_tensor(context, relation);
  if (const auto* dense = std::get_if<tl::Tensor>(&whole)) {
    return index_tensor_at(context, *dense, at);
  }
  return part_of(context, whole, at, k.program().checked.name(relation));
}

void assign_relation_part(Context& context, RelationId relation, std::vector<IndexArg> at,
                          const Value& value) {
  Knowledge& k = knowledge_of(context);
  k.database(context);
  const auto& columns = k.program().checked.columns(relation);
  expect_places(k, relation, at.size());
  k.shape(relation);
  if (is_cell(at, columns.size())) {
    const tl::Tensor x = to_tensor(context, "relation", value);
    if (x.count() != 1) {
      throw type_error("one element of relation '", k.program().checked.name(relation),
                       "' takes one number, not a tensor of shape ", x.shape());
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < at.size(); ++i) {
      names.push_back(entity_at(k, relation, i, at[i].index));
    }
    k.assign_cell(context, relation, names, to_dtype(x, DType::F64).item().real());
    return;
  }
  find_places(k, relation, at);
  if (k.is_large(relation)) {
    throw type_error("relation '", k.program().checked.name(relation), "' of shape ",
                     k.shape(relation),
                     " is too large to assign to a slice of it; set its "
                     "elements one by one, or add facts");
  }
  const Value* learned = k.parameter(context, relation);
  tl::Tensor x =
      copy(learned != nullptr ? learned->tensor().detach() : k.facts_tensor(context, relation));
  assign_tensor_at(context, x, at, value);
  k.assign(context, relation, x);
}

}  // namespace tl::lang
