#include "lang/builtins/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <system_error>

#include "lang/builtins/library.h"
#include "lang/operators.h"
#include "lang/utf8.h"
#include "tl/ops/join.h"

namespace tl::lang {

namespace {

// Of a character of that many bytes.
std::uint32_t code_point(std::string_view character) noexcept {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i]));
  };
  switch (character.size()) {
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    case 4:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
    default:
      return byte(0);
  }
}

void add_code_point(std::string& out, std::uint32_t c) {
  const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | c >> 6);
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

// The bytes before the character at a place; text.size() beyond the end.
std::size_t byte_place(std::string_view text, std::int64_t place) noexcept {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < place && at < text.size(); ++i) {
    at += utf8_length(text, at);
  }
  return at;
}

constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";

std::string_view trimmed(std::string_view text, std::string_view of) {
  const std::size_t first = text.find_first_not_of(of);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(of) - first + 1);
}

// ---- letters: Latin, Greek and Cyrillic, where the two cases lie at a fixed distance

struct CaseRange {
  std::uint32_t first, last;  // small letters
  std::uint32_t distance;     // back to the capital; 1: capital and small letter alternate
};
constexpr CaseRange kCases[] = {{'a', 'z', 32},     {0xE0, 0xF6, 32},   {0xF8, 0xFE, 32},
                                {0x101, 0x12F, 1},  {0x133, 0x137, 1},  {0x13A, 0x148, 1},
                                {0x14B, 0x177, 1},  {0x17A, 0x17E, 1},  {0x3B1, 0x3C1, 32},
                                {0x3C3, 0x3C9, 32}, {0x430, 0x44F, 32}, {0x450, 0x45F, 80}};

// The other case of a letter that is so many before the first or last small one of a range.
std::uint32_t moved(std::uint32_t c, std::uint32_t before, bool up) {
  for (const CaseRange& range : kCases) {
    const std::uint32_t first = range.first - before * range.distance;
    if (c < first || c > range.last - before * range.distance) continue;
    if (range.distance == 1 && (c - first) % 2 == 1) return c;  // it has that case already
    return up ? c - range.distance : c + range.distance;
  }
  return c;
}

std::uint32_t capital(std::uint32_t c) { return moved(c, 0, true); }
std::uint32_t small(std::uint32_t c) { return moved(c, 1, false); }

template <std::uint32_t (*kChange)(std::uint32_t)>
Value call_case(Context&, Args& args) {
  std::string out;
  for (const std::string_view each : utf8_characters(args.string(0))) {
    const std::uint32_t before = code_point(each);
    const std::uint32_t after =
        each.size() == 1 && before >= 0x80 ? before : kChange(before);  // no character: as it is
    if (after == before) {
      out += each;
    } else {
      add_code_point(out, after);
    }
  }
  return out;
}

// ---- numbers

[[noreturn]] void not_a_number(std::string_view who, std::string_view what, std::string_view text) {
  throw invalid_operation(who, "(): ", quoted(Value(text)), " is not ", what);
}

std::int64_t read_integer(std::string_view who, std::string_view text, int base) {
  std::string_view digits = trimmed(text, kWhiteSpace);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (status != std::errc{} || end != digits.data() + digits.size()) {
    not_a_number(who, "an integer", text);
  }
  return value;
}

double read_float(std::string_view who, std::string_view text) {
  std::string_view digits = trimmed(text, kWhiteSpace);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if ((status != std::errc{} && status != std::errc::result_out_of_range) ||
      end != digits.data() + digits.size()) {
    not_a_number(who, "a number", text);
  }
  // The nearest that there is: infinity, or zero.
  if (status == std::errc::result_out_of_range) {
    return std::strtod(std::string(digits).c_str(), nullptr);
  }
  return value;
}

Value call_parse_int(Context&, Args& args) {
  const std::int64_t base = args.integer(1);
  if (base < 2 || base > 36) args.bad_value(1, "a base from 2 to 36");
  return read_integer(args.name(), args.string(0), static_cast<int>(base));
}
Value call_parse_float(Context&, Args& args) { return read_float(args.name(), args.string(0)); }

// A cast that names the function where it cannot be done.
Value number_of(const Args& args, bool to_integer) {
  const Value& x = args[0];
  if (x.is(Kind::Tensor) && x.tensor().count() != 1) {
    throw type_error(args.name(), "() expects a tensor of one element, got one of shape ",
                     bracketed(x.tensor().shape()));
  }
  return cast(x, to_integer);
}

Value call_to_int(Context&, Args& args) {
  if (!args[0].is(Kind::String)) return number_of(args, true);
  // "3.7" is a number too.
  const std::string& text = args.string(0);
  if (text.find_first_of(".eE") == std::string::npos) return read_integer(args.name(), text, 10);
  return cast(Value(read_float(args.name(), text)), true);
}

Value call_to_float(Context&, Args& args) {
  if (args[0].is(Kind::String)) return read_float(args.name(), args.string(0));
  return number_of(args, false);
}

Value call_ord(Context&, Args& args) {
  if (count_characters(args.string(0)) != 1) args.bad_value(0, "a text of one character");
  return std::int64_t{code_point(args.string(0))};
}

Value call_chr(Context&, Args& args) {
  const std::int64_t code = args.integer(0);
  if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    args.bad_value(0, "a code point");
  }
  std::string out;
  add_code_point(out, static_cast<std::uint32_t>(code));
  return out;
}

// ---- parts

Value call_join(Context& context, Args& args) {
  // join(list, separator) and separator.join(list)
  const bool swapped = args[0].is(Kind::String) && args.has(1) && !args[1].is(Kind::String);
  const std::size_t list = swapped ? 1 : 0, between = swapped ? 0 : 1;
  std::string out;
  bool is_first = true;
  for (const Value& each : elements(context, args[list])) {
    if (!is_first && args.has(between)) out += args.string(between);
    out += text(each);
    is_first = false;
  }
  return out;
}

Value call_replace(Context&, Args& args) {
  const std::string& from = args.string(1);
  if (from.empty()) args.bad_value(1, "a text that is not empty");
  std::string out;
  const std::string_view all = args.string(0);
  for (std::size_t at = 0;;) {
    const std::size_t next = all.find(from, at);
    out += all.substr(at, next - at);
    if (next == std::string_view::npos) return out;
    out += args.string(2);
    at = next + from.size();
  }
}

Value call_trim(Context&, Args& args) {
  return trimmed(args.string(0), args.has(1) ? std::string_view(args.string(1)) : kWhiteSpace);
}
Value call_starts_with(Context&, Args& args) { return args.string(0).starts_with(args.string(1)); }
Value call_ends_with(Context&, Args& args) { return args.string(0).ends_with(args.string(1)); }
Value call_find(Context&, Args& args) {
  return find_text(args.string(0), args.string(1), args.integer(2));
}

constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;  // of a text that repeat() makes

Value call_repeat(Context& context, Args& args) {
  if (args[0].is_tensor()) return tl::repeat(args.tensor(context, 0), args.dims(1));
  const std::int64_t times = std::max<std::int64_t>(args.integer(1), 0);
  if (args[0].is(Kind::String)) {
    const std::string& once = args.string(0);
    if (!once.empty() && times > kMostBytes / static_cast<std::int64_t>(once.size())) {
      throw invalid_operation("repeat(): ", once.size(), " bytes ", times, " times are too many");
    }
    std::string out;
    for (std::int64_t i = 0; i < times; ++i) out += once;
    return out;
  }
  const std::vector<Value> once = elements(context, args[0]);
  if (!once.empty() && times > kMostBytes / static_cast<std::int64_t>(16 * once.size())) {
    throw invalid_operation("repeat(): ", once.size(), " elements ", times, " times are too many");
  }
  std::vector<Value> out;
  for (std::int64_t i = 0; i < times; ++i) out.insert(out.end(), once.begin(), once.end());
  return list_of(std::move(out));
}

Value call_chars(Context&, Args& args) {
  std::vector<Value> out;
  for (const std::string_view each : utf8_characters(args.string(0))) out.emplace_back(each);
  return list_of(std::move(out));
}

Value call_lines(Context&, Args& args) { return list_of_texts(split_lines(args.string(0))); }

Value call_length(Context&, Args& args) { return count_characters(args.string(0)); }

Value call_substring(Context&, Args& args) {
  const std::int64_t start = args.integer(1), count = args.integer(2);
  if (start < 0) args.bad_value(1, "a place from 0");
  if (count < 0) args.bad_value(2, "a number of characters");
  return substring(args.string(0), start, count);
}

Value call_format(Context&, Args& args) { return format_text(args.string(0), args.from(1)); }
Value call_str(Context&, Args& args) { return text(args[0]); }

}  // namespace

std::int64_t count_characters(std::string_view text) noexcept {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += utf8_length(text, at);
  return count;
}

std::string substring(std::string_view text, std::int64_t start, std::int64_t count) {
  text.remove_prefix(byte_place(text, start));
  return std::string(text.substr(0, byte_place(text, count)));
}

std::int64_t find_text(std::string_view text, std::string_view part, std::int64_t from) {
  if (from < 0) from = std::max<std::int64_t>(0, from + count_characters(text));
  const std::size_t at = text.find(part, byte_place(text, from));
  return at == std::string_view::npos ? -1 : count_characters(text.substr(0, at));
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.emplace_back(line);
    at = end + 1;
  }
  return out;
}

Value split_text(const Args& args) {
  std::string_view rest = args.string(0);
  std::int64_t most = args.has(2) ? args.integer(2) : -1;  // cuts; all of them
  std::vector<Value> out;
  if (!args.has(1)) {
    for (;;) {
      const std::size_t start = rest.find_first_not_of(kWhiteSpace);
      if (start == std::string_view::npos) return list_of(std::move(out));
      rest.remove_prefix(start);
      const std::size_t end = most-- == 0 ? rest.size() : rest.find_first_of(kWhiteSpace);
      out.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end, rest.size()));
    }
  }
  const std::string& separator = args.string(1);
  if (separator.empty()) args.bad_value(1, "a separator that is not empty");
  while (most-- != 0) {
    const std::size_t at = rest.find(separator);
    if (at == std::string_view::npos) break;
    out.emplace_back(rest.substr(0, at));
    rest.remove_prefix(at + separator.size());
  }
  out.emplace_back(rest);
  return list_of(std::move(out));
}

BuiltinRows text_builtins() {
  static const Builtin rows[] = {
      {"join", "text", "(list, separator = none)",
       "The texts of a list one after another, with a separator between them.", call_join},
      {"replace", "text", "(text, from, to)", "The text with every `from` as `to`.", call_replace},
      {"upper", "text", "(text)", "The text in capital letters (Latin, Greek, Cyrillic).",
       call_case<capital>},
      {"lower", "text", "(text)", "The text in small letters (Latin, Greek, Cyrillic).",
       call_case<small>},
      {"trim", "text", "(text, bytes = none)",
       "The text without white space, or the given characters, at both ends.", call_trim},
      {"starts_with", "text", "(text, part)", "Whether the text begins with the part.",
       call_starts_with},
      {"ends_with", "text", "(text, part)", "Whether the text ends with the part.", call_ends_with},
      {"find", "text", "(text, part, start = 0)",
       "The place of the part from a place on, in characters; -1 when it is not there.", call_find},
      {"repeat", "text", "(x, times)",
       "A text or a list so many times; a tensor so many times along each dimension.", call_repeat},
      {"chars", "text", "(text)", "The characters as a list of texts.", call_chars},
      {"lines", "text", "(text)", "The lines as a list of texts, without their ends.", call_lines},
      {"string_length", "text", "(text)", "How many characters the text has.", call_length},
      {"string_substring", "text", "(text, start, count)",
       "So many characters from the one at a place.", call_substring},
      {"format", "text", "(form, ...values)",
       "The form with values at {}, {0}, {name} of a map, {:.3f} and {:>8}; {{ is a brace.",
       call_format},
      {"str", "text", "(x)", "The text of a value, as print shows it.", call_str},
      {"parse_int", "text", "(text, base = 10)", "The integer that the text is.", call_parse_int},
      {"parse_float", "text", "(text)", "The number that the text is.", call_parse_float},
      {"to_int", "text", "(x)",
       "A number, truth value, text or tensor of one element as an integer; fractions are cut off.",
       call_to_int},
      {"to_float", "text", "(x)",
       "A number, truth value, text or tensor of one element as a float.", call_to_float},
      {"ord", "text", "(text)", "The code point of the one character.", call_ord},
      {"chr", "text", "(code)", "The character of a code point.", call_chr},
  };
  return rows;
}

}  // namespace tl::lang
