// Functions that the language brings along. A row names one, its parameters and what it does; the
// ops of tl/ops/table.h are rows too. `tl doc`, completion, the checker and the docs read the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/value.h"
#include "tl/base/error.h"
#include "tl/runtime/device.h"
#include "tl/tensor/tensor.h"

namespace tl {
struct LearnProgress;  // tl/lang/interpreter.h
}

namespace tl::lang {

// An error in the language's own words ("Division by zero"). What the library throws is shown as
// "Tensor error: " and its message.
struct RuntimeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... Parts>
RuntimeError type_error(const Parts&... parts) {
  return RuntimeError(join("Runtime type error: ", parts...));
}
template <class... Parts>
RuntimeError invalid_operation(const Parts&... parts) {
  return RuntimeError(join("Invalid operation: ", parts...));
}

struct TensorCache;  // lang/builtins/rope_tables.h
class RowWork;       // lang/row_work.h
class Learning;      // lang/training.h
class Knowledge;     // lang/knowledge.h

// Where new tensors go. It is opened when it is first asked for: a driver takes its time, and many
// programs need none.
class LazyDevice {
 public:
  LazyDevice() : device_(Device::cpu()) {}
  LazyDevice(Device device) : device_(std::move(device)) {}  // NOLINT(google-explicit-constructor)
  explicit LazyDevice(std::function<Device()> open) : open_(std::move(open)) {}

  const Device& get() const {
    if (!device_) device_ = open_();
    return *device_;
  }
  bool is_open() const noexcept { return device_.has_value(); }
  operator const Device&() const { return get(); }  // NOLINT(google-explicit-constructor)
  const Device* operator->() const { return &get(); }

 private:
  mutable std::optional<Device> device_;
  std::function<Device()> open_;
};

// What a running program has: shared by the interpreter and all builtins.
class Context {
 public:
  static constexpr double kDropout = 0.5;

  virtual ~Context() = default;

  LazyDevice device;
  std::ostream* out = nullptr;
  std::istream* in = nullptr;
  std::vector<std::string> arguments;  // of the program
  bool allow_files = true;             // may builtins that take a path be called?
  std::ostream* perf = nullptr;        // a line for every builtin and how long it took
  std::ostream* shares = nullptr;      // a line when a variable comes to share a tensor
  std::function<void(const LearnProgress&)> on_learn;  // see InterpreterOptions; may be empty
  bool training = false;                               // inside `learn`
  double dropout = kDropout;                           // what dropout() takes where it is not told
  bool verbose = true;                                 // lines such as "Loaded model from: ..."
  std::shared_ptr<TensorCache> cache;    // tables that builtins keep; gone with the context
  std::shared_ptr<RowWork> rows;         // what GPUs are still to be given; none at first
  std::shared_ptr<Learning> learning;    // the program's parameters; a running program has it
  std::shared_ptr<Knowledge> knowledge;  // relations and facts; none outside a program

  // Calls a function value; throws what it throws.
  virtual Value call(const Value& function, std::span<const Value> arguments) = 0;
  // Throws when the program was interrupted or its steps are used up; long builtins ask.
  virtual void check_interrupt() = 0;
  // The same for work that goes on by itself, which counts as steps of the program.
  virtual void count_work() { check_interrupt(); }
};

// The arguments of one call, by position: defaults filled in, Missing where an optional one was not
// given. The readers throw a type error that names the function and the parameter.
class Args {
 public:
  Args(const Builtin& builtin, std::span<Value> values) : builtin_(&builtin), values_(values) {}

  std::size_t size() const noexcept { return values_.size(); }
  bool has(std::size_t i) const noexcept {
    return i < values_.size() && !values_[i].is(Kind::Missing);
  }
  Value& operator[](std::size_t i) { return values_[i]; }
  const Value& operator[](std::size_t i) const { return values_[i]; }
  std::span<Value> from(std::size_t i) const { return values_.subspan(i); }
  const Builtin& builtin() const noexcept { return *builtin_; }
  std::string_view name() const noexcept;

  bool boolean(std::size_t i) const;          // Bool, or an Int (not 0)
  std::int64_t integer(std::size_t i) const;  // Int, Float (truncated), Bool, one-element tensor
  double real(std::size_t i) const;           // a number, Bool or one-element tensor
  const std::string& string(std::size_t i) const;
  // A tensor; a list or a number becomes one (f32 where nothing else is asked for), a quantised one
  // is expanded.
  tl::Tensor tensor(const Context& context, std::size_t i) const;
  tl::Tensor tensor(const Context& context, std::size_t i, DType dtype) const;  // converted
  Dims dims(std::size_t i) const;    // of a list, tuple, tensor or one integer
  DType dtype(std::size_t i) const;  // "f16", "float16"
  template <class T>
  T& host(std::size_t i) const {  // a HostObject of that class
    if (values_[i].is(Kind::Host)) {
      if (auto* object = dynamic_cast<T*>(values_[i].object())) return *object;
    }
    bad(i, T::kTypeName);
  }
  [[noreturn]] void bad(std::size_t i, std::string_view wanted) const;  // "NAME() expects ..."
  // The same where the kind is right and the value is not: the message shows the value.
  [[noreturn]] void bad_value(std::size_t i, std::string_view wanted) const;

 private:
  [[noreturn]] void refuse(std::size_t i, std::string_view wanted, std::string_view got) const;

  const Builtin* builtin_;
  std::span<Value> values_;
};

using BuiltinCall = Value (*)(Context& context, Args& args);

struct Parameter {
  std::string_view name;
  bool optional = false;          // may be left out
  std::string_view default_text;  // as the signature has it
  Value default_value = Value::missing();
};

struct Builtin {
  std::string_view name;     // "rms_norm"
  std::string_view section;  // heading in the docs: "shape", "text"
  // "(x, weight, eps = 1e-6)": parameters in order. "= none" may be left out and is then Missing;
  // "...rest" at the end takes any number. Numbers, true/false and texts are taken as defaults.
  std::string_view signature;
  std::string_view help;  // one sentence
  BuiltinCall call;
  // Filled by the table; rows leave it out.
  std::vector<Parameter> parameters = {};  // NOLINT(readability-redundant-member-init)
  bool variadic = false;
  const void* data = nullptr;  // for the call: an op's row

  // Parameters without the one that takes all the rest.
  std::size_t fixed() const noexcept { return parameters.size() - (variadic ? 1 : 0); }
};

// All of them; made once. A name is there once: rows of the language come before the op table's.
class BuiltinTable {
 public:
  static const BuiltinTable& instance();
  const Builtin* find(std::string_view name) const;
  // f32::zeros, KVCache::new, IntVec::new: by the full name.
  std::span<const Builtin* const> all() const noexcept { return sorted_; }

 private:
  BuiltinTable();
  std::vector<std::unique_ptr<Builtin>> rows_;
  std::vector<const Builtin*> sorted_;
  std::map<std::string_view, const Builtin*> by_name_;
};

// Each file of src/lang/builtins gives its rows; builtin_table.cpp puts them together.
using BuiltinRows = std::span<const Builtin>;
BuiltinRows creation_builtins();     // 5.1
BuiltinRows shape_builtins();        // 5.2
BuiltinRows math_builtins();         // 5.3
BuiltinRows network_builtins();      // 5.4
BuiltinRows dtype_builtins();        // dtype, device, to, info
BuiltinRows sampling_builtins();     // 5.5
BuiltinRows model_builtins();        // 5.6, 7
BuiltinRows tokenizer_builtins();    // 5.7
BuiltinRows container_builtins();    // 5.8, lists, maps, vectors
BuiltinRows text_builtins();         // strings
BuiltinRows learning_builtins();     // 6
BuiltinRows file_builtins();         // tensors and texts in files
BuiltinRows utility_builtins();      // 5.9
BuiltinRows knowledge_builtins();    // 5.10
BuiltinRows graph_builtins();        // 5.11
BuiltinRows candle_builtins();       // 5.12
BuiltinRows logic_builtins();        // relations, entities, proofs
std::vector<Builtin> op_builtins();  // the op table's

// Methods that change the list or map they are called on: xs.append(x), m.remove(k). `target` is
// the variable's own value. False: no such method for that kind.
bool call_mutating(Context& context, Value& target, std::string_view name, std::span<Value> args,
                   Value& result);
bool is_mutating_name(std::string_view name) noexcept;

// f16, half, float16, f32, float, ... ; nothing for other names.
std::optional<DType> dtype_by_name(std::string_view name) noexcept;

// ---- conversions used by operators and builtins
// A list, nested lists, number, truth value, tokens or tensor as a tensor on the device; `dtype` is
// what the context asks for. Throws for ragged or non-numeric lists, and for numbers with a
// fraction where integers are wanted. `who` begins the message.
tl::Tensor to_tensor(const Context& context, std::string_view who, const Value& value,
                     std::optional<DType> dtype = {});
// The same for lists alone, on the CPU; nothing for one that stands for no tensor. Integers come of
// what is before the point.
std::optional<tl::Tensor> list_tensor(const Value& value, DType dtype);
bool is_tensor_like(const Value& value) noexcept;  // tensor, or a list of numbers
Value from_tensor_item(const tl::Tensor& one);     // the element as Int, Float or Bool
// The same, but a tensor that gradients flow through stays one.
Value number_of(const tl::Tensor& one);

}  // namespace tl::lang
