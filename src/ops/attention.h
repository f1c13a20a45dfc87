// What both devices are told about an attention.
#pragma once

#include "tl/ops/attention.h"
#include "tl/tensor/tensor.h"

namespace tl::ops {

// Shapes as in tl/ops/attention.h, none of them empty; `out` is contiguous.
struct AttentionArguments {
  const Tensor* q = nullptr;
  const Tensor* k = nullptr;
  const Tensor* v = nullptr;
  const Tensor* mask = nullptr;    // broadcast to (b, h, t, s); may be null
  const Tensor* slopes = nullptr;  // contiguous (h); may be null
  double scale = 1;
  double softcap = 0;
  std::int64_t window = -1;  // negative: all
  bool causal = false;
  // (b, h, t) in f32, f64 for f64: where the logarithm of the sum of each query's exponentials
  // goes, infinity for one that sees nothing. Null: it is not kept.
  Tensor* logs = nullptr;

  std::int64_t batch() const { return q->shape()[0]; }
  std::int64_t heads() const { return q->shape()[1]; }
  std::int64_t queries() const { return q->shape()[2]; }
  std::int64_t depth() const { return q->shape()[3]; }
  std::int64_t kv_heads() const { return k->shape()[1]; }
  std::int64_t keys() const { return k->shape()[2]; }
  std::int64_t value_depth() const { return v->shape()[3]; }
};

// ---- the gradient in one go, for src/grad: nothing of the size of (t, s) is ever in memory

// Is there a kernel for it? Rules made of ops take what has none.
bool has_attention_gradient(const Tensor& q, const Tensor& v);

struct AttentionGradients {
  Tensor q, k, v;
};
// From the gradient g of the result `out`. Without a history.
AttentionGradients attention_gradients(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const AttentionOptions& options, const Tensor& out,
                                       const Tensor& logs, const Tensor& g);

// What both devices are told: `logs` and `out` as they were made, of g any strides, and contiguous
// tensors for the gradients.
struct AttentionGradientArguments {
  AttentionArguments forward;
  const Tensor* out = nullptr;
  const Tensor* logs = nullptr;
  const Tensor* g = nullptr;
};

}  // namespace tl::ops
