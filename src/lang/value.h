// What a variable of a program holds: 16 bytes. Numbers and truth values lie in it; everything else
// is a counted object that copies share.
//
// Tensors, texts, lists, tuples, maps and structs are values to the program: who writes first
// detaches (see mutate()), so no other variable ever changes and no cycle can come to be. Only what
// the language defines as shared (IntVec and the like, caches, buffers) is changed in place, and
// such objects hold no values that could refer back to them. Objects belong to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tl/quant/qtensor.h"
#include "tl/tensor/tensor.h"

namespace tl::lang {

enum class Kind : std::uint8_t {
  Void = 0,  // all bytes 0
  Missing,   // an argument that was not given; programs never see it
  Bool,
  Int,
  Float,
  // objects from here on
  String,
  Tensor,
  QTensor,  // a quantised weight: a tensor to programs
  List,
  Tuple,
  Map,
  Range,
  Tokens,  // what a tokenizer gives
  Vec,     // IntVec, FloatVec, StringVec, BoolVec: shared
  Function,
  Struct,
  Type,  // the name of an entity type
  Host,  // everything that builtins bring along: models, tokenizers, caches
};

class Object {
 public:
  explicit Object(Kind kind) noexcept : kind_(kind) {}
  Object(const Object& other) noexcept : kind_(other.kind_) {}  // a copy has its own count
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  Kind kind() const noexcept { return kind_; }
  bool shared() const noexcept { return count_ > 1; }

 protected:
  // The last owner is gone. Structs with a Drop put it off to when their method has run.
  virtual void expire() noexcept { delete this; }
  // The same for an object that holds values: however deep they are nested, the stack is enough.
  void release_nested() noexcept;

 private:
  friend class Value;
  Object* next_ = nullptr;  // while it waits to be deleted
  std::uint32_t count_ = 0;
  Kind kind_;
};

class Value {
 public:
  Value() noexcept : kind_(Kind::Void), integer_(0) {}
  Value(bool value) noexcept : kind_(Kind::Bool), integer_(value ? 1 : 0) {}  // NOLINT
  Value(std::int64_t value) noexcept : kind_(Kind::Int), integer_(value) {}   // NOLINT
  Value(int value) noexcept : kind_(Kind::Int), integer_(value) {}            // NOLINT
  Value(double value) noexcept : kind_(Kind::Float), real_(value) {}          // NOLINT
  Value(std::string text);                                                    // NOLINT
  Value(std::string_view text) : Value(std::string(text)) {}                  // NOLINT
  Value(const char* text) : Value(std::string(text)) {}                       // NOLINT
  Value(tl::Tensor tensor);                                                   // NOLINT
  // A quantised tensor; one of a plain type becomes a tensor that shares its memory.
  Value(const tl::QTensor& tensor);  // NOLINT
  static Value missing() noexcept {
    Value v;
    v.kind_ = Kind::Missing;
    return v;
  }
  static Value of(Object* object) noexcept {  // takes part in owning it
    Value v;
    v.kind_ = object->kind_;
    v.object_ = object;
    ++object->count_;
    return v;
  }

  Value(const Value& other) noexcept : kind_(other.kind_), integer_(other.integer_) {
    if (is_object()) ++object_->count_;
  }
  Value(Value&& other) noexcept : kind_(other.kind_), integer_(other.integer_) {
    other.kind_ = Kind::Void;
  }
  Value& operator=(const Value& other) noexcept {
    if (other.is_object()) ++other.object_->count_;
    release();
    kind_ = other.kind_;
    integer_ = other.integer_;
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    const Kind kind = other.kind_;
    const std::int64_t bits = other.integer_;
    other.kind_ = Kind::Void;
    release();
    kind_ = kind;
    integer_ = bits;
    return *this;
  }
  ~Value() { release(); }

  // The same as assignment, without a value in between.
  void set(bool value) noexcept { set(Kind::Bool, value ? 1 : 0); }
  void set(std::int64_t value) noexcept { set(Kind::Int, value); }
  void set(double value) noexcept {
    release();
    kind_ = Kind::Float;
    real_ = value;
  }
  void clear() noexcept {
    release();
    kind_ = Kind::Void;
  }

  Kind kind() const noexcept { return kind_; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  bool is_object() const noexcept { return kind_ >= Kind::String; }
  bool is_number() const noexcept { return kind_ == Kind::Int || kind_ == Kind::Float; }
  bool is_tensor() const noexcept { return kind_ == Kind::Tensor || kind_ == Kind::QTensor; }

  // The caller has looked at kind().
  bool boolean() const noexcept { return integer_ != 0; }
  std::int64_t integer() const noexcept { return integer_; }
  double real() const noexcept { return real_; }
  double number() const noexcept {  // of an Int or a Float
    return kind_ == Kind::Int ? static_cast<double>(integer_) : real_;
  }
  Object* object() const noexcept { return object_; }
  template <class T>
  const T& as() const noexcept {
    return static_cast<const T&>(*object_);
  }
  const std::string& string() const noexcept;
  const tl::Tensor& tensor() const noexcept;    // Kind::Tensor
  const tl::QTensor& qtensor() const noexcept;  // Kind::QTensor

  // For writing: the object alone, copied first when others share it.
  template <class T>
  T& mutate() {
    if (object_->shared()) *this = Value::of(new T(as<T>()));
    return static_cast<T&>(*object_);
  }

 private:
  void set(Kind kind, std::int64_t value) noexcept {
    release();
    kind_ = kind;
    integer_ = value;
  }
  void release() noexcept {
    if (is_object() && --object_->count_ == 0) object_->expire();
  }

  Kind kind_;
  union {
    std::int64_t integer_;
    double real_;
    Object* object_;
  };
};
static_assert(sizeof(Value) == 16);

struct StringObject : Object {
  explicit StringObject(std::string t) : Object(Kind::String), text(std::move(t)) {}
  std::string text;
};
struct TensorObject : Object {
  explicit TensorObject(tl::Tensor t) : Object(Kind::Tensor), tensor(std::move(t)) {}
  TensorObject(const TensorObject& other) : Object(other), tensor(other.tensor) {}
  tl::Tensor tensor;
  // A parameter is the one tensor that is the same for all who hold it: training changes it in
  // place. A copy is none.
  bool is_parameter = false;
};
struct QTensorObject : Object {
  explicit QTensorObject(tl::QTensor t) : Object(Kind::QTensor), tensor(std::move(t)) {}
  tl::QTensor tensor;
};
struct ListObject : Object {
  explicit ListObject(std::vector<Value> v = {}) : Object(Kind::List), values(std::move(v)) {}
  std::vector<Value> values;

 protected:
  void expire() noexcept override { release_nested(); }
};
struct TupleObject : Object {
  explicit TupleObject(std::vector<Value> v = {}) : Object(Kind::Tuple), values(std::move(v)) {}
  std::vector<Value> values;

 protected:
  void expire() noexcept override { release_nested(); }
};
// Keys are texts, integers or truth values; kept in the order they came.
struct MapObject : Object {
  MapObject() : Object(Kind::Map) {}
  struct Entry {
    Value key, value;
  };
  std::vector<Entry> entries;

  const Value* find(const Value& key) const;  // nullptr when there is none
  Value& slot(const Value& key);              // made when there is none; throws for a bad key
  bool remove(const Value& key);

 protected:
  void expire() noexcept override { release_nested(); }

 private:
  std::size_t place(const Value& key) const;  // entries.size() when there is none
  // Filled when there are more than a few.
  mutable std::vector<std::uint32_t> buckets_;
  void rehash() const;
};
struct RangeObject : Object {  // first, first + 1, ... last - 1
  RangeObject(std::int64_t f, std::int64_t l) : Object(Kind::Range), first(f), last(l) {}
  std::int64_t first, last;
  std::int64_t size() const noexcept {  // at most 2^63 - 1
    if (last <= first) return 0;
    const std::uint64_t count =
        static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
    return static_cast<std::int64_t>(std::min(count, ~std::uint64_t{0} >> 1));
  }
};
struct TokensObject : Object {
  explicit TokensObject(std::vector<std::int32_t> i = {})
      : Object(Kind::Tokens), ids(std::move(i)) {}
  std::vector<std::int32_t> ids;
};
struct VecObject : Object {  // shared by all who hold it; only scalars and texts
  explicit VecObject(Kind e) : Object(Kind::Vec), element(e) {}
  Kind element;  // Int, Float, String or Bool
  std::vector<Value> values;
};
struct TypeObject : Object {
  explicit TypeObject(std::string n) : Object(Kind::Type), name(std::move(n)) {}
  std::string name;
};
struct Function;  // bytecode.h
struct Builtin;   // builtin.h
struct FunctionObject : Object {
  FunctionObject(const Function* f, std::vector<Value> c)
      : Object(Kind::Function), function(f), captured(std::move(c)) {}
  explicit FunctionObject(const Builtin* b) : Object(Kind::Function), builtin(b) {}
  const Function* function = nullptr;
  const Builtin* builtin = nullptr;
  std::vector<Value> captured;

 protected:
  void expire() noexcept override { release_nested(); }
};
struct StructType;  // bytecode.h
struct StructObject : Object {
  explicit StructObject(std::shared_ptr<const StructType> t)
      : Object(Kind::Struct), type(std::move(t)) {}
  StructObject(const StructObject& other) : Object(other), type(other.type), fields(other.fields) {}
  std::shared_ptr<const StructType> type;
  std::vector<Value> fields;
  bool dropped = false;  // its Drop has begun

 protected:
  void expire() noexcept override;  // has its Drop run first
};
std::string_view struct_name(const StructObject& object);
std::string_view function_name(const FunctionObject& object);

class Args;
class Context;

// What a builtin library brings along: the language core asks it by these.
struct HostObject : Object {
  HostObject() : Object(Kind::Host) {}
  virtual std::string_view type_name() const = 0;  // "Model", "KVCache"
  virtual std::string text() const = 0;            // as print shows it: "<Model>"
  virtual Value property(Context& context, std::string_view name) const;  // throws by default
  virtual Value index(Context& context, const Value& at) const;           // throws by default
  virtual std::int64_t size() const;  // len(); throws by default
  // A method that is no builtin taking the object first. False: there is none of that name.
  virtual bool method(Context& context, std::string_view name, Args& args, Value& result);
};

// "Integer", "Float", "Tensor", "List", "Point": as messages name it.
std::string type_name(const Value& value);
// As print() shows it (docs/language.md, "Printing").
std::string text(const Value& value);
// As lists show their elements and assertions their operands: texts in quotes.
std::string quoted(const Value& value);
// Same kind and equal; tensors by shape and all elements. Ranges, tokens and vectors are lists, and
// a list of numbers beside a tensor is the tensor it stands for.
bool equal(const Value& a, const Value& b);
// The same with 1 equal to 1.0: what == says of lists, tuples and maps.
bool loosely_equal(const Value& a, const Value& b);
// The text of one number: shortest, without an exponent or a trailing ".0".
std::string number_text(double number);

template <class T, class... A>
Value make(A&&... arguments) {
  return Value::of(new T(std::forward<A>(arguments)...));
}

}  // namespace tl::lang
