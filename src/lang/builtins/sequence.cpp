// Functions over lists and everything else that can be gone through.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "lang/builtins/container.h"
#include "lang/builtins/library.h"
#include "lang/builtins/text.h"
#include "lang/operators.h"
#include "lang/utf8.h"

namespace tl::lang {

namespace {

void expect_function(const Args& args, std::size_t i) {
  if (!args[i].is(Kind::Function)) args.bad(i, "a function");
}

Value ask(Context& context, const Value& function, const Value& element) {
  return context.call(function, std::span(&element, 1));
}

Value call_map(Context& context, Args& args) {
  expect_function(args, 1);
  std::vector<Value> out;
  for (const Value& each : elements(context, args[0])) {
    out.push_back(ask(context, args[1], each));
  }
  return list_of(std::move(out));
}

Value call_filter(Context& context, Args& args) {
  expect_function(args, 1);
  std::vector<Value> out;
  for (const Value& each : elements(context, args[0])) {
    if (truth(ask(context, args[1], each), "filter")) out.push_back(each);
  }
  return list_of(std::move(out));
}

Value call_reduce(Context& context, Args& args) {
  expect_function(args, 1);
  const std::vector<Value> values = elements(context, args[0]);
  std::size_t first = 0;
  Value sum = args.has(2) ? args[2] : Value();
  if (!args.has(2)) {
    if (values.empty()) throw invalid_operation("reduce() of an empty list without a start value");
    sum = values[first++];
  }
  for (std::size_t i = first; i < values.size(); ++i) {
    const Value pair[] = {std::move(sum), values[i]};
    sum = context.call(args[1], pair);
  }
  return sum;
}

Value call_enumerate(Context& context, Args& args) {
  std::int64_t number = args.integer(1);
  std::vector<Value> out;
  for (Value& each : elements(context, args[0])) {
    out.push_back(make<TupleObject>(std::vector<Value>{number++, std::move(each)}));
  }
  return list_of(std::move(out));
}

Value call_zip(Context& context, Args& args) {
  std::vector<std::vector<Value>> lists;
  std::size_t shortest = 0;
  for (const Value& each : args.from(0)) {
    lists.push_back(elements(context, each));
    shortest = lists.size() == 1 ? lists.back().size() : std::min(shortest, lists.back().size());
  }
  std::vector<Value> out;
  for (std::size_t i = 0; i < shortest; ++i) {
    std::vector<Value> row;
    for (const auto& list : lists) row.push_back(list[i]);
    out.push_back(make<TupleObject>(std::move(row)));
  }
  return list_of(std::move(out));
}

Value call_reverse(Context& context, Args& args) {
  if (args[0].is(Kind::String)) {
    const std::vector<std::string_view> all = utf8_characters(args.string(0));
    std::string out;
    for (auto each = all.rbegin(); each != all.rend(); ++each) out += *each;
    return out;
  }
  if (args[0].is(Kind::Tokens)) {
    std::vector<std::int32_t> ids = args[0].as<TokensObject>().ids;
    std::reverse(ids.begin(), ids.end());
    return make<TokensObject>(std::move(ids));
  }
  std::vector<Value> values = elements(context, args[0]);
  std::reverse(values.begin(), values.end());
  return list_of(std::move(values));
}

// Numbers by value, texts by code point; false before true.
bool comes_before(const Value& a, const Value& b) {
  if (a.is(Kind::Int) && b.is(Kind::Int)) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  if (a.is(Kind::String) && b.is(Kind::String)) return a.string() < b.string();
  if (a.is(Kind::Bool) && b.is(Kind::Bool)) return !a.boolean() && b.boolean();
  if (a.is(Kind::Tuple) && b.is(Kind::Tuple)) {
    const auto& left = a.as<TupleObject>().values;
    const auto& right = b.as<TupleObject>().values;
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                        comes_before);
  }
  throw type_error("sorted() cannot compare ", type_name(a), " with ", type_name(b));
}

bool is_nan(const Value& value) { return value.is(Kind::Float) && value.real() != value.real(); }

Value call_sorted(Context& context, Args& args) {
  struct Row {
    Value key, value;
  };
  std::vector<Row> rows;
  for (Value& each : elements(context, args[0])) {
    Value key = args.has(1) ? ask(context, args[1], each) : each;
    rows.push_back({std::move(key), std::move(each)});
  }
  // What has no order is found before the sort, which needs one. NaN comes last.
  for (const Row& row : rows) comes_before(row.key, rows.front().key);
  const bool descending = args.boolean(2);
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    if (is_nan(a.key) || is_nan(b.key)) return !is_nan(a.key) && is_nan(b.key);
    return descending ? comes_before(b.key, a.key) : comes_before(a.key, b.key);
  });
  std::vector<Value> out;
  for (Row& row : rows) out.push_back(std::move(row.value));
  return list_of(std::move(out));
}

Value call_unique(Context& context, Args& args) {
  MapObject seen;
  std::unordered_set<double> seen_floats;
  std::vector<Value> out;
  for (const Value& each : elements(context, args[0])) {
    bool is_new = true;
    if (each.is(Kind::Int) || each.is(Kind::String) || each.is(Kind::Bool)) {
      is_new = seen.find(each) == nullptr;
      if (is_new) seen.slot(each) = true;
    } else if (each.is(Kind::Float)) {
      is_new = seen_floats.insert(each.real()).second;
    } else {
      is_new = std::none_of(out.begin(), out.end(),
                            [&](const Value& other) { return equal(each, other); });
    }
    if (is_new) out.push_back(each);
  }
  return list_of(std::move(out));
}

Value call_to_list(Context& context, Args& args) {
  if (args[0].is_tensor()) {
    const tl::Tensor tensor = args.tensor(context, 0);
    if (tensor.rank() == 0) return list_of({from_tensor_item(tensor)});
    if (tensor.rank() > 1) {
      std::vector<Value> rows;
      for (std::int64_t i = 0; i < tensor.dim(0); ++i) {
        const Value row = tensor.get(i);
        rows.push_back(call_builtin(context, "to_list", std::span(&row, 1)));
      }
      return list_of(std::move(rows));
    }
  }
  return list_of(elements(context, args[0]));
}

}  // namespace

bool any_of(Context& context, std::string_view who, const Value& list, const Value& test) {
  for (const Value& each : elements(context, list)) {
    if (truth(test.is(Kind::Missing) ? each : ask(context, test, each), who)) return true;
  }
  return false;
}

bool all_of(Context& context, std::string_view who, const Value& list, const Value& test) {
  for (const Value& each : elements(context, list)) {
    if (!truth(test.is(Kind::Missing) ? each : ask(context, test, each), who)) return false;
  }
  return true;
}

BuiltinRows sequence_builtins() {
  static const Builtin rows[] = {
      {"map", "lists", "(list, function)", "A list of what the function gives for each element.",
       call_map},
      {"filter", "lists", "(list, function)", "The elements for which the function gives true.",
       call_filter},
      {"reduce", "lists", "(list, function, start = none)",
       "One value from all: function(so_far, element) from the first element or `start` on.",
       call_reduce},
      {"enumerate", "lists", "(list, start = 0)", "A tuple of number and element for each element.",
       call_enumerate},
      {"zip", "lists", "(...lists)",
       "Tuples of the elements at one place, up to the shortest list.", call_zip},
      {"reverse", "lists", "(x)", "A list or a text from its end to its start.", call_reverse},
      {"sorted", "lists", "(list, key = none, descending = false)",
       "The elements in order, or in the order of what the function `key` gives for them; equal "
       "ones stay in place.",
       call_sorted},
      {"unique", "lists", "(list)", "Each element once, where it comes first.", call_unique},
      {"to_list", "lists", "(x)", "The elements of anything as a list; a tensor as lists of lists.",
       call_to_list},
  };
  return rows;
}

}  // namespace tl::lang
