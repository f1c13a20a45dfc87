// The table of ops: the one list that the language's builtins, `tl ops`, the docs and the
// conformance tests read.
//
// A row names an op, its parameters with their defaults, the dtypes it takes and the function
// behind it, which can be called with values whose types are known only at run time. Each family of
// ops has its rows at the end of its file in src/ops/; op_table() puts them together.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tl/base/dtype.h"
#include "tl/runtime/device.h"
#include "tl/tensor/tensor.h"

namespace tl {

// A set of dtypes.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (const DType t : dtypes) bits_ |= 1u << static_cast<unsigned>(t);
  }
  constexpr bool has(DType t) const { return (bits_ >> static_cast<unsigned>(t) & 1) != 0; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(DTypeSet, DTypeSet) = default;

 private:
  unsigned bits_ = 0;
};

inline constexpr DTypeSet kFloatSet = {DType::F8E4M3, DType::F16, DType::BF16, DType::F32,
                                       DType::F64};
inline constexpr DTypeSet kIntSet = {DType::U8, DType::U32, DType::I16, DType::I32, DType::I64};
inline constexpr DTypeSet kNumberSet = kFloatSet | kIntSet;
inline constexpr DTypeSet kAnySet = kNumberSet | DTypeSet{DType::Bool};

// An argument or a result. None stands for an optional argument that is not given.
struct NoValue {};
using OpValue = std::variant<NoValue, Tensor, std::vector<Tensor>, Scalar, bool, Dims, std::string,
                             DType, Device>;

// What a parameter takes, as its type in C++ says.
enum class OpKind : std::uint8_t {
  Tensor,
  Tensors,         // a list of them
  TensorOrNumber,  // a Tensor or a Scalar
  Number,          // a Scalar, or a double
  Integer,
  Boolean,
  Dims,  // a list of integers, or one
  Text,
  DType,
  Device,
};
struct OpParameter {
  OpKind kind = OpKind::Tensor;
  bool optional = false;  // may be none
};

// The function behind an op: called with values, and what it takes of each.
struct OpCall {
  using Function = std::vector<Tensor> (*)(std::string_view op, std::span<const OpValue> arguments);

  Function function = nullptr;
  std::span<const OpParameter> parameters;  // as many as the signature has

  std::vector<Tensor> operator()(std::string_view op, std::span<const OpValue> arguments) const {
    return function(op, arguments);
  }
};

struct OpRow {
  std::string_view name;       // "softmax"
  std::string_view family;     // "reduce": its file in src/ops and its heading in the docs
  std::string_view signature;  // "(x, dim = -1)": parameters in order, with their defaults
  DTypeSet dtypes;             // of the first tensor
  std::string_view help;       // one sentence
  OpCall call;
};

// Every op, by family and then as the family lists them.
std::span<const OpRow> op_table();
// The row of that name, or null.
const OpRow* find_op(std::string_view name);
// The default of every parameter; nothing for one that must be given.
std::vector<std::optional<OpValue>> op_defaults(const OpRow& row);
// Calls an op with positional arguments; those left out take the defaults of the signature. Throws
// BadArgument for an unknown op or arguments that do not fit.
std::vector<Tensor> call_op(std::string_view name, std::span<const OpValue> arguments);

namespace detail {

[[noreturn]] void throw_bad_argument(std::string_view op, std::size_t position,
                                     std::string_view wanted);

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// The argument as the type of a parameter.
template <class T>
T take(std::string_view op, std::span<const OpValue> arguments, std::size_t i) {
  const OpValue& value = arguments[i];
  if constexpr (kIsOptional<T>) {
    if (std::holds_alternative<NoValue>(value)) return std::nullopt;
    return take<typename T::value_type>(op, arguments, i);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (const auto* held = std::get_if<bool>(&value)) return *held;
    throw_bad_argument(op, i, "true or false");
  } else if constexpr (std::is_integral_v<T>) {
    const auto* held = std::get_if<Scalar>(&value);
    if (held == nullptr || !held->is_integral()) throw_bad_argument(op, i, "an integer");
    return static_cast<T>(held->integer());
  } else if constexpr (std::is_floating_point_v<T>) {
    if (const auto* held = std::get_if<Scalar>(&value)) return static_cast<T>(held->real());
    throw_bad_argument(op, i, "a number");
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    if (const auto* held = std::get_if<std::string>(&value)) return *held;
    throw_bad_argument(op, i, "a text");
  } else if constexpr (std::is_same_v<T, Dims>) {
    if (const auto* held = std::get_if<Dims>(&value)) return *held;
    if (const auto* held = std::get_if<Scalar>(&value); held != nullptr && held->is_integral()) {
      return Dims{held->integer()};
    }
    throw_bad_argument(op, i, "a list of integers");
  } else if constexpr (std::is_same_v<T, std::span<const Tensor>>) {
    if (const auto* held = std::get_if<std::vector<Tensor>>(&value)) return *held;
    throw_bad_argument(op, i, "a list of tensors");
  } else {
    if (const auto* held = std::get_if<T>(&value)) return *held;
    throw_bad_argument(op, i, std::is_same_v<T, Tensor> ? "a tensor" : "another kind of value");
  }
}

std::vector<Tensor> inline collect(Tensor result) { return {std::move(result)}; }
std::vector<Tensor> inline collect(std::pair<Tensor, Tensor> results) {
  return {std::move(results.first), std::move(results.second)};
}
std::vector<Tensor> inline collect(std::vector<Tensor> results) { return results; }

template <class R, class... Parameters, std::size_t... I>
std::vector<Tensor> spread(R (*function)(Parameters...), std::string_view op,
                           std::span<const OpValue> arguments, std::index_sequence<I...>) {
  return collect(function(take<std::remove_cvref_t<Parameters>>(op, arguments, I)...));
}

template <class T>
constexpr OpParameter parameter_of() {
  if constexpr (kIsOptional<T>) {
    return {parameter_of<typename T::value_type>().kind, true};
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return {OpKind::Tensor};
  } else if constexpr (std::is_same_v<T, std::span<const Tensor>>) {
    return {OpKind::Tensors};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {OpKind::Boolean};
  } else if constexpr (std::is_integral_v<T>) {
    return {OpKind::Integer};
  } else if constexpr (std::is_same_v<T, Dims>) {
    return {OpKind::Dims};
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return {OpKind::Text};
  } else if constexpr (std::is_same_v<T, DType>) {
    return {OpKind::DType};
  } else if constexpr (std::is_same_v<T, Device>) {
    return {OpKind::Device};
  } else {
    static_assert(std::is_same_v<T, Scalar> || std::is_floating_point_v<T>);
    return {OpKind::Number};
  }
}

template <auto kFunction>
struct Callable;
template <class R, class... Parameters, R (*kFunction)(Parameters...)>
struct Callable<kFunction> {
  static constexpr std::array<OpParameter, sizeof...(Parameters)> kParameters = {
      parameter_of<std::remove_cvref_t<Parameters>>()...};
  static std::vector<Tensor> run(std::string_view op, std::span<const OpValue> arguments) {
    return spread(kFunction, op, arguments, std::index_sequence_for<Parameters...>{});
  }
};

}  // namespace detail

// The OpCall of a function: {"softmax", ..., call<&softmax>}. Named as the function it is like.
template <auto kFunction>
inline constexpr OpCall call = {  // NOLINT(readability-identifier-naming)
    &detail::Callable<kFunction>::run, detail::Callable<kFunction>::kParameters};

}  // namespace tl
