#include "ops/gpu/copy.h"

#include <cstring>

#include "ops/gpu/launcher.h"

namespace tl::gpu {

namespace {

// The element's bytes in the low end of an unsigned word of its size.
template <class F>
void with_word(std::size_t size, std::uint64_t bits, F&& f) {
  switch (size) {
    case 1:
      return f(static_cast<std::uint8_t>(bits));
    case 2:
      return f(static_cast<std::uint16_t>(bits));
    case 4:
      return f(static_cast<std::uint32_t>(bits));
    default:
      return f(bits);
  }
}

}  // namespace

void copy(const Tensor& in, Tensor& out) {
  const Device device = out.device();
  const std::byte* from = in.read(device.stream());
  if (out.is_contiguous()) {
    std::byte* to = out.write(device.stream());
    run(device, copy_strided_kernel(size_of(in.dtype())), elementwise_shape(device, in.count(), 4),
        from, to, walk<1>(in.shape(), {&in.layout()}));
    return;
  }
  std::byte* to = out.update(device.stream());
  run(device, copy_between_kernel(size_of(in.dtype())), elementwise_shape(device, in.count(), 4),
      from, to, walk<2>(in.shape(), {&in.layout(), &out.layout()}));
}

void cast(const Tensor& in, Tensor& out) {
  const Device device = out.device();
  const std::byte* from = in.read(device.stream());
  std::byte* to = out.write(device.stream());
  run(device, cast_kernel(in.dtype(), out.dtype()), elementwise_shape(device, in.count(), 4), from,
      to, walk<1>(in.shape(), {&in.layout()}));
}

void fill(Tensor& out, Scalar value) {
  const Device device = out.device();
  const std::size_t size = size_of(out.dtype());
  std::uint64_t bits = 0;
  visit_dtype("fill", out.dtype(), [&]<class T> {
    const T element = value.to<T>();
    std::memcpy(&bits, &element, sizeof(T));
  });
  std::byte* to = out.write(device.stream());
  with_word(size, bits, [&](auto word) {
    if (out.is_contiguous()) {
      run(device, fill_kernel(size), elementwise_shape(device, out.count(), 16), to, word,
          static_cast<Index>(out.count()));
    } else {
      run(device, const_set_kernel(size), elementwise_shape(device, out.count(), 4), to, word,
          walk<1>(out.shape(), {&out.layout()}));
    }
  });
}

}  // namespace tl::gpu
