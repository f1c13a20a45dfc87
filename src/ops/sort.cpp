#include "tl/ops/sort.h"

#include <limits>
#include <utility>

#include "ops/cpu/sort.h"
#include "ops/gpu/sort.h"
#include "ops/rows.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

// The first `keep` of each line along `dim`.
std::pair<Tensor, Tensor> sorted(std::string_view op, const Tensor& x, int dim, bool descending,
                                 std::int64_t keep) {
  // The largest value of u32 means "nothing".
  if (x.shape()[dim] > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::Overflow, op, "the indices of shape ", x.shape(), " do not fit in u32");
  }
  const Tensor rows = contiguous(x.move_dim(dim, -1));
  Shape shape = rows.shape();
  shape[shape.size() - 1] = keep;
  Tensor values = Tensor::uninitialized(shape, x.dtype(), x.device());
  Tensor indices = Tensor::uninitialized(shape, DType::U32, x.device());
  if (!values.empty()) {
    if (x.location().is_cpu()) {
      cpu::sort(rows, descending, keep, values, indices);
    } else {
      gpu::sort(rows, descending, keep, values, indices);
    }
  }
  Tensor out = contiguous(values.move_dim(-1, dim));
  Tensor places = contiguous(indices.move_dim(-1, dim));
  if (has_history(x)) add_history(out, "sort", {x, places}, {dim});
  return {std::move(out), std::move(places)};
}

std::pair<Tensor, Tensor> one_number(const Tensor& x) {
  return {x, Tensor::zeros({}, DType::U32, x.device())};
}

std::pair<Tensor, Tensor> sort_along(std::string_view op, const Tensor& x, std::int64_t dim,
                                     bool descending) {
  if (x.rank() == 0 && (dim == 0 || dim == -1)) return one_number(x);
  const int along = normalize_dim(op, dim, x.shape());
  return sorted(op, x, along, descending, x.shape()[along]);
}

}  // namespace

std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t dim, bool descending) {
  return sort_along("sort", x, dim, descending);
}

Tensor argsort(const Tensor& x, std::int64_t dim, bool descending) {
  return sort_along("argsort", x, dim, descending).second;
}

std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t dim, bool largest) {
  if (x.rank() == 0 && (dim == 0 || dim == -1) && k == 1) return one_number(x);
  const int along = normalize_dim("topk", dim, x.shape());
  if (k < 0 || k > x.shape()[along]) {
    throw Error(ErrorKind::BadArgument, "topk", "k is ", k, ", and dim ", along, " of shape ",
                x.shape(), " has ", x.shape()[along], " elements");
  }
  return sorted("topk", x, along, largest, k);
}

std::pair<Tensor, Tensor> sort_last_dim(const Tensor& x, bool ascending) {
  return sort_along("sort_last_dim", x, -1, !ascending);
}

Tensor arg_sort_last_dim(const Tensor& x, bool ascending) {
  return sort_along("arg_sort_last_dim", x, -1, !ascending).second;
}

namespace ops {

std::span<const OpRow> sort_rows() {
  static constexpr OpRow kRows[] = {
      {"sort", "sort", "(x, dim = -1, descending = false)", kAnySet,
       "Values and indices (u32) in stable order along dim; NaN counts as largest.", call<&sort>},
      {"argsort", "sort", "(x, dim = -1, descending = false)", kAnySet,
       "The indices (u32) that sort x along dim.", call<&argsort>},
      {"topk", "sort", "(x, k, dim = -1, largest = true)", kAnySet,
       "The k largest or smallest elements along dim and their indices, best first.", call<&topk>},
      {"sort_last_dim", "sort", "(x, ascending = true)", kAnySet, "sort along the last dimension.",
       call<&sort_last_dim>},
      {"arg_sort_last_dim", "sort", "(x, ascending = true)", kAnySet,
       "argsort along the last dimension.", call<&arg_sort_last_dim>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
