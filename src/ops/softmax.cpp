#include "tl/ops/softmax.h"

#include "ops/check.h"
#include "ops/cpu/softmax.h"
#include "ops/gpu/softmax.h"
#include "ops/rows.h"

namespace tl {
namespace {

Tensor softmax_along(std::string_view op, const Tensor& x, std::int64_t dim, bool logarithm) {
  const Tensor in = x.rank() == 0 ? x.view({1}) : x;
  const int along = normalize_dim(op, dim, in.shape());
  ops::expect_float(op, x);
  Tensor out = Tensor::uninitialized(in.shape(), in.dtype(), in.device());
  if (!in.empty()) {
    if (in.location().is_cpu()) {
      cpu::softmax(in, out, along, logarithm);
    } else {
      gpu::softmax(in, out, along, logarithm);
    }
    if (has_history(in)) add_history(out, op, {in}, {along});
  }
  return x.rank() == 0 ? out.view({}) : out;
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t dim) {
  return softmax_along("softmax", x, dim, false);
}

Tensor log_softmax(const Tensor& x, std::int64_t dim) {
  return softmax_along("log_softmax", x, dim, true);
}

namespace ops {

std::span<const OpRow> softmax_rows() {
  static constexpr OpRow kRows[] = {
      {"softmax", "softmax", "(x, dim = -1)", kFloatSet,
       "exp(x) / sum of exp(x) along a dimension.", call<&softmax>},
      {"log_softmax", "softmax", "(x, dim = -1)", kFloatSet, "log(softmax(x)) along a dimension.",
       call<&log_softmax>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
