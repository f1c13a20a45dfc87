// Pooling of (b, c, l) or (b, c, h, w). Settings: kernel, stride and padding with entries for
// height and width, then whether a mean counts padding.
#include <algorithm>
#include <limits>
#include <vector>

#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

struct Axis {
  std::int64_t in, kernel, stride, padding;
  std::int64_t room() const { return in + 2 * padding; }
};

Tensor as_planes(const Tensor& x) { return x.rank() == 3 ? x.unsqueeze(2) : x; }

// Axis 0 is the height, 1 the width.
Axis axis_of(const Flow& flow, int axis) {
  const Shape& x = flow.shape(0);
  const std::int64_t in = axis == 1 ? x.back() : x.size() == 3 ? 1 : x[2];
  return {in, flow.dims(0)[axis], flow.dims(1)[axis], flow.dims(2)[axis]};
}

// Windows summed back to the planes they were taken from, padding left out.
Tensor unpooled(const Tensor& windows, int dim, const Axis& axis) {
  return fold(windows, dim, axis.stride, axis.room()).narrow(dim, axis.padding, axis.in);
}

// How much of each window lies inside.
Tensor sizes_inside(const Axis& axis, std::int64_t out, const Tensor& like) {
  std::vector<double> sizes;
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t first = i * axis.stride - axis.padding;
    sizes.push_back(static_cast<double>(std::min(first + axis.kernel, axis.in) -
                                        std::max<std::int64_t>(first, 0)));
  }
  return to_dtype(Tensor::from(sizes, {out}, like.device()), like.dtype());
}

void avg_pool_rule(Flow& flow) {
  const bool counts_padding = flow.flag(3);
  Tensor g = widened(as_planes(flow.gradient()));
  if (g.empty()) return;
  for (int axis = 1; axis >= 0; --axis) {
    const int dim = axis + 2;
    const Axis a = axis_of(flow, axis);
    if (counts_padding) {
      g = div(g, a.kernel);
    } else {
      const Tensor sizes = sizes_inside(a, g.dim(dim), g);
      g = div(g, axis == 0 ? sizes.unsqueeze(1) : sizes);
    }
    Shape shape = g.shape();
    shape.push_back(a.kernel);
    g = unpooled(g.unsqueeze(-1).broadcast_as(shape), dim, a);
  }
  flow.give(0, reshape(g, flow.shape(0)));
}

// To the largest element of each window; to several equal ones in equal parts.
void max_pool_rule(Flow& flow) {
  const Axis height = axis_of(flow, 0), width = axis_of(flow, 1);
  const Tensor g = as_planes(flow.gradient()).unsqueeze(-1).unsqueeze(-1);
  if (g.empty()) return;
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  const Tensor rows = padded(as_planes(flow.input(0)), 2, height.padding, height.padding, kLeast);
  const Tensor all = padded(rows, 3, width.padding, width.padding, kLeast);
  const Tensor windows =
      all.unfold(2, height.kernel, height.stride).unfold(3, width.kernel, width.stride);
  const Tensor most = as_planes(flow.result()).unsqueeze(-1).unsqueeze(-1);
  const Tensor chosen = eq(windows, most);
  const Tensor equal = sum(to_dtype(chosen, DType::F32), {-2, -1}, true);
  const Tensor share = where(chosen, div(g, to_dtype(equal, g.dtype())), 0);
  const Tensor in_rows = unpooled(widened(share), 3, width);
  flow.give(0, reshape(unpooled(in_rows, 2, height), flow.shape(0)));
}

// (out, in): the share of each place in the mean of each window.
Tensor shares(std::int64_t in, std::int64_t out, const Tensor& like) {
  std::vector<double> values(static_cast<std::size_t>(out * in), 0);
  for (std::int64_t o = 0; o < out; ++o) {
    const std::int64_t first = o * in / out, last = ((o + 1) * in + out - 1) / out;
    for (std::int64_t i = first; i < last; ++i) {
      values[static_cast<std::size_t>(o * in + i)] = 1 / static_cast<double>(last - first);
    }
  }
  return to_dtype(Tensor::from(values, {out, in}, like.device()), like.dtype());
}

void adaptive_avg_pool_rule(Flow& flow) {
  const Tensor g = widened(flow.gradient());  // (b, c, oh, ow)
  const Shape& x = flow.shape(0);
  if (g.dim(2) == 1 && g.dim(3) == 1) {  // one window
    flow.give(0, div(g, static_cast<double>(x[2] * x[3])).broadcast_as(x));
    return;
  }
  const Tensor columns = matmul(g, shares(x[3], g.dim(3), g));
  flow.give(0, matmul(shares(x[2], g.dim(2), g).t(), columns));
}

}  // namespace

std::span<const Rule> pool_rules() {
  static constexpr Rule kRules[] = {
      {"avg_pool", avg_pool_rule},
      {"max_pool", max_pool_rule, keeps_input(0) | kKeepsResult},
      {"adaptive_avg_pool", adaptive_avg_pool_rule},
  };
  return kRules;
}

}  // namespace tl::grad
