#include "ops/cpu/affine.h"

#include "ops/cpu/blocks.h"
#include "ops/cpu/loops.h"

namespace tl::cpu {

namespace {

void apply(AffineLoop loop, const Tensor& x, Tensor& out, Scalar first, Scalar second) {
  const Stream stream = out.device().stream();
  const std::byte* from = x.read(stream);
  std::byte* to = out.write(stream);
  visit_dtype("affine", compute_dtype(x.dtype()), [&]<class C> {
    const C one = first.to<C>(), two = second.to<C>();
    for_blocks<1>(
        x.shape(), {BlockInput{from, x.dtype(), &x.strides()}}, to, out.dtype(),
        [&](const auto& in, void* result, std::int64_t n) { loop(in[0], result, n, &one, &two); });
  });
}

}  // namespace

void affine(const Tensor& x, Tensor& out, Scalar factor, Scalar offset) {
  apply(affine_loop(compute_dtype(x.dtype())), x, out, factor, offset);
}

void clamp(const Tensor& x, Tensor& out, Scalar low, Scalar high) {
  apply(clamp_loop(compute_dtype(x.dtype())), x, out, low, high);
}

}  // namespace tl::cpu
