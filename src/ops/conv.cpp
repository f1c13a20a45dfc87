#include "tl/ops/conv.h"

#include "ops/check.h"
#include "ops/cpu/conv.h"
#include "ops/gpu/conv.h"
#include "ops/recorded.h"
#include "ops/rows.h"
#include "ops/spatial.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

using driver::Convolution;
using driver::ConvolutionAxis;

// The settings of a call, one entry per spatial dimension.
struct Settings {
  Dims padding;
  Dims output_padding;
  Dims stride;
  Dims dilation;
};

void check_channels(std::string_view op, const Tensor& x, const Tensor& kernel, bool transposed,
                    std::int64_t groups, const std::optional<Tensor>& bias) {
  if (groups < 1) throw Error(ErrorKind::BadArgument, op, "groups must be 1 or more, not ", groups);
  const std::int64_t channels = x.shape()[1];
  const std::int64_t first = kernel.shape()[0];  // in transposed kernels the input channels
  if (channels % groups != 0) {
    throw Error(ErrorKind::ShapeMismatch, op, groups, " groups do not divide the ", channels,
                " channels of input ", x.shape());
  }
  if (first % groups != 0) {
    throw Error(ErrorKind::ShapeMismatch, op, groups, " groups do not divide the ", first,
                " channels of kernel ", kernel.shape());
  }
  const bool fits = transposed ? first == channels : kernel.shape()[1] == channels / groups;
  if (!fits) {
    throw Error(ErrorKind::ShapeMismatch, op, "kernel ", kernel.shape(), " does not go with input ",
                x.shape(), " in ", groups, " groups");
  }
  const std::int64_t outputs = transposed ? kernel.shape()[1] * groups : first;
  if (bias && bias->shape() != Shape{outputs}) {
    throw Error(ErrorKind::ShapeMismatch, op, "bias must have shape ", Shape{outputs}, ", not ",
                bias->shape());
  }
}

ConvolutionAxis make_axis(std::string_view op, const Tensor& x, const Tensor& kernel,
                          bool transposed, const Settings& s, int d) {
  ConvolutionAxis axis{.in = x.shape()[d + 2],
                       .kernel = kernel.shape()[d + 2],
                       .stride = s.stride[d],
                       .padding = s.padding[d],
                       .dilation = s.dilation[d],
                       .output_padding = s.output_padding[d]};
  if (axis.kernel < 1) {
    throw Error(ErrorKind::ShapeMismatch, op, "kernel ", kernel.shape(), " has no elements");
  }
  const std::int64_t reach = axis.dilation * (axis.kernel - 1) + 1;  // below 2^62
  std::int64_t room = 0;                                             // the larger side, padded
  if (transposed) {
    if (axis.output_padding >= std::max(axis.stride, axis.dilation)) {
      throw Error(ErrorKind::BadArgument, op, "output padding ", s.output_padding,
                  " must be less than stride ", s.stride, " or dilation ", s.dilation);
    }
    room = (axis.in - 1) * axis.stride + reach + axis.output_padding;
    axis.out = room - 2 * axis.padding;
    if (axis.out < 1) {
      throw Error(ErrorKind::ShapeMismatch, op, "input ", x.shape(), " and kernel ", kernel.shape(),
                  " with padding ", s.padding, " leave no output");
    }
  } else {
    room = axis.in + 2 * axis.padding;
    if (reach > room) {
      throw Error(ErrorKind::ShapeMismatch, op, "kernel ", kernel.shape(), " with dilation ",
                  s.dilation, " is larger than input ", x.shape(), " with padding ", s.padding);
    }
    axis.out = (room - reach) / axis.stride + 1;
  }
  if (room > ops::kMostPlaces) {
    throw Error(ErrorKind::Unsupported, op, "input ", x.shape(), " with kernel ", kernel.shape(),
                " spans ", room, " places, more than ", ops::kMostPlaces);
  }
  return axis;
}

void bias_only(Tensor& out, int axes, const std::optional<Tensor>& bias) {
  if (!bias) return fill(out, 0);
  Tensor channels = *bias;
  for (int d = 0; d < axes; ++d) channels = channels.unsqueeze(-1);
  assign(out, channels);
}

Tensor convolve(std::string_view op, int axes, bool transposed, const Tensor& x,
                const Tensor& kernel, const Dims& padding, const Dims& output_padding,
                const Dims& stride, const Dims& dilation, std::int64_t groups,
                const std::optional<Tensor>& bias) {
  const Tensor added = bias.value_or(Tensor());
  if (has_history(x, kernel, added)) {
    Tensor out = ops::without_history([&] {
      return convolve(op, axes, transposed, x, kernel, padding, output_padding, stride, dilation,
                      groups, bias);
    });
    add_history(out, transposed ? "conv_transpose" : "conv", {x, kernel, added},
                {ops::spread_over(op, "padding", padding, axes, 0),
                 ops::spread_over(op, "stride", stride, axes, 1),
                 ops::spread_over(op, "dilation", dilation, axes, 1), groups});
    return out;
  }
  ops::expect_rank(op, "input", x, axes + 2);
  ops::expect_rank(op, "kernel", kernel, axes + 2);
  check_channels(op, x, kernel, transposed, groups, bias);
  ops::expect_places(op, "input", x.shape());
  ops::expect_places(op, "kernel", kernel.shape());
  const Settings settings{
      .padding = ops::spread_over(op, "padding", padding, axes, 0),
      .output_padding = ops::spread_over(op, "output padding", output_padding, axes, 0),
      .stride = ops::spread_over(op, "stride", stride, axes, 1),
      .dilation = ops::spread_over(op, "dilation", dilation, axes, 1)};

  Convolution c{.transposed = transposed,
                .dtype = x.dtype(),
                .batch = x.shape()[0],
                .groups = groups,
                .in_channels = x.shape()[1] / groups,
                .out_channels = transposed ? kernel.shape()[1] : kernel.shape()[0] / groups,
                .axes = {}};
  Shape shape{c.batch, c.out_channels * groups};
  for (int d = 0; d < axes; ++d) {
    const ConvolutionAxis axis = make_axis(op, x, kernel, transposed, settings, d);
    *(c.axes.end() - axes + d) = axis;
    shape.push_back(axis.out);
  }
  element_count(op, shape);

  ops::expect_same_device(op, x, kernel);
  if (bias) ops::expect_same_device(op, x, *bias);
  ops::expect_float(op, x);
  ops::expect_same_dtype(op, x, kernel);
  if (bias) ops::expect_same_dtype(op, x, *bias);

  Tensor out = Tensor::uninitialized(shape, x.dtype(), x.device());
  if (out.empty()) return out;
  if (x.empty() || kernel.empty()) {  // sums of nothing
    bias_only(out, axes, bias);
    return out;
  }
  if (x.location().is_cpu()) {
    cpu::convolve(c, x, kernel, bias, out);
  } else {
    gpu::convolve(op, c, x, kernel, bias, out);
  }
  return out;
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& kernel, const Dims& padding, const Dims& stride,
              const Dims& dilation, std::int64_t groups, const std::optional<Tensor>& bias) {
  return convolve("conv1d", 1, false, x, kernel, padding, {0}, stride, dilation, groups, bias);
}

Tensor conv2d(const Tensor& x, const Tensor& kernel, const Dims& padding, const Dims& stride,
              const Dims& dilation, std::int64_t groups, const std::optional<Tensor>& bias) {
  return convolve("conv2d", 2, false, x, kernel, padding, {0}, stride, dilation, groups, bias);
}

Tensor conv3d(const Tensor& x, const Tensor& kernel, const Dims& padding, const Dims& stride,
              const Dims& dilation, std::int64_t groups, const std::optional<Tensor>& bias) {
  return convolve("conv3d", 3, false, x, kernel, padding, {0}, stride, dilation, groups, bias);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& kernel, const Dims& padding,
                        const Dims& output_padding, const Dims& stride, const Dims& dilation,
                        std::int64_t groups, const std::optional<Tensor>& bias) {
  return convolve("conv_transpose1d", 1, true, x, kernel, padding, output_padding, stride, dilation,
                  groups, bias);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& kernel, const Dims& padding,
                        const Dims& output_padding, const Dims& stride, const Dims& dilation,
                        std::int64_t groups, const std::optional<Tensor>& bias) {
  return convolve("conv_transpose2d", 2, true, x, kernel, padding, output_padding, stride, dilation,
                  groups, bias);
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& kernel, const Dims& padding,
                        const Dims& output_padding, const Dims& stride, const Dims& dilation,
                        std::int64_t groups, const std::optional<Tensor>& bias) {
  return convolve("conv_transpose3d", 3, true, x, kernel, padding, output_padding, stride, dilation,
                  groups, bias);
}

namespace ops {

std::span<const OpRow> conv_rows() {
  static constexpr std::string_view kSettings =
      "(x, kernel, padding = 0, stride = 1, dilation = 1, groups = 1, bias = none)";
  static constexpr std::string_view kTransposedSettings =
      "(x, kernel, padding = 0, output_padding = 0, stride = 1, dilation = 1, groups = 1, "
      "bias = none)";
  static constexpr OpRow kRows[] = {
      {"conv1d", "conv", kSettings, kFloatSet,
       "Cross-correlation of (b, c_in, l) with (c_out, c_in / groups, k).", call<&conv1d>},
      {"conv2d", "conv", kSettings, kFloatSet,
       "Cross-correlation of (b, c_in, h, w) with (c_out, c_in / groups, kh, kw).", call<&conv2d>},
      {"conv3d", "conv", kSettings, kFloatSet,
       "Cross-correlation of (b, c_in, d, h, w) with (c_out, c_in / groups, kd, kh, kw).",
       call<&conv3d>},
      {"conv_transpose1d", "conv", kTransposedSettings, kFloatSet,
       "Transposed convolution of (b, c_in, l) with (c_in, c_out / groups, k).",
       call<&conv_transpose1d>},
      {"conv_transpose2d", "conv", kTransposedSettings, kFloatSet,
       "Transposed convolution of (b, c_in, h, w) with (c_in, c_out / groups, kh, kw).",
       call<&conv_transpose2d>},
      {"conv_transpose3d", "conv", kTransposedSettings, kFloatSet,
       "Transposed convolution of (b, c_in, d, h, w) with (c_in, c_out / groups, kd, kh, kw).",
       call<&conv_transpose3d>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
