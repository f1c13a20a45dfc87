#include "ops/gpu/create.h"

#include <cstring>

#include "ops/gpu/launcher.h"

namespace tl::gpu {

void arange(Tensor& out, Scalar start, Scalar step) {
  const Device device = out.device();
  std::byte* to = out.write(device.stream());
  const KernelId id = make_kernel(MakeFamily::Arange, out.dtype());
  const LaunchShape shape = elementwise_shape(out.count(), 4);
  const auto count = static_cast<Index>(out.count());
  if (is_int(out.dtype())) {
    run(device, id, shape, to, start.integer(), step.integer(), count);
  } else {
    run(device, id, shape, to, start.real(), step.real(), count);
  }
}

void linspace(Tensor& out, double start, double end) {
  const Device device = out.device();
  std::byte* to = out.write(device.stream());
  const auto count = static_cast<Index>(out.count());
  const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
  run(device, make_kernel(MakeFamily::Linspace, out.dtype()), elementwise_shape(count, 4), to,
      start, end, step, count);
}

void band(const Tensor* in, Tensor& out, std::int64_t low, std::int64_t high, Scalar value) {
  const Device device = out.device();
  const std::byte* from = in != nullptr ? in->read(device.stream()) : nullptr;
  std::byte* to = out.write(device.stream());
  const Layout& layout = in != nullptr ? in->layout() : out.layout();
  std::uint64_t bits = 0;
  visit_dtype("band", out.dtype(), [&]<class T> {
    const T element = value.to<T>();
    std::memcpy(&bits, &element, sizeof(T));
  });
  run(device, band_kernel(size_of(out.dtype())), elementwise_shape(out.count(), 4), from, to,
      walk<1>(out.shape(), {&layout}), out.dim(-2), out.dim(-1), low, high, bits);
}

}  // namespace tl::gpu
