#include "ops/gpu/unary.h"

#include "ops/gpu/elementwise.h"

namespace tl::gpu {

void unary(UnaryOp op, const Tensor& x, Tensor& out, double parameter) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Readable source(x, &x.layout());
  const std::byte* from = source.read(stream);
  std::byte* to = out.write(stream);
  const Weight weight = kernels::weight(op, x.dtype() == DType::F64);
  const auto plan = make_plan<1>(
      x.shape(), x.count(), {Input{source.layout(), from, size_of(x.dtype())}}, to,
      size_of(out.dtype()), weight,
      is_float(x.dtype()) && kernels::goes_straight(op, static_cast<int>(size_of(x.dtype()))));
  const KernelId id = unary_kernel(op, x.dtype());
  if (gives_flag(op)) {
    run(device, id, plan.shape, from, to, plan.walk, plan.reading);
  } else if (is_int(x.dtype())) {
    run(device, id, plan.shape, from, to, plan.walk, plan.reading, std::int64_t{0});
  } else if (x.dtype() == DType::F64) {
    run(device, id, plan.shape, from, to, plan.walk, plan.reading, parameter);
  } else {
    run(device, id, plan.shape, from, to, plan.walk, plan.reading, static_cast<float>(parameter));
  }
}

}  // namespace tl::gpu
