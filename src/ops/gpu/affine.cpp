#include "ops/gpu/affine.h"

#include <cstring>

#include "ops/gpu/elementwise.h"

namespace tl::gpu {

namespace {

void apply(KernelId id, const Tensor& x, Tensor& out, Scalar first, Scalar second) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const std::size_t size = size_of(x.dtype());
  const Readable source(x, &x.layout());
  const std::byte* from = source.read(stream);
  std::byte* to = out.write(stream);
  const auto plan = make_plan<1>(x.shape(), x.count(), {Input{source.layout(), from, size}}, to,
                                 size, Weight::Light);
  const DType computed = is_float(x.dtype()) && x.dtype() != DType::F64 ? DType::F32 : x.dtype();
  visit_dtype("affine", computed, [&]<class C> {
    run(device, id, plan.shape, from, to, plan.walk, plan.reading, first.to<C>(), second.to<C>());
  });
}

}  // namespace

void affine(const Tensor& x, Tensor& out, Scalar factor, Scalar offset) {
  apply(affine_kernel(x.dtype()), x, out, factor, offset);
}

void clamp(const Tensor& x, Tensor& out, Scalar low, Scalar high) {
  apply(clamp_kernel(x.dtype()), x, out, low, high);
}

}  // namespace tl::gpu
