#include "grad/flow.h"
#include "grad/rules.h"
#include "ops/row_grad.h"
#include "tl/ops/binary.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::grad {

namespace {

// Rows without gaps go through a kernel of their own, unless its result is to be differentiated.
bool in_one_go(const Flow& flow) {
  return !flow.follows() && flow.integer(0) == flow.shape(0).size() - 1 &&
         flow.gradient().dtype() == flow.dtype(0);
}

void softmax_rule(Flow& flow) {
  const Tensor y = flow.result();
  if (in_one_go(flow)) return flow.give(0, ops::softmax_gradient(y, flow.gradient(), false));
  const Tensor weighted = mul(flow.gradient(), y);
  flow.give(0, sub(weighted, mul(y, sum(weighted, {flow.integer(0)}, true))));
}

void log_softmax_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
  if (in_one_go(flow)) return flow.give(0, ops::softmax_gradient(flow.result(), g, true));
  flow.give(0, sub(g, mul(exp(flow.result()), sum(g, {flow.integer(0)}, true))));
}

}  // namespace

std::span<const Rule> softmax_rules() {
  static constexpr Rule kRules[] = {
      {"softmax", softmax_rule, kKeepsResult},
      {"log_softmax", log_softmax_rule, kKeepsResult},
  };
  return kRules;
}

}  // namespace tl::grad
