// Filters of texts.
#include <algorithm>

#include "model/jinja/evaluate.h"
#include "model/jinja/filters.h"
#include "model/jinja/text.h"
#include "model/tokenizer_utf8.h"

namespace tl::jinja {

namespace {

Value string_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("string", arguments, {});
  return Value(evaluator.text(value));
}

Value trim_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"});
  const std::string_view text = evaluator.text(value);
  evaluator.budget().look_at(text.size());
  if (!bound.has(0) || bound.required(0).is_none()) return Value(strip(text, Side::Both));
  return Value(strip(text, Side::Both, bound.string(0, "")));
}

Value upper_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("upper", arguments, {});
  return evaluator.heap().string(upper(evaluator.text(value)));
}
Value lower_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("lower", arguments, {});
  return evaluator.heap().string(lower(evaluator.text(value)));
}
Value capitalize_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("capitalize", arguments, {});
  return evaluator.heap().string(capitalize(evaluator.text(value)));
}

// Large letters begin words, which begin after white space, brackets and hyphens.
Value title_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("title", arguments, {});
  std::string out;
  bool begins = true;
  for (const std::string_view c : characters(evaluator.text(value))) {
    const tok::CodePoint point = tok::first_code_point(c);
    const bool separates =
        point.is_valid &&
        (is_space(point.value) || std::string_view("-({[<").find(c) != std::string_view::npos);
    out += begins ? upper(c) : lower(c);
    begins = separates;
  }
  return evaluator.heap().string(out);
}

Value replace_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"});
  const std::string_view old = evaluator.text(bound.required(0)),
                         fresh = evaluator.text(bound.required(1));
  const bool all = !bound.has(2) || bound.required(2).is_none() || bound.integer(2, 0) < 0;
  const std::size_t most =
      all ? std::string_view::npos : static_cast<std::size_t>(bound.integer(2, 0));
  return evaluator.heap().string(
      replace(evaluator.budget(), evaluator.text(value), old, fresh, most));
}

Value indent_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  std::string margin;
  if (bound.has(0) && bound.required(0).is_string()) {
    margin = bound.string(0, "");
  } else {
    const std::int64_t width = bound.integer(0, 4);
    if (width > 10'000) fail("'indent': a width of ", width, " is too much");
    margin.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
  }
  if (!value.is_string()) fail("'indent' needs a text, not a ", type_name(value));
  std::string text(value.string());
  text += '\n';  // so that a last line that is empty counts
  evaluator.budget().look_at(text.size());
  const bool blank = bound.truth(2, false);
  std::string out;
  bool first = true;
  for (const std::string_view line : split_lines(text)) {
    evaluator.budget().take(1 + margin.size() + line.size());
    if (!first) out += '\n';
    if (first ? bound.truth(1, false) : blank || !line.empty()) out += margin;
    out += line;
    first = false;
  }
  return evaluator.heap().string(out);
}

Value safe_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("safe", arguments, {});
  return Value(evaluator.text(value));
}

Value escape_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("escape", arguments, {});
  std::string out;
  for (const char c : evaluator.text(value)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return evaluator.heap().string(out);
}

Value center_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("center", arguments, {"width"});
  const Value text(evaluator.text(value));
  return evaluator.call(evaluator.attribute(text, "center"), {{Value(bound.integer(0, 80))}, {}});
}

Value format_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  if (!arguments.named.empty()) fail("'format' with named values is not known");
  return percent_format(evaluator, evaluator.text(value),
                        evaluator.heap().list(arguments.values, true));
}

Value wordcount_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("wordcount", arguments, {});
  std::int64_t count = 0;
  bool in_word = false;
  for (const std::string_view c : characters(evaluator.text(value))) {
    const tok::CodePoint point = tok::first_code_point(c);
    const bool is_part =
        is_letter(point.value) || (point.value >= '0' && point.value <= '9') || c == "_";
    if (is_part && !in_word) ++count;
    in_word = is_part;
  }
  return Value(count);
}

Value urlencode_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("urlencode", arguments, {});
  if (value.is_list() || value.is_dict())
    fail("'urlencode' needs a text, not a ", type_name(value));
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : evaluator.text(value)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (is_letter(byte) || (c >= '0' && c <= '9') ||
                                       std::string_view("_.-~/").find(c) != std::string_view::npos);
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return evaluator.heap().string(out);
}

Value truncate_filter(Evaluator& evaluator, const Value& value, const Arguments& arguments) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (!value.is_string()) fail("'truncate' needs a text, not a ", type_name(value));
  const std::string_view text = value.string(), end = bound.string(2, "...");
  const std::int64_t length = bound.integer(0, 255), leeway = bound.integer(3, 5);
  const auto kept = length - static_cast<std::int64_t>(count_characters(end));
  if (kept < 0 || leeway < 0)
    fail("'truncate': a length of ", length, " has no room for '", end, "'");
  evaluator.budget().look_at(text.size());
  if (static_cast<std::int64_t>(count_characters(text)) <= length + leeway) return Value(text);
  std::string_view cut = text.substr(0, character_offset(text, static_cast<std::size_t>(kept)));
  if (!bound.truth(1, false)) cut = cut.substr(0, cut.rfind(' '));
  return evaluator.heap().string(std::string(cut) + std::string(end));
}

constexpr FilterRow kFilters[] = {{"capitalize", capitalize_filter},
                                  {"center", center_filter},
                                  {"e", escape_filter},
                                  {"escape", escape_filter},
                                  {"forceescape", escape_filter},
                                  {"format", format_filter},
                                  {"indent", indent_filter},
                                  {"lower", lower_filter},
                                  {"replace", replace_filter},
                                  {"safe", safe_filter},
                                  {"string", string_filter},
                                  {"title", title_filter},
                                  {"trim", trim_filter},
                                  {"truncate", truncate_filter},
                                  {"upper", upper_filter},
                                  {"urlencode", urlencode_filter},
                                  {"wordcount", wordcount_filter}};

}  // namespace

std::span<const FilterRow> text_filters() noexcept { return kFilters; }

}  // namespace tl::jinja
