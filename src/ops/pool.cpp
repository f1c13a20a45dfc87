#include "tl/ops/pool.h"

#include "ops/check.h"
#include "ops/cpu/pool.h"
#include "ops/gpu/pool.h"
#include "ops/recorded.h"
#include "ops/rows.h"
#include "ops/spatial.h"

namespace tl {
namespace {

using ops::Pooling;
using ops::PoolingAxis;

enum class Kind : std::uint8_t { Avg, Max };

// Windows of adaptive pooling have no size of their own.
std::string_view history_name(Kind kind, const Pooling& pooling) {
  if (kind == Kind::Max) return "max_pool";
  return pooling.axes[1].kernel == 0 ? "adaptive_avg_pool" : "avg_pool";
}

// x is (b, c, l) or (b, c, h, w); the axes of `pooling` hold everything but `out`'s shape.
Tensor pool(std::string_view op, Kind kind, const Tensor& x, const Pooling& pooling) {
  if (has_history(x)) {
    Tensor out = ops::without_history([&] { return pool(op, kind, x, pooling); });
    const auto& [height, width] = pooling.axes;
    add_history(out, history_name(kind, pooling), {x},
                {Dims{height.kernel, width.kernel}, Dims{height.stride, width.stride},
                 Dims{height.padding, width.padding}, pooling.count_include_pad});
    return out;
  }
  if (kind == Kind::Avg) ops::expect_float(op, x);
  if (kind == Kind::Max && x.dtype() == DType::Bool) {
    throw Error(ErrorKind::Unsupported, op, "needs a tensor of numbers, got ", x.dtype());
  }
  const bool line = x.rank() == 3;
  Shape shape{x.shape()[0], x.shape()[1]};
  if (!line) shape.push_back(pooling.axes[0].out);
  shape.push_back(pooling.axes[1].out);
  Tensor out = Tensor::uninitialized(shape, x.dtype(), x.device());
  if (out.empty()) return out;
  const Tensor planes = line ? x.unsqueeze(2) : x;
  if (x.location().is_cpu()) {
    kind == Kind::Avg ? cpu::avg_pool(pooling, planes, out) : cpu::max_pool(pooling, planes, out);
  } else {
    kind == Kind::Avg ? gpu::avg_pool(pooling, planes, out) : gpu::max_pool(pooling, planes, out);
  }
  return out;
}

Tensor pool_windows(std::string_view op, Kind kind, int axes, const Tensor& x, const Dims& kernel,
                    const Dims& stride, const Dims& padding, bool count_include_pad) {
  ops::expect_rank(op, "input", x, axes + 2);
  ops::expect_places(op, "input", x.shape());
  const Dims size = ops::spread_over(op, "kernel", kernel, axes, 1);
  const Dims step = stride.empty() ? size : ops::spread_over(op, "stride", stride, axes, 1);
  const Dims around = ops::spread_over(op, "padding", padding, axes, 0);
  Pooling pooling{.axes = {}, .count_include_pad = count_include_pad};
  for (int d = 0; d < axes; ++d) {
    PoolingAxis axis{
        .in = x.shape()[d + 2], .kernel = size[d], .stride = step[d], .padding = around[d]};
    if (axis.padding > axis.kernel / 2) {
      throw Error(ErrorKind::BadArgument, op, "padding ", around,
                  " must be at most half the kernel ", size);
    }
    const std::int64_t room = axis.in + 2 * axis.padding;
    if (axis.kernel > room) {
      throw Error(ErrorKind::ShapeMismatch, op, "kernel ", size, " is larger than input ",
                  x.shape(), " with padding ", around);
    }
    if (axis.in == 0) {  // only padding: there is nothing to take
      throw Error(ErrorKind::ShapeMismatch, op, "input ", x.shape(), " has an empty dimension");
    }
    if (room > ops::kMostPlaces) {
      throw Error(ErrorKind::Unsupported, op, "input ", x.shape(), " with padding ", around,
                  " has a dimension above ", ops::kMostPlaces);
    }
    axis.out = (room - axis.kernel) / axis.stride + 1;
    *(pooling.axes.end() - axes + d) = axis;
  }
  return pool(op, kind, x, pooling);
}

Tensor pool_adaptive(std::string_view op, const Tensor& x, const Dims& size) {
  ops::expect_rank(op, "input", x, 4);
  ops::expect_places(op, "input", x.shape());
  const Dims wanted = ops::spread_over(op, "size", size, 2, 0);
  Pooling pooling;
  for (int d = 0; d < 2; ++d) {
    if (x.shape()[d + 2] == 0) {
      throw Error(ErrorKind::ShapeMismatch, op, "input ", x.shape(), " has an empty dimension");
    }
    pooling.axes[static_cast<std::size_t>(d)] = {
        .in = x.shape()[d + 2], .out = wanted[d], .kernel = 0};
  }
  return pool(op, Kind::Avg, x, pooling);
}

}  // namespace

Tensor avg_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding,
                  bool count_include_pad) {
  return pool_windows("avg_pool1d", Kind::Avg, 1, x, kernel, stride, padding, count_include_pad);
}

Tensor avg_pool2d(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding,
                  bool count_include_pad) {
  return pool_windows("avg_pool2d", Kind::Avg, 2, x, kernel, stride, padding, count_include_pad);
}

Tensor max_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding) {
  return pool_windows("max_pool1d", Kind::Max, 1, x, kernel, stride, padding, false);
}

Tensor max_pool2d(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding) {
  return pool_windows("max_pool2d", Kind::Max, 2, x, kernel, stride, padding, false);
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Dims& size) {
  return pool_adaptive("adaptive_avg_pool2d", x, size);
}

Tensor global_avg_pool2d(const Tensor& x) { return pool_adaptive("global_avg_pool2d", x, {1}); }

Tensor global_max_pool2d(const Tensor& x) {
  constexpr std::string_view kOp = "global_max_pool2d";
  ops::expect_rank(kOp, "input", x, 4);
  const Dims whole{std::max<std::int64_t>(x.shape()[2], 1),
                   std::max<std::int64_t>(x.shape()[3], 1)};
  return pool_windows(kOp, Kind::Max, 2, x, whole, {}, {0}, false);
}

namespace ops {

std::span<const OpRow> pool_rows() {
  static constexpr std::string_view kAvg =
      "(x, kernel, stride = (), padding = 0, count_include_pad = true)";
  static constexpr std::string_view kMax = "(x, kernel, stride = (), padding = 0)";
  static constexpr OpRow kRows[] = {
      {"avg_pool1d", "pool", kAvg, kFloatSet, "Means of windows over (b, c, l).",
       call<&avg_pool1d>},
      {"avg_pool2d", "pool", kAvg, kFloatSet, "Means of windows over (b, c, h, w).",
       call<&avg_pool2d>},
      {"max_pool1d", "pool", kMax, kNumberSet, "Maxima of windows over (b, c, l); NaN wins.",
       call<&max_pool1d>},
      {"max_pool2d", "pool", kMax, kNumberSet, "Maxima of windows over (b, c, h, w); NaN wins.",
       call<&max_pool2d>},
      {"adaptive_avg_pool2d", "pool", "(x, size)", kFloatSet,
       "Means of windows chosen so that `size` places come out.", call<&adaptive_avg_pool2d>},
      {"global_avg_pool2d", "pool", "(x)", kFloatSet, "The mean of each channel: (b, c, 1, 1).",
       call<&global_avg_pool2d>},
      {"global_max_pool2d", "pool", "(x)", kNumberSet, "The maximum of each channel: (b, c, 1, 1).",
       call<&global_max_pool2d>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
