// Reductions. Over everything they give a number, over dimensions a tensor.
#include "tl/ops/reduce.h"

#include <algorithm>
#include <cmath>

#include "lang/builtins/container.h"
#include "lang/builtins/tensors.h"
#include "lang/operators.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"
#include "tl/ops/scan.h"

namespace tl::lang {

namespace {

enum class Over : std::uint8_t { Sum, Mean, Max, Min };

// A list of plain numbers is reduced here, in double.
bool is_flat_list(const Value& value) {
  if (!is_list_like(value) || value.is(Kind::Tuple)) return false;
  const std::size_t size = list_size(value);
  if (value.is(Kind::Range)) return size > 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (!list_item(value, i).is_number()) return false;
  }
  return size > 0;
}

double reduced(const Value& list, Over over) {
  const std::size_t size = list_size(list);
  if (list.is(Kind::Range)) {  // however long
    const auto first = static_cast<double>(list.as<RangeObject>().first);
    const double last = first + static_cast<double>(size) - 1;
    if (over == Over::Min) return first;
    if (over == Over::Max) return last;
    return (first + last) / 2 * (over == Over::Sum ? static_cast<double>(size) : 1);
  }
  double result = list_item(list, 0).number();
  for (std::size_t i = 1; i < size; ++i) {
    const double number = list_item(list, i).number();
    if (over == Over::Sum || over == Over::Mean) {
      result += number;
    } else if (std::isnan(number) || (over == Over::Max ? number > result : number < result)) {
      result = number;
      if (std::isnan(result)) break;
    }
  }
  return over == Over::Mean ? result / static_cast<double>(size) : result;
}

// Wide enough that a sum of many small numbers is what it should be.
tl::Tensor wide(const tl::Tensor& x) {
  if (x.dtype() == DType::F64 || x.dtype() == DType::F32 || x.dtype() == DType::I64) return x;
  return to_dtype(x, is_int(x.dtype()) ? DType::I64 : DType::F32);
}

template <Over kOver>
Value call_reduce(Context& context, Args& args) {
  const bool keepdim = args.boolean(2);
  if (!args.has(1) && !keepdim && is_flat_list(args[0])) return reduced(args[0], kOver);
  tl::Tensor x =
      kOver == Over::Mean ? float_tensor(context, args, 0) : number_tensor(context, args, 0);
  const bool all = !args.has(1);
  const Dims dims = all ? all_dims(x.rank()) : args.dims(1);
  if (all && (kOver == Over::Sum || kOver == Over::Mean)) x = wide(x);
  const tl::Tensor result = [&] {
    switch (kOver) {
      case Over::Sum:
        return sum(x, dims, keepdim);
      case Over::Mean:
        return mean(x, dims, keepdim);
      case Over::Max:
        return max(x, dims, keepdim);
      default:
        return min(x, dims, keepdim);
    }
  }();
  if (all && !keepdim) return number_of(result);
  return result;
}

// max(x, dim) reduces; max(a, b) of two numbers, or with a tensor or Float second, compares.
template <Over kOver>
Value call_extreme(Context& context, Args& args) {
  const Value& a = args[0];
  if (!args.has(1)) {
    if (a.is_number()) return a;
    return call_reduce<kOver>(context, args);
  }
  const Value& b = args[1];
  const bool largest = kOver == Over::Max;
  if (a.is_number() && b.is_number()) {
    if (!a.is(Kind::Int) || !b.is(Kind::Int)) {
      const double x = a.number();
      const double y = b.number();
      if (std::isnan(x) || std::isnan(y)) return std::nan("");
      return largest ? std::max(x, y) : std::min(x, y);
    }
    return largest ? std::max(a.integer(), b.integer()) : std::min(a.integer(), b.integer());
  }
  // A list of whole numbers names dimensions only where they are there.
  const bool is_dim = b.is(Kind::Int);
  if (is_dim && !a.is_number()) return call_reduce<kOver>(context, args);
  if (a.is_number() || b.is_number()) {
    const Value& number = a.is_number() ? a : b;
    tl::Tensor x = number_tensor(context, args, a.is_number() ? 1 : 0);
    if (is_int(x.dtype()) && number.is(Kind::Float)) x = to_dtype(x, DType::F32);
    return largest ? maximum(x, number.number()) : minimum(x, number.number());
  }
  tl::Tensor x = number_tensor(context, args, 0);
  tl::Tensor y = number_tensor(context, args, 1);
  together(context, x, y);
  return largest ? maximum(x, y) : minimum(x, y);
}

template <bool kLargest>
Value call_place(Context& context, Args& args) {
  const tl::Tensor x = number_tensor(context, args, 0);
  const bool keepdim = args.boolean(2);
  if (!args.has(1)) {
    const tl::Tensor place = to_dtype(kLargest ? argmax_all(x) : argmin_all(x), DType::I64);
    if (keepdim) return place.view(Shape::repeated(x.rank(), 1));
    return from_tensor_item(place);
  }
  const std::int64_t dim = args.integer(1);
  return to_dtype(kLargest ? argmax(x, dim, keepdim) : argmin(x, dim, keepdim), DType::I64);
}

template <bool kAll>
Value call_judge(Context& context, Args& args) {
  // A list with a function that is asked for each element; and one without elements.
  const bool asks = args.has(1) && args[1].is(Kind::Function);
  if (asks || (args[0].is(Kind::List) && args[0].as<ListObject>().values.empty())) {
    const Value test = asks ? args[1] : Value::missing();
    return kAll ? all_of(context, "all", args[0], test) : any_of(context, "any", args[0], test);
  }
  const tl::Tensor x = args.tensor(context, 0);
  const bool keepdim = args.boolean(2);
  const Dims dims = args.has(1) ? args.dims(1) : all_dims(x.rank());
  const tl::Tensor result =
      (kAll ? all(x, dims, keepdim) : any(x, dims, keepdim)).reinterpret(DType::Bool);
  if (!args.has(1) && !keepdim) return from_tensor_item(result);
  return result;
}

Value call_dot(Context& context, Args& args) {
  tl::Tensor a = number_tensor(context, args, 0);
  tl::Tensor b = number_tensor(context, args, 1);
  together(context, a, b);
  return dot(a, b);
}

template <bool kSum>
Value call_scan(Context& context, Args& args) {
  const tl::Tensor x = number_tensor(context, args, 0);
  return kSum ? cumsum(x, args.integer(1)) : cumprod(x, args.integer(1));
}

constexpr std::string_view kSection = "reduce";
constexpr std::string_view kParameters = "(x, dim = none, keepdim = false)";

}  // namespace

BuiltinRows reduce_builtins() {
  static const Builtin rows[] = {
      {"sum", kSection, kParameters, "The sum, as a number, or over dimensions.",
       call_reduce<Over::Sum>},
      {"mean", kSection, kParameters, "The mean, as a number, or over dimensions.",
       call_reduce<Over::Mean>},
      {"max", kSection, kParameters,
       "The largest element, or over dimensions; max(a, b) is the larger of two.",
       call_extreme<Over::Max>},
      {"min", kSection, kParameters,
       "The smallest element, or over dimensions; min(a, b) is the smaller of two.",
       call_extreme<Over::Min>},
      {"argmax", kSection, kParameters,
       "The place of the first largest element, in all of x or along a dimension.",
       call_place<true>},
      {"argmin", kSection, kParameters,
       "The place of the first smallest element, in all of x or along a dimension.",
       call_place<false>},
      {"all", kSection, kParameters, "Whether no element is 0.", call_judge<true>},
      {"any", kSection, kParameters, "Whether an element is not 0.", call_judge<false>},
      {"dot", kSection, "(a, b)",
       "The sum of the products of two vectors: a tensor of one element.", call_dot},
      {"cumsum", kSection, "(x, dim = -1)", "Running sums along a dimension.", call_scan<true>},
      {"cumprod", kSection, "(x, dim = -1)", "Running products along a dimension.",
       call_scan<false>},
  };
  return rows;
}

}  // namespace tl::lang
