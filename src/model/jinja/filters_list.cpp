// Filters of lists and dicts.
#include <algorithm>
#include <optional>

#include "model/jinja/evaluate.h"
#include "model/jinja/filters.h"
#include "model/jinja/text.h"

namespace tl::jinja {

namespace {

Value length_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("length", arguments, {});
  return Value(static_cast<std::int64_t>(length_of(evaluator.budget(), value)));
}

// value.a.b or value.0.c by a text with dots, or one key.
Value path_of(Evaluator& evaluator, Value value, const Value& path) {
  if (!path.is_string()) return evaluator.item(value, path);
  std::string_view rest = path.string();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool is_index =
        !part.empty() && part.size() < 10 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    value = evaluator.item(
        value, is_index ? Value(std::int64_t{std::stoi(std::string(part))}) : Value(part));
    if (dot == std::string_view::npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

// Texts are compared without case unless it is asked for.
Value folded(Evaluator& evaluator, const Value& value, bool with_case) {
  return with_case || !value.is_string() ? value : evaluator.heap().string(lower(value.string()));
}

Value join_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("join", arguments, {"d", "attribute"});
  const std::string_view separator = bound.has(0) ? evaluator.text(bound.required(0)) : "";
  std::string out;
  bool first = true;
  for (Value each : items_of(evaluator.heap(), value)) {
    if (bound.has(1)) each = path_of(evaluator, each, bound.required(1));
    if (!first) append_text(evaluator.budget(), out, Value(separator));
    first = false;
    append_text(evaluator.budget(), out, each);
  }
  return evaluator.heap().string(out);
}

Value first_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("first", arguments, {});
  const std::vector<Value> items = items_of(evaluator.heap(), value);
  return items.empty() ? Value::undefined("there is no first item") : items.front();
}
Value last_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("last", arguments, {});
  const std::vector<Value> items = items_of(evaluator.heap(), value);
  return items.empty() ? Value::undefined("there is no last item") : items.back();
}

Value list_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("list", arguments, {});
  return evaluator.heap().list(items_of(evaluator.heap(), value));
}

Value reverse_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("reverse", arguments, {});
  std::vector<Value> items = items_of(evaluator.heap(), value);
  std::reverse(items.begin(), items.end());
  if (!value.is_string()) return evaluator.heap().lazy_list(std::move(items));
  std::string out;
  for (const Value& each : items) out += each.string();
  return evaluator.heap().string(out);
}

// A filter by its name, for map.
Value apply_filter(Evaluator& evaluator, std::string_view name, const Value& value,
                   const Arguments& arguments) {
  const FilterFunction filter = find_filter(name);
  if (filter == nullptr)
    throw Error(ErrorKind::Unsupported, "template", "the filter '", name, "' is not known");
  return filter(evaluator, value, arguments);
}

Value map_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  std::vector<Value> out;
  if (!truth(value)) return evaluator.heap().lazy_list({});  // None too has no items here
  if (arguments.values.empty()) {
    const Bound bound("map", arguments, {"attribute", "default"});
    for (const Value& each : items_of(evaluator.heap(), value)) {
      const Value found = path_of(evaluator, each, bound.required(0));
      out.push_back(found.is_undefined() && bound.has(1) ? bound.required(1) : found);
    }
    return evaluator.heap().lazy_list(std::move(out));
  }
  const std::string_view name = evaluator.text(arguments.values[0]);
  const Arguments rest{{arguments.values.begin() + 1, arguments.values.end()}, arguments.named};
  for (const Value& each : items_of(evaluator.heap(), value)) {
    evaluator.budget().step();
    out.push_back(apply_filter(evaluator, name, each, rest));
  }
  return evaluator.heap().lazy_list(std::move(out));
}

// select, reject, selectattr and rejectattr: items for which a test holds, or does not.
template <bool by_attribute, bool wanted>
Value select_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  constexpr std::size_t kTestAt = by_attribute ? 1 : 0;
  if (arguments.values.size() < kTestAt) fail("the name of an attribute is needed");
  TestFunction test = nullptr;
  Arguments rest;
  rest.named = arguments.named;
  if (arguments.values.size() > kTestAt) {
    const std::string_view name = evaluator.text(arguments.values[kTestAt]);
    test = find_test(name);
    if (test == nullptr)
      throw Error(ErrorKind::Unsupported, "template", "the test '", name, "' is not known");
    rest.values.assign(arguments.values.begin() + kTestAt + 1, arguments.values.end());
  }
  std::vector<Value> out;
  if (!truth(value)) return evaluator.heap().lazy_list({});  // None too has no items here
  for (const Value& each : items_of(evaluator.heap(), value)) {
    evaluator.budget().step();
    const Value looked_at = by_attribute ? path_of(evaluator, each, arguments.values[0]) : each;
    const bool holds = test == nullptr ? truth(looked_at) : test(evaluator, looked_at, rest);
    if (holds == wanted) out.push_back(each);
  }
  return evaluator.heap().lazy_list(std::move(out));
}

// Items with what they are ordered by.
struct Keyed {
  Value key, item;
};

std::vector<Keyed> keyed(Evaluator& evaluator, const Value& value, bool with_case,
                         const Value* attribute) {
  std::vector<Keyed> out;
  for (const Value& each : items_of(evaluator.heap(), value)) {
    const Value key =
        attribute == nullptr || attribute->is_none() ? each : path_of(evaluator, each, *attribute);
    out.push_back({folded(evaluator, key, with_case), each});
  }
  return out;
}

void sort_keyed(Evaluator& evaluator, std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? compare(evaluator.budget(), b.key, a.key) < 0
                   : compare(evaluator.budget(), a.key, b.key) < 0;
  });
}

Value unkeyed(Evaluator& evaluator, const std::vector<Keyed>& items) {
  std::vector<Value> out;
  for (const Keyed& each : items) out.push_back(each.item);
  return evaluator.heap().list(std::move(out));
}

Value sort_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  auto items =
      keyed(evaluator, value, bound.truth(1, false), bound.has(2) ? &bound.required(2) : nullptr);
  sort_keyed(evaluator, items, bound.truth(0, false));
  return unkeyed(evaluator, items);
}

Value dictsort_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!value.is_dict()) fail("'dictsort' needs a dict, not a ", type_name(value));
  const std::string_view by = bound.string(1, "key");
  if (by != "key" && by != "value") fail("'dictsort' goes by 'key' or 'value', not by '", by, "'");
  std::vector<Keyed> items;
  for (const Dict::Entry& entry : value.dict().entries) {
    items.push_back(
        {folded(evaluator, by == "key" ? entry.key : entry.value, bound.truth(0, false)),
         evaluator.heap().list({entry.key, entry.value}, true)});
  }
  sort_keyed(evaluator, items, bound.truth(2, false));
  return unkeyed(evaluator, items);
}

Value unique_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  std::vector<Keyed> kept;
  for (const Keyed& each : keyed(evaluator, value, bound.truth(0, false),
                                 bound.has(1) ? &bound.required(1) : nullptr)) {
    if (each.key.is_list() || each.key.is_dict())
      fail("'unique' cannot tell a ", type_name(each.key), " from others");
    const bool is_new = std::none_of(kept.begin(), kept.end(), [&](const Keyed& old) {
      return equal(evaluator.budget(), old.key, each.key);
    });
    if (is_new) kept.push_back(each);
  }
  const Value out = unkeyed(evaluator, kept);
  out.list().is_lazy = true;
  return out;
}

template <bool largest>
Value extreme_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound(largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const auto items =
      keyed(evaluator, value, bound.truth(0, false), bound.has(1) ? &bound.required(1) : nullptr);
  if (items.empty()) return Value::undefined("there is no item in an empty list");
  const Keyed* best = items.data();
  for (const Keyed& each : items) {
    const int order = compare(evaluator.budget(), each.key, best->key);
    if (largest ? order > 0 : order < 0) best = &each;
  }
  return best->item;
}

Value sum_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  Value total = bound.value(1, Value(std::int64_t{0}));
  for (const Value& each : items_of(evaluator.heap(), value)) {
    const bool whole = !bound.has(0) || bound.required(0).is_none();
    total =
        evaluator.binary("+", total, whole ? each : path_of(evaluator, each, bound.required(0)));
  }
  return total;
}

// Lists of a given length, the last one filled up where that is asked for.
Value batch_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"});
  bound.required(0);
  const std::int64_t size = bound.integer(0, 1);
  if (size < 1 || size > 1'000'000)
    fail("'batch' makes lists of 1 to 1000000 items, not of ", size);
  std::vector<Value> out, line;
  for (const Value& each : items_of(evaluator.heap(), value)) {
    line.push_back(each);
    if (static_cast<std::int64_t>(line.size()) < size) continue;
    out.push_back(evaluator.heap().list(std::move(line)));
    line.clear();
  }
  if (!line.empty()) {
    if (bound.has(1) && !bound.required(1).is_none()) {
      evaluator.budget().take(static_cast<std::size_t>(size) * sizeof(Value));
      line.resize(static_cast<std::size_t>(size), bound.required(1));
    }
    out.push_back(evaluator.heap().list(std::move(line)));
  }
  return evaluator.heap().lazy_list(std::move(out));
}

// Pairs of a value and the items that have it, ordered by the value.
Value groupby_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"});
  const Value& attribute = bound.required(0);
  std::vector<Keyed> items;
  for (const Value& each : items_of(evaluator.heap(), value)) {
    const Value found = path_of(evaluator, each, attribute);
    items.push_back({found.is_undefined() ? bound.value(1, found) : found, each});
  }
  const bool with_case = bound.truth(2, false);
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return compare(evaluator.budget(), folded(evaluator, a.key, with_case),
                   folded(evaluator, b.key, with_case)) < 0;
  });
  std::vector<Value> out;
  for (std::size_t i = 0; i < items.size();) {
    const Value key = folded(evaluator, items[i].key, with_case);
    const Value name = items[i].key;
    std::vector<Value> group;
    for (; i < items.size() &&
           equal(evaluator.budget(), folded(evaluator, items[i].key, with_case), key);
         ++i) {
      group.push_back(items[i].item);
    }
    out.push_back(evaluator.heap().list({name, evaluator.heap().list(std::move(group))}, true));
  }
  return evaluator.heap().list(std::move(out));
}

constexpr FilterRow kFilters[] = {{"batch", batch_filter},
                                  {"count", length_filter},
                                  {"dictsort", dictsort_filter},
                                  {"first", first_filter},
                                  {"groupby", groupby_filter},
                                  {"join", join_filter},
                                  {"last", last_filter},
                                  {"length", length_filter},
                                  {"list", list_filter},
                                  {"map", map_filter},
                                  {"max", extreme_filter<true>},
                                  {"min", extreme_filter<false>},
                                  {"reject", select_filter<false, false>},
                                  {"rejectattr", select_filter<true, false>},
                                  {"reverse", reverse_filter},
                                  {"select", select_filter<false, true>},
                                  {"selectattr", select_filter<true, true>},
                                  {"sort", sort_filter},
                                  {"sum", sum_filter},
                                  {"unique", unique_filter}};

}  // namespace

std::span<const FilterRow> list_filters() noexcept { return kFilters; }

}  // namespace tl::jinja
