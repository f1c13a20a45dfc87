#include "tl/ops/norm.h"

#include "ops/check.h"
#include "ops/cpu/norm.h"
#include "ops/gpu/norm.h"
#include "ops/norm.h"
#include "ops/recorded.h"
#include "ops/rows.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

using Part = std::optional<Tensor>;  // a weight or a bias

void expect_shape(std::string_view op, std::string_view what, const Part& part, const Shape& wanted,
                  const Tensor& x) {
  if (part.has_value() && part->shape() != wanted) {
    throw Error(ErrorKind::ShapeMismatch, op, what, " has shape ", part->shape(), ", and ", wanted,
                " is needed for shape ", x.shape());
  }
}

void expect_alike(std::string_view op, const Tensor& x, const Part& part) {
  if (!part.has_value()) return;
  ops::expect_same_device(op, x, *part);
}

void expect_dtypes(std::string_view op, const Tensor& x, const Part& weight, const Part& bias) {
  expect_alike(op, x, weight);
  expect_alike(op, x, bias);
  ops::expect_float(op, x);
  if (weight.has_value()) ops::expect_same_dtype(op, x, *weight);
  if (bias.has_value()) ops::expect_same_dtype(op, x, *bias);
}

Part contiguous_part(const Part& part) {
  return part.has_value() ? Part(contiguous(*part)) : std::nullopt;
}
bool has_history_of(const Tensor& x, const Part& weight, const Part& bias) {
  return has_history(x, weight.value_or(Tensor()), bias.value_or(Tensor()));
}
const Tensor* pointer(const Part& part) { return part.has_value() ? &*part : nullptr; }

// Norms the rows of `rows`, a view or copy of x with what is normalised as its last dimension.
Tensor norm_rows(const Tensor& x, const Tensor& rows, const Part& weight, const Part& bias,
                 ops::NormArguments arguments) {
  Tensor out = Tensor::uninitialized(rows.shape(), x.dtype(), x.device());
  if (x.empty()) return out.view(x.shape());
  const Part weights = contiguous_part(weight), biases = contiguous_part(bias);
  arguments.weight = pointer(weights);
  arguments.bias = pointer(biases);
  if (x.location().is_cpu()) {
    cpu::norm(rows, out, arguments);
  } else {
    gpu::norm(rows, out, arguments);
  }
  return out.view(x.shape());
}

Tensor last_dims_norm(std::string_view op, const Tensor& x, const Shape& shape, const Part& weight,
                      const Part& bias, double eps, bool centered) {
  if (has_history_of(x, weight, bias)) {
    Tensor out = ops::without_history(
        [&] { return last_dims_norm(op, x, shape, weight, bias, eps, centered); });
    add_history(out, op, {x, weight.value_or(Tensor()), bias.value_or(Tensor())},
                {eps, shape.size()});
    return out;
  }
  const int outer = x.rank() - shape.size();
  bool fits = outer >= 0;
  for (int d = 0; fits && d < shape.size(); ++d) fits = x.shape()[outer + d] == shape[d];
  if (!fits) {
    throw Error(ErrorKind::ShapeMismatch, op, "shape ", x.shape(), " does not end in ", shape);
  }
  expect_shape(op, "weight", weight, shape, x);
  expect_shape(op, "bias", bias, shape, x);
  expect_dtypes(op, x, weight, bias);
  const std::int64_t n = element_count(op, shape);
  Tensor rows = x;
  if (shape.size() != 1) {
    Shape joined;
    for (int d = 0; d < outer; ++d) joined.push_back(x.shape()[d]);
    joined.push_back(n);
    rows = reshape(x, joined);
  }
  return norm_rows(x, rows, weight, bias, {.epsilon = eps, .centered = centered, .channels = n});
}

Shape last_dim(const Tensor& x) { return x.rank() == 0 ? Shape{} : Shape{x.shape()[x.rank() - 1]}; }

}  // namespace

Tensor rms_norm(const Tensor& x, const Part& weight, double eps) {
  return last_dims_norm("rms_norm", x, last_dim(x), weight, std::nullopt, eps, false);
}

Tensor layer_norm(const Tensor& x, const Part& weight, const Part& bias, double eps) {
  const Shape shape = weight.has_value() ? weight->shape()
                      : bias.has_value() ? bias->shape()
                                         : last_dim(x);
  return layer_norm_over(x, shape, weight, bias, eps);
}

Tensor layer_norm_over(const Tensor& x, const Shape& shape, const Part& weight, const Part& bias,
                       double eps) {
  return last_dims_norm("layer_norm", x, shape, weight, bias, eps, true);
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Part& weight, const Part& bias,
                  double eps) {
  constexpr std::string_view kOp = "group_norm";
  if (has_history_of(x, weight, bias)) {
    Tensor out = ops::without_history([&] { return group_norm(x, groups, weight, bias, eps); });
    add_history(out, kOp, {x, weight.value_or(Tensor()), bias.value_or(Tensor())}, {eps, groups});
    return out;
  }
  if (x.rank() < 2) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "shape ", x.shape(), " has no channels");
  }
  const std::int64_t channels = x.shape()[1];
  if (groups < 1 || channels % groups != 0) {
    throw Error(ErrorKind::BadArgument, kOp, channels, " channels of shape ", x.shape(),
                " do not divide into ", groups, " groups");
  }
  expect_shape(kOp, "weight", weight, {channels}, x);
  expect_shape(kOp, "bias", bias, {channels}, x);
  expect_dtypes(kOp, x, weight, bias);
  std::int64_t inner = 1;
  for (int d = 2; d < x.rank(); ++d) inner *= x.shape()[d];
  const std::int64_t each = channels / groups;
  return norm_rows(x, reshape(x, {x.shape()[0], groups, each * inner}), weight, bias,
                   {.epsilon = eps, .period = groups, .channels = each, .inner = inner});
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Part& weight,
                  const Part& bias, double eps) {
  constexpr std::string_view kOp = "batch_norm";
  if (has_history_of(x, weight, bias) || has_history(mean, variance)) {
    Tensor out =
        ops::without_history([&] { return batch_norm(x, mean, variance, weight, bias, eps); });
    add_history(out, kOp, {x, mean, variance, weight.value_or(Tensor()), bias.value_or(Tensor())},
                {eps});
    return out;
  }
  if (x.rank() < 2) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "shape ", x.shape(), " has no channels");
  }
  const Shape wanted{x.shape()[1]};
  expect_shape(kOp, "mean", mean, wanted, x);
  expect_shape(kOp, "variance", variance, wanted, x);
  expect_shape(kOp, "weight", weight, wanted, x);
  expect_shape(kOp, "bias", bias, wanted, x);
  expect_alike(kOp, x, mean);
  expect_alike(kOp, x, variance);
  expect_dtypes(kOp, x, weight, bias);
  ops::expect_same_dtype(kOp, x, mean);
  ops::expect_same_dtype(kOp, x, variance);
  Tensor out = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  if (x.empty()) return out;
  const Tensor means = contiguous(mean), variances = contiguous(variance);
  const Part weights = contiguous_part(weight), biases = contiguous_part(bias);
  const ops::BatchNormArguments arguments{&means, &variances, pointer(weights), pointer(biases),
                                          eps};
  if (x.location().is_cpu()) {
    cpu::batch_norm(x, out, arguments);
  } else {
    gpu::batch_norm(x, out, arguments);
  }
  return out;
}

namespace ops {

std::span<const OpRow> norm_rows() {
  static constexpr OpRow kRows[] = {
      {"rms_norm", "norm", "(x, weight = none, eps = 1e-5)", kFloatSet,
       "x / sqrt(mean(x^2) + eps) * weight over the last dimension.", call<&rms_norm>},
      {"layer_norm", "norm", "(x, weight = none, bias = none, eps = 1e-5)", kFloatSet,
       "(x - mean) / sqrt(variance + eps) * weight + bias over as many last dimensions as weight "
       "has.",
       call<&layer_norm>},
      {"layer_norm_over", "norm", "(x, shape, weight = none, bias = none, eps = 1e-5)", kFloatSet,
       "Layer norm over the last dimensions, which must be `shape`.", call<&layer_norm_over>},
      {"group_norm", "norm", "(x, groups, weight = none, bias = none, eps = 1e-5)", kFloatSet,
       "Layer norm over each group of channels of x (b, c, ...).", call<&group_norm>},
      {"batch_norm", "norm", "(x, mean, variance, weight = none, bias = none, eps = 1e-5)",
       kFloatSet, "(x - mean) / sqrt(variance + eps) * weight + bias for each channel.",
       call<&batch_norm>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
