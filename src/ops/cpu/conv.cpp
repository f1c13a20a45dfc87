#include "ops/cpu/conv.h"

#include "ops/cpu/copy.h"
#include "tl/ops/copy.h"

namespace tl::cpu {

void convolve(const Convolution& c, const Tensor& x, const Tensor& kernel,
              const std::optional<Tensor>& bias, Tensor& out) {
  const Tensor plain_x = contiguous(x);
  const Tensor plain_kernel = contiguous(kernel);
  if (convolve_by_onednn(c, plain_x, plain_kernel, bias, out)) return;
  if (c.dtype == DType::F32 || c.dtype == DType::F64) {
    convolve_by_loops(c, plain_x, plain_kernel, bias, out);
    return;
  }
  // Small floats as f32, which holds their products exactly; the result is rounded once.
  Convolution wide = c;
  wide.dtype = DType::F32;
  std::optional<Tensor> wide_bias;
  if (bias) wide_bias = to_dtype(*bias, DType::F32);
  Tensor result = Tensor::uninitialized(out.shape(), DType::F32, out.device());
  convolve(wide, to_dtype(plain_x, DType::F32), to_dtype(plain_kernel, DType::F32), wide_bias,
           result);
  cast(result, out);
}

}  // namespace tl::cpu
