#include "ops/gpu/norm.h"

#include "ops/gpu/row_launch.h"

namespace tl::gpu {

namespace {

// As in norm.cu.
struct Channels {
  Index period;
  Index channels;
  Index inner;
  kernels::FastDiv fast;
};
struct NormParameters {
  const std::byte* weight;
  const std::byte* bias;
  double epsilon;
  std::uint32_t centered;
};
struct BatchNormParameters {
  const std::byte* mean;
  const std::byte* variance;
  const std::byte* weight;
  const std::byte* bias;
  double epsilon;
};

const std::byte* address(const Tensor* tensor, const Stream& stream) {
  return tensor == nullptr ? nullptr : tensor->read(stream);
}

}  // namespace

void norm(const Tensor& in, Tensor& out, const ops::NormArguments& arguments) {
  norm(in, out.layout(), out.write(out.device().stream()), arguments);
}

void norm(const Tensor& in, const Layout& layout, std::byte* out,
          const ops::NormArguments& arguments) {
  const Device device = in.device();
  const Stream& stream = device.stream();
  const DType dtype = in.dtype();
  const ops::RowLayout rows = ops::row_layout(in.layout(), layout, in.rank() - 1);
  const std::byte* from = in.read(stream);
  const NormParameters parameters{address(arguments.weight, stream),
                                  address(arguments.bias, stream), arguments.epsilon,
                                  arguments.centered ? 1u : 0u};
  const bool small = rows.n < (std::int64_t{1} << 31);
  const Channels channels{
      arguments.period, arguments.channels, arguments.inner,
      small ? kernels::make_fast_div(static_cast<unsigned>(arguments.inner)) : kernels::FastDiv{}};
  if (const std::uint32_t width = team_width(device, dtype, rows.n); width > 0) {
    run(device, norm_kernel(NormFamily::NormWarp, dtype), team_shape(device, rows.rows, width),
        from, out, row_walk(rows), row_steps(rows), width, channels, parameters);
  } else {
    const NormFamily family =
        fits_block(dtype, rows.n) ? NormFamily::NormBlock : NormFamily::NormLong;
    run(device, norm_kernel(family, dtype), block_shape(device, rows), from, out, row_walk(rows),
        row_steps(rows), channels, parameters);
  }
}

void batch_norm(const Tensor& in, Tensor& out, const ops::BatchNormArguments& arguments) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const std::byte* from = in.read(stream);
  const BatchNormParameters parameters{
      address(arguments.mean, stream), address(arguments.variance, stream),
      address(arguments.weight, stream), address(arguments.bias, stream), arguments.epsilon};
  std::byte* to = out.write(stream);
  Dims channel = Dims::repeated(in.rank(), 0);
  channel[1] = 1;
  const Layout channels(in.shape(), channel, 0);
  run(device, norm_kernel(NormFamily::BatchNorm, in.dtype()), elementwise_shape(in.count(), 1),
      from, to, walk<2>(in.shape(), {&in.layout(), &channels}), parameters);
}

}  // namespace tl::gpu
