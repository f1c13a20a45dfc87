// Joining, padding and rearranging, and parts of matrices: every element goes back.
#include "tl/ops/join.h"

#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/create.h"

namespace tl::grad {

namespace {

void cat_rule(Flow& flow) {
  const auto dim = static_cast<int>(flow.integer(0));
  std::int64_t at = 0;
  for (std::size_t i = 0; i < flow.size(); ++i) {
    const std::int64_t length = flow.shape(i)[dim];
    if (flow.wants(i)) flow.give(i, flow.gradient().narrow(dim, at, length));
    at += length;
  }
}

void pad_rule(Flow& flow) {
  Tensor inside = flow.gradient();
  for (int d = 0; d < inside.rank(); ++d) {
    inside = inside.narrow(d, flow.dims(0)[d], flow.shape(0)[d]);
  }
  flow.give(0, inside);
}

void roll_rule(Flow& flow) {
  flow.give(0, roll(flow.gradient(), -flow.integer(0), flow.integer(1)));
}

void flip_rule(Flow& flow) { flow.give(0, flip(flow.gradient(), flow.dims(0))); }

void tril_rule(Flow& flow) { flow.give(0, tril(flow.gradient(), flow.integer(0))); }
void triu_rule(Flow& flow) { flow.give(0, triu(flow.gradient(), flow.integer(0))); }

}  // namespace

std::span<const Rule> join_rules() {
  static constexpr Rule kRules[] = {
      {"cat", cat_rule},   {"pad", pad_rule},   {"roll", roll_rule},
      {"flip", flip_rule}, {"tril", tril_rule}, {"triu", triu_rule},
  };
  return kRules;
}

}  // namespace tl::grad
