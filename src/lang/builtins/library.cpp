#include "lang/builtins/library.h"

#include <limits>

#include "base/nearest.h"
#include "lang/operators.h"
#include "tl/ops/copy.h"

namespace tl::lang {

std::size_t place_among(std::int64_t index, std::size_t length) {
  const auto count = static_cast<std::int64_t>(length);
  const std::int64_t at = index < 0 ? index + count : index;
  if (at < 0 || at >= count) {
    throw RuntimeError(tl::join("Index ", index, " out of bounds for length ", length));
  }
  return static_cast<std::size_t>(at);
}

std::vector<Value> elements(Context& context, const Value& value) {
  switch (value.kind()) {
    case Kind::List:
      return value.as<ListObject>().values;
    case Kind::Tuple:
      return value.as<TupleObject>().values;
    case Kind::Vec:
      return value.as<VecObject>().values;
    case Kind::Range:
      if (const std::int64_t size = value.as<RangeObject>().size(); size > kMostElements) {
        throw invalid_operation("a range of ", size, " elements is too long to be a list");
      }
      break;
    default:
      break;
  }
  std::vector<Value> out;
  const Value iterator = Iterator::over(context, value);
  auto& each = static_cast<Iterator&>(*iterator.object());
  for (Value element; each.next(element);) out.push_back(element);
  return out;
}

Value list_of_texts(std::span<const std::string> texts) {
  std::vector<Value> values;
  values.reserve(texts.size());
  for (const std::string& text : texts) values.emplace_back(text);
  return list_of(std::move(values));
}

std::string did_you_mean(std::string_view typed, std::span<const std::string> words) {
  const std::string meant = nearest(typed, words);
  return meant.empty() ? "" : tl::join("; did you mean '", meant, "'?");
}

std::int32_t token_id(std::string_view who, const Value& value) {
  double number = -1;
  if (value.is_number()) {
    number = value.number();
  } else if (value.is(Kind::Tensor) && value.tensor().count() == 1) {
    number = value.tensor().item().real();
  } else {
    throw type_error(who, "() expects token ids, got ", type_name(value));
  }
  if (!(number >= 0 && number <= std::numeric_limits<std::int32_t>::max())) {
    throw type_error(who, "() expects token ids, got ", text(value));
  }
  return static_cast<std::int32_t>(number);
}

std::vector<std::int32_t> token_ids(const Args& args, std::size_t i) {
  const Value& value = args[i];
  std::vector<std::int32_t> ids;
  const auto add_all = [&](const std::vector<Value>& values) {
    ids.reserve(values.size());
    for (const Value& each : values) ids.push_back(token_id(args.name(), each));
  };
  switch (value.kind()) {
    case Kind::Tokens:
      return value.as<TokensObject>().ids;
    case Kind::List:
      add_all(value.as<ListObject>().values);
      return ids;
    case Kind::Vec:
      add_all(value.as<VecObject>().values);
      return ids;
    case Kind::Tensor:
      for (const double each : to_dtype(value.tensor(), DType::F64).to_vector<double>()) {
        ids.push_back(token_id(args.name(), each));
      }
      return ids;
    case Kind::Int:
    case Kind::Float:
      return {token_id(args.name(), value)};
    default:
      args.bad(i, "token ids");
  }
}

std::string bracketed(const Dims& shape) {
  std::string out = "[";
  for (const std::int64_t size : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(size);
  }
  return out + "]";
}

Value call_builtin(Context& context, std::string_view name, std::span<const Value> arguments) {
  const Builtin* builtin = BuiltinTable::instance().find(name);
  if (builtin == nullptr) throw invalid_operation("there is no function ", name);
  std::vector<Value> values(arguments.begin(), arguments.end());
  const std::size_t count = builtin->parameters.size() - (builtin->variadic ? 1 : 0);
  for (std::size_t i = values.size(); i < count; ++i) {
    values.push_back(builtin->parameters[i].default_value);
  }
  Args args(*builtin, values);
  return builtin->call(context, args);
}

std::uint64_t next_seed(const Device& device) {
  std::uint64_t x = device.current_seed() + 0x9E3779B97F4A7C15u * (device.take_random(1) + 1);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

std::vector<Builtin> joined(std::initializer_list<BuiltinRows> parts) {
  std::vector<Builtin> rows;
  for (const BuiltinRows part : parts) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace tl::lang
