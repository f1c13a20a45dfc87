// Convolutions. Inputs: x, the kernel and a bias, which may be missing. Settings: padding, stride
// and dilation with one entry per spatial dimension, then groups.
#include "tl/ops/conv.h"

#include <algorithm>

#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"

namespace tl::grad {

namespace {

constexpr unsigned kBoth = keeps_input(0) | keeps_input(1);

struct Settings {
  explicit Settings(const Flow& flow)
      : padding(flow.dims(0)),
        stride(flow.dims(1)),
        dilation(flow.dims(2)),
        groups(flow.integer(3)) {}
  int axes() const { return padding.size(); }
  std::int64_t reach(const Shape& kernel, int d) const {
    return dilation[d] * (kernel[d + 2] - 1) + 1;
  }

  Dims padding, stride, dilation;
  std::int64_t groups;
};

Tensor convolved(const Tensor& x, const Tensor& kernel, const Settings& s) {
  const auto run = s.axes() == 1 ? conv1d : s.axes() == 2 ? conv2d : conv3d;
  return run(x, kernel, s.padding, s.stride, s.dilation, s.groups, std::nullopt);
}

// To the shape of `wanted`: which of the sizes that a stride maps to the size of x is meant.
Tensor convolved_back(const Tensor& x, const Tensor& kernel, const Settings& s,
                      const Shape& wanted) {
  Dims rest;
  for (int d = 0; d < s.axes(); ++d) {
    rest.push_back((wanted[d + 2] + 2 * s.padding[d] - s.reach(kernel.shape(), d)) % s.stride[d]);
  }
  const auto run = s.axes() == 1   ? conv_transpose1d
                   : s.axes() == 2 ? conv_transpose2d
                                   : conv_transpose3d;
  return run(x, kernel, s.padding, rest, s.stride, s.dilation, s.groups, std::nullopt);
}

// What the kernel sees of `large` (b, c, in...) at each of the places of `small`:
// (b, c, places..., taps...), a view where nothing is padded.
Tensor windows_of(const Tensor& large, const Shape& small, const Shape& kernel, const Settings& s) {
  Tensor windows = large;
  for (int d = 0; d < s.axes(); ++d) {
    const std::int64_t reach = s.reach(kernel, d);
    windows = padded(windows, d + 2, s.padding[d], s.padding[d]).unfold(d + 2, reach, s.stride[d]);
    windows = windows.narrow(d + 2, 0, small[d + 2]).slice(-1, 0, reach, s.dilation[d]);
  }
  return windows;
}

// Dimensions [0, x.rank()) with the first two exchanged and the last `last` in front of the first.
Dims channels_first(int rank, int last) {
  Dims order{1};
  for (int d = rank - last; d < rank; ++d) order.push_back(d);
  order.push_back(0);
  for (int d = 2; d < rank - last; ++d) order.push_back(d);
  return order;
}

std::int64_t places(const Shape& shape) {
  std::int64_t count = 1;
  for (int d = 2; d < shape.size(); ++d) count *= shape[d];
  return count;
}

// The kernel that maps `large` (b, c, in...) to `small` (b, o, out...), whose gradient is the
// product of the two summed over the batch and all places: (o, c / groups, taps...).
Tensor kernel_gradient(const Tensor& large, const Tensor& small, const Shape& kernel,
                       const Settings& s) {
  const std::int64_t g = s.groups, b = large.dim(0);
  const std::int64_t from = large.dim(1) / g * places(kernel), to = small.dim(1) / g;
  const Tensor windows = windows_of(large, small.shape(), kernel, s);
  const Tensor left =
      reshape(small.permute(channels_first(small.rank(), 0)), {g, to, b * places(small.shape())});
  const Tensor right = reshape(windows.permute(channels_first(windows.rank(), s.axes())),
                               {g, from, b * places(small.shape())});
  return reshape(matmul(left, right.t()), kernel);
}

// As many items of the batch at a time as take little memory with their windows spread out.
Tensor kernel_gradient_in_parts(const Tensor& large, const Tensor& small, const Shape& kernel,
                                const Settings& s) {
  constexpr std::int64_t kMost = 1 << 24;  // elements
  const std::int64_t b = large.dim(0);
  const std::int64_t each =
      std::max<std::int64_t>(1, large.dim(1) * places(kernel) * places(small.shape()));
  const std::int64_t together = std::max<std::int64_t>(1, kMost / each);
  if (b <= together) return kernel_gradient(large, small, kernel, s);
  Tensor total;
  for (std::int64_t first = 0; first < b; first += together) {
    const std::int64_t count = std::min(together, b - first);
    const Tensor part = widened(
        kernel_gradient(large.narrow(0, first, count), small.narrow(0, first, count), kernel, s));
    total = first == 0 ? part : add(total, part);
  }
  return total;
}

void give_bias(Flow& flow) {
  if (!flow.wants(2)) return;
  Dims over{0};
  for (int d = 2; d < flow.gradient().rank(); ++d) over.push_back(d);
  flow.give(2, sum(flow.gradient(), over));
}

void conv_rule(Flow& flow) {
  const Settings s(flow);
  const Tensor& g = flow.gradient();
  if (flow.wants(0)) flow.give(0, convolved_back(g, flow.input(1), s, flow.shape(0)));
  if (flow.wants(1)) flow.give(1, kernel_gradient_in_parts(flow.input(0), g, flow.shape(1), s));
  give_bias(flow);
}

void conv_transpose_rule(Flow& flow) {
  const Settings s(flow);
  const Tensor& g = flow.gradient();
  if (flow.wants(0)) {
    Tensor dx = convolved(g, flow.input(1), s);
    // An output padding of a stride or more leaves room for places that x does not have.
    for (int d = 2; d < dx.rank(); ++d) dx = dx.narrow(d, 0, flow.shape(0)[d]);
    flow.give(0, dx);
  }
  if (flow.wants(1)) flow.give(1, kernel_gradient_in_parts(g, flow.input(0), flow.shape(1), s));
  give_bias(flow);
}

}  // namespace

std::span<const Rule> conv_rules() {
  static constexpr Rule kRules[] = {
      {"conv", conv_rule, kBoth},
      {"conv_transpose", conv_transpose_rule, kBoth},
  };
  return kRules;
}

}  // namespace tl::grad
