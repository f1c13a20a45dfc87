#include "ops/gpu/binary.h"

#include <cstring>

#include "ops/gpu/elementwise.h"

namespace tl::gpu {

void binary(BinaryOp op, const Tensor& a, const Layout* a_layout, const Tensor& b,
            const Layout* b_layout, Scalar value, Tensor& out) {
  const DType dtype = a_layout != nullptr ? a.dtype() : b.dtype();
  const std::size_t size = size_of(dtype);
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Readable first(a, a_layout), second(b, b_layout);
  const std::byte* left = first.read(stream);
  const std::byte* right = second.read(stream);
  std::byte* to = out.write(stream);
  const auto plan =
      make_plan<2>(out.shape(), out.count(),
                   {Input{first.layout(), left, size}, Input{second.layout(), right, size}}, to,
                   size_of(out.dtype()), kernels::weight(op, is_float(dtype)));
  // The kernel takes as many bytes as its parameter has.
  std::uint64_t bits = 0;
  visit_dtype(name(op), dtype, [&]<class T> {
    const T element = value.to<T>();
    std::memcpy(&bits, &element, sizeof(T));
  });
  run(device, binary_kernel(op, dtype), plan.shape, left, right, to, plan.walk, plan.reading, bits);
}

}  // namespace tl::gpu
