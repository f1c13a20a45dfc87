#include "ops/cpu/unary.h"

#include "ops/cpu/blocks.h"
#include "ops/cpu/loops.h"

namespace tl::cpu {

void unary(UnaryOp op, const Tensor& x, Tensor& out, double parameter) {
  const Stream stream = out.device().stream();
  const std::byte* from = x.read(stream);
  std::byte* to = out.write(stream);
  const DType computed = compute_dtype(x.dtype());
  const UnaryLoop loop = unary_loop(op, computed);
  // As the type computed in; integers have none.
  std::int64_t as_integer = 0;
  auto as_float = static_cast<float>(parameter);
  const void* number = computed == DType::F64   ? static_cast<const void*>(&parameter)
                       : computed == DType::F32 ? static_cast<const void*>(&as_float)
                                                : &as_integer;
  for_blocks<1>(
      x.shape(), {BlockInput{from, x.dtype(), &x.strides()}}, to, out.dtype(),
      [&](const auto& in, void* result, std::int64_t n) { loop(in[0], result, n, number); });
}

}  // namespace tl::cpu
