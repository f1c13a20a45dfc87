// Gates: both halves of the input get a half of the gradient.
#include "tl/ops/glu.h"

#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/affine.h"
#include "tl/ops/binary.h"
#include "tl/ops/join.h"
#include "tl/ops/unary.h"

namespace tl::grad {

namespace {

Tensor half(const Tensor& x, int which) {
  const std::int64_t size = x.dim(-1) / 2;
  return x.narrow(-1, which * size, size);
}

// a sigmoid(b)
void glu_rule(Flow& flow) {
  const Tensor x = flow.input(0);
  const Tensor open = sigmoid(half(x, 1));
  const Tensor to_a = mul(flow.gradient(), open);
  flow.give(0, cat({to_a, mul(mul(to_a, half(x, 0)), affine(open, -1, 1))}, -1));
}

// silu(a) b
void swiglu_rule(Flow& flow) {
  const Tensor x = flow.input(0);
  const Tensor a = half(x, 0);
  const Tensor& g = flow.gradient();
  const Tensor open = sigmoid(a), gate = mul(a, open);
  const Tensor slope = add(open, mul(gate, affine(open, -1, 1)));
  flow.give(0, cat({mul(mul(g, half(x, 1)), slope), mul(g, gate)}, -1));
}

}  // namespace

std::span<const Rule> glu_rules() {
  static constexpr Rule kRules[] = {
      {"glu", glu_rule, keeps_input(0)},
      {"swiglu", swiglu_rule, keeps_input(0)},
  };
  return kRules;
}

}  // namespace tl::grad
