// Every op of the table: gradients as finite differences have them, or a place on the list of ops
// through which none goes.
#include <set>

#include "grad/check.h"
#include "ops/op_arguments.h"
#include "tl/ops/table.h"

namespace tl {
namespace {

using namespace test;

class EveryGradient : public OnEveryDevice {};
TL_ON_EVERY_DEVICE(EveryGradient);

// Their results do not move with their inputs, or only in jumps; or there are no inputs.
const std::set<std::string_view> kFlat = {
    "sign",        "floor",
    "ceil",        "trunc",
    "round",       "round_even",
    "round_to",    "isnan",
    "isinf",       "isfinite",
    "logical_not", "bitwise_not",
    "floor_div",   "bitwise_and",
    "bitwise_or",  "bitwise_xor",
    "shift_left",  "shift_right",
    "logical_and", "logical_or",
    "logical_xor", "eq",
    "ne",          "lt",
    "le",          "gt",
    "ge",          "argmin",
    "argmax",      "all",
    "any",         "count_nonzero",
    "argsort",     "nonzero",
    "one_hot",     "full",
    "ones",        "zeros_like",
    "ones_like",   "full_like",
    "arange",      "linspace",
    "eye",         "tril2",
    "triu2",       "rand_uniform",
    "rand_normal", "randint",
    "bernoulli",   "rand_like",
    "randn_like",  "to",
    "to_dtype",    "arg_sort_last_dim",
};

// Values inside what the function is defined for, away from its kinks.
double fitted(std::string_view op, double x) {
  const double positive = 0.5 + std::fabs(x);
  if (op == "sqrt" || op == "rsqrt" || op.starts_with("log") || op == "powf" || op == "pow") {
    return positive;
  }
  if (op == "asin" || op == "acos") return 0.8 * x;
  if (op == "binary_cross_entropy" || op == "kl_div" || op == "batch_norm") {
    return 0.1 + 0.7 * std::fabs(x);
  }
  return x;
}

// An op as a function of the tensors among its arguments.
struct Case {
  std::vector<Tensor> inputs;
  Function function;
};

Case case_of(const OpRow& row, std::vector<OpValue> arguments) {
  Case out;
  for (const OpValue& value : arguments) {
    if (const auto* x = std::get_if<Tensor>(&value)) out.inputs.push_back(*x);
    if (const auto* list = std::get_if<std::vector<Tensor>>(&value)) {
      out.inputs.insert(out.inputs.end(), list->begin(), list->end());
    }
  }
  out.function = [&row, arguments](std::span<const Tensor> inputs) {
    std::vector<OpValue> filled = arguments;
    std::size_t next = 0;
    for (OpValue& value : filled) {
      if (auto* x = std::get_if<Tensor>(&value)) *x = inputs[next++];
      if (auto* list = std::get_if<std::vector<Tensor>>(&value)) {
        for (Tensor& x : *list) x = inputs[next++];
      }
    }
    return call_op(row.name, filled)[0];
  };
  return out;
}

TEST_P(EveryGradient, IsThatOfFiniteDifferences) {
  std::size_t flat = 0;
  for (const OpRow& row : op_table()) {
    if (!row.dtypes.has(DType::F64) && row.name != "where") continue;
    std::uint64_t seed = 1;
    const Arguments made(device(), 2, DType::F64, [&](const Shape& shape, DType dtype) {
      ++seed;
      if (dtype != DType::F64) {  // indices and masks
        std::vector<std::int64_t> ids;
        for (std::int64_t i = 0; i < element_count("ids", shape); ++i) {
          ids.push_back((i + static_cast<std::int64_t>(seed)) % 2);
        }
        return to_dtype(Tensor::from(ids, shape, device()), dtype);
      }
      std::vector<double> values = spread_values(element_count("values", shape), seed);
      for (double& x : values) x = fitted(row.name, x);
      return Tensor::from(values, shape, device());
    });
    const Case one = case_of(row, made.arguments(row));
    const std::string name(row.name);
    SCOPED_TRACE(name);
    try {
      if (kFlat.contains(row.name)) {
        ++flat;
        std::vector<Tensor> followed;
        for (const Tensor& x : one.inputs) {
          followed.push_back(is_float(x.dtype()) ? follow(x) : x);
        }
        if (name != "to" && name != "to_dtype") {
          EXPECT_FALSE(one.function(followed).has_history()) << name;
        }
        continue;
      }
      expect_gradients_of_any_layout(name, one.function, one.inputs);
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << row.signature << ": " << error.what();
    }
  }
  EXPECT_GT(flat, 40u);
}

}  // namespace
}  // namespace tl
