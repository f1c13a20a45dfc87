#include "ops/gpu/resize.h"

#include "kernels/gpu_conv.h"
#include "ops/gpu/launcher.h"
#include "ops/spatial.h"
#include "tl/kernels/conv.h"

namespace tl::gpu {

namespace {

using kernels::ResizeArgs;

ResizeArgs describe(const ops::Resizing& resizing, const Tensor& x, const Tensor& out) {
  ResizeArgs a{};
  bool narrow = out.count() <= ops::kMostPlaces;
  for (int d = 0; d < 2; ++d) {
    const ops::ResizingAxis& axis = resizing[static_cast<std::size_t>(d)];
    a.axis[d] = {.in = static_cast<int>(axis.in),
                 .scale = axis.scale,
                 .shift = axis.shift,
                 .x_stride = x.strides()[d + 2]};
    narrow = narrow && axis.in * axis.out <= ops::kMostPlaces;
  }
  a.count = out.count();
  a.narrow = narrow ? 1 : 0;
  a.by_width = kernels::make_divider(resizing[1].out);
  a.by_height = kernels::make_divider(resizing[0].out);
  a.by_channels = kernels::make_divider(x.shape()[1]);
  a.x_batch = x.strides()[0];
  a.x_channel = x.strides()[1];
  return a;
}

void resize(KernelId kernel, const ops::Resizing& resizing, const Tensor& x, Tensor& out) {
  const Device device = out.device();
  const std::byte* from = x.read(device.stream());
  std::byte* to = out.write(device.stream());
  run(device, kernel, elementwise_shape(out.count(), 1), from, to, describe(resizing, x, out));
}

}  // namespace

void resize_nearest(const ops::Resizing& resizing, const Tensor& x, Tensor& out) {
  resize(nearest_kernel(size_of(x.dtype())), resizing, x, out);
}

void resize_bilinear(const ops::Resizing& resizing, const Tensor& x, Tensor& out) {
  resize(conv_float_kernel(ConvFamily::Bilinear, x.dtype()), resizing, x, out);
}

}  // namespace tl::gpu
