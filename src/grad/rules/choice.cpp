// where, masked_fill, affine and clamp.
#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/binary.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

void where_rule(Flow& flow) {
  const Tensor condition = flow.input(0);
  if (flow.wants(1)) flow.give(1, where(condition, flow.gradient(), 0));
  if (flow.wants(2)) flow.give(2, where(condition, 0, flow.gradient()));
}

void affine_rule(Flow& flow) { flow.give(0, mul(flow.gradient(), flow.number(0))); }

// At a bound it still moves with x.
void clamp_rule(Flow& flow) {
  const Tensor x = flow.input(0);
  const Tensor inside = logical_and(ge(x, flow.number(0)), le(x, flow.number(1)));
  flow.give(0, where(inside, flow.gradient(), 0));
}

}  // namespace

std::span<const Rule> choice_rules() {
  static constexpr Rule kRules[] = {
      {"where", where_rule, keeps_input(0)},
      {"affine", affine_rule},
      {"clamp", clamp_rule, keeps_input(0)},
  };
  return kRules;
}

}  // namespace tl::grad
