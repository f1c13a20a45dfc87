#include "ops/gpu/train.h"

#include "ops/gpu/launcher.h"

namespace tl::gpu {

void slope(SlopeOf function, const Tensor& x, const Tensor& gradient, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const std::byte* from = x.read(stream);
  const std::byte* behind = gradient.read(stream);
  std::byte* to = out.write(stream);
  run(device, slope_kernel(function, x.dtype()), elementwise_shape(x.count(), 4), from, behind, to,
      Index{x.count()});
}

void adam(Tensor& parameter, const Tensor& gradient, Tensor& first, Tensor& second, Tensor* largest,
          const training::AdamNumbers<double>& numbers) {
  const Device device = parameter.device();
  const Stream& stream = device.stream();
  const std::byte* g = gradient.read(stream);
  std::byte* p = parameter.update(stream);
  std::byte* m = first.update(stream);
  std::byte* v = second.update(stream);
  std::byte* most = largest == nullptr ? nullptr : largest->update(stream);
  const auto shape = elementwise_shape(parameter.count(), 1);
  const KernelId kernel = adam_kernel(parameter.dtype());
  if (parameter.dtype() == DType::F64) {
    run(device, kernel, shape, p, g, m, v, most, Index{parameter.count()}, numbers);
  } else {
    run(device, kernel, shape, p, g, m, v, most, Index{parameter.count()},
        ops::numbers_as<float>(numbers));
  }
}

}  // namespace tl::gpu
