// Elementwise functions of two tensors, or of a tensor and a number: then settings are the number
// and whether it stands first.
#include <cmath>

#include "grad/flow.h"
#include "grad/rules.h"
#include "tl/ops/affine.h"
#include "tl/ops/binary.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

constexpr unsigned kInput = keeps_input(0);
constexpr unsigned kBoth = keeps_input(0) | keeps_input(1);

bool number_is_first(const Flow& flow) { return flow.flag(1); }

void add_rule(Flow& flow) {
  flow.give(0, flow.gradient());
  flow.give(1, flow.gradient());
}
void add_number_rule(Flow& flow) { flow.give(0, flow.gradient()); }

void sub_rule(Flow& flow) {
  flow.give(0, flow.gradient());
  if (flow.wants(1)) flow.give(1, neg(flow.gradient()));
}
void sub_number_rule(Flow& flow) {
  flow.give(0, number_is_first(flow) ? neg(flow.gradient()) : flow.gradient());
}

void mul_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
  if (flow.wants(0)) flow.give(0, mul(g, flow.input(1)));
  if (flow.wants(1)) flow.give(1, mul(g, flow.input(0)));
}
void mul_number_rule(Flow& flow) { flow.give(0, mul(flow.gradient(), flow.number(0))); }

void div_rule(Flow& flow) {
  const Tensor g = div(flow.gradient(), flow.input(1));
  flow.give(0, g);
  if (flow.wants(1)) flow.give(1, neg(mul(g, div(flow.input(0), flow.input(1)))));
}
void div_by_number_rule(Flow& flow) { flow.give(0, div(flow.gradient(), flow.number(0))); }
void div_of_number_rule(Flow& flow) {
  const Tensor x = flow.input(0);
  flow.give(0, mul(flow.gradient(), div(-flow.real(0), sqr(x))));
}

// All to the one that is larger (or smaller), half to each of two equals.
template <bool kLargest>
void choose_rule(Flow& flow) {
  const Tensor a = flow.input(0), b = flow.input(1);
  const Tensor& g = flow.gradient();
  const Tensor half = mul(g, 0.5);
  const Tensor tied = where(eq(a, b), half, 0);
  flow.give(0, where(kLargest ? gt(a, b) : lt(a, b), g, tied));
  flow.give(1, where(kLargest ? lt(a, b) : gt(a, b), g, tied));
}
template <bool kLargest>
void choose_number_rule(Flow& flow) {
  const Tensor a = flow.input(0);
  const Scalar b = flow.number(0);
  const Tensor& g = flow.gradient();
  flow.give(0, where(kLargest ? gt(a, b) : lt(a, b), g, where(eq(a, b), mul(g, 0.5), 0)));
}

// The logarithm of 0 is not asked for where the power is 0 whatever the exponent.
Tensor log_of_base(const Tensor& base) { return log(where(eq(base, 0), 1, base)); }

void pow_rule(Flow& flow) {
  const Tensor a = flow.input(0), b = flow.input(1);
  const Tensor& g = flow.gradient();
  if (flow.wants(0)) {
    flow.give(0, mul(g, where(eq(b, 0), 0, mul(b, pow(a, sub(b, 1))))));
  }
  if (flow.wants(1)) flow.give(1, mul(g, mul(pow(a, b), log_of_base(a))));
}
void pow_to_number_rule(Flow& flow) {
  const double b = flow.real(0);
  if (b == 0) return;
  flow.give(0, mul(flow.gradient(), mul(pow(flow.input(0), b - 1), b)));
}
void pow_of_number_rule(Flow& flow) {
  const double a = flow.real(0);
  flow.give(0, mul(flow.gradient(), mul(pow(a, flow.input(0)), a == 0 ? 0 : std::log(a))));
}

// a - b n, where n is a / b rounded and does not move.
void rem_rule(Flow& flow) {
  flow.give(0, flow.gradient());
  if (flow.wants(1)) {
    flow.give(1, neg(mul(flow.gradient(), floor_div(flow.input(0), flow.input(1)))));
  }
}
void fmod_rule(Flow& flow) {
  flow.give(0, flow.gradient());
  if (flow.wants(1)) {
    flow.give(1, neg(mul(flow.gradient(), trunc(div(flow.input(0), flow.input(1))))));
  }
}
void rem_number_rule(Flow& flow) {
  if (!number_is_first(flow)) return flow.give(0, flow.gradient());
  flow.give(0, neg(mul(flow.gradient(), floor_div(flow.number(0), flow.input(0)))));
}
void fmod_number_rule(Flow& flow) {
  if (!number_is_first(flow)) return flow.give(0, flow.gradient());
  flow.give(0, neg(mul(flow.gradient(), trunc(div(flow.number(0), flow.input(0))))));
}

void atan2_rule(Flow& flow) {
  const Tensor a = flow.input(0), b = flow.input(1);
  const Tensor g = div(flow.gradient(), add(sqr(a), sqr(b)));
  if (flow.wants(0)) flow.give(0, mul(g, b));
  if (flow.wants(1)) flow.give(1, neg(mul(g, a)));
}
void atan2_number_rule(Flow& flow) {
  const Tensor x = flow.input(0);
  const double other = flow.real(0);
  const Tensor g = div(flow.gradient(), add(sqr(x), other * other));
  flow.give(0, mul(g, number_is_first(flow) ? -other : other));
}

void div_number_rule(Flow& flow) {
  number_is_first(flow) ? div_of_number_rule(flow) : div_by_number_rule(flow);
}
void pow_number_rule(Flow& flow) {
  number_is_first(flow) ? pow_of_number_rule(flow) : pow_to_number_rule(flow);
}

}  // namespace

std::span<const Rule> binary_rules() {
  static constexpr Rule kRules[] = {
      {"add", add_rule},
      {"add_number", add_number_rule},
      {"sub", sub_rule},
      {"sub_number", sub_number_rule},
      {"mul", mul_rule, kBoth},
      {"mul_number", mul_number_rule},
      {"div", div_rule, kBoth},
      {"div_number", div_number_rule, kInput},
      {"maximum", choose_rule<true>, kBoth},
      {"maximum_number", choose_number_rule<true>, kInput},
      {"minimum", choose_rule<false>, kBoth},
      {"minimum_number", choose_number_rule<false>, kInput},
      {"pow", pow_rule, kBoth},
      {"pow_number", pow_number_rule, kInput},
      {"rem", rem_rule, kBoth},
      {"rem_number", rem_number_rule, kInput},
      {"fmod", fmod_rule, kBoth},
      {"fmod_number", fmod_number_rule, kInput},
      {"atan2", atan2_rule, kBoth},
      {"atan2_number", atan2_number_rule, kInput},
  };
  return kRules;
}

}  // namespace tl::grad
