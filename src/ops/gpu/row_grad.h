// Gradients of row ops on a GPU.
#pragma once

#include "ops/row_grad.h"

namespace tl::gpu {

void softmax_gradient(const Tensor& y, const Tensor& g, Tensor& out, bool logarithm);
// The logits may have gaps.
void cross_entropy_gradient(const ops::CrossEntropyGradient& arguments, Tensor& out);
// Also gives what each row is shifted and scaled by, in the dtype that sums are kept in.
void norm_gradient(const ops::NormGradientArguments& arguments, Tensor& out, Tensor& means,
                   Tensor& scales);
// Both (parts, n).
void norm_weight_gradient(const ops::NormWeightArguments& arguments, Tensor& weights,
                          Tensor& biases);

}  // namespace tl::gpu
