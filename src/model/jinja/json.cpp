// JSON in and out: texts of messages and tools become values, and tojson writes as Python's
// json.dumps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "model/jinja/text.h"
#include "model/jinja/value.h"
#include "model/tokenizer_utf8.h"

namespace tl::jinja {

namespace {

// Builds values while the text is read; there is no second copy of it.
class Builder {
 public:
  using Json = nlohmann::json;

  explicit Builder(Heap& heap) : heap_(heap) {}

  Value result;
  std::string problem;

  bool null() { return put(Value::none()); }
  bool boolean(bool value) { return put(Value(value)); }
  bool number_integer(Json::number_integer_t value) { return put(Value(std::int64_t{value})); }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return put(Value(static_cast<double>(value)));
    }
    return put(Value(static_cast<std::int64_t>(value)));
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return put(Value(double{value}));
  }
  bool string(std::string& text) { return put(heap_.string(text)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(heap_.dict()); }
  bool start_array(std::size_t) { return open(heap_.list({})); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& text) {
    keys_.back() = heap_.string(text);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    problem = error.what();
    return false;
  }

 private:
  bool put(const Value& value) {
    if (open_.empty()) {
      result = value;
    } else if (open_.back().is_dict()) {
      open_.back().dict().set(heap_, keys_.back(), value);
    } else {
      heap_.append(open_.back().list(), value);
    }
    return true;
  }
  bool open(const Value& value) {
    put(value);
    open_.push_back(value);
    keys_.emplace_back();
    if (open_.size() < heap_.budget().limits().value_depth) return true;
    problem = "it is nested too deep";
    return false;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  Heap& heap_;
  std::vector<Value> open_, keys_;  // the containers around, and the key each is at
};

void append_unicode_escape(std::string& out, std::uint32_t unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[unit >> shift & 15];
}

void append_json_string(Budget& budget, std::string& out, std::string_view text, bool ascii) {
  budget.take(2 + text.size());
  out += '"';
  while (!text.empty()) {
    const tok::CodePoint point = tok::first_code_point(text);
    const std::uint32_t c = point.value;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (c < 0x20 || (ascii && c >= 0x80 && c < 0x10000)) {
          append_unicode_escape(out, c);
        } else if (ascii && c >= 0x10000) {
          append_unicode_escape(out, 0xD800 + ((c - 0x10000) >> 10));
          append_unicode_escape(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
        } else {
          tok::append_utf8(out, c);
        }
    }
    text.remove_prefix(point.length);
  }
  out += '"';
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_text(value);
}

void append_line(Budget& budget, std::string& out, const JsonStyle& style, std::size_t depth) {
  if (!style.has_indent) return;
  budget.take(1 + depth * style.indent.size());
  out += '\n';
  for (std::size_t i = 0; i < depth; ++i) out += style.indent;
}

void append_json_key(Budget& budget, std::string& out, const Value& key, const JsonStyle& style) {
  if (key.is_string()) {
    append_json_string(budget, out, key.string(), style.ascii);
  } else if (key.is_number() || key.is_none()) {
    out += '"';
    append_json(budget, out, key, style);
    out += '"';
  } else {
    fail("tojson: a ", type_name(key), " cannot be a key");
  }
}

}  // namespace

void append_json(Budget& budget, std::string& out, const Value& value, const JsonStyle& style,
                 std::size_t depth) {
  budget.take(8);
  if (depth > budget.limits().value_depth) fail("tojson: values are nested too deep");
  switch (value.kind()) {
    case Kind::None:
      out += "null";
      return;
    case Kind::Bool:
      out += value.boolean() ? "true" : "false";
      return;
    case Kind::Int:
      out += std::to_string(value.integer());
      return;
    case Kind::Float:
      out += json_float(value.real());
      return;
    case Kind::String:
      append_json_string(budget, out, value.string(), style.ascii);
      return;
    case Kind::List:
    case Kind::Tuple: {
      const auto& items = value.list().items;
      out += '[';
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (i != 0) {
          budget.take(style.item_separator.size());
          out += style.item_separator;
        }
        append_line(budget, out, style, depth + 1);
        append_json(budget, out, items[i], style, depth + 1);
      }
      if (!items.empty()) append_line(budget, out, style, depth);
      out += ']';
      return;
    }
    case Kind::Dict: {
      std::vector<Dict::Entry> entries = value.dict().entries;
      if (style.sort_keys) {
        std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
          return compare(budget, a.key, b.key) < 0;
        });
      }
      out += '{';
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i != 0) {
          budget.take(style.item_separator.size());
          out += style.item_separator;
        }
        append_line(budget, out, style, depth + 1);
        append_json_key(budget, out, entries[i].key, style);
        budget.take(style.key_separator.size());
        out += style.key_separator;
        append_json(budget, out, entries[i].value, style, depth + 1);
      }
      if (!entries.empty()) append_line(budget, out, style, depth);
      out += '}';
      return;
    }
    default:
      fail("tojson: a ", type_name(value), " cannot be written as JSON");
  }
}

Value parse_json(Heap& heap, std::string_view json, std::string_view what) {
  Builder builder(heap);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) {
    throw Error(ErrorKind::BadArgument, "chat template", what, " is not JSON: ", builder.problem);
  }
  return builder.result;
}

}  // namespace tl::jinja
