#include "tl/ops/affine.h"

#include "ops/check.h"
#include "ops/cpu/affine.h"
#include "ops/gpu/affine.h"
#include "ops/rows.h"
#include "tl/ops/binary.h"

namespace tl {

namespace {

void expect_numbers(std::string_view op, const Tensor& x, Scalar first, Scalar second) {
  if (x.dtype() == DType::Bool) {
    throw Error(ErrorKind::Unsupported, op, "needs a tensor of numbers, got ", x.dtype());
  }
  for (const Scalar number : {first, second}) ops::expect_whole(op, number, x.dtype());
}

}  // namespace

Tensor affine(const Tensor& x, Scalar factor, Scalar offset) {
  expect_numbers("affine", x, factor, offset);
  Tensor out = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  if (out.empty()) return out;
  if (out.location().is_cpu()) {
    cpu::affine(x, out, factor, offset);
  } else {
    gpu::affine(x, out, factor, offset);
  }
  if (has_history(x)) add_history(out, "affine", {x}, {factor});
  return out;
}

Tensor clamp(const Tensor& x, Scalar low, Scalar high) {
  expect_numbers("clamp", x, low, high);
  Tensor out = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  if (out.empty()) return out;
  low = ops::saturated(low, x.dtype());
  high = ops::saturated(high, x.dtype());
  if (out.location().is_cpu()) {
    cpu::clamp(x, out, low, high);
  } else {
    gpu::clamp(x, out, low, high);
  }
  if (has_history(x)) add_history(out, "clamp", {x}, {low, high});
  return out;
}

Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high) {
  return minimum(maximum(x, low), high);
}
Tensor clamp(const Tensor& x, const Tensor& low, Scalar high) {
  return minimum(maximum(x, low), high);
}
Tensor clamp(const Tensor& x, Scalar low, const Tensor& high) {
  return minimum(maximum(x, low), high);
}

namespace ops {

namespace {

// The bounds are numbers or tensors.
std::vector<Tensor> run_clamp(std::string_view op, std::span<const OpValue> arguments) {
  using T = const Tensor&;
  const bool low = std::holds_alternative<Tensor>(arguments[1]);
  const bool high = std::holds_alternative<Tensor>(arguments[2]);
  if (low && high) return call<static_cast<Tensor (*)(T, T, T)>(&clamp)>(op, arguments);
  if (low) return call<static_cast<Tensor (*)(T, T, Scalar)>(&clamp)>(op, arguments);
  if (high) return call<static_cast<Tensor (*)(T, Scalar, T)>(&clamp)>(op, arguments);
  return call<static_cast<Tensor (*)(T, Scalar, Scalar)>(&clamp)>(op, arguments);
}

constexpr OpParameter kClamp[] = {
    {OpKind::Tensor}, {OpKind::TensorOrNumber}, {OpKind::TensorOrNumber}};

}  // namespace

std::span<const OpRow> affine_rows() {
  static constexpr OpRow kRows[] = {
      {"affine", "affine", "(x, factor, offset)", kNumberSet, "x factor + offset, rounded once.",
       call<&affine>},
      {"clamp",
       "affine",
       "(x, low, high)",
       kNumberSet,
       "x held between two bounds.",
       {&run_clamp, kClamp}},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
