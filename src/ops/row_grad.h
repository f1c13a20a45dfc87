// Gradients of row ops in one go, for training: what the rules of src/grad/rules would compose of
// ops, with each row read and written once. They have no history of their own.
#pragma once

#include "tl/tensor/tensor.h"

namespace tl::ops {

// Of a softmax over the last dimension, from its result y and the gradient g of that. Floats, of
// one shape, dtype and device.
Tensor softmax_gradient(const Tensor& y, const Tensor& g, bool logarithm);

// Of the losses of a cross entropy. What the op kept: logits (n, c), the class of each row, 1 or 0
// for each row that counts or does not, and (2, n) its largest logit and the sum of exp(x -
// largest).
struct CrossEntropyGradient {
  Tensor logits, ids, counted, kept;
  Tensor g;  // (n), of the losses; as these in f32, or f64 for f64
  double smoothing = 0;
};
// As the logits.
Tensor cross_entropy_gradient(const CrossEntropyGradient& arguments);

struct NormGradients {
  Tensor x;       // as x
  Tensor weight;  // (n), in what sums are kept in: f32, or f64 for f64
  Tensor bias;    // the same
};

// Of an rms norm, or when it is centered a layer norm, over rows (rows, n). A weight (n) may be
// missing: Tensor(). Gradients of weight and bias are computed when they are asked for.
NormGradients norm_gradients(const Tensor& x, const Tensor& weight, const Tensor& g, double epsilon,
                             bool centered, bool of_weights);

// ---- what both devices implement. Everything is contiguous and nothing is empty.

struct NormGradientArguments {
  const Tensor* x = nullptr;       // (rows, n)
  const Tensor* g = nullptr;       // (rows, n)
  const Tensor* weight = nullptr;  // (n), may be null
  double epsilon = 0;
  bool centered = false;
};
// Sums over `each` rows at a time.
struct NormWeightArguments {
  const Tensor* x = nullptr;
  const Tensor* g = nullptr;
  const Tensor* means = nullptr;   // (rows)
  const Tensor* scales = nullptr;  // (rows)
  std::int64_t each = 1;
};

}  // namespace tl::ops
