// Methods of texts, lists, dicts and loops, as Python has them.
#include <algorithm>
#include <span>
#include <utility>

#include "model/jinja/evaluate.h"
#include "model/jinja/text.h"
#include "model/tokenizer_utf8.h"

namespace tl::jinja {

namespace {

using Body = Value (*)(Evaluator& evaluator, const Value& self, const Arguments& arguments);

struct Row {
  std::string_view name;
  Body body;
};

class Method final : public Function {
 public:
  Method(const Row& row, const Value& self) : row_(row), self_(self) {}
  Value call(Evaluator& evaluator, const Arguments& arguments) override {
    return row_.body(evaluator, self_, arguments);
  }
  std::string_view name() const override { return row_.name; }

 private:
  const Row& row_;
  Value self_;
};

Value number(std::size_t value) { return Value(static_cast<std::int64_t>(value)); }

// ---- texts

template <Side side>
Value strip_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("strip", arguments, {"chars"});
  evaluator.budget().look_at(self.string().size());
  if (!bound.has(0) || bound.required(0).is_none()) return Value(strip(self.string(), side));
  return Value(strip(self.string(), side, bound.string(0, "")));
}

Value upper_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("upper", arguments, {});
  return evaluator.heap().string(upper(self.string()));
}
Value lower_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("lower", arguments, {});
  return evaluator.heap().string(lower(self.string()));
}
Value capitalize_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("capitalize", arguments, {});
  return evaluator.heap().string(capitalize(self.string()));
}

// Each letter that follows no letter is large.
Value title_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("title", arguments, {});
  std::string out;
  bool after_letter = false;
  for (const std::string_view c : characters(self.string())) {
    const tok::CodePoint point = tok::first_code_point(c);
    if (!point.is_valid) {
      out += c;
      continue;
    }
    tok::append_utf8(out, after_letter ? lower(point.value) : upper(point.value));
    after_letter = is_letter(point.value);
  }
  return evaluator.heap().string(out);
}

// startswith and endswith take one text or a tuple of them, and a start in the text.
template <bool at_end>
Value affix_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound(at_end ? "endswith" : "startswith", arguments, {"affix"});
  const auto has = [&](const Value& affix) {
    if (!affix.is_string())
      fail(at_end ? "'endswith'" : "'startswith'", " needs a text, not a ", type_name(affix));
    evaluator.budget().look_at(affix.string().size());
    return at_end ? self.string().ends_with(affix.string())
                  : self.string().starts_with(affix.string());
  };
  const Value& affix = bound.required(0);
  if (!affix.is(Kind::Tuple)) return Value(has(affix));
  return Value(std::any_of(affix.list().items.begin(), affix.list().items.end(), has));
}

template <bool at_end>
Value remove_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound(at_end ? "removesuffix" : "removeprefix", arguments, {"affix"});
  bound.required(0);
  const std::string_view text = self.string(), affix = bound.string(0, "");
  evaluator.budget().look_at(affix.size());
  if (at_end ? !text.ends_with(affix) : !text.starts_with(affix)) return self;
  return Value(at_end ? text.substr(0, text.size() - affix.size()) : text.substr(affix.size()));
}

Value replace_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"});
  bound.required(1);
  const std::int64_t count = bound.integer(2, -1);
  const std::size_t most = count < 0 ? std::string_view::npos : static_cast<std::size_t>(count);
  return evaluator.heap().string(
      replace(evaluator.budget(), self.string(), bound.string(0, ""), bound.string(1, ""), most));
}

Value texts(Evaluator& evaluator, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  for (const std::string_view each : parts) items.emplace_back(each);
  return evaluator.heap().list(std::move(items));
}

// Words with any white space between; `most` cuts.
std::vector<std::string_view> split_words(std::string_view text, std::size_t most, bool from_end) {
  std::vector<std::string_view> out;
  text = strip(text, Side::Both);
  const auto is_blank = [&](std::size_t at, std::size_t& length) {
    const tok::CodePoint point = tok::first_code_point(text.substr(at));
    length = point.length;
    return point.is_valid && is_space(point.value);
  };
  std::vector<std::pair<std::size_t, std::size_t>> words;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    while (at < text.size() && is_blank(at, length)) at += length;
    const std::size_t start = at;
    while (at < text.size() && !is_blank(at, length)) at += length;
    if (at > start) words.emplace_back(start, at);
  }
  const std::size_t count = words.size();
  if (count == 0) return out;
  const std::size_t cuts = std::min(most, count - 1);
  if (from_end) {
    out.push_back(text.substr(0, words[count - 1 - cuts].second));
    for (std::size_t i = count - cuts; i < count; ++i) {
      out.push_back(text.substr(words[i].first, words[i].second - words[i].first));
    }
  } else {
    for (std::size_t i = 0; i < cuts; ++i) {
      out.push_back(text.substr(words[i].first, words[i].second - words[i].first));
    }
    out.push_back(text.substr(words[cuts].first));
  }
  return out;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::size_t most, bool from_end) {
  std::vector<std::string_view> out;
  while (out.size() < most) {
    const std::size_t found = from_end ? text.rfind(separator) : text.find(separator);
    if (found == std::string_view::npos) break;
    if (from_end) {
      out.push_back(text.substr(found + separator.size()));
      text = text.substr(0, found);
    } else {
      out.push_back(text.substr(0, found));
      text.remove_prefix(found + separator.size());
    }
  }
  out.push_back(text);
  if (from_end) std::reverse(out.begin(), out.end());
  return out;
}

template <bool from_end>
Value split_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("split", arguments, {"sep", "maxsplit"});
  const std::int64_t count = bound.integer(1, -1);
  const std::size_t most = count < 0 ? std::string_view::npos : static_cast<std::size_t>(count);
  evaluator.budget().look_at(self.string().size());
  if (!bound.has(0) || bound.required(0).is_none()) {
    return texts(evaluator, split_words(self.string(), most, from_end));
  }
  const std::string_view separator = bound.string(0, "");
  if (separator.empty()) fail("'split' needs a separator that is not empty");
  return texts(evaluator, split_at(self.string(), separator, most, from_end));
}

Value splitlines_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("splitlines", arguments, {});
  evaluator.budget().look_at(self.string().size());
  return texts(evaluator, split_lines(self.string()));
}

template <bool from_end>
Value partition_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("partition", arguments, {"sep"});
  bound.required(0);
  const std::string_view text = self.string(), separator = bound.string(0, "");
  if (separator.empty()) fail("'partition' needs a separator that is not empty");
  evaluator.budget().look_at(text.size());
  const std::size_t found = from_end ? text.rfind(separator) : text.find(separator);
  std::vector<Value> parts;
  if (found != std::string_view::npos) {
    parts = {Value(text.substr(0, found)), Value(separator),
             Value(text.substr(found + separator.size()))};
  } else if (from_end) {
    parts = {Value(""), Value(""), self};
  } else {
    parts = {self, Value(""), Value("")};
  }
  return evaluator.heap().list(std::move(parts), true);
}

template <bool from_end>
Value find_text_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("find", arguments, {"sub"});
  bound.required(0);
  evaluator.budget().look_at(self.string().size());
  const std::string_view part = bound.string(0, "");
  const std::size_t found = from_end ? self.string().rfind(part) : self.string().find(part);
  if (found == std::string_view::npos) return Value(std::int64_t{-1});
  return number(count_characters(self.string().substr(0, found)));
}

Value count_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("count", arguments, {"sub"});
  const Value& wanted = bound.required(0);
  if (self.is_list()) {
    std::size_t count = 0;
    for (const Value& each : self.list().items)
      count += equal(evaluator.budget(), each, wanted) ? 1 : 0;
    return number(count);
  }
  const std::string_view text = self.string(), part = bound.string(0, "");
  evaluator.budget().look_at(text.size());
  if (part.empty()) return number(count_characters(text) + 1);
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return number(count);
}

Value join_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("join", arguments, {"iterable"});
  std::string out;
  bool first = true;
  for (const Value& each : items_of(evaluator.heap(), bound.required(0))) {
    if (!each.is_string()) fail("'join' needs texts, not a ", type_name(each));
    if (!std::exchange(first, false)) append_text(evaluator.budget(), out, self);
    append_text(evaluator.budget(), out, each);
  }
  return evaluator.heap().string(out);
}

Value format_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  return brace_format(evaluator, self.string(), arguments);
}

// True when the text has a character and all of them are such.
template <class F>
Value all_characters(Evaluator& evaluator, const Value& self, const F& is_such) {
  evaluator.budget().look_at(self.string().size());
  const auto all = characters(self.string());
  return Value(!all.empty() && std::all_of(all.begin(), all.end(), [&](std::string_view c) {
    const tok::CodePoint point = tok::first_code_point(c);
    return point.is_valid && is_such(point.value);
  }));
}

bool is_digit(std::uint32_t c) { return c >= '0' && c <= '9'; }

Value isdigit_method(Evaluator& evaluator, const Value& self, const Arguments&) {
  return all_characters(evaluator, self, is_digit);
}
Value isalpha_method(Evaluator& evaluator, const Value& self, const Arguments&) {
  return all_characters(evaluator, self, is_letter);
}
Value isalnum_method(Evaluator& evaluator, const Value& self, const Arguments&) {
  return all_characters(evaluator, self,
                        [](std::uint32_t c) { return is_letter(c) || is_digit(c); });
}
Value isspace_method(Evaluator& evaluator, const Value& self, const Arguments&) {
  return all_characters(evaluator, self, is_space);
}
// All letters that have a case are large (or small), and there is one.
template <bool large>
Value case_method(Evaluator& evaluator, const Value& self, const Arguments&) {
  evaluator.budget().look_at(self.string().size());
  bool found = false;
  for (const std::string_view c : characters(self.string())) {
    const std::uint32_t point = tok::first_code_point(c).value;
    const bool is_large = lower(point) != point, is_small = upper(point) != point;
    if (large ? is_small : is_large) return Value(false);
    found = found || is_large || is_small;
  }
  return Value(found);
}

// Text in a field: spaces (or what is given) before it, after it, or on both sides.
template <Side side>
Value justify_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("ljust", arguments, {"width", "fillchar"});
  bound.required(0);
  const std::int64_t width = bound.integer(0, 0);
  const std::size_t length = length_of(evaluator.budget(), self);
  if (width <= static_cast<std::int64_t>(length)) return self;
  const std::string_view fill = bound.string(1, " ");
  if (count_characters(fill) != 1) fail("a field is filled with one character");
  const std::size_t missing = static_cast<std::size_t>(width) - length;
  evaluator.budget().take(std::min<std::size_t>(missing, std::size_t{1} << 40) * fill.size());
  // Python's center() puts the odd one to the left when the width is odd.
  const std::size_t left = side == Side::Left ? 0
                           : side == Side::Right
                               ? missing
                               : missing / 2 + (missing & static_cast<std::size_t>(width) & 1);
  std::string out;
  for (std::size_t i = 0; i < left; ++i) out += fill;
  out += self.string();
  for (std::size_t i = left; i < missing; ++i) out += fill;
  return evaluator.heap().string(out);
}

Value zfill_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("zfill", arguments, {"width"});
  bound.required(0);
  const std::size_t length = length_of(evaluator.budget(), self);
  const std::int64_t width = bound.integer(0, 0);
  if (width <= static_cast<std::int64_t>(length)) return self;
  const std::size_t missing = static_cast<std::size_t>(width) - length;
  evaluator.budget().take(missing);
  std::string out(self.string());
  out.insert(out.starts_with('-') || out.starts_with('+') ? 1 : 0, missing, '0');
  return evaluator.heap().string(out);
}

constexpr Row kStringMethods[] = {
    {"capitalize", capitalize_method},
    {"center", justify_method<Side::Both>},
    {"count", count_method},
    {"endswith", affix_method<true>},
    {"find", find_text_method<false>},
    {"format", format_method},
    {"isalnum", isalnum_method},
    {"isalpha", isalpha_method},
    {"isdigit", isdigit_method},
    {"islower", case_method<false>},
    {"isspace", isspace_method},
    {"isupper", case_method<true>},
    {"join", join_method},
    {"ljust", justify_method<Side::Left>},
    {"lower", lower_method},
    {"lstrip", strip_method<Side::Left>},
    {"partition", partition_method<false>},
    {"removeprefix", remove_method<false>},
    {"removesuffix", remove_method<true>},
    {"replace", replace_method},
    {"rfind", find_text_method<true>},
    {"rjust", justify_method<Side::Right>},
    {"rpartition", partition_method<true>},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<Side::Right>},
    {"split", split_method<false>},
    {"splitlines", splitlines_method},
    {"startswith", affix_method<false>},
    {"strip", strip_method<Side::Both>},
    {"title", title_method},
    {"upper", upper_method},
    {"zfill", zfill_method},
};

// ---- dicts

Value get_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("get", arguments, {"key", "default"});
  const Value* found = self.dict().find(evaluator.budget(), bound.required(0));
  return found != nullptr ? *found : bound.value(1, Value::none());
}

Value keys_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("keys", arguments, {});
  return evaluator.heap().list(items_of(evaluator.heap(), self));
}

Value values_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("values", arguments, {});
  std::vector<Value> out;
  for (const Dict::Entry& entry : self.dict().entries) out.push_back(entry.value);
  return evaluator.heap().list(std::move(out));
}

Value items_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("items", arguments, {});
  std::vector<Value> out;
  for (const Dict::Entry& entry : self.dict().entries) {
    out.push_back(evaluator.heap().list({entry.key, entry.value}, true));
  }
  return evaluator.heap().list(std::move(out));
}

Value update_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  if (arguments.values.size() > 1) fail("'update' takes at most one value beside the named ones");
  for (const Value& given : arguments.values) {
    if (!given.is_dict()) fail("'update' needs a dict, not a ", type_name(given));
    const std::vector<Dict::Entry> entries = given.dict().entries;
    for (const Dict::Entry& entry : entries)
      self.dict().set(evaluator.heap(), entry.key, entry.value);
  }
  for (const auto& [name, value] : arguments.named)
    self.dict().set(evaluator.heap(), Value(name), value);
  return Value::none();
}

Value pop_key_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("pop", arguments, {"key", "default"});
  const Value* found = self.dict().find(evaluator.budget(), bound.required(0));
  if (found == nullptr) {
    if (!bound.has(1)) fail("'pop': the dict has no such key");
    return bound.required(1);
  }
  const Value value = *found;
  self.dict().remove(evaluator.heap(), bound.required(0));
  return value;
}

Value copy_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("copy", arguments, {});
  if (self.is_list()) return evaluator.heap().list(items_of(evaluator.heap(), self));
  const Value made = evaluator.heap().dict();
  for (const Dict::Entry& entry : self.dict().entries)
    made.dict().set(evaluator.heap(), entry.key, entry.value);
  return made;
}

constexpr Row kDictMethods[] = {{"copy", copy_method},    {"get", get_method},
                                {"items", items_method},  {"keys", keys_method},
                                {"pop", pop_key_method},  {"update", update_method},
                                {"values", values_method}};

// ---- lists

Value append_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("append", arguments, {"object"});
  evaluator.heap().append(self.list(), bound.required(0));
  return Value::none();
}

Value extend_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("extend", arguments, {"iterable"});
  for (const Value& each : items_of(evaluator.heap(), bound.required(0)))
    evaluator.heap().append(self.list(), each);
  return Value::none();
}

// A place among `size`, or Python's error.
std::size_t place_of(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) fail("'pop': the list has no item ", index);
  return static_cast<std::size_t>(index);
}

Value pop_item_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("pop", arguments, {"index"});
  auto& items = self.list().items;
  evaluator.budget().step(items.size() / 8);
  const std::size_t at = place_of(bound.integer(0, -1), items.size());
  const Value value = items[at];
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return value;
}

Value insert_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("insert", arguments, {"index", "object"});
  auto& items = self.list().items;
  evaluator.budget().take(sizeof(Value));
  evaluator.budget().step(items.size() / 8);
  bound.required(0);
  const auto size = static_cast<std::int64_t>(items.size());
  std::int64_t at = bound.integer(0, 0);
  if (at < 0) at = std::max<std::int64_t>(at, -size) + size;
  items.insert(items.begin() + std::min(at, size), bound.required(1));
  return Value::none();
}

Value index_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("index", arguments, {"value"});
  const auto& items = self.list().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(evaluator.budget(), items[i], bound.required(0))) return number(i);
  }
  fail("'index': the list has no such item");
}

Value reverse_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  const Bound bound("reverse", arguments, {});
  evaluator.budget().step(self.list().items.size() / 8);
  std::reverse(self.list().items.begin(), self.list().items.end());
  return Value::none();
}

constexpr Row kListMethods[] = {{"append", append_method}, {"copy", copy_method},
                                {"count", count_method},   {"extend", extend_method},
                                {"index", index_method},   {"insert", insert_method},
                                {"pop", pop_item_method},  {"reverse", reverse_method}};
constexpr Row kTupleMethods[] = {{"count", count_method}, {"index", index_method}};

// ---- loops

Value cycle_method(Evaluator&, const Value& self, const Arguments& arguments) {
  if (arguments.values.empty()) fail("'loop.cycle' needs values to go through");
  return arguments.values[self.loop().index % arguments.values.size()];
}

Value changed_method(Evaluator& evaluator, const Value& self, const Arguments& arguments) {
  Loop& loop = self.loop();
  bool same = loop.has_changed && loop.changed.size() == arguments.values.size();
  for (std::size_t i = 0; same && i < loop.changed.size(); ++i) {
    same = equal(evaluator.budget(), loop.changed[i], arguments.values[i]);
  }
  loop.changed = arguments.values;
  loop.has_changed = true;
  return Value(!same);
}

constexpr Row kLoopMethods[] = {{"changed", changed_method}, {"cycle", cycle_method}};

std::span<const Row> methods_of(Kind kind) {
  switch (kind) {
    case Kind::String:
      return kStringMethods;
    case Kind::Dict:
      return kDictMethods;
    case Kind::List:
      return kListMethods;
    case Kind::Tuple:
      return kTupleMethods;
    case Kind::Loop:
      return kLoopMethods;
    default:
      return {};
  }
}

}  // namespace

Value find_method(Heap& heap, const Value& value, std::string_view name) {
  for (const Row& row : methods_of(value.kind())) {
    if (row.name == name) return Value(heap.make<Method>(row, value));
  }
  return Value::undefined(name);
}

}  // namespace tl::jinja
