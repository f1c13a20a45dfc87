#include "ops/gpu/glu.h"

#include "ops/gpu/row_launch.h"

namespace tl::gpu {

void glu(const Tensor& in, Tensor& out, bool swiglu) {
  const Device device = out.device();
  const std::byte* from = in.read(device.stream());
  std::byte* to = out.write(device.stream());
  const int last = in.rank() - 1;
  const std::int64_t n = out.shape()[last], step = in.strides()[last];
  // Vectors of 16 bytes, where every row starts with one in both halves.
  const auto each = static_cast<std::int64_t>(16 / size_of(in.dtype()));
  bool vectors = step == 1 && n % each == 0 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
  for (int d = 0; d < last; ++d) vectors = vectors && in.strides()[d] % each == 0;
  Shape shape = out.shape();
  Dims strides = in.strides();
  if (vectors) {
    shape[last] = n / each;
    strides[last] = each;
  }
  const Layout walked(shape, strides, 0);
  run(device, norm_kernel(NormFamily::Glu, in.dtype()), elementwise_shape(walked.count(), 1), from,
      to, walk<1>(shape, {&walked}), Index{n * step},
      static_cast<std::uint32_t>(vectors ? each : 1), swiglu ? 1u : 0u);
}

}  // namespace tl::gpu
