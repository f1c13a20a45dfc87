#include "tl/ops/resize.h"

#include <cmath>

#include "ops/check.h"
#include "ops/cpu/resize.h"
#include "ops/gpu/resize.h"
#include "ops/recorded.h"
#include "ops/rows.h"
#include "ops/spatial.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

using ops::Resizing;
using ops::ResizingAxis;

void check(std::string_view op, const Tensor& x, const Dims& size) {
  ops::expect_rank(op, "input", x, 2 + size.size());
  ops::expect_places(op, "input", x.shape());
  for (int d = 0; d < size.size(); ++d) {
    if (size[d] < 1 || size[d] > ops::kMostPlaces) {
      throw Error(ErrorKind::BadArgument, op, "size ", size, " must be from 1 to ",
                  ops::kMostPlaces);
    }
    if (x.shape()[d + 2] == 0) {
      throw Error(ErrorKind::ShapeMismatch, op, "input ", x.shape(), " has an empty dimension");
    }
  }
}

bool has_size(const Tensor& x, const Dims& size) {
  for (int d = 0; d < size.size(); ++d) {
    if (x.shape()[d + 2] != size[d]) return false;
  }
  return true;
}

Tensor room_for(std::string_view op, const Tensor& x, const Dims& size) {
  Shape shape{x.shape()[0], x.shape()[1]};
  for (const std::int64_t n : size) shape.push_back(n);
  element_count(op, shape);
  return Tensor::uninitialized(shape, x.dtype(), x.device());
}

Tensor nearest(std::string_view op, const Tensor& x, const Dims& size) {
  check(op, x, size);
  if (has_size(x, size)) return contiguous(x);
  if (has_history(x)) {
    Tensor out = ops::without_history([&] { return nearest(op, x, size); });
    add_history(out, "resize_nearest", {x});
    return out;
  }
  Tensor out = room_for(op, x, size);
  if (out.empty()) return out;
  const Tensor planes = size.size() == 1 ? x.unsqueeze(2) : x;
  const Resizing resizing{
      ResizingAxis{.in = planes.shape()[2], .out = size.size() == 1 ? 1 : size[0]},
      ResizingAxis{.in = planes.shape()[3], .out = size.back()}};
  if (x.location().is_cpu()) {
    cpu::resize_nearest(resizing, planes, out);
  } else {
    gpu::resize_nearest(resizing, planes, out);
  }
  return out;
}

// `ratio` is in / out, or what the caller says it is.
ResizingAxis bilinear_axis(std::int64_t in, std::int64_t out, double ratio, bool align_corners) {
  ResizingAxis axis{.in = in, .out = out};
  if (align_corners) {
    axis.scale = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    axis.shift = 0;
  } else {
    axis.scale = ratio;
    axis.shift = 0.5 * ratio - 0.5;  // ratio * (i + 0.5) - 0.5
  }
  return axis;
}

Tensor bilinear(std::string_view op, const Tensor& x, const Dims& size,
                const std::array<double, 2>& ratios, bool align_corners) {
  ops::expect_float(op, x);
  if (has_size(x, size)) return contiguous(x);
  const Resizing resizing{bilinear_axis(x.shape()[2], size[0], ratios[0], align_corners),
                          bilinear_axis(x.shape()[3], size[1], ratios[1], align_corners)};
  if (has_history(x)) {
    Tensor out = ops::without_history([&] { return bilinear(op, x, size, ratios, align_corners); });
    add_history(out, "resize_bilinear", {x},
                {resizing[0].scale, resizing[0].shift, resizing[1].scale, resizing[1].shift});
    return out;
  }
  Tensor out = room_for(op, x, size);
  if (out.empty()) return out;
  if (x.location().is_cpu()) {
    cpu::resize_bilinear(resizing, x, out);
  } else {
    gpu::resize_bilinear(resizing, x, out);
  }
  return out;
}

double ratio(std::int64_t in, std::int64_t out) {
  return static_cast<double>(in) / static_cast<double>(out);
}

// The leading dimensions of (..., c, h, w), and then others.
Shape with_leading(const Tensor& x, std::initializer_list<std::int64_t> rest) {
  Shape shape;
  for (int d = 0; d < x.rank() - 3; ++d) shape.push_back(x.shape()[d]);
  for (const std::int64_t size : rest) shape.push_back(size);
  return shape;
}

void check_pixels(std::string_view op, const Tensor& x, std::int64_t factor) {
  if (x.rank() < 3) {
    throw Error(ErrorKind::ShapeMismatch, op,
                "input must have 3 dimensions or more, and has shape ", x.shape());
  }
  constexpr std::int64_t kMostFactor = 1 << 15;  // its square fits 31 bits
  if (factor < 1 || factor > kMostFactor) {
    throw Error(ErrorKind::BadArgument, op, "factor must be from 1 to ", kMostFactor, ", not ",
                factor);
  }
}

// (n, c, h, w) as (n, c, r, r, h, w), or (n, c, h, r, w, r), with its dimensions in another order,
// then in a last shape. Leading dimensions are one, so that any rank goes through.
Tensor rearranged(const Tensor& x, const Shape& apart, const Dims& order, const Shape& shape) {
  return reshape(contiguous(reshape(x, apart).permute(order)), shape);
}

}  // namespace

Tensor upsample_nearest1d(const Tensor& x, std::int64_t size) {
  return nearest("upsample_nearest1d", x, {size});
}

Tensor upsample_nearest2d(const Tensor& x, std::int64_t height, std::int64_t width) {
  return nearest("upsample_nearest2d", x, {height, width});
}

Tensor interpolate1d(const Tensor& x, std::int64_t size) {
  return nearest("interpolate1d", x, {size});
}

Tensor interpolate2d(const Tensor& x, std::int64_t height, std::int64_t width) {
  return nearest("interpolate2d", x, {height, width});
}

Tensor upsample_bilinear2d(const Tensor& x, std::int64_t height, std::int64_t width,
                           bool align_corners) {
  constexpr std::string_view kOp = "upsample_bilinear2d";
  const Dims size{height, width};
  check(kOp, x, size);
  return bilinear(kOp, x, size, {ratio(x.shape()[2], height), ratio(x.shape()[3], width)},
                  align_corners);
}

Tensor upsample_bilinear2d_with_scale(const Tensor& x, double scale_height, double scale_width,
                                      bool align_corners) {
  constexpr std::string_view kOp = "upsample_bilinear2d_with_scale";
  ops::expect_rank(kOp, "input", x, 4);
  const std::array scales{scale_height, scale_width};
  Dims size;
  for (int d = 0; d < 2; ++d) {
    const double scale = scales[static_cast<std::size_t>(d)];
    const double wanted = std::floor(static_cast<double>(x.shape()[d + 2]) * scale);
    if (!(scale > 0) || !(wanted <= static_cast<double>(ops::kMostPlaces))) {
      throw Error(ErrorKind::BadArgument, kOp, "scale ", scale, " cannot be used with input ",
                  x.shape());
    }
    size.push_back(static_cast<std::int64_t>(wanted));
  }
  check(kOp, x, size);
  return bilinear(kOp, x, size, {1 / scale_height, 1 / scale_width}, align_corners);
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  constexpr std::string_view kOp = "pixel_shuffle";
  check_pixels(kOp, x, factor);
  const std::int64_t r = factor, c = x.dim(-3), h = x.dim(-2), w = x.dim(-1);
  if (c % (r * r) != 0) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "the ", c, " channels of ", x.shape(),
                " are not a multiple of ", r, " * ", r);
  }
  const Shape shape = with_leading(x, {c / (r * r), h * r, w * r});
  if (x.empty()) return reshape(x, shape);
  return rearranged(x, {-1, c / (r * r), r, r, h, w}, {0, 1, 4, 2, 5, 3}, shape);
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  constexpr std::string_view kOp = "pixel_unshuffle";
  check_pixels(kOp, x, factor);
  const std::int64_t r = factor, c = x.dim(-3), h = x.dim(-2), w = x.dim(-1);
  if (h % r != 0 || w % r != 0) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "the height and width of ", x.shape(),
                " are not multiples of ", r);
  }
  const Shape shape = with_leading(x, {c * r * r, h / r, w / r});
  if (x.empty()) return reshape(x, shape);
  return rearranged(x, {-1, c, h / r, r, w / r, r}, {0, 1, 3, 5, 2, 4}, shape);
}

namespace ops {

std::span<const OpRow> resize_rows() {
  static constexpr OpRow kRows[] = {
      {"upsample_nearest1d", "resize", "(x, size)", kAnySet,
       "(b, c, l) resized to `size` by the nearest element.", call<&upsample_nearest1d>},
      {"upsample_nearest2d", "resize", "(x, height, width)", kAnySet,
       "(b, c, h, w) resized by the nearest element.", call<&upsample_nearest2d>},
      {"interpolate1d", "resize", "(x, size)", kAnySet, "The same as upsample_nearest1d.",
       call<&interpolate1d>},
      {"interpolate2d", "resize", "(x, height, width)", kAnySet, "The same as upsample_nearest2d.",
       call<&interpolate2d>},
      {"upsample_bilinear2d", "resize", "(x, height, width, align_corners = false)", kFloatSet,
       "(b, c, h, w) resized by the weighted mean of four elements.", call<&upsample_bilinear2d>},
      {"upsample_bilinear2d_with_scale", "resize",
       "(x, scale_height, scale_width, align_corners = false)", kFloatSet,
       "The same to floor(size * scale).", call<&upsample_bilinear2d_with_scale>},
      {"pixel_shuffle", "resize", "(x, factor)", kAnySet,
       "(..., c r^2, h, w) to (..., c, h r, w r).", call<&pixel_shuffle>},
      {"pixel_unshuffle", "resize", "(x, factor)", kAnySet,
       "(..., c, h r, w r) to (..., c r^2, h, w).", call<&pixel_unshuffle>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
