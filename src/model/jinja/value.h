// Values of templates, with the meaning Python gives them.
//
// A value is a small copy: texts, lists and dicts lie in the heap of the rendering and live until
// it ends. So values may refer to each other in any way, circles included, and nothing has to be
// counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/jinja/budget.h"

namespace tl::jinja {

struct List;
struct Dict;
struct Namespace;
struct Loop;
class Function;
class Evaluator;

enum class Kind : std::uint8_t {
  Undefined,
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Dict,
  Namespace,
  Loop,
  Function,
};

class Value {
 public:
  Value() noexcept : Value(std::string_view()) { kind_ = Kind::Undefined; }
  // Nothing, with the name of what is not there.
  static Value undefined(std::string_view what) {
    Value value(what);
    value.kind_ = Kind::Undefined;
    return value;
  }
  static Value none() {
    Value value;
    value.kind_ = Kind::None;
    return value;
  }
  explicit Value(bool b) noexcept : kind_(Kind::Bool) { as_.number = b ? 1 : 0; }
  explicit Value(std::int64_t i) noexcept : kind_(Kind::Int) { as_.number = i; }
  explicit Value(double d) noexcept : kind_(Kind::Float) { as_.real = d; }
  // The text stays where it is: in the heap, in the template, or in the program.
  explicit Value(std::string_view text) noexcept : kind_(Kind::String), size_(text.size()) {
    as_.text = text.data();
  }
  explicit Value(const char* text) noexcept : Value(std::string_view(text)) {}
  explicit Value(List* list, bool is_tuple = false) noexcept
      : kind_(is_tuple ? Kind::Tuple : Kind::List) {
    as_.list = list;
  }
  explicit Value(Dict* dict) noexcept : kind_(Kind::Dict) { as_.dict = dict; }
  explicit Value(Namespace* space) noexcept : kind_(Kind::Namespace) { as_.space = space; }
  explicit Value(Loop* loop) noexcept : kind_(Kind::Loop) { as_.loop = loop; }
  explicit Value(Function* function) noexcept : kind_(Kind::Function) { as_.function = function; }

  Kind kind() const noexcept { return kind_; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  bool is_undefined() const noexcept { return is(Kind::Undefined); }
  bool is_none() const noexcept { return is(Kind::None); }
  bool is_string() const noexcept { return is(Kind::String); }
  bool is_list() const noexcept { return is(Kind::List) || is(Kind::Tuple); }
  bool is_dict() const noexcept { return is(Kind::Dict); }
  bool is_whole() const noexcept { return is(Kind::Int) || is(Kind::Bool); }  // as in Python
  bool is_number() const noexcept { return is_whole() || is(Kind::Float); }

  // Each for its kind alone.
  bool boolean() const noexcept { return as_.number != 0; }
  std::int64_t integer() const noexcept { return as_.number; }  // of Bool too
  double real() const noexcept {                                // of any number
    return is(Kind::Float) ? as_.real : static_cast<double>(as_.number);
  }
  std::string_view string() const noexcept { return {as_.text, size_}; }
  std::string_view missing() const noexcept { return {as_.text, size_}; }  // of Undefined
  List& list() const noexcept { return *as_.list; }
  Dict& dict() const noexcept { return *as_.dict; }
  Namespace& space() const noexcept { return *as_.space; }
  Loop& loop() const noexcept { return *as_.loop; }
  Function& function() const noexcept { return *as_.function; }

 private:
  Kind kind_;
  std::size_t size_ = 0;
  union {
    std::int64_t number;
    double real;
    const char* text;
    List* list;
    Dict* dict;
    Namespace* space;
    Loop* loop;
    Function* function;
  } as_{};
};

// What lies in the heap.
struct Object {
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
};

struct List : Object {
  std::vector<Value> items;
  bool is_lazy = false;  // what a filter like select gives: true even when it is empty
};

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string_view, Value>> named;
};

// What can be called: functions, macros, methods of a value.
class Function : public Object {
 public:
  virtual Value call(Evaluator& evaluator, const Arguments& arguments) = 0;
  virtual std::string_view name() const = 0;
};

struct Namespace : Object {
  std::vector<std::pair<std::string_view, Value>> members;
};

// `loop` inside of a loop.
struct Loop : Object {
  const std::vector<Value>* items = nullptr;
  std::size_t index = 0;
  std::vector<Value> changed;  // what loop.changed() saw last
  bool has_changed = false;
};

class Heap {
 public:
  explicit Heap(const Limits& limits) : budget_(limits) {}

  Budget& budget() noexcept { return budget_; }

  template <class T, class... Parts>
  T* make(Parts&&... parts) {
    budget_.take(sizeof(T) + sizeof(void*));
    auto object = std::make_unique<T>(std::forward<Parts>(parts)...);
    T* place = object.get();
    objects_.push_back(std::move(object));
    return place;
  }
  Value string(std::string_view text);  // a copy
  Value list(std::vector<Value> items, bool is_tuple = false);
  Value lazy_list(std::vector<Value> items);
  Value dict();
  void append(List& list, const Value& value) {
    budget_.take(sizeof(Value));
    list.items.push_back(value);
  }

 private:
  Budget budget_;
  std::vector<std::unique_ptr<Object>> objects_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0;
};

// In the order the keys came.
struct Dict : Object {
  struct Entry {
    Value key, value;
  };
  std::vector<Entry> entries;

  Value* find(Budget& budget, const Value& key);
  void set(Heap& heap, const Value& key, const Value& value);
  bool remove(Heap& heap, const Value& key);

 private:
  static constexpr std::size_t kIndexFrom = 12;  // fewer are looked through
  void index_strings();
  std::unordered_map<std::string_view, std::size_t> index_;  // of keys that are texts
};

// ---- what Python's operators and functions do

bool truth(const Value& value);
std::string_view type_name(const Value& value);  // "str", "NoneType"
bool equal(Budget& budget, const Value& a, const Value& b, std::size_t depth = 0);
// Negative, 0 or positive; throws for values that have no order.
int compare(Budget& budget, const Value& a, const Value& b, std::size_t depth = 0);
bool contains(Budget& budget, const Value& container, const Value& item);
// Appends what str() and repr() give.
void append_text(Budget& budget, std::string& out, const Value& value);
void append_repr(Budget& budget, std::string& out, const Value& value, std::size_t depth = 0);
// A view of the value itself where it is a text.
std::string_view text_of(Heap& heap, const Value& value);
// The items of what can be gone through: characters, elements, keys. Throws for other kinds.
std::vector<Value> items_of(Heap& heap, const Value& value);
std::size_t length_of(Budget& budget, const Value& value);
std::string float_text(double value);  // "1.0", "1e-05", "nan"

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  bool has_indent = false;
  std::string indent;
  std::string item_separator = ", ", key_separator = ": ";
};
void append_json(Budget& budget, std::string& out, const Value& value, const JsonStyle& style,
                 std::size_t depth = 0);
// A value of JSON text. Throws BadArgument, naming `what`, where it is none.
Value parse_json(Heap& heap, std::string_view json, std::string_view what);

// A failure of a template while it runs; the evaluator adds the place.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  Budget::refuse(parts...);
}

}  // namespace tl::jinja
