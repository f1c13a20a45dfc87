#include "ops/row_grad.h"

#include <algorithm>

#include "ops/cpu/row_grad.h"
#include "ops/gpu/row_grad.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"

namespace tl::ops {

Tensor softmax_gradient(const Tensor& y, const Tensor& g, bool logarithm) {
  const NoHistory none;
  Tensor out = Tensor::uninitialized(y.shape(), y.dtype(), y.device());
  if (out.empty()) return out;
  const Tensor of = contiguous(y), with = contiguous(g);
  if (y.location().is_cpu()) {
    cpu::softmax_gradient(of, with, out, logarithm);
  } else {
    gpu::softmax_gradient(of, with, out, logarithm);
  }
  return out;
}

Tensor cross_entropy_gradient(const CrossEntropyGradient& arguments) {
  const NoHistory none;
  const Tensor& logits = arguments.logits;
  Tensor out = Tensor::uninitialized(logits.shape(), logits.dtype(), logits.device());
  if (out.empty()) return out;
  CrossEntropyGradient ready = arguments;
  ready.ids = contiguous(arguments.ids);
  ready.g = contiguous(arguments.g);
  if (logits.location().is_cpu()) {
    cpu::cross_entropy_gradient(ready, out);
  } else {
    gpu::cross_entropy_gradient(ready, out);
  }
  return out;
}

namespace {

// Rows in a part: many parts keep a device busy, but each is a row more to add up in the end. The
// same for every device, so that results do not depend on how many threads there are.
std::int64_t rows_together(std::int64_t rows) {
  constexpr std::int64_t kLeast = 32, kMostParts = 128;
  return std::max(kLeast, (rows + kMostParts - 1) / kMostParts);
}

}  // namespace

NormGradients norm_gradients(const Tensor& x, const Tensor& weight, const Tensor& g, double epsilon,
                             bool centered, bool of_weights) {
  const NoHistory none;
  const std::int64_t rows = x.dim(0), n = x.dim(1);
  const bool on_cpu = x.location().is_cpu();
  const DType wide = x.dtype() == DType::F64 ? DType::F64 : DType::F32;
  NormGradients out;
  out.x = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  if (x.empty()) {
    if (of_weights) out.weight = out.bias = Tensor::zeros({n}, wide, x.device());
    return out;
  }
  const Tensor from = contiguous(x), with = contiguous(g), by = contiguous(weight);
  Tensor means = Tensor::uninitialized({rows}, wide, x.device());
  Tensor scales = Tensor::uninitialized({rows}, wide, x.device());
  const NormGradientArguments arguments{.x = &from,
                                        .g = &with,
                                        .weight = weight.empty() ? nullptr : &by,
                                        .epsilon = epsilon,
                                        .centered = centered};
  on_cpu ? cpu::norm_gradient(arguments, out.x, means, scales)
         : gpu::norm_gradient(arguments, out.x, means, scales);
  if (!of_weights) return out;
  const std::int64_t each = rows_together(rows), parts = (rows + each - 1) / each;
  Tensor weights = Tensor::uninitialized({parts, n}, wide, x.device());
  Tensor biases = Tensor::uninitialized({parts, n}, wide, x.device());
  const NormWeightArguments sums{
      .x = &from, .g = &with, .means = &means, .scales = &scales, .each = each};
  on_cpu ? cpu::norm_weight_gradient(sums, weights, biases)
         : gpu::norm_weight_gradient(sums, weights, biases);
  out.weight = sum(weights, {0});
  out.bias = sum(biases, {0});
  return out;
}

}  // namespace tl::ops
