// Values in a form that a program asks for: {:.3f}, {:>8}.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "lang/builtins/text.h"
#include "lang/utf8.h"

namespace tl::lang {

namespace {

constexpr int kMostWidth = 10000;  // of a field, and digits after the point

[[noreturn]] void bad_form(std::string_view form, const Value& value, std::string_view why) {
  throw invalid_operation("format(): '{:", form, "}' does not go with ", quoted(value), ": ", why);
}

// [[fill]align][sign][#][0][width][.precision][type]
struct Form {
  bool has_align = false, has_precision = false;
  char type = 0;
};

Form read_form(std::string_view form, const Value& value) {
  Form out;
  if (form.find_first_of("{}") != std::string_view::npos) bad_form(form, value, "it has braces");
  std::size_t at = 0;
  const auto is_align = [&](std::size_t i) {
    return i < form.size() && (form[i] == '<' || form[i] == '>' || form[i] == '^');
  };
  // The character that fills may have several bytes.
  const std::vector<std::string_view> first =
      utf8_characters(form.substr(0, std::min<std::size_t>(form.size(), 4)));
  if (!first.empty() && is_align(first[0].size())) {
    out.has_align = true;
    at = first[0].size() + 1;
  } else if (is_align(0)) {
    out.has_align = true;
    at = 1;
  }
  while (at < form.size() && std::string_view("+- #0").find(form[at]) != std::string_view::npos) {
    ++at;
  }
  const auto read_number = [&] {
    int number = 0;
    const char* end = form.data() + form.size();
    const auto [stop, status] = std::from_chars(form.data() + at, end, number);
    if (status == std::errc::result_out_of_range || number > kMostWidth) {
      bad_form(form, value, "a width or precision above 10000");
    }
    at = static_cast<std::size_t>(stop - form.data());
  };
  read_number();
  if (at < form.size() && form[at] == '.') {
    ++at;
    out.has_precision = true;
    read_number();
  }
  if (at < form.size()) out.type = form[at++];
  if (at != form.size()) bad_form(form, value, "it is not [align][sign][width][.precision][type]");
  return out;
}

template <class T>
std::string apply(std::string_view form, const Value& value, const T& what) {
  try {
    return fmt::format(fmt::runtime(tl::join("{:", form, "}")), what);
  } catch (const fmt::format_error& error) {
    bad_form(form, value, error.what());
  }
}

}  // namespace

std::string formatted(const Value& value, std::string_view form) {
  if (form.empty()) return text(value);
  const Form read = read_form(form, value);
  // Forms of numbers show the number in a tensor of one element; others pad what print shows.
  const bool wants_number = read.has_precision || (read.type != 0 && read.type != 's');
  if (wants_number && value.is(Kind::Tensor) && value.tensor().count() == 1) {
    const Value item = from_tensor_item(value.tensor());
    return formatted(item.is(Kind::Bool) ? Value(item.integer()) : item, form);
  }
  const bool is_float_form = std::string_view("aAeEfFgG").find(read.type) != std::string_view::npos;
  if (value.is_number()) {
    if (read.type != 0 && is_float_form) return apply(form, value, value.number());
    if (read.type != 0) {
      if (value.is(Kind::Int)) return apply(form, value, value.integer());
      return apply(form, value, value.real());
    }
    // So many digits after the point.
    if (read.has_precision) return apply(tl::join(form, 'f'), value, value.number());
    if (value.is(Kind::Int)) return apply(form, value, value.integer());
    // As print shows it, at the right as numbers are, with a sign where one is asked for.
    const bool has_flags =
        form.find_first_of("+#") != std::string_view::npos || (!read.has_align && form[0] == '0');
    if (has_flags) return apply(form, value, value.real());
    return apply(read.has_align ? std::string(form) : tl::join('>', form), value, text(value));
  }
  return apply(form, value, text(value));
}

namespace {

const Value* find_named(std::string_view name, std::span<const Value> values) {
  const Value key{name};
  for (const Value& each : values) {
    if (!each.is(Kind::Map)) continue;
    if (const Value* found = each.as<MapObject>().find(key)) return found;
  }
  return nullptr;
}

}  // namespace

std::string format_text(std::string_view form, std::span<const Value> values) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < form.size();) {
    const char c = form[at];
    if ((c == '{' || c == '}') && at + 1 < form.size() && form[at + 1] == c) {
      out += c;
      at += 2;
      continue;
    }
    if (c == '}') throw invalid_operation("format(): a '}' without '{'; '}}' is one in the text");
    if (c != '{') {
      out += c;
      ++at;
      continue;
    }
    const std::size_t end = form.find('}', at);
    if (end == std::string_view::npos) throw invalid_operation("format(): a '{' without '}'");
    const std::string_view inside = form.substr(at + 1, end - at - 1);
    const std::size_t colon = std::min(inside.find(':'), inside.size());
    const std::string_view name = inside.substr(0, colon);
    const std::string_view how = colon < inside.size() ? inside.substr(colon + 1) : "";
    const Value* value = nullptr;
    std::size_t number = next;
    const auto [stop, status] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool is_number = status == std::errc{} && stop == name.data() + name.size();
    if (name.empty() || is_number) {
      if (name.empty()) number = next++;
      if (number < values.size()) value = &values[number];
      if (value == nullptr) throw invalid_operation("Not enough arguments for format string");
    } else {
      value = find_named(name, values);
      if (value == nullptr) {
        throw invalid_operation("format(): no map among the values has the key '", name, "'");
      }
    }
    out += formatted(*value, how);
    at = end + 1;
  }
  return out;
}

}  // namespace tl::lang
