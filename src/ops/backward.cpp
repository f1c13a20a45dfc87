#include "ops/backward.h"

#include "ops/cpu/train.h"
#include "ops/gpu/train.h"
#include "tl/ops/copy.h"

namespace tl::ops {

bool has_slope(DType dtype) { return is_float(dtype) && dtype != DType::F8E4M3; }

Tensor slope(SlopeOf function, const Tensor& x, const Tensor& gradient) {
  Tensor out = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  if (out.empty()) return out;
  const Tensor in = contiguous(x), g = contiguous(gradient);
  if (out.location().is_cpu()) {
    cpu::slope(function, in, g, out);
  } else {
    gpu::slope(function, in, g, out);
  }
  return out;
}

void adam(Tensor& parameter, const Tensor& gradient, Tensor& first, Tensor& second, Tensor* largest,
          const training::AdamNumbers<double>& numbers) {
  if (parameter.empty()) return;
  parameter = contiguous(parameter);
  const Tensor g = contiguous(gradient);
  if (parameter.location().is_cpu()) {
    cpu::adam(parameter, g, first, second, largest, numbers);
  } else {
    gpu::adam(parameter, g, first, second, largest, numbers);
  }
}

}  // namespace tl::ops
