// Reductions. Settings: the dimensions, then what the op was told.
#include <cmath>

#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

constexpr unsigned kInput = keeps_input(0);

// The shape of the input with the reduced dimensions as ones, which broadcasts to the input's.
Shape kept_shape(const Flow& flow) {
  Shape shape = flow.shape(0);
  for (const std::int64_t d : flow.dims(0)) shape[static_cast<int>(d)] = 1;
  return shape;
}
Tensor gradient(const Flow& flow) { return reshape(flow.gradient(), kept_shape(flow)); }
Tensor result(const Flow& flow) { return reshape(flow.result(), kept_shape(flow)); }

double count_of(const Flow& flow) {
  double count = 1;
  for (const std::int64_t d : flow.dims(0)) {
    count *= static_cast<double>(flow.shape(0)[static_cast<int>(d)]);
  }
  return count;
}

void sum_rule(Flow& flow) { flow.give(0, gradient(flow).broadcast_as(flow.shape(0))); }

void mean_rule(Flow& flow) {
  flow.give(0, div(gradient(flow), count_of(flow)).broadcast_as(flow.shape(0)));
}

// The product of all others: of everything over x where nothing is 0; where one element is 0, only
// it moves the product; where two are, nothing does.
void prod_rule(Flow& flow) {
  const Tensor x = flow.input(0);
  const Tensor is_zero = eq(x, 0);
  const Tensor filled = where(is_zero, 1, x);
  const Tensor others = prod(filled, flow.dims(0), true);
  const Tensor zeros = sum(to_dtype(is_zero, x.dtype()), flow.dims(0), true);
  const Tensor no_zero = where(eq(zeros, 0), others, 0);
  const Tensor one_zero = where(eq(zeros, 1), others, 0);
  const Tensor slope = where(is_zero, one_zero.broadcast_as(x.shape()), div(no_zero, filled));
  flow.give(0, mul(gradient(flow), slope));
}

Tensor centred(const Flow& flow) {
  const Tensor x = flow.input(0);
  return sub(x, mean(x, flow.dims(0), true));
}
void var_rule(Flow& flow) {
  const double scale = 2 / (count_of(flow) - flow.real(1));
  flow.give(0, mul(mul(gradient(flow), scale), centred(flow)));
}
void std_rule(Flow& flow) {
  const double scale = 1 / (count_of(flow) - flow.real(1));
  // Where nothing differs, nothing moves it to either side.
  const Tensor y = result(flow), is_none = eq(y, 0);
  const Tensor g = where(is_none, 0, mul(gradient(flow), scale));
  flow.give(0, mul(div(g, where(is_none, 1, y)), centred(flow)));
}

// To the extreme element; to several equal ones in equal parts.
void shared_by(Flow& flow, const Tensor& chosen, const Tensor& slope) {
  const Tensor ones = to_dtype(chosen, slope.dtype());
  const Tensor share = div(gradient(flow), sum(ones, flow.dims(0), true));
  flow.give(0, where(chosen, mul(share, slope), 0));
}
void extreme_rule(Flow& flow) {
  const Tensor x = flow.input(0);
  shared_by(flow, eq(x, result(flow)), where(eq(x, x), 1, x));
}

void logsumexp_rule(Flow& flow) {
  // A row of -inf alone is less than any, whatever its elements do.
  const Tensor y = result(flow);
  flow.give(0, mul(gradient(flow), exp(sub(flow.input(0), where(isinf(y), 0, y)))));
}

void norm_rule(Flow& flow) {
  const double p = flow.real(1);
  if (p == 0) return;  // a count
  const Tensor x = flow.input(0), y = result(flow);
  if (p == 1) return flow.give(0, mul(gradient(flow), sign(x)));
  if (std::isinf(p)) return shared_by(flow, eq(abs(x), y), sign(x));
  const Tensor is_none = eq(y, 0);
  const Tensor filled = where(is_none, 1, y);
  const Tensor g = where(is_none, 0, gradient(flow));
  if (p == 2) return flow.give(0, mul(x, div(g, filled)));
  // |x|^(p - 2) x, which for p < 2 must not be asked for at 0.
  const Tensor magnitude = where(eq(x, 0), 1, abs(x));
  const Tensor slope = mul(x, powf(magnitude, p - 2));
  flow.give(0, mul(slope, div(g, powf(filled, p - 1))));
}

}  // namespace

std::span<const Rule> reduce_rules() {
  static constexpr Rule kRules[] = {
      {"sum", sum_rule},
      {"mean", mean_rule},
      {"prod", prod_rule, kInput},
      {"var", var_rule, kInput},
      {"std", std_rule, kInput | kKeepsResult},
      {"min", extreme_rule, kInput | kKeepsResult},
      {"max", extreme_rule, kInput | kKeepsResult},
      {"logsumexp", logsumexp_rule, kInput | kKeepsResult},
      {"norm", norm_rule, kInput | kKeepsResult},
  };
  return kRules;
}

}  // namespace tl::grad
