// Lists, maps, tuples, vectors: len, get, and what adds to or takes from them.
#include "lang/builtins/container.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lang/builtins/library.h"
#include "lang/builtins/text.h"
#include "lang/operators.h"

namespace tl::lang {

std::int64_t length_of(const Value& value) {
  const auto size = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
  switch (value.kind()) {
    case Kind::String:
      return count_characters(value.string());
    case Kind::List:
      return size(value.as<ListObject>().values);
    case Kind::Tuple:
      return size(value.as<TupleObject>().values);
    case Kind::Vec:
      return size(value.as<VecObject>().values);
    case Kind::Tokens:
      return size(value.as<TokensObject>().ids);
    case Kind::Map:
      return size(value.as<MapObject>().entries);
    case Kind::Range:
      return value.as<RangeObject>().size();
    case Kind::Tensor:
    case Kind::QTensor: {
      const Shape& shape =
          value.is(Kind::Tensor) ? value.tensor().shape() : value.qtensor().shape();
      if (shape.empty()) throw type_error("len() expects a list, got a tensor of rank 0");
      return shape[0];
    }
    case Kind::Host:
      return value.as<HostObject>().size();
    default:
      throw type_error("len() expects a list, text, map or tensor, got ", type_name(value));
  }
}

namespace {

// The element at a place; the one place for every kind that has places.
Value element_at(Context& context, const Value& from, std::int64_t at) {
  const auto in = [&](const std::vector<Value>& values) {
    return values[place_among(at, values.size())];
  };
  switch (from.kind()) {
    case Kind::List:
      return in(from.as<ListObject>().values);
    case Kind::Tuple:
      return in(from.as<TupleObject>().values);
    case Kind::Vec:
      return in(from.as<VecObject>().values);
    case Kind::Tokens: {
      const auto& ids = from.as<TokensObject>().ids;
      return std::int64_t{ids[place_among(at, ids.size())]};
    }
    case Kind::Range: {
      const auto& range = from.as<RangeObject>();
      const auto place = place_among(at, static_cast<std::size_t>(range.size()));
      return range.first + static_cast<std::int64_t>(place);
    }
    case Kind::String: {
      const auto length = static_cast<std::size_t>(count_characters(from.string()));
      return substring(from.string(), static_cast<std::int64_t>(place_among(at, length)), 1);
    }
    default: {
      IndexArg one;
      one.index = Value(at);
      return index(context, from, std::span(&one, 1));
    }
  }
}

Value call_len(Context&, Args& args) { return length_of(args[0]); }
Value call_is_empty(Context&, Args& args) { return length_of(args[0]) == 0; }

Value call_get(Context& context, Args& args) {
  const Value& from = args[0];
  if (from.is(Kind::Map)) {
    if (const Value* found = from.as<MapObject>().find(args[1])) return *found;
    if (args.has(2)) return args[2];
    throw RuntimeError(tl::join("Key ", quoted(args[1]), " not found"));
  }
  if (from.is(Kind::Host)) return from.as<HostObject>().index(context, args[1]);
  const std::int64_t at = args.integer(1);
  if (args.has(2)) {
    const std::int64_t length = length_of(from);
    if (at >= length || at < -length) return args[2];
  }
  return element_at(context, from, at);
}

// ---- vectors, which all who hold them share

std::string_view vec_name(const VecObject& vec) {
  switch (vec.element) {
    case Kind::Int:
      return "IntVec";
    case Kind::Float:
      return "FloatVec";
    case Kind::String:
      return "StringVec";
    default:
      return "BoolVec";
  }
}

Value for_vec(const VecObject& vec, std::string_view name, const Value& value) {
  if (value.is(vec.element)) return value;
  if (vec.element == Kind::Float && value.is(Kind::Int)) return value.number();
  const Value wanted = vec.element == Kind::Int      ? Value(0)
                       : vec.element == Kind::Float  ? Value(0.0)
                       : vec.element == Kind::String ? Value("")
                                                     : Value(false);
  throw type_error(vec_name(vec), ".", name, "() expects ", type_name(wanted), ", got ",
                   type_name(value));
}

Value take_out(std::vector<Value>& values, std::size_t at) {
  Value taken = std::move(values[at]);
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
  return taken;
}

[[noreturn]] void pop_of_nothing(const std::string& type) {
  throw invalid_operation("pop() from an empty ", type);
}

void expect_arguments(std::string_view name, std::span<const Value> args, std::size_t least,
                      std::size_t most) {
  if (args.size() >= least && args.size() <= most) return;
  const std::string wanted = least == most ? std::to_string(least) : tl::join(least, " or ", most);
  throw type_error(name, "() expects ", wanted,
                   least == 1 && most == 1 ? " argument" : " arguments",
                   " beside what it changes, got ", args.size());
}

std::int64_t place_argument(std::string_view name, const Value& value) {
  if (value.is(Kind::Int)) return value.integer();
  if (value.is(Kind::Float)) return static_cast<std::int64_t>(value.real());
  throw type_error(name, "() expects a place, got ", type_name(value));
}

// What a change gives beside the changed thing.
struct Change {
  std::string_view name;
  std::span<Value> args;
  Value result;               // what was taken out
  bool gives_result = false;  // else the call gives what was changed
};

bool change_values(Context& context, std::vector<Value>& values, const std::string& type,
                   Change& change) {
  const std::string_view name = change.name;
  const std::span<Value> args = change.args;
  if (name == "push" || name == "append") {
    expect_arguments(name, args, 1, 1);
    values.push_back(args[0]);
  } else if (name == "extend") {
    expect_arguments(name, args, 1, 1);
    for (Value& each : elements(context, args[0])) values.push_back(std::move(each));
  } else if (name == "insert") {
    expect_arguments(name, args, 2, 2);
    const std::int64_t at = place_argument(name, args[0]);
    const auto count = static_cast<std::int64_t>(values.size());
    const std::size_t place =
        at == count ? values.size() : place_among(at, values.size());  // the end is a place too
    values.insert(values.begin() + static_cast<std::ptrdiff_t>(place), args[1]);
  } else if (name == "set") {
    expect_arguments(name, args, 2, 2);
    values[place_among(place_argument(name, args[0]), values.size())] = args[1];
  } else if (name == "clear") {
    expect_arguments(name, args, 0, 0);
    values.clear();
  } else if (name == "remove") {
    expect_arguments(name, args, 1, 1);
    change.result = take_out(values, place_among(place_argument(name, args[0]), values.size()));
    change.gives_result = true;
  } else if (name == "pop") {
    expect_arguments(name, args, 0, 1);
    if (values.empty()) pop_of_nothing(type);
    const std::int64_t at = args.empty() ? -1 : place_argument(name, args[0]);
    change.result = take_out(values, place_among(at, values.size()));
    change.gives_result = true;
  } else {
    return false;
  }
  return true;
}

void set_entry(MapObject& map, Change& change) {
  expect_arguments(change.name, change.args, 2, 2);
  map.slot(change.args[0]) = change.args[1];
}

void remove_entry(MapObject& map, Change& change) {
  expect_arguments(change.name, change.args, 1, 1);
  const Value* found = map.find(change.args[0]);
  if (found == nullptr) {
    throw RuntimeError(tl::join("Key ", quoted(change.args[0]), " not found"));
  }
  change.result = *found;
  change.gives_result = true;
  map.remove(change.args[0]);
}

bool change_tokens(std::vector<std::int32_t>& ids, Change& change) {
  const std::string_view name = change.name;
  if (name == "push" || name == "append" || name == "append_token") {
    expect_arguments(name, change.args, 1, 1);
    ids.push_back(token_id(name, change.args[0]));
  } else if (name == "pop") {
    expect_arguments(name, change.args, 0, 0);
    if (ids.empty()) pop_of_nothing("TokenIds");
    change.result = std::int64_t{ids.back()};
    change.gives_result = true;
    ids.pop_back();
  } else if (name == "clear") {
    expect_arguments(name, change.args, 0, 0);
    ids.clear();
  } else {
    return false;
  }
  return true;
}

// Changes what `target` holds; it alone sees the change. False: no such method for its kind.
bool apply_change(Context& context, Value& target, Change& change) {
  switch (target.kind()) {
    case Kind::List:
      return change_values(context, target.mutate<ListObject>().values, "List", change);
    case Kind::Map:
      if (change.name == "clear") {
        expect_arguments(change.name, change.args, 0, 0);
        target = make<MapObject>();
        return true;
      }
      if (change.name == "set") {
        set_entry(target.mutate<MapObject>(), change);
        return true;
      }
      if (change.name != "remove") return false;
      remove_entry(target.mutate<MapObject>(), change);
      return true;
    case Kind::Tokens:
      return change_tokens(target.mutate<TokensObject>().ids, change);
    default:
      return false;
  }
}

constexpr std::array<std::string_view, 8> kMutating = {"append", "push",  "pop",    "insert",
                                                       "remove", "clear", "extend", "set"};

// push(list, x) and so on, as a function: lists and maps are values, so the changed one is the
// result. A vector, and what else is shared, is changed where it is.
Value call_change(Context& context, Args& args) {
  std::span<Value> given = args.from(1);
  while (!given.empty() && given.back().is(Kind::Missing)) given = given.first(given.size() - 1);
  Change change{.name = args.name(), .args = given, .result = {}};
  if (args[0].is(Kind::Host)) {
    Args rest(args.builtin(), change.args);
    auto& object = static_cast<HostObject&>(*args[0].object());
    if (object.method(context, change.name, rest, change.result)) return change.result;
    throw type_error(object.type_name(), " has no method '", change.name, "'");
  }
  if (args[0].is(Kind::Vec)) {
    auto& vec = static_cast<VecObject&>(*args[0].object());
    const bool adds = change.name == "push" || change.name == "append" || change.name == "set" ||
                      change.name == "insert";
    if (adds && !change.args.empty()) {
      change.args.back() = for_vec(vec, change.name, change.args.back());
    } else if (change.name == "extend" && !change.args.empty()) {
      std::vector<Value> more = elements(context, change.args[0]);
      for (Value& each : more) each = for_vec(vec, change.name, each);
      change.args[0] = list_of(std::move(more));
    }
    change_values(context, vec.values, std::string(vec_name(vec)), change);
    return change.result;
  }
  if (args[0].is_tensor() && change.name == "append") {
    expect_arguments(change.name, change.args, 1, 1);
    if (args[0].is(Kind::QTensor)) args[0] = args.tensor(context, 0);
    const DType dtype = args[0].tensor().dtype();
    return append_rows(args[0], args.tensor(context, 1, dtype));
  }
  Value target = std::exchange(args[0], Value());  // so that it is copied only where it is shared
  const std::string type = type_name(target);
  if (!apply_change(context, target, change)) {
    throw type_error(change.name, "() cannot change ", type);
  }
  return change.name == "pop" ? change.result : target;
}

template <Kind kElement>
Value new_vec(Context&, Args&) {
  return make<VecObject>(kElement);
}

// ---- maps

const MapObject& map_argument(const Args& args) {
  if (!args[0].is(Kind::Map)) args.bad(0, "a map");
  return args[0].as<MapObject>();
}

Value call_keys(Context&, Args& args) {
  std::vector<Value> keys;
  for (const auto& entry : map_argument(args).entries) keys.push_back(entry.key);
  return list_of(std::move(keys));
}

Value call_values(Context&, Args& args) {
  std::vector<Value> values;
  for (const auto& entry : map_argument(args).entries) values.push_back(entry.value);
  return list_of(std::move(values));
}

Value call_items(Context&, Args& args) {
  std::vector<Value> items;
  for (const auto& [key, value] : map_argument(args).entries) {
    items.push_back(make<TupleObject>(std::vector<Value>{key, value}));
  }
  return list_of(std::move(items));
}

Value call_has(Context&, Args& args) { return map_argument(args).find(args[1]) != nullptr; }

// ---- finding

Value call_contains(Context& context, Args& args) {
  if (args[0].is(Kind::String)) {
    return args.string(0).find(args.string(1)) != std::string::npos;
  }
  if (args[0].is(Kind::Map)) return args[0].as<MapObject>().find(args[1]) != nullptr;
  for (const Value& each : elements(context, args[0])) {
    if (loosely_equal(each, args[1])) return true;
  }
  return false;
}

Value call_index_of(Context& context, Args& args) {
  if (args[0].is(Kind::String)) return find_text(args.string(0), args.string(1), 0);
  const std::vector<Value> values = elements(context, args[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (loosely_equal(values[i], args[1])) return static_cast<std::int64_t>(i);
  }
  return -1;
}

Value call_range(Context&, Args& args) {
  const std::int64_t first = args.has(1) ? args.integer(0) : 0;
  const std::int64_t last = args.integer(args.has(1) ? 1 : 0);
  const std::int64_t step = args.has(2) ? args.integer(2) : 1;
  if (step == 1) {
    std::int64_t size = 0;
    if (__builtin_sub_overflow(std::max(first, last), first, &size)) {
      throw invalid_operation(args.name(), "() from ", first, " to ", last, " is too long");
    }
    return make<RangeObject>(first, std::max(first, last));
  }
  if (step == 0) throw invalid_operation(args.name(), "() with a step of 0");
  const double count =
      (static_cast<double>(last) - static_cast<double>(first)) / static_cast<double>(step);
  if (count > static_cast<double>(kMostElements))
    throw invalid_operation(args.name(), "() of ", count, " elements");
  std::vector<Value> values;
  for (std::int64_t at = first; step > 0 ? at < last : at > last;) {
    values.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return list_of(std::move(values));
}

}  // namespace

bool call_mutating(Context& context, Value& target, std::string_view name, std::span<Value> args,
                   Value& result) {
  // append() of token ids gives new ones (docs/language.md, "Lists").
  if (!is_mutating_name(name) || (target.is(Kind::Tokens) && name == "append")) return false;
  Change change{.name = name, .args = args, .result = {}};
  if (!apply_change(context, target, change)) return false;
  result = change.gives_result ? change.result : target;
  return true;
}

bool is_mutating_name(std::string_view name) noexcept {
  return std::find(kMutating.begin(), kMutating.end(), name) != kMutating.end();
}

BuiltinRows container_builtins() {
  static const std::vector<Builtin> rows = [] {
    const Builtin own[] = {
        {"len", "lists", "(x)",
         "How many elements a list, map or vector has, characters a text, rows a tensor.",
         call_len},
        {"is_empty", "lists", "(x)", "Whether len() is 0.", call_is_empty},
        {"get", "lists", "(x, at, otherwise = none)",
         "The element at a place, or of a key; `otherwise` where there is none.", call_get},
        {"append", "lists", "(x, ...values)",
         "Token ids or a list with one more; rows after those of a tensor; a method of lists and "
         "vectors that adds in place.",
         call_change},
        {"append_token", "lists", "(ids, id)", "The token ids with one more.", call_change},
        {"push", "lists", "(x, value)", "Adds at the end.", call_change},
        {"pop", "lists", "(x, at = none)", "Takes the last element, or the one at a place.",
         call_change},
        {"insert", "lists", "(x, at, value)", "Puts a value before the one at a place.",
         call_change},
        {"remove", "lists", "(x, at)",
         "Takes away the element at a place of a list, or the entry of a key of a map.",
         call_change},
        {"clear", "lists", "(x)", "Takes everything out.", call_change},
        {"extend", "lists", "(x, more)", "Adds all elements of another list.", call_change},
        {"set", "lists", "(x, at, ...values)",
         "Writes the element at a place, the value of a key, the keys and values of a cache's "
         "layer.",
         call_change},
        {"contains", "lists", "(x, item)",
         "Whether a list has such an element, a map such a key, a text such a part.",
         call_contains},
        {"index_of", "lists", "(x, item)",
         "The place of the first equal element, or of a part of a text; -1 when there is none.",
         call_index_of},
        {"range", "lists", "(start, end = none, step = none)",
         "The integers from start, or from 0, up to but without the end.", call_range},
        {"range_i", "lists", "(start, end = none, step = none)",
         "The integers from start, or from 0, up to but without the end.", call_range},
        {"IntVec::new", "lists", "()", "An empty vector of integers, which all who hold it share.",
         new_vec<Kind::Int>},
        {"FloatVec::new", "lists", "()", "An empty vector of floats, which all who hold it share.",
         new_vec<Kind::Float>},
        {"StringVec::new", "lists", "()", "An empty vector of texts, which all who hold it share.",
         new_vec<Kind::String>},
        {"BoolVec::new", "lists", "()",
         "An empty vector of truth values, which all who hold it share.", new_vec<Kind::Bool>},
        {"keys", "maps", "(map)", "The keys of a map, in the order they came.", call_keys},
        {"values", "maps", "(map)", "The values of a map, in the order they came.", call_values},
        {"items", "maps", "(map)", "The entries of a map as tuples of key and value.", call_items},
        {"has", "maps", "(map, key)", "Whether a map has that key.", call_has},
    };
    return joined({own, sequence_builtins(), kv_cache_builtins()});
  }();
  return rows;
}

}  // namespace tl::lang
