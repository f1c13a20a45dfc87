// Tensors from a rule (tl/ops/create.h, tl/ops/random.h) and the masks and tables of transformers.
// f16::zeros and so on are the same rows with another dtype where none is said.
#include <algorithm>
#include <deque>

#include "lang/builtins/library.h"
#include "lang/builtins/tensors.h"
#include "lang/tensor_operators.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/random.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::lang {

namespace {

// The dtype of a call: the argument, else the one in the name (f16::zeros), else `usual`.
DType dtype_at(const Args& args, std::size_t i, DType usual = DType::F32) {
  if (args.has(i)) return args.dtype(i);
  if (args.builtin().data != nullptr) return *static_cast<const DType*>(args.builtin().data);
  return usual;
}

Device device_at(const Context& context, const Args& args, std::size_t i) {
  return args.has(i) ? Device::parse(args.string(i)) : context.device.get();
}

Shape shape_at(const Args& args, std::size_t i) {
  const Shape shape = args.dims(i);
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw type_error(args.name(), "() expects sizes that are not negative, got ", size);
    }
  }
  return shape;
}

// ---- constants

struct Constant final : Initializer {
  explicit Constant(double v) : value(v) {}
  tl::Tensor make(const Shape& shape, DType dtype, const Device& device) const override {
    return full(shape, value, dtype, device);
  }
  double value;
};

template <int kNumber>
Value call_constant(Context& context, Args& args) {
  if (!args.has(0)) return make<Constant>(kNumber);
  return full(shape_at(args, 0), kNumber, dtype_at(args, 1), device_at(context, args, 2));
}

Value call_full(Context& context, Args& args) {
  const Shape shape = shape_at(args, 0);
  const DType dtype = dtype_at(args, 2);
  const Device device = device_at(context, args, 3);
  if (args[1].is(Kind::Int) || args[1].is(Kind::Bool)) {
    return full(shape, args[1].integer(), dtype, device);
  }
  return full(shape, args.real(1), dtype, device);
}

Value call_eye(Context& context, Args& args) {
  const std::int64_t n = args.integer(0);
  return eye(n, dtype_at(args, 1), device_at(context, args, 2));
}

// ---- sequences

// Without a step the bounds are integers, as in the language's first version.
Value call_arange(Context& context, Args& args) {
  const bool steps = args.has(2);
  const auto bound = [&](std::size_t i) -> Scalar {
    if (steps && !args[i].is(Kind::Int)) return args.real(i);
    return args.integer(i);
  };
  const Scalar start = args.has(1) ? bound(0) : Scalar(0);
  const Scalar end = args.has(1) ? bound(1) : bound(0);
  const Scalar step = steps ? bound(2) : Scalar(1);
  const bool empty = step.real() < 0 ? end.real() >= start.real() : end.real() <= start.real();
  if (empty || step.real() == 0) {
    throw invalid_operation(args.name(), "(): nothing lies between ", start, " and ", end,
                            " in steps of ", step);
  }
  return arange(start, end, step, dtype_at(args, 3), device_at(context, args, 4));
}

Value call_linspace(Context& context, Args& args) {
  return linspace(args.real(0), args.real(1), args.integer(2), dtype_at(args, 3),
                  device_at(context, args, 4));
}

Value call_from_array(Context& context, Args& args) {
  const DType dtype = args[0].is_tensor() && !args.has(2) && args.builtin().data == nullptr
                          ? args.tensor(context, 0).dtype()
                          : dtype_at(args, 2);
  const tl::Tensor x = converted(context, join(args.name(), "()"), args[0], dtype);
  return args.has(1) ? reshape(x, args.dims(1)) : x;
}

// ---- random numbers

struct Normal final : Initializer {
  Normal(double m, double d) : mean(m), deviation(d) {}
  tl::Tensor make(const Shape& shape, DType dtype, const Device& device) const override {
    return rand_normal(mean, deviation, shape, dtype, device);
  }
  double mean, deviation;
};
struct Uniform final : Initializer {
  Uniform(double l, double h) : low(l), high(h) {}
  tl::Tensor make(const Shape& shape, DType dtype, const Device& device) const override {
    return rand_uniform(low, high, shape, dtype, device);
  }
  double low, high;
};

// (a, b) for the tensor that is being declared, or (shape, a = ..., b = ...).
template <class Rule>
Value call_random(Context& context, Args& args) {
  if (!is_list_like(args[0]) && !args[0].is_tensor() && args.has(1) && !args.has(2)) {
    return make<Rule>(args.real(0), args.real(1));
  }
  const Rule rule(args.has(1) ? args.real(1) : 0, args.has(2) ? args.real(2) : 1);
  return rule.make(shape_at(args, 0), dtype_at(args, 3), device_at(context, args, 4));
}

// One number without a shape.
template <class Rule>
Value call_standard(Context& context, Args& args) {
  const Rule rule(0, 1);
  if (!args.has(0)) return from_tensor_item(rule.make({}, DType::F64, Device::cpu()));
  return rule.make(shape_at(args, 0), dtype_at(args, 1), device_at(context, args, 2));
}

Value call_randint(Context& context, Args& args) {
  const std::int64_t low = args.integer(0);
  const std::int64_t high = args.integer(1);
  if (!args.has(2)) return from_tensor_item(randint(low, high, {}, DType::I64, Device::cpu()));
  return randint(low, high, shape_at(args, 2), dtype_at(args, 3, DType::I64),
                 device_at(context, args, 4));
}

Value call_seed(Context& context, Args& args) {
  const auto seed = static_cast<std::uint64_t>(args.integer(0));
  Device::cpu().set_seed(seed);
  context.device->set_seed(seed);
  return {};
}

// ---- masks and tables

// (len, dim): sin for even columns, cos for odd ones, of p / 10000^(i / dim).
Value call_positional_encoding(Context& context, Args& args) {
  const std::int64_t length = args.integer(0);
  const std::int64_t dim = args.integer(1);
  if (length < 0 || dim < 0) args.bad_value(length < 0 ? 0 : 1, "a size that is not negative");
  const Device& device = context.device;
  const tl::Tensor places = arange(0, length, 1, DType::F64, device).unsqueeze(1);
  const tl::Tensor columns = arange(0, dim, 1, DType::F64, device);
  const tl::Tensor angles =
      div(places, tl::pow(Scalar(10000.0), div(columns, std::max<std::int64_t>(dim, 1))));
  const tl::Tensor even = eq(rem(columns, 2), 0);
  return to_dtype(where(even, sin(angles), cos(angles)), dtype_at(args, 2));
}

Value call_causal_mask(Context& context, Args& args) {
  const std::int64_t n = args.integer(0);
  if (n < 0) args.bad_value(0, "a size that is not negative");
  return tril2(n, dtype_at(args, 1), context.device);
}

// (batch, max): 1 before the length of each row.
Value call_padding_mask(Context& context, Args& args) {
  const tl::Tensor lengths = args.tensor(context, 0);
  const std::int64_t longest = args.integer(1);
  if (lengths.rank() > 1) args.bad(0, "a list of lengths");
  if (longest < 0) args.bad_value(1, "a size that is not negative");
  const tl::Tensor places = arange(0, longest, 1, DType::F32, lengths.device());
  const tl::Tensor column = to_dtype(reshape(lengths, {-1, 1}), DType::F32);
  const DType dtype = lengths.dtype() == DType::Bool ? DType::F32 : lengths.dtype();
  return to_dtype(lt(places, column), dtype);
}

// No rows yet, and memory for `max` of them behind it.
Value call_create_cache(Context& context, Args& args) {
  const std::int64_t rows = args.integer(0);
  if (rows < 0) args.bad_value(0, "a number of rows");
  Shape shape = shape_at(args, 1);
  shape.insert(0, rows);
  const tl::Tensor memory = tl::Tensor::uninitialized(shape, dtype_at(args, 2), context.device);
  return memory.with_layout(memory.layout().narrow(0, 0, 0));
}

constexpr std::string_view kSection = "creation";

// Those that have a form for every dtype.
BuiltinRows creating() {
  static const Builtin rows[] = {
      {"zeros", kSection, "(shape = none, dtype = none, device = none)",
       "Zeros; without a shape, that of the tensor being declared.", call_constant<0>},
      {"ones", kSection, "(shape = none, dtype = none, device = none)",
       "Ones; without a shape, that of the tensor being declared.", call_constant<1>},
      {"full", kSection, "(shape, value, dtype = none, device = none)", "One number everywhere.",
       call_full},
      {"eye", kSection, "(n, dtype = none, device = none)", "1 on the diagonal of an n x n matrix.",
       call_eye},
      {"arange", kSection, "(start, end = none, step = none, dtype = none, device = none)",
       "The numbers from start, or from 0, up to but without the end.", call_arange},
      {"linspace", kSection, "(start, end, count, dtype = none, device = none)",
       "Numbers at equal distances, both ends included.", call_linspace},
      {"from_array", kSection, "(values, shape = none, dtype = none)",
       "A tensor of the numbers in a list, nested or not.", call_from_array},
      {"tensor", kSection, "(values, shape = none, dtype = none)",
       "A tensor of the numbers in a list, in another shape where one is said.", call_from_array},
      {"rand", kSection, "(shape = none, dtype = none, device = none)",
       "Random numbers in [0, 1); one of them without a shape.", call_standard<Uniform>},
      {"randn", kSection, "(shape = none, dtype = none, device = none)",
       "Random numbers of the standard normal distribution; one without a shape.",
       call_standard<Normal>},
      {"random_normal", kSection,
       "(shape, mean = none, deviation = none, dtype = none, device = none)",
       "Normal random numbers; (mean, deviation) alone fills the tensor being declared.",
       call_random<Normal>},
      {"random_uniform", kSection, "(shape, low = none, high = none, dtype = none, device = none)",
       "Random numbers in [low, high); (low, high) alone fills the tensor being declared.",
       call_random<Uniform>},
      {"randint", kSection, "(low, high, shape = none, dtype = none, device = none)",
       "Random integers in [low, high); one of them without a shape.", call_randint},
      {"positional_encoding", kSection, "(length, dim, dtype = none)",
       "Sines and cosines of position / 10000^(column / dim).", call_positional_encoding},
      {"causal_mask", kSection, "(n, dtype = none)", "1 on and below the diagonal, else 0.",
       call_causal_mask},
  };
  return rows;
}

BuiltinRows others() {
  static const Builtin rows[] = {
      {"padding_mask", kSection, "(lengths, max)",
       "A row for each length: 1 at the places before it, else 0.", call_padding_mask},
      {"seed", kSection, "(n)", "Starts the random numbers anew from a seed.", call_seed},
      {"Tensor::create_cache", kSection, "(max, shape, dtype = none)",
       "A tensor without rows that has memory for `max` of them; append() fills it.",
       call_create_cache},
  };
  return rows;
}

// Whether numbers of that type can be what a row makes.
bool can_make(const Builtin& row, DType dtype) {
  if (row.call == call_randint) return is_int(dtype);
  if (row.call == call_arange) return dtype != DType::Bool;
  const bool makes_floats = row.call == call_linspace || row.call == call_standard<Uniform> ||
                            row.call == call_standard<Normal> || row.call == call_random<Uniform> ||
                            row.call == call_random<Normal>;
  return !makes_floats || is_float(dtype);
}

// f16::zeros, ...
std::vector<Builtin> typed_rows() {
  static const std::deque<DType> kept(kDTypes.begin(), kDTypes.end());
  static std::deque<std::string> names;
  std::vector<Builtin> rows;
  for (const DType& dtype : kept) {
    for (const Builtin& row : creating()) {
      if (!can_make(row, dtype)) continue;
      names.push_back(join(name(dtype), "::", row.name));
      Builtin typed = row;
      typed.name = names.back();
      typed.data = &dtype;
      rows.push_back(typed);
    }
  }
  return rows;
}

}  // namespace

BuiltinRows creation_builtins() {
  static const std::vector<Builtin> rows =
      joined({creating(), others(), typed_rows(), buffer_builtins()});
  return rows;
}

}  // namespace tl::lang
