#include "model/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "model/jinja/evaluate.h"
#include "model/jinja/text.h"

namespace tl::jinja {

namespace {

Value default_filter(Evaluator&, const Value& value, const Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  const bool is_missing = value.is_undefined() || (bound.truth(1, false) && !truth(value));
  return is_missing ? bound.value(0, Value("")) : value;
}

Value tojson_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = bound.truth(0, false);
  style.sort_keys = bound.truth(3, false);
  if (bound.has(1) && !bound.required(1).is_none()) {
    style.has_indent = true;
    style.item_separator = ",";
    if (bound.required(1).is_string()) {
      style.indent = bound.string(1, "");
    } else {
      const std::int64_t width = bound.integer(1, 0);
      if (width > 1000) fail("'tojson': an indent of ", width, " is too much");
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
  }
  if (bound.has(2) && !bound.required(2).is_none()) {
    const std::vector<Value> both = items_of(evaluator.heap(), bound.required(2));
    if (both.size() != 2) fail("'tojson' needs two separators");
    style.item_separator = evaluator.text(both[0]);
    style.key_separator = evaluator.text(both[1]);
  }
  std::string out;
  append_json(evaluator.budget(), out, value, style);
  return evaluator.heap().string(out);
}

// The number a text begins and ends with, as Python's int() and float() read it.
std::optional<double> parse_real(std::string_view text) {
  text = strip(text, Side::Both);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_whole(std::string_view text, int base) {
  text = strip(text, Side::Both);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> truncated(double value) {
  if (!(std::fabs(value) < 9.2e18)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

Value int_filter(Evaluator&, const Value& value, const Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  const std::int64_t base = bound.integer(1, 10);
  if (base < 2 || base > 36) fail("'int' reads bases from 2 to 36, not ", base);
  std::optional<std::int64_t> out;
  if (value.is_undefined()) fail("'", value.missing(), "' is undefined");
  if (value.is_whole()) out = value.integer();
  if (value.is(Kind::Float)) out = truncated(value.real());
  if (value.is_string()) {
    out = parse_whole(value.string(), static_cast<int>(base));
    if (!out) {
      const auto real = parse_real(value.string());
      if (real) out = truncated(*real);
    }
  }
  return out ? Value(*out) : bound.value(0, Value(std::int64_t{0}));
}

Value float_filter(Evaluator&, const Value& value, const Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  if (value.is_undefined()) fail("'", value.missing(), "' is undefined");
  if (value.is_number()) return Value(value.real());
  const auto real = value.is_string() ? parse_real(value.string()) : std::nullopt;
  return real ? Value(*real) : bound.value(0, Value(0.0));
}

Value abs_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("abs", arguments, {});
  if (!value.is_number()) fail("'abs' needs a number, not a ", type_name(value));
  if (value.is(Kind::Float)) return Value(std::fabs(value.real()));
  return value.integer() < 0 ? evaluator.binary("-", Value(std::int64_t{0}), value)
                             : Value(value.integer());
}

// As Python's round(): to the nearest, by the exact decimal value of the number.
Value round_filter(Evaluator&, const Value& value, const Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  const std::int64_t precision = bound.integer(0, 0);
  const std::string_view method = bound.string(1, "common");
  if (!value.is_number()) fail("'round' needs a number, not a ", type_name(value));
  if (precision < 0 || precision > 300) fail("'round' keeps from 0 to 300 digits, not ", precision);
  if (method == "common") {
    if (value.is_whole()) return Value(value.integer());
    if (!std::isfinite(value.real())) return value;
    char text[700];
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(precision), value.real());
    return Value(std::strtod(text, nullptr));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value(std::ceil(value.real() * scale) / scale);
  if (method == "floor") return Value(std::floor(value.real() * scale) / scale);
  fail("'round' is 'common', 'ceil' or 'floor', not '", method, "'");
}

Value attr_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("attr", arguments, {"name"});
  bound.required(0);
  // Attributes alone: not the items of a dict.
  if (value.is_dict()) return find_method(evaluator.heap(), value, bound.string(0, ""));
  return evaluator.attribute(value, bound.string(0, ""));
}

Value items_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("items", arguments, {});
  if (value.is_undefined()) return evaluator.heap().lazy_list({});
  if (!value.is_dict()) fail("'items' needs a dict, not a ", type_name(value));
  std::vector<Value> out;
  for (const Dict::Entry& entry : value.dict().entries) {
    out.push_back(evaluator.heap().list({entry.key, entry.value}, true));
  }
  return evaluator.heap().lazy_list(std::move(out));
}

constexpr FilterRow kFilters[] = {
    {"abs", abs_filter},         {"attr", attr_filter},   {"d", default_filter},
    {"default", default_filter}, {"float", float_filter}, {"int", int_filter},
    {"items", items_filter},     {"round", round_filter}, {"tojson", tojson_filter}};

}  // namespace

std::span<const FilterRow> value_filters() noexcept { return kFilters; }

FilterFunction find_filter(std::string_view name) {
  for (const auto& table : {text_filters(), list_filters(), value_filters()}) {
    for (const FilterRow& row : table) {
      if (row.name == name) return row.filter;
    }
  }
  return nullptr;
}

}  // namespace tl::jinja
