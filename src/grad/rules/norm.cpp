// Normalisation layers. Inputs: x, the statistics of a batch norm, then a weight and a bias, which
// may be missing. Sums are kept in f32 or wider.
#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "ops/row_grad.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"

namespace tl::grad {

namespace {

// How a norm sees its input: the shape it takes it in, the dimensions of that which it normalises
// over, and the shape in which a weight is broadcast to it.
struct View {
  Shape shape;
  Dims over;
  Shape weight;
  bool centered = true;
};

// y = n w + b with n = (x - mean) scale, so dx = (gw - n mean(gw n) - mean(gw)) scale with gw = g
// w.
void norm_rule(Flow& flow, const View& view) {
  const Tensor x = reshape(widened(flow.input(0)), view.shape);
  const Tensor g = reshape(widened(flow.gradient()), view.shape);
  if (flow.wants(2)) flow.give(2, reshape(sum_to(g, view.weight), flow.shape(2)));
  if (!flow.wants(0) && !flow.wants(1)) return;
  const auto mean_of = [&](const Tensor& values) { return mean(values, view.over, true); };
  const Tensor centre = view.centered ? sub(x, mean_of(x)) : x;
  const Tensor scale = rsqrt(add(mean_of(sqr(centre)), flow.real(0)));
  const Tensor normed = mul(centre, scale);
  if (flow.wants(1)) {
    flow.give(1, reshape(sum_to(mul(g, normed), view.weight), flow.shape(1)));
  }
  if (!flow.wants(0)) return;
  const Tensor weight = flow.input(1);
  const Tensor weighted = weight.empty() ? g : mul(g, reshape(widened(weight), view.weight));
  Tensor away = sub(weighted, mul(normed, mean_of(mul(weighted, normed))));
  if (view.centered) away = sub(away, mean_of(weighted));
  flow.give(0, reshape(mul(away, scale), flow.shape(0)));
}

// Settings: epsilon and over how many of the last dimensions.
View last_dims(const Flow& flow, bool centered) {
  View view{.shape = flow.shape(0), .over = {}, .weight = {}, .centered = centered};
  const int rank = view.shape.size();
  for (int d = rank - static_cast<int>(flow.integer(1)); d < rank; ++d) {
    view.over.push_back(d);
    view.weight.push_back(view.shape[d]);
  }
  return view;
}

// By kernels of their own, unless what they give is to be differentiated.
void last_dims_rule(Flow& flow, bool centered) {
  const View view = last_dims(flow, centered);
  const std::int64_t n = element_count("norm", view.weight);
  if (flow.follows() || n == 0) return norm_rule(flow, view);
  const Tensor x = flow.input(0), weight = flow.input(1);
  const Shape rows{x.count() / n, n};
  const ops::NormGradients found =
      ops::norm_gradients(reshape(x, rows), weight.empty() ? weight : reshape(weight, {n}),
                          reshape(to_dtype(flow.gradient(), x.dtype()), rows), flow.real(0),
                          centered, flow.wants(1) || flow.wants(2));
  if (flow.wants(0)) flow.give(0, reshape(found.x, flow.shape(0)));
  if (flow.wants(1)) flow.give(1, reshape(found.weight, flow.shape(1)));
  if (flow.wants(2)) flow.give(2, reshape(found.bias, flow.shape(2)));
}

void rms_norm_rule(Flow& flow) { last_dims_rule(flow, false); }
void layer_norm_rule(Flow& flow) { last_dims_rule(flow, true); }

// Settings: epsilon and the number of groups.
void group_norm_rule(Flow& flow) {
  const Shape& x = flow.shape(0);
  const std::int64_t groups = flow.integer(1), each = x[1] / groups;
  std::int64_t inner = 1;
  for (int d = 2; d < x.size(); ++d) inner *= x[d];
  norm_rule(flow,
            {.shape = {x[0], groups, each, inner}, .over = {2, 3}, .weight = {groups, each, 1}});
}

// With the statistics given: y = (x - mean) scale w + b, scale = 1 / sqrt(variance + eps). Inputs:
// x, mean, variance, weight, bias.
void batch_norm_rule(Flow& flow) {
  const Tensor g = widened(flow.gradient());
  Shape shape = Shape::repeated(g.rank() - 1, 1);  // of a channel's number beside x
  shape[0] = g.dim(1);
  const auto per_channel = [&](const Tensor& x) { return reshape(widened(x), shape); };
  const auto give = [&](std::size_t i, const Tensor& values) {
    flow.give(i, reshape(sum_to(values, shape), flow.shape(i)));
  };
  if (flow.wants(4)) give(4, g);
  const Tensor scale = rsqrt(add(per_channel(flow.input(2)), flow.real(0)));
  const Tensor weight = flow.input(3);
  const Tensor factor = weight.empty() ? scale : mul(scale, per_channel(weight));
  const Tensor dx = mul(g, factor);
  flow.give(0, dx);
  if (flow.wants(1)) give(1, neg(dx));
  if (!flow.wants(2) && !flow.wants(3)) return;
  const Tensor away = sub(widened(flow.input(0)), per_channel(flow.input(1)));
  if (flow.wants(2)) give(2, mul(mul(dx, away), mul(sqr(scale), -0.5)));
  if (flow.wants(3)) give(3, mul(mul(g, away), scale));
}

}  // namespace

std::span<const Rule> norm_rules() {
  static constexpr unsigned kParts = keeps_input(0) | keeps_input(1);
  static constexpr Rule kRules[] = {
      {"rms_norm", rms_norm_rule, kParts},
      {"layer_norm", layer_norm_rule, kParts},
      {"group_norm", group_norm_rule, kParts},
      {"batch_norm", batch_norm_rule, kParts | keeps_input(2) | keeps_input(3)},
  };
  return kRules;
}

}  // namespace tl::grad
