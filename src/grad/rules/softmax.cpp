#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/binary.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::grad {

namespace {

void softmax_rule(Flow& flow) {
  const Tensor y = flow.result();
  const Tensor weighted = mul(flow.gradient(), y);
  flow.give(0, sub(weighted, mul(y, sum(weighted, {flow.integer(0)}, true))));
}

void log_softmax_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
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
