#include "tl/ops/scan.h"

#include "ops/cpu/scan.h"
#include "ops/gpu/scan.h"
#include "ops/rows.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

Tensor scan(std::string_view op, ScanOp kind, const Tensor& given, std::int64_t dim) {
  const bool one_number = given.rank() == 0 && (dim == 0 || dim == -1);
  const int along = one_number ? 0 : normalize_dim(op, dim, given.shape());
  if (given.dtype() == DType::Bool) {
    throw Error(ErrorKind::Unsupported, op, "needs a tensor of numbers, got ", given.dtype());
  }
  if (one_number) return given;
  Tensor out = Tensor::uninitialized(given.shape(), given.dtype(), given.device());
  if (out.empty()) return out;
  // Lines that end up side by side are read so, too.
  const bool inner = out.strides()[along] == 1 && given.strides()[along] != 1;
  const Tensor x = inner ? contiguous(given) : given;

  ops::ScanPlan plan{.op = kind, .count = x.shape()[along]};
  plan.in_step = x.strides()[along];
  plan.out_step = out.strides()[along];
  kernels::Index size[Dims::kMax], from[Dims::kMax], to[Dims::kMax];
  int rank = 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (d == along) continue;
    size[rank] = x.shape()[d];
    from[rank] = x.strides()[d];
    to[rank] = out.strides()[d];
    ++rank;
  }
  plan.lines = kernels::make_strided<2>(rank, size, {from, to});
  plan.in_lines = kernels::make_strided<1>(rank, size, {from});
  if (x.location().is_cpu()) {
    cpu::scan(plan, x, out);
  } else {
    gpu::scan(plan, x, out);
  }
  if (has_history(given)) add_history(out, op, {given}, {along});
  return out;
}

}  // namespace

Tensor cumsum(const Tensor& x, std::int64_t dim) { return scan("cumsum", ScanOp::Sum, x, dim); }
Tensor cumprod(const Tensor& x, std::int64_t dim) { return scan("cumprod", ScanOp::Prod, x, dim); }

namespace ops {

std::span<const OpRow> scan_rows() {
  static constexpr OpRow kRows[] = {
      {"cumsum", "scan", "(x, dim)", kNumberSet, "Running sums along dim; integers wrap.",
       call<&cumsum>},
      {"cumprod", "scan", "(x, dim)", kNumberSet, "Running products along dim; integers wrap.",
       call<&cumprod>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
