#include "ops/gpu/softmax.h"

#include "ops/gpu/row_launch.h"

namespace tl::gpu {

void softmax(const Tensor& in, Tensor& out, int dim, bool logarithm) {
  const Device device = out.device();
  const DType dtype = in.dtype();
  const ops::RowLayout rows = ops::row_layout(in.layout(), out.layout(), dim);
  const std::byte* from = in.read(device.stream());
  std::byte* to = out.write(device.stream());
  const std::uint32_t log = logarithm ? 1 : 0;
  if (rows.out_step > 1 && rows.n > 1) {
    const LaunchShape shape{.grid = {blocks_for(device, (rows.rows + 31) / 32)},
                            .block = {kThreads}};
    run(device, norm_kernel(NormFamily::SoftmaxColumn, dtype), shape, from, to, row_walk(rows),
        row_steps(rows), log);
  } else if (const std::uint32_t width = team_width(device, dtype, rows.n); width > 0) {
    run(device, norm_kernel(NormFamily::SoftmaxWarp, dtype), team_shape(device, rows.rows, width),
        from, to, row_walk(rows), row_steps(rows), width, log);
  } else {
    const NormFamily family =
        fits_block(dtype, rows.n) ? NormFamily::SoftmaxBlock : NormFamily::SoftmaxLong;
    run(device, norm_kernel(family, dtype), block_shape(device, rows), from, to, row_walk(rows),
        row_steps(rows), log);
  }
}

}  // namespace tl::gpu
