// Functions of numbers and of tensors element by element, and small linear algebra. Those of one
// number are computed here; for tensors, and for all ops without a row here, see op_table.cpp.
#include <cmath>

#include "lang/builtins/library.h"
#include "lang/builtins/tensors.h"
#include "lang/linalg.h"
#include "lang/row_work.h"
#include "tl/ops/matmul.h"
#include "tl/ops/unary.h"

namespace tl::lang {

namespace {

using NumberFunction = double (*)(double);
using TensorFunction = tl::Tensor (*)(const tl::Tensor&);

template <NumberFunction kNumber, TensorFunction kTensor>
Value elementwise(Context& context, Args& args) {
  if (args[0].is_number()) return kNumber(args[0].number());
  return kTensor(float_tensor(context, args, 0));
}

// After a product of one row, where those are put off, it goes with that.
template <NumberFunction kNumber, TensorFunction kTensor, tl::UnaryOp kOp>
Value activation(Context& context, Args& args) {
  if (args[0].is_number()) return kNumber(args[0].number());
  const tl::Tensor x = float_tensor(context, args, 0);
  if (gpu::RowQueue* queue = waiting_rows(context, x)) {
    if (auto out = queue->activate(kOp, x)) return *std::move(out);
  }
  return kTensor(x);
}

double number_relu(double x) { return std::isnan(x) ? x : std::max(x, 0.0); }
double number_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double number_silu(double x) { return x * number_sigmoid(x); }
double number_gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

Value call_relu(Context& context, Args& args) {
  if (args[0].is(Kind::Int)) return std::max<std::int64_t>(args[0].integer(), 0);
  if (args[0].is(Kind::Float)) return number_relu(args[0].real());
  return relu(number_tensor(context, args, 0));
}

Value call_abs(Context& context, Args& args) {
  if (args[0].is(Kind::Float)) return std::abs(args[0].real());
  if (args[0].is(Kind::Int)) {
    const std::int64_t number = args[0].integer();
    std::int64_t negated = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, number, &negated)) {
      throw RuntimeError(join("Integer overflow: abs(", number, ")"));
    }
    return number < 0 ? negated : number;
  }
  return abs(number_tensor(context, args, 0));
}

// A loss is a number to programs, and nothing flows back through rounding it.
void take_number(Value& value) {
  if (value.is(Kind::Tensor) && value.tensor().rank() == 0 && value.tensor().has_history()) {
    value = value.tensor().detach().item().real();
  }
}

// Numbers become integers, tensors stay tensors.
template <NumberFunction kNumber, TensorFunction kTensor>
Value rounded(Context& context, Args& args) {
  take_number(args[0]);
  if (args[0].is(Kind::Int)) return args[0];
  if (args[0].is(Kind::Float)) {
    const double number = kNumber(args[0].real());
    if (std::isnan(number)) throw invalid_operation(args.name(), "() of NaN is no Integer");
    return saturated(number);
  }
  return kTensor(number_tensor(context, args, 0));
}

Value call_sqr(Context& context, Args& args) {
  if (args[0].is(Kind::Float)) return args[0].real() * args[0].real();
  if (args[0].is(Kind::Int)) {
    std::int64_t square = 0;
    const std::int64_t number = args[0].integer();
    if (__builtin_mul_overflow(number, number, &square)) {
      throw RuntimeError(join("Integer overflow: ", number, " * ", number));
    }
    return square;
  }
  return sqr(number_tensor(context, args, 0));
}

Value call_sign(Context& context, Args& args) {
  take_number(args[0]);
  if (args[0].is_number()) {
    const double x = args[0].number();
    const std::int64_t side = (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0);
    if (args[0].is(Kind::Int)) return side;
    return std::isnan(x) ? x : static_cast<double>(side);
  }
  return sign(number_tensor(context, args, 0));
}

// ---- matrices

Value call_inverse(Context& context, Args& args) {
  if (args[0].is_number()) {
    if (args[0].number() == 0) throw RuntimeError("Division by zero");
    return 1 / args[0].number();
  }
  return inverse(args.tensor(context, 0));
}

Value call_det(Context& context, Args& args) {
  const tl::Tensor result = determinant(args.tensor(context, 0));
  return result.rank() == 0 ? number_of(result) : Value(result);
}

Value call_solve(Context& context, Args& args) {
  tl::Tensor a = float_tensor(context, args, 0);
  tl::Tensor b = float_tensor(context, args, 1);
  together(context, a, b);
  return solve(a, b);
}

Value call_svd(Context& context, Args& args) {
  SingularValues parts = svd(args.tensor(context, 0));
  return make<TupleObject>(
      std::vector<Value>{std::move(parts.u), std::move(parts.s), std::move(parts.vt)});
}

// ("ij,jk->ik", a, b), or the tensors in a list.
Value call_einsum(Context& context, Args& args) {
  const std::string& equation = args.string(0);
  const bool listed = args.size() == 2 && args[1].is(Kind::List) && !is_number_list(args[1]);
  std::vector<Value> operands;
  if (listed) {
    operands = args[1].as<ListObject>().values;
  } else {
    operands.assign(args.from(1).begin(), args.from(1).end());
  }
  if (operands.empty()) args.bad(1, "a tensor");
  return einsum(equation, tensor_list(context, args, make<ListObject>(std::move(operands))));
}

constexpr std::string_view kSection = "math";

}  // namespace

BuiltinRows math_builtins() {
  static const Builtin rows[] = {
      {"exp", kSection, "(x)", "e^x.", elementwise<std::exp, tl::exp>},
      {"log", kSection, "(x)", "The natural logarithm.", elementwise<std::log, tl::log>},
      {"log2", kSection, "(x)", "The logarithm to base 2.", elementwise<std::log2, tl::log2>},
      {"log10", kSection, "(x)", "The logarithm to base 10.", elementwise<std::log10, tl::log10>},
      {"sqrt", kSection, "(x)", "The square root.", elementwise<std::sqrt, tl::sqrt>},
      {"sin", kSection, "(x)", "The sine.", elementwise<std::sin, tl::sin>},
      {"cos", kSection, "(x)", "The cosine.", elementwise<std::cos, tl::cos>},
      {"tan", kSection, "(x)", "The tangent.", elementwise<std::tan, tl::tan>},
      {"tanh", kSection, "(x)", "The hyperbolic tangent.", elementwise<std::tanh, tl::tanh>},
      {"sigmoid", kSection, "(x)", "1 / (1 + e^-x).", elementwise<number_sigmoid, tl::sigmoid>},
      {"gelu", kSection, "(x)", "The Gaussian error unit, tanh form.",
       activation<number_gelu, tl::gelu, tl::UnaryOp::Gelu>},
      {"silu", kSection, "(x)", "x sigmoid(x).",
       activation<number_silu, tl::silu, tl::UnaryOp::Silu>},
      {"relu", kSection, "(x)", "The larger of x and 0.", call_relu},
      {"abs", kSection, "(x)", "The magnitude.", call_abs},
      {"sqr", kSection, "(x)", "x times x.", call_sqr},
      {"sign", kSection, "(x)", "-1, 0 or 1.", call_sign},
      {"floor", kSection, "(x)", "Rounded down: an Integer for a number.",
       rounded<std::floor, tl::floor>},
      {"ceil", kSection, "(x)", "Rounded up: an Integer for a number.",
       rounded<std::ceil, tl::ceil>},
      {"round", kSection, "(x)", "Rounded, half away from zero: an Integer for a number.",
       rounded<std::round, tl::round>},
      {"trunc", kSection, "(x)", "Rounded toward zero: an Integer for a number.",
       rounded<std::trunc, tl::trunc>},
      {"inverse", kSection, "(x)", "The inverse of a matrix, or of each in a batch.", call_inverse},
      {"det", kSection, "(x)", "The determinant of a matrix, or of each in a batch.", call_det},
      {"determinant", kSection, "(x)", "The same as det.", call_det},
      {"solve", kSection, "(a, b)", "The x with a @ x = b.", call_solve},
      {"svd", kSection, "(x)",
       "(u, s, vt) with x = u @ diag(s) @ vt: s holds the singular values, the largest first.",
       call_svd},
      {"einsum", kSection, "(equation, ...tensors)",
       "The sum of products named by indices, as in \"ij,jk->ik\".", call_einsum},
  };
  static const std::vector<Builtin> all_rows = joined({rows, reduce_builtins()});
  return all_rows;
}

}  // namespace tl::lang
