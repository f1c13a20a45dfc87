#include "tl/ops/glu.h"

#include "ops/check.h"
#include "ops/cpu/glu.h"
#include "ops/gpu/glu.h"
#include "ops/rows.h"

namespace tl {
namespace {

Tensor gated(std::string_view op, const Tensor& x, bool swiglu) {
  if (x.rank() == 0 || x.dim(-1) % 2 != 0) {
    throw Error(ErrorKind::ShapeMismatch, op, "the last dimension of shape ", x.shape(),
                " has no two halves");
  }
  ops::expect_float(op, x);
  Shape shape = x.shape();
  shape[x.rank() - 1] /= 2;
  Tensor out = Tensor::uninitialized(shape, x.dtype(), x.device());
  if (x.empty()) return out;
  if (x.location().is_cpu()) {
    cpu::glu(x, out, swiglu);
  } else {
    gpu::glu(x, out, swiglu);
  }
  if (has_history(x)) add_history(out, op, {x});
  return out;
}

}  // namespace

Tensor glu(const Tensor& x) { return gated("glu", x, false); }

Tensor swiglu(const Tensor& x) { return gated("swiglu", x, true); }

namespace ops {

std::span<const OpRow> glu_rows() {
  static constexpr OpRow kRows[] = {
      {"glu", "glu", "(x)", kFloatSet,
       "a * sigmoid(b) for the halves (a, b) of the last dimension.", call<&glu>},
      {"swiglu", "glu", "(x)", kFloatSet,
       "silu(a) * b for the halves (a, b) of the last dimension.", call<&swiglu>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
