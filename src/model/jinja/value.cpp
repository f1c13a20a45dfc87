#include "model/jinja/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "model/jinja/text.h"
#include "model/tokenizer_utf8.h"

namespace tl::jinja {

namespace {

constexpr std::size_t kBlock = 16 << 10;

void check_depth(const Budget& budget, std::size_t depth) {
  if (depth > budget.limits().value_depth) {
    fail("values are nested more than ", budget.limits().value_depth, " deep");
  }
}

int order(std::int64_t a, std::int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }
int order(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

// Appends \x1b, \u200b or \U000e0001.
void append_escape(std::string& out, std::uint32_t c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
  out += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[c >> shift & 15];
}

// What Python does not show as it is: controls, spaces other than ' ', marks of format, private
// use.
bool is_printable(std::uint32_t c) {
  const auto in = [c](std::uint32_t low, std::uint32_t high) { return c >= low && c <= high; };
  if (c < 0x7F) return c >= 0x20;
  if (is_space(c) || in(0x7F, 0xA0) || c == 0xAD) return false;
  return !(in(0x200B, 0x200F) || in(0x202A, 0x202E) || in(0x2060, 0x206F) || c == 0xFEFF ||
           in(0xD800, 0xF8FF) || in(0xFFF0, 0xFFFB) || in(0xE0000, 0xE0FFF) || c >= 0xF0000);
}

void append_string_repr(Budget& budget, std::string& out, std::string_view text) {
  budget.take(text.size());
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    const tok::CodePoint point = tok::first_code_point(text);
    const std::uint32_t c = point.value;
    if (!point.is_valid) {
      append_escape(out, static_cast<unsigned char>(text[0]));
    } else if (c == '\\' || c == static_cast<unsigned char>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(0, point.length);
    } else {
      append_escape(out, c);
    }
    text.remove_prefix(point.length);
  }
  out += quote;
}

void append_items(Budget& budget, std::string& out, const std::vector<Value>& items,
                  std::size_t depth) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    append_repr(budget, out, items[i], depth);
  }
}

// A name with a value, in the braces of a dict.
template <class Entries>
void append_entries(Budget& budget, std::string& out, const Entries& entries, std::size_t depth) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) out += ", ";
    first = false;
    append_repr(budget, out, Value(key), depth);
    out += ": ";
    append_repr(budget, out, value, depth);
  }
  out += '}';
}

}  // namespace

// ---- the heap

Value Heap::string(std::string_view text) {
  budget_.take(text.size());
  if (text.empty()) return Value("");
  if (text.size() > kBlock / 4) {
    blocks_.push_back(std::make_unique<char[]>(text.size()));
    char* place = blocks_.back().get();
    std::memcpy(place, text.data(), text.size());
    // The block that is filled in turn stays last.
    if (blocks_.size() > 1) std::swap(blocks_.back(), blocks_[blocks_.size() - 2]);
    if (blocks_.size() == 1) block_left_ = 0;
    return Value(std::string_view(place, text.size()));
  }
  if (block_left_ < text.size()) {
    blocks_.push_back(std::make_unique<char[]>(kBlock));
    block_left_ = kBlock;
  }
  char* place = blocks_.back().get() + (kBlock - block_left_);
  std::memcpy(place, text.data(), text.size());
  block_left_ -= text.size();
  return Value(std::string_view(place, text.size()));
}

Value Heap::list(std::vector<Value> items, bool is_tuple) {
  budget_.take(items.size() * sizeof(Value));
  List* made = make<List>();
  made->items = std::move(items);
  return Value(made, is_tuple);
}

Value Heap::lazy_list(std::vector<Value> items) {
  const Value made = list(std::move(items));
  made.list().is_lazy = true;
  return made;
}

Value Heap::dict() { return Value(make<Dict>()); }

// ---- dicts

void Dict::index_strings() {
  index_.clear();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].key.is_string()) index_.emplace(entries[i].key.string(), i);
  }
}

Value* Dict::find(Budget& budget, const Value& key) {
  if (key.is_list() || key.is_dict()) fail("a ", type_name(key), " cannot be a key of a dict");
  if (key.is_string() && entries.size() >= kIndexFrom) {
    budget.look_at(key.string().size());
    const auto found = index_.find(key.string());
    return found == index_.end() ? nullptr : &entries[found->second].value;
  }
  budget.step(1 + entries.size() / 8);
  for (Entry& entry : entries) {
    if (entry.key.kind() == key.kind() || (entry.key.is_number() && key.is_number())) {
      if (equal(budget, entry.key, key)) return &entry.value;
    }
  }
  return nullptr;
}

void Dict::set(Heap& heap, const Value& key, const Value& value) {
  if (Value* place = find(heap.budget(), key)) {
    *place = value;
    return;
  }
  heap.budget().take(2 * sizeof(Entry));
  entries.push_back({key, value});
  if (entries.size() == kIndexFrom) index_strings();
  if (entries.size() > kIndexFrom && key.is_string())
    index_.emplace(key.string(), entries.size() - 1);
}

bool Dict::remove(Heap& heap, const Value& key) {
  const Value* place = find(heap.budget(), key);
  if (place == nullptr) return false;
  heap.budget().step(entries.size());
  std::erase_if(entries, [&](const Entry& entry) { return &entry.value == place; });
  index_strings();
  return true;
}

// ---- operators

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
    case Kind::None:
      return false;
    case Kind::Bool:
    case Kind::Int:
      return value.integer() != 0;
    case Kind::Float:
      return value.real() != 0;
    case Kind::String:
      return !value.string().empty();
    case Kind::List:
    case Kind::Tuple:
      return value.list().is_lazy || !value.list().items.empty();
    case Kind::Dict:
      return !value.dict().entries.empty();
    default:
      return true;
  }
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
      return "Undefined";
    case Kind::None:
      return "NoneType";
    case Kind::Bool:
      return "bool";
    case Kind::Int:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::String:
      return "str";
    case Kind::List:
      return "list";
    case Kind::Tuple:
      return "tuple";
    case Kind::Dict:
      return "dict";
    case Kind::Namespace:
      return "Namespace";
    case Kind::Loop:
      return "LoopContext";
    case Kind::Function:
      break;
  }
  return "function";
}

bool equal(Budget& budget, const Value& a, const Value& b, std::size_t depth) {
  budget.step();
  check_depth(budget, depth);
  if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.real() == b.real();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::Undefined:
    case Kind::None:
      return true;
    case Kind::String:
      budget.look_at(std::min(a.string().size(), b.string().size()));
      return a.string() == b.string();
    case Kind::List:
    case Kind::Tuple: {
      const auto &left = a.list().items, &right = b.list().items;
      if (left.size() != right.size()) return false;
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (!equal(budget, left[i], right[i], depth + 1)) return false;
      }
      return true;
    }
    case Kind::Dict: {
      if (a.dict().entries.size() != b.dict().entries.size()) return false;
      for (const Dict::Entry& entry : a.dict().entries) {
        const Value* other = b.dict().find(budget, entry.key);
        if (other == nullptr || !equal(budget, entry.value, *other, depth + 1)) return false;
      }
      return true;
    }
    case Kind::Namespace:
      return &a.space() == &b.space();
    case Kind::Loop:
      return &a.loop() == &b.loop();
    default:
      return &a.function() == &b.function();
  }
}

int compare(Budget& budget, const Value& a, const Value& b, std::size_t depth) {
  budget.step();
  check_depth(budget, depth);
  if (a.is_whole() && b.is_whole()) return order(a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return order(a.real(), b.real());
  if (a.is_string() && b.is_string()) {
    budget.look_at(std::min(a.string().size(), b.string().size()));
    return a.string().compare(b.string());  // bytes of UTF-8 order like characters
  }
  if (a.is_list() && a.kind() == b.kind()) {
    const auto &left = a.list().items, &right = b.list().items;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      if (equal(budget, left[i], right[i], depth + 1)) continue;
      return compare(budget, left[i], right[i], depth + 1);
    }
    return order(static_cast<std::int64_t>(left.size()), static_cast<std::int64_t>(right.size()));
  }
  for (const Value* each : {&a, &b}) {
    if (each->is_undefined()) fail("'", each->missing(), "' is undefined");
  }
  fail("a ", type_name(a), " and a ", type_name(b), " have no order");
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) fail("'in' a text needs a text, not a ", type_name(item));
    budget.look_at(container.string().size());
    return container.string().find(item.string()) != std::string_view::npos;
  }
  if (container.is_dict()) return container.dict().find(budget, item) != nullptr;
  if (container.is_undefined()) return false;
  if (!container.is_list()) fail("a ", type_name(container), " has no items to look through");
  const auto& items = container.list().items;
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& each) { return equal(budget, each, item); });
}

// ---- texts

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  // Python writes numbers from 1e-4 to 1e16 without an exponent.
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto done = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                  plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(buffer.data(), done.ptr);
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

void append_repr(Budget& budget, std::string& out, const Value& value, std::size_t depth) {
  budget.take(16);
  check_depth(budget, depth);
  switch (value.kind()) {
    case Kind::Undefined:
      out += "Undefined";
      return;
    case Kind::None:
      out += "None";
      return;
    case Kind::Bool:
      out += value.boolean() ? "True" : "False";
      return;
    case Kind::Int:
      out += std::to_string(value.integer());
      return;
    case Kind::Float:
      out += float_text(value.real());
      return;
    case Kind::String:
      append_string_repr(budget, out, value.string());
      return;
    case Kind::List:
      out += '[';
      append_items(budget, out, value.list().items, depth + 1);
      out += ']';
      return;
    case Kind::Tuple:
      out += '(';
      append_items(budget, out, value.list().items, depth + 1);
      out += value.list().items.size() == 1 ? ",)" : ")";
      return;
    case Kind::Dict:
      append_entries(budget, out, value.dict().entries, depth + 1);
      return;
    case Kind::Namespace:
      out += "<Namespace ";
      append_entries(budget, out, value.space().members, depth + 1);
      out += '>';
      return;
    case Kind::Loop:
      out += "<LoopContext " + std::to_string(value.loop().index + 1) + "/" +
             std::to_string(value.loop().items->size()) + ">";
      return;
    case Kind::Function:
      out.append("<function ").append(value.function().name()).append(">");
      return;
  }
}

void append_text(Budget& budget, std::string& out, const Value& value) {
  if (value.is_undefined()) return;
  if (value.is_string()) {
    budget.take(value.string().size());
    out += value.string();
    return;
  }
  append_repr(budget, out, value);
}

std::string_view text_of(Heap& heap, const Value& value) {
  if (value.is_string()) return value.string();
  std::string text;
  append_text(heap.budget(), text, value);
  return heap.string(text).string();
}

std::vector<Value> items_of(Heap& heap, const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::Undefined:
      break;
    case Kind::List:
    case Kind::Tuple:
      heap.budget().take(value.list().items.size() * sizeof(Value));
      items = value.list().items;
      break;
    case Kind::Dict:
      heap.budget().take(value.dict().entries.size() * sizeof(Value));
      for (const Dict::Entry& entry : value.dict().entries) items.push_back(entry.key);
      break;
    case Kind::String:
      heap.budget().take(value.string().size() * sizeof(Value));
      for (const std::string_view c : characters(value.string())) items.emplace_back(c);
      break;
    default:
      fail("a ", type_name(value), " cannot be gone through item by item");
  }
  return items;
}

std::size_t length_of(Budget& budget, const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
      return 0;
    case Kind::String:
      budget.look_at(value.string().size());
      return count_characters(value.string());
    case Kind::List:
    case Kind::Tuple:
      return value.list().items.size();
    case Kind::Dict:
      return value.dict().entries.size();
    case Kind::Loop:
      return value.loop().items->size();
    default:
      fail("a ", type_name(value), " has no length");
  }
}

}  // namespace tl::jinja
