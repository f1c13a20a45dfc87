// Texts with values put into them: "%s: %d" % values and "{}: {name}".format(values).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "model/jinja/evaluate.h"
#include "model/jinja/text.h"

namespace tl::jinja {

namespace {

constexpr int kWidest = 10'000;

// How one value is written: [fill][align][sign][#][0][width][,][.precision][type], in either
// language.
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  bool plus = false, space = false, thousands = false;
  int width = 0, precision = -1;
  char type = 0;
};

int read_number(std::string_view& text) {
  int value = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    value = 10 * value + (text[0] - '0');
    if (value > kWidest) fail("a field of more than ", kWidest, " characters is too wide");
    text.remove_prefix(1);
  }
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

void add_thousands(std::string& digits) {
  const std::size_t start = digits.starts_with('-') || digits.starts_with('+') ? 1 : 0;
  const std::size_t end = std::min(digits.find('.'), digits.size());
  for (std::size_t at = end; at > start + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
}

std::string number_text(const Spec& spec, const Value& value) {
  if (!value.is_number())
    fail("the format '", spec.type, "' needs a number, not a ", type_name(value));
  char text[512];
  const char type = spec.type;
  const int precision = spec.precision < 0 ? 6 : std::min(spec.precision, 100);
  if (type == 'd' || type == 'i' || type == 'x' || type == 'X' || type == 'o') {
    if (!std::isfinite(value.real())) fail("the format '", type, "' needs a whole number");
    const auto whole = value.is_whole()
                           ? value.integer()
                           : static_cast<std::int64_t>(std::clamp(value.real(), -9e18, 9e18));
    const unsigned long long size = whole < 0 ? 0ULL - static_cast<unsigned long long>(whole)
                                              : static_cast<unsigned long long>(whole);
    const char* form = type == 'x' ? "%llx" : type == 'X' ? "%llX" : type == 'o' ? "%llo" : "%llu";
    std::snprintf(text, sizeof text, form, size);  // NOLINT(clang-diagnostic-format-nonliteral)
    return (whole < 0 ? "-" : "") + std::string(text);
  }
  const double real = type == '%' ? 100 * value.real() : value.real();
  const char* form = type == 'e'   ? "%.*e"
                     : type == 'E' ? "%.*E"
                     : type == 'g' ? "%.*g"
                     : type == 'G' ? "%.*G"
                                   : "%.*f";
  std::snprintf(text, sizeof text, form, precision,
                real);  // NOLINT(clang-diagnostic-format-nonliteral)
  return type == '%' ? std::string(text) + '%' : std::string(text);
}

void append_padded(Evaluator& evaluator, std::string& out, const Spec& spec, std::string text,
                   bool is_number) {
  const std::size_t length = count_characters(text);
  const std::size_t missing = static_cast<std::size_t>(spec.width) > length
                                  ? static_cast<std::size_t>(spec.width) - length
                                  : 0;
  evaluator.budget().take(text.size() + missing * spec.fill.size());
  const char align = spec.align != 0 ? spec.align : is_number ? '>' : '<';
  std::size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  if (align == '=' && (text.starts_with('-') || text.starts_with('+'))) {
    out += text[0];
    text.erase(0, 1);
  }
  for (std::size_t i = 0; i < left; ++i) out += spec.fill;
  out += text;
  for (std::size_t i = left; i < missing; ++i) out += spec.fill;
}

bool is_number_type(char type) {
  return type != 0 && std::string_view("dixXofFeEgG%").find(type) != std::string_view::npos;
}

void append_formatted(Evaluator& evaluator, std::string& out, const Spec& spec,
                      const Value& value) {
  std::string text;
  const bool is_number =
      is_number_type(spec.type) || (spec.type == 0 && value.is_number() && !value.is(Kind::Bool));
  if (is_number_type(spec.type)) {
    text = number_text(spec, value);
  } else if (is_number && value.is(Kind::Float) && spec.precision >= 0) {
    Spec general = spec;
    general.type = 'g';
    text = number_text(general, value);
  } else {
    if (spec.type == 'r') {
      append_repr(evaluator.budget(), text, value);
    } else {
      append_text(evaluator.budget(), text, value);
    }
    if (spec.precision >= 0 && !is_number)
      text.resize(character_offset(text, static_cast<std::size_t>(spec.precision)));
  }
  if (is_number && (text.empty() || text[0] != '-')) {
    if (spec.plus) text.insert(0, "+");
    if (spec.space && !spec.plus) text.insert(0, " ");
  }
  if (spec.thousands) add_thousands(text);
  append_padded(evaluator, out, spec, std::move(text), is_number);
}

Spec brace_spec(std::string_view text) {
  Spec spec;
  const std::string_view all = text;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length < text.size() && is_align(text[length])) {
      spec.fill = text.substr(0, length);
      spec.align = text[length];
      text.remove_prefix(length + 1);
    } else if (is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  if (take(text, '+')) spec.plus = true;
  if (take(text, '-')) spec.plus = false;
  if (take(text, ' ')) spec.space = true;
  if (take(text, '0') && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = read_number(text);
  if (take(text, ',')) spec.thousands = true;
  if (take(text, '.')) spec.precision = read_number(text);
  if (text.size() == 1 && (text[0] == 's' || (text[0] != 'i' && is_number_type(text[0])))) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty())
    throw Error(ErrorKind::Unsupported, "template", "the format '", all, "' is not known");
  return spec;
}

// The value a field names: {}, {0}, {name}, and {name.attribute} or {name[key]} of it.
Value field_value(Evaluator& evaluator, std::string_view field, const Arguments& arguments,
                  std::size_t& next) {
  const std::size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string_view first = field.substr(0, end);
  Value value;
  const bool is_index = !first.empty() && first.size() < 10 &&
                        first.find_first_not_of("0123456789") == std::string_view::npos;
  if (first.empty() || is_index) {
    const std::size_t index =
        is_index ? static_cast<std::size_t>(std::stoul(std::string(first))) : next++;
    if (index >= arguments.values.size()) fail("'format' has no value for field ", index);
    value = arguments.values[index];
  } else {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& each) { return each.first == first; });
    if (found == arguments.named.end()) fail("'format' has no value named '", first, "'");
    value = found->second;
  }
  std::string_view rest = field.substr(end);
  while (!rest.empty()) {
    if (take(rest, '.')) {
      const std::size_t stop = std::min(rest.find_first_of(".["), rest.size());
      value = evaluator.attribute(value, rest.substr(0, stop));
      rest.remove_prefix(stop);
    } else {
      const std::size_t stop = rest.find(']');
      if (stop == std::string_view::npos) fail("'format': the field '", field, "' has no ']'");
      const std::string_view key = rest.substr(1, stop - 1);
      const bool is_number = !key.empty() && key.size() < 10 &&
                             key.find_first_not_of("0123456789") == std::string_view::npos;
      value = evaluator.item(
          value, is_number ? Value(std::int64_t{std::stol(std::string(key))}) : Value(key));
      rest.remove_prefix(stop + 1);
    }
  }
  return value;
}

}  // namespace

Value brace_format(Evaluator& evaluator, std::string_view format, const Arguments& arguments) {
  std::string out;
  std::size_t next = 0;
  while (!format.empty()) {
    const std::size_t brace = std::min(format.find_first_of("{}"), format.size());
    append_text(evaluator.budget(), out, Value(format.substr(0, brace)));
    format.remove_prefix(brace);
    if (format.empty()) break;
    if (format.size() > 1 && format[1] == format[0]) {
      out += format[0];
      format.remove_prefix(2);
      continue;
    }
    const std::size_t end = format.find('}');
    if (format[0] == '}' || end == std::string_view::npos) fail("'format': a brace has no other");
    std::string_view field = format.substr(1, end - 1);
    format.remove_prefix(end + 1);
    const std::size_t colon = std::min(field.find(':'), field.size());
    Spec spec = brace_spec(colon < field.size() ? field.substr(colon + 1) : "");
    field = field.substr(0, colon);
    if (field.ends_with("!r") || field.ends_with("!s")) {
      if (field.ends_with("!r")) spec.type = 'r';
      field.remove_suffix(2);
    }
    append_formatted(evaluator, out, spec, field_value(evaluator, field, arguments, next));
  }
  return evaluator.heap().string(out);
}

Value percent_format(Evaluator& evaluator, std::string_view format, const Value& values) {
  std::string out;
  std::size_t next = 0;
  const std::vector<Value> items =
      values.is(Kind::Tuple) ? items_of(evaluator.heap(), values) : std::vector<Value>{values};
  while (!format.empty()) {
    const std::size_t percent = std::min(format.find('%'), format.size());
    append_text(evaluator.budget(), out, Value(format.substr(0, percent)));
    format.remove_prefix(percent);
    if (format.empty()) break;
    format.remove_prefix(1);
    if (take(format, '%')) {
      out += '%';
      continue;
    }
    std::optional<Value> named;
    if (take(format, '(')) {
      const std::size_t end = format.find(')');
      if (end == std::string_view::npos) fail("'%(' has no ')'");
      named = evaluator.item(values, Value(format.substr(0, end)));
      format.remove_prefix(end + 1);
    }
    Spec spec;
    spec.align = '>';
    for (bool more = true; more && !format.empty();) {
      more = false;
      if (take(format, '-')) spec.align = '<', spec.fill = " ", more = true;
      if (take(format, '+')) spec.plus = more = true;
      if (take(format, ' ')) spec.space = more = true;
      if (take(format, '0')) {
        if (spec.align != '<') spec.align = '=', spec.fill = "0";
        more = true;
      }
    }
    spec.width = read_number(format);
    if (take(format, '.')) spec.precision = read_number(format);
    if (format.empty() || (format[0] != 's' && format[0] != 'r' && !is_number_type(format[0]))) {
      throw Error(ErrorKind::Unsupported, "template", "the format '%", format.substr(0, 1),
                  "' is not known");
    }
    spec.type = format[0];
    if (!is_number_type(spec.type)) spec.fill = " ", spec.align = spec.align == '<' ? '<' : '>';
    format.remove_prefix(1);
    if (!named && next >= items.size()) fail("there are more '%' than values");
    append_formatted(evaluator, out, spec, named ? *named : items[next++]);
  }
  if (next < items.size() && !values.is_dict()) fail("there are more values than '%'");
  return evaluator.heap().string(out);
}

}  // namespace tl::jinja
