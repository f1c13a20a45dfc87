#include "lang/operators_index.h"

#include <algorithm>

#include "lang/convert.h"
#include "lang/utf8.h"

namespace tl::lang {

// ---- places

bool is_whole_index(const Value& index) noexcept {
  return index.is_number() || (index.is(Kind::Tensor) && index.tensor().rank() == 0 &&
                               index.tensor().dtype() != DType::Bool);
}

std::int64_t index_of(const Value& index, std::int64_t length) {
  const auto given = index.is(Kind::Bool) ? std::nullopt : integer_in(index);
  if (!given) throw type_error("An index must be an Integer, got ", type_name(index));
  const std::int64_t place = *given < 0 ? *given + length : *given;
  if (place < 0 || place >= length) {
    throw RuntimeError(join("Index ", *given, " out of bounds for length ", length));
  }
  return place;
}

Slice slice_of(const IndexArg& at, std::int64_t length) {
  const auto part = [&](const Value& value, std::int64_t otherwise) {
    if (value.is(Kind::Missing) || value.is(Kind::Void)) return otherwise;
    const auto given = value.is(Kind::Bool) ? std::nullopt : integer_in(value);
    if (!given) throw type_error("A slice needs Integers, got ", type_name(value));
    return *given;
  };
  Slice slice;
  slice.step = part(at.step, 1);
  if (slice.step == 0) throw invalid_operation("A slice cannot have a step of 0");
  // No dimension is longer, and nothing below can overflow.
  slice.step = std::clamp(slice.step, -length - 1, length + 1);
  const bool forward = slice.step > 0;
  const std::int64_t low = forward ? 0 : -1;
  const std::int64_t high = forward ? length : length - 1;
  const auto bound = [&](const Value& value, std::int64_t otherwise) {
    if (value.is(Kind::Missing) || value.is(Kind::Void)) return otherwise;
    const std::int64_t given = part(value, 0);
    return std::clamp(given < 0 ? std::max(given, -length - 1) + length : given, low, high);
  };
  slice.start = bound(at.start, forward ? low : high);
  const std::int64_t stop = bound(at.stop, forward ? high : low);
  const std::int64_t span = forward ? stop - slice.start : slice.start - stop;
  const std::int64_t step = forward ? slice.step : -slice.step;
  slice.count = span > 0 ? (span + step - 1) / step : 0;
  return slice;
}

// ---- reading

namespace {

[[noreturn]] void throw_not_indexable(const Value& base) {
  throw type_error(type_name(base), " cannot be indexed");
}

void expect_one(const Value& base, std::span<const IndexArg> at) {
  if (at.size() == 1) return;
  throw type_error(type_name(base), " takes one index, got ", at.size());
}

std::vector<Value> sliced(const Value& list, const Slice& slice) {
  std::vector<Value> values;
  values.reserve(static_cast<std::size_t>(slice.count));
  for (std::int64_t i = 0; i < slice.count; ++i) {
    values.push_back(list_item(list, static_cast<std::size_t>(slice.start + i * slice.step)));
  }
  return values;
}

Value slice_list(const Value& base, const IndexArg& at) {
  const Slice slice = slice_of(at, static_cast<std::int64_t>(list_size(base)));
  switch (base.kind()) {
    case Kind::Tuple:
      return make<TupleObject>(sliced(base, slice));
    case Kind::Range:
      if (slice.step == 1) {
        const std::int64_t first = base.as<RangeObject>().first + slice.start;
        return make<RangeObject>(first, first + slice.count);
      }
      return make<ListObject>(sliced(base, slice));
    case Kind::Tokens: {
      std::vector<std::int32_t> ids;
      for (std::int64_t i = 0; i < slice.count; ++i) {
        const auto place = static_cast<std::size_t>(slice.start + i * slice.step);
        ids.push_back(base.as<TokensObject>().ids[place]);
      }
      return make<TokensObject>(std::move(ids));
    }
    default:
      return make<ListObject>(sliced(base, slice));
  }
}

Value index_string(const std::string& text, const IndexArg& at) {
  if (!at.is_slice) {
    std::int64_t left = index_of(at.index, static_cast<std::int64_t>(utf8_count(text)));
    std::size_t place = 0;
    for (; left > 0; --left) place += utf8_length(text, place);
    return std::string_view(text).substr(place, utf8_length(text, place));
  }
  const std::vector<std::string_view> characters = utf8_characters(text);
  const Slice slice = slice_of(at, static_cast<std::int64_t>(characters.size()));
  std::string out;
  for (std::int64_t i = 0; i < slice.count; ++i) {
    out += characters[static_cast<std::size_t>(slice.start + i * slice.step)];
  }
  return out;
}

[[noreturn]] void throw_no_key(const Value& key) {
  throw RuntimeError(join("Key ", quoted(key), " not found in map"));
}

Value index_list(Context& context, const Value& base, std::span<const IndexArg> at) {
  // Numbers go from list to list; what else there may be between brackets needs the tensor.
  if (!at[0].is_slice && is_whole_index(at[0].index)) {
    const auto length = static_cast<std::int64_t>(list_size(base));
    Value item = list_item(base, static_cast<std::size_t>(index_of(at[0].index, length)));
    return at.size() == 1 ? item : index(context, item, at.subspan(1));
  }
  if (at.size() == 1 && at[0].is_slice) return slice_list(base, at[0]);
  if (at.size() == 1 && !is_number_list(base) && is_number_list(at[0].index)) {
    const auto length = static_cast<std::int64_t>(list_size(base));
    std::vector<Value> values;
    for (std::size_t i = 0; i < list_size(at[0].index); ++i) {
      const std::int64_t place = index_of(list_item(at[0].index, i), length);
      values.push_back(list_item(base, static_cast<std::size_t>(place)));
    }
    return make<ListObject>(std::move(values));
  }
  if (!at[0].is_slice && !is_tensor_like(at[0].index)) {
    throw type_error("An index must be an Integer, got ", type_name(at[0].index));
  }
  return index_tensor_at(context, to_tensor(context, "index", base), at);
}

}  // namespace

Value index(Context& context, const Value& base, std::span<const IndexArg> at) {
  switch (base.kind()) {
    case Kind::Tensor:
      return index_tensor_at(context, base.tensor(), at);
    case Kind::QTensor:
      return index_quantised(context, base.qtensor(), at);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::Tokens:
    case Kind::Vec:
      return index_list(context, base, at);
    case Kind::String:
      expect_one(base, at);
      return index_string(base.string(), at[0]);
    case Kind::Map: {
      if (at[0].is_slice) throw type_error("A Map takes a key, not a slice");
      const Value* found = base.as<MapObject>().find(at[0].index);
      if (found == nullptr) throw_no_key(at[0].index);
      return at.size() == 1 ? *found : index(context, *found, at.subspan(1));
    }
    case Kind::Host: {
      if (at[0].is_slice) throw_not_indexable(base);
      const auto* host = dynamic_cast<const HostObject*>(base.object());
      if (host == nullptr) throw_not_indexable(base);
      Value item = host->index(context, at[0].index);
      return at.size() == 1 ? item : index(context, item, at.subspan(1));
    }
    default:
      throw_not_indexable(base);
  }
}

// ---- writing

namespace {

void assign_slice(ListObject& list, const IndexArg& at, const Value& value) {
  if (!is_list_like(value)) {
    throw type_error("A slice of a List takes a List, got ", type_name(value));
  }
  const Slice slice = slice_of(at, static_cast<std::int64_t>(list.values.size()));
  const std::vector<Value> items = list_values(value);
  if (slice.step == 1) {  // may grow or shrink
    const auto first = list.values.begin() + slice.start;
    const auto rest = list.values.erase(first, first + slice.count);
    list.values.insert(rest, items.begin(), items.end());
    return;
  }
  if (static_cast<std::int64_t>(items.size()) != slice.count) {
    throw invalid_operation(items.size(), " values for ", slice.count, " places of a List");
  }
  for (std::int64_t i = 0; i < slice.count; ++i) {
    list.values[static_cast<std::size_t>(slice.start + i * slice.step)] =
        items[static_cast<std::size_t>(i)];
  }
}

void assign_list(Context& context, Value& base, std::span<const IndexArg> at, const Value& value) {
  const IndexArg& first = at[0];
  if (!first.is_slice && is_whole_index(first.index)) {
    Value& place = element(base, first);
    if (at.size() == 1) {
      place = value;
    } else {
      assign_index(context, place, at.subspan(1), value);
    }
    return;
  }
  if (at.size() == 1 && first.is_slice) {
    assign_slice(base.mutate<ListObject>(), first, value);
    return;
  }
  tl::Tensor tensor = to_tensor(context, "assignment", base);
  assign_tensor_at(context, tensor, at, value);
  base = Value(std::move(tensor));
}

// A scalar as the elements of a vector are; throws for another kind.
Value vec_element(const Value& vec, const Value& value) {
  const Kind wanted = vec.as<VecObject>().element;
  if (wanted == Kind::Float && value.is(Kind::Int)) return value.number();
  if (value.kind() == wanted) return value;
  throw type_error("An element of ", type_name(vec), " cannot be ", type_name(value));
}

}  // namespace

namespace {

// A parameter stays the variable it is, with other elements: nothing flows back through the write.
void assign_parameter_at(Context& context, Value& base, std::span<const IndexArg> at,
                         const Value& value) {
  const NoHistory none;
  tl::Tensor changed = base.tensor().detach();
  assign_tensor_at(context, changed, at, value);
  tl::Tensor& tensor = static_cast<TensorObject*>(base.object())->tensor;
  tensor = changed.with_history(tensor.history());
}

}  // namespace

void assign_index(Context& context, Value& base, std::span<const IndexArg> at, const Value& value) {
  switch (base.kind()) {
    case Kind::Tensor:
      if (base.as<TensorObject>().is_parameter) {
        assign_parameter_at(context, base, at, value);
      } else {
        assign_tensor_at(context, base.mutate<TensorObject>().tensor, at, value);
      }
      return;
    case Kind::QTensor: {
      tl::Tensor tensor = base.qtensor().dequantize();
      assign_tensor_at(context, tensor, at, value);
      base = Value(std::move(tensor));
      return;
    }
    case Kind::Range: {
      Value list = make<ListObject>(list_values(base));
      assign_list(context, list, at, value);
      base = std::move(list);
      return;
    }
    case Kind::List:
      assign_list(context, base, at, value);
      return;
    case Kind::Map:
      if (at[0].is_slice) throw type_error("A Map takes a key, not a slice");
      if (at.size() > 1) {
        assign_index(context, element(base, at[0]), at.subspan(1), value);
      } else {
        base.mutate<MapObject>().slot(at[0].index) = value;
      }
      return;
    case Kind::Tokens: {
      expect_one(base, at);
      auto& ids = base.mutate<TokensObject>().ids;
      const auto id = integer_in(value);
      if (at[0].is_slice || !id) throw type_error("TokenIds take one Integer at one place");
      ids[static_cast<std::size_t>(index_of(at[0].index, static_cast<std::int64_t>(ids.size())))] =
          static_cast<std::int32_t>(*id);
      return;
    }
    case Kind::Vec: {  // shared: all who hold it see the change
      expect_one(base, at);
      if (at[0].is_slice) throw type_error("A vector is written one element at a time");
      auto& vec = static_cast<VecObject&>(*base.object());
      const auto length = static_cast<std::int64_t>(vec.values.size());
      vec.values[static_cast<std::size_t>(index_of(at[0].index, length))] =
          vec_element(base, value);
      return;
    }
    default:
      throw type_error("An element of ", type_name(base), " cannot be assigned");
  }
}

Value& element(Value& base, const IndexArg& at) {
  if (at.is_slice) throw type_error("A place inside a slice cannot be assigned");
  if (base.is(Kind::List)) {
    auto& values = base.mutate<ListObject>().values;
    return values[static_cast<std::size_t>(
        index_of(at.index, static_cast<std::int64_t>(values.size())))];
  }
  if (base.is(Kind::Map)) {
    if (base.as<MapObject>().find(at.index) == nullptr) throw_no_key(at.index);
    return base.mutate<MapObject>().slot(at.index);
  }
  throw type_error("A place inside an element of ", type_name(base), " cannot be assigned");
}

}  // namespace tl::lang
