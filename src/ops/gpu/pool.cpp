#include "ops/gpu/pool.h"

#include <limits>

#include "kernels/gpu_conv.h"
#include "ops/gpu/launcher.h"
#include "ops/spatial.h"
#include "tl/kernels/conv.h"

namespace tl::gpu {

namespace {

using kernels::PoolArgs;

struct Launch {
  PoolArgs args{};
  LaunchShape shape;
};

Launch describe(const ops::Pooling& pooling, const Tensor& x, const Tensor& out) {
  Launch launch;
  PoolArgs& a = launch.args;
  std::int64_t window = 1;  // elements of the largest one
  for (int d = 0; d < 2; ++d) {
    const ops::PoolingAxis& axis = pooling.axes[static_cast<std::size_t>(d)];
    a.axis[d] = {.in = static_cast<int>(axis.in),
                 .kernel = static_cast<int>(axis.kernel),
                 .stride = static_cast<int>(axis.stride),
                 .padding = static_cast<int>(axis.padding),
                 .x_stride = x.strides()[d + 2]};
    window *= axis.kernel > 0 ? axis.kernel : axis.in / axis.out + 2;
  }
  a.count = out.count();
  a.narrow = out.count() <= ops::kMostPlaces ? 1 : 0;
  a.count_include_pad = pooling.count_include_pad ? 1 : 0;
  a.by_width = kernels::make_divider(pooling.axes[1].out);
  a.by_height = kernels::make_divider(pooling.axes[0].out);
  a.by_channels = kernels::make_divider(x.shape()[1]);
  a.x_batch = x.strides()[0];
  a.x_channel = x.strides()[1];

  // A thread reads small windows by itself; neighbours then share cache lines. A warp shares a
  // large one.
  constexpr std::int64_t kLarge = 64;
  a.spread = window >= kLarge && window <= ops::kMostPlaces ? 1 : 0;
  const std::int64_t threads =
      a.spread != 0 ? std::min<std::int64_t>(a.count, 1 << 24) * x.device().warp_width() : a.count;
  launch.shape = elementwise_shape(threads, 1);
  return launch;
}

}  // namespace

void avg_pool(const ops::Pooling& pooling, const Tensor& x, Tensor& out) {
  const Device device = out.device();
  const Launch launch = describe(pooling, x, out);
  const std::byte* from = x.read(device.stream());
  std::byte* to = out.write(device.stream());
  run(device, conv_float_kernel(ConvFamily::AvgPool, x.dtype()), launch.shape, from, to,
      launch.args);
}

void max_pool(const ops::Pooling& pooling, const Tensor& x, Tensor& out) {
  const Device device = out.device();
  const Launch launch = describe(pooling, x, out);
  const std::byte* from = x.read(device.stream());
  std::byte* to = out.write(device.stream());
  visit_dtype("max_pool", x.dtype(), [&]<class T> {
    // Small floats are compared as float. What every value is at least:
    using Value = std::conditional_t<kIsSmallFloat<T>, float, T>;
    using Limits = std::numeric_limits<Value>;
    const Value least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    run(device, max_pool_kernel(x.dtype()), launch.shape, from, to, launch.args, least);
  });
}

}  // namespace tl::gpu
