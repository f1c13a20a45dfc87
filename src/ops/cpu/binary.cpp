#include "ops/cpu/binary.h"

#include <cstring>

#include "ops/cpu/blocks.h"
#include "ops/cpu/loops.h"

namespace tl::cpu {

void binary(BinaryOp op, const Tensor& a, const Layout* a_layout, const Tensor& b,
            const Layout* b_layout, Scalar value, Tensor& out) {
  const DType dtype = a_layout != nullptr ? a.dtype() : b.dtype();
  const Stream stream = out.device().stream();
  alignas(8) std::array<std::byte, 8> number{};
  visit_dtype("binary", dtype, [&]<class T> {
    const T element = value.to<T>();
    std::memcpy(number.data(), &element, sizeof(T));
  });
  const Dims none = Dims::repeated(out.rank(), 0);
  const auto input = [&](const Tensor& x, const Layout* layout) {
    return layout == nullptr ? BlockInput{number.data(), dtype, &none}
                             : BlockInput{x.read(stream), dtype, &layout->strides()};
  };
  const std::array<BlockInput, 2> inputs = {input(a, a_layout), input(b, b_layout)};
  std::byte* to = out.write(stream);
  const BinaryLoop loop = binary_loop(op, compute_dtype(dtype));
  for_blocks<2>(
      out.shape(), inputs, to, out.dtype(),
      [&](const auto& in, void* result, std::int64_t n) { loop(in[0], in[1], result, n); });
}

}  // namespace tl::cpu
