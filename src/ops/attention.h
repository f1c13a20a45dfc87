// What both devices are told about an attention.
#pragma once

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

  std::int64_t batch() const { return q->shape()[0]; }
  std::int64_t heads() const { return q->shape()[1]; }
  std::int64_t queries() const { return q->shape()[2]; }
  std::int64_t depth() const { return q->shape()[3]; }
  std::int64_t kv_heads() const { return k->shape()[1]; }
  std::int64_t keys() const { return k->shape()[2]; }
  std::int64_t value_depth() const { return v->shape()[3]; }
};

}  // namespace tl::ops
