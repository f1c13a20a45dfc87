// Matrix products. Inputs: two of rank 2 or more and a bias, which may be missing.
#include "tl/ops/matmul.h"
#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/copy.h"

namespace tl::grad {

namespace {

Tensor as_rows(const Tensor& x) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < x.rank(); ++d) rows *= x.shape()[d];
  return x.rank() == 2 ? x : reshape(x, {rows, x.dim(-1)});
}

void matmul_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
  if (flow.wants(0)) flow.give(0, matmul(g, flow.input(1).t()));
  if (flow.wants(1)) {
    const Tensor a = flow.input(0);
    // One matrix for a whole batch: one product over all rows, not one for each item and a sum.
    const bool shared = flow.shape(1).size() == 2;
    flow.give(1, shared ? matmul(as_rows(a).t(), as_rows(g)) : matmul(a.t(), g));
  }
  if (flow.wants(2)) flow.give(2, g);
}

}  // namespace

std::span<const Rule> matmul_rules() {
  static constexpr Rule kRules[] = {
      {"matmul", matmul_rule, keeps_input(0) | keeps_input(1)},
  };
  return kRules;
}

}  // namespace tl::grad
