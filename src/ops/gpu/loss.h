// Cross entropy on a GPU.
#pragma once

#include "ops/loss.h"

namespace tl::gpu {

void cross_entropy(const Tensor& logits, const Tensor& targets, Tensor& losses, Tensor& counted,
                   const ops::CrossEntropyArguments& arguments);
// Their sum, or the mean over those that count, into the one element of `out`.
void total(const Tensor& losses, const Tensor& counted, Tensor& out, bool mean);

}  // namespace tl::gpu
