#include "tl/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/check.h"
#include "ops/cpu/reduce.h"
#include "ops/gpu/reduce.h"
#include "ops/rows.h"

namespace tl {
namespace {

using kernels::ReduceMode;
using ops::ReducePlan;

bool contains(const Dims& dims, std::int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

Shape reduced_shape(const Shape& shape, const Dims& dims, bool keepdim) {
  Shape result;
  for (int d = 0; d < shape.size(); ++d) {
    if (!contains(dims, d)) {
      result.push_back(shape[d]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

kernels::Strided<1> walk_of(const Dims& sizes, const Dims& strides) {
  kernels::Index size[Dims::kMax], stride[Dims::kMax];
  for (int d = 0; d < sizes.size(); ++d) {
    size[d] = sizes[d];
    stride[d] = strides[d];
  }
  return kernels::make_strided<1>(sizes.size(), size, {stride});
}

// The two walks. Where the order in which elements are taken does not matter, the reduced dims go
// by stride, so that memory is read forward whatever was transposed; broadcast ones come first.
void set_walks(ReducePlan& plan, const Layout& layout, const Dims& dims, bool ordered) {
  Dims sizes, strides;
  for (int d = 0; d < layout.rank(); ++d) {
    if (contains(dims, d)) continue;
    sizes.push_back(layout.shape()[d]);
    strides.push_back(layout.strides()[d]);
  }
  plan.kept = walk_of(sizes, strides);

  Dims order = dims;
  if (!ordered) {
    const auto rank = [&](std::int64_t d) {
      const std::int64_t stride = layout.strides()[static_cast<int>(d)];
      return stride == 0 ? std::numeric_limits<std::int64_t>::max() : stride;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return rank(a) > rank(b); });
  }
  sizes = strides = {};
  for (const std::int64_t d : order) {
    sizes.push_back(layout.shape()[static_cast<int>(d)]);
    strides.push_back(layout.strides()[static_cast<int>(d)]);
  }
  plan.reduced = walk_of(sizes, strides);
}

// `dims` are normalised.
Tensor run(ReducePlan plan, const Tensor& x, const Dims& dims, bool keepdim, DType result) {
  set_walks(plan, x.layout(), dims, plan.op == ReduceOp::Place);
  Tensor out = Tensor::uninitialized(reduced_shape(x.shape(), dims, keepdim), result, x.device());
  if (out.empty()) return out;
  if (x.location().is_cpu()) {
    cpu::reduce(plan, x, out);
  } else {
    gpu::reduce(plan, x, out);
  }
  return out;
}

void expect_number(std::string_view op, const Tensor& x) {
  if (x.dtype() == DType::Bool) {
    throw Error(ErrorKind::Unsupported, op, "needs a tensor of numbers, got ", x.dtype());
  }
}

// Nothing can be chosen from nothing.
void expect_elements(std::string_view op, const Tensor& x, const Dims& dims) {
  for (const std::int64_t d : dims) {
    if (x.shape()[static_cast<int>(d)] == 0) {
      throw Error(ErrorKind::BadArgument, op, "no elements along dim ", d, " of shape ", x.shape());
    }
  }
}

std::int64_t count_of(const Tensor& x, const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t d : dims) count *= x.shape()[static_cast<int>(d)];
  return count;
}

// `dims` and what else the op was told.
Tensor with_history_of(Tensor out, std::string_view op, const Tensor& x, const Dims& dims,
                       double setting = 0) {
  if (has_history(x)) add_history(out, op, {x}, {dims, setting});
  return out;
}

Tensor sum_like(std::string_view op, ReduceOp kind, const Tensor& x, const Dims& dims,
                bool keepdim) {
  const Dims over = normalize_dims(op, dims, x.shape());
  expect_number(op, x);
  return with_history_of(run({.op = kind}, x, over, keepdim, x.dtype()), op, x, over);
}

Tensor variance(std::string_view op, ReduceMode mode, const Tensor& x, const Dims& dims,
                double correction, bool keepdim) {
  const Dims over = normalize_dims(op, dims, x.shape());
  ops::expect_float(op, x);
  const ReducePlan plan{.op = ReduceOp::Var, .mode = mode, .scalar = correction};
  return with_history_of(run(plan, x, over, keepdim, x.dtype()), op, x, over, correction);
}

Tensor extreme(std::string_view op, bool smallest, const Tensor& x, const Dims& dims,
               bool keepdim) {
  const Dims over = normalize_dims(op, dims, x.shape());
  expect_elements(op, x, over);
  expect_number(op, x);
  const ReducePlan plan{.op = ReduceOp::Extreme, .smallest = smallest};
  return with_history_of(run(plan, x, over, keepdim, x.dtype()), op, x, over);
}

Tensor place(std::string_view op, bool smallest, const Tensor& x, const Dims& dims, bool keepdim) {
  expect_elements(op, x, dims);
  // The largest index is one less than the count, and u32's largest value means "nothing".
  if (count_of(x, dims) > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::Overflow, op, "the indices of shape ", x.shape(), " do not fit in u32");
  }
  expect_number(op, x);
  return run({.op = ReduceOp::Place, .smallest = smallest}, x, dims, keepdim, DType::U32);
}

Tensor place_along(std::string_view op, bool smallest, const Tensor& x, std::int64_t dim,
                   bool keepdim) {
  if (x.rank() == 0 && (dim == 0 || dim == -1)) return place(op, smallest, x, {}, keepdim);
  return place(op, smallest, x, {normalize_dim(op, dim, x.shape())}, keepdim);
}

Tensor count(std::string_view op, ReduceMode mode, const Tensor& x, const Dims& dims,
             bool keepdim) {
  const Dims over = normalize_dims(op, dims, x.shape());
  return run({.op = ReduceOp::Count, .mode = mode}, x, over, keepdim,
             mode == ReduceMode::Plain ? DType::I64 : DType::U8);
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  return sum_like("sum", ReduceOp::Sum, x, dims, keepdim);
}
Tensor sum_all(const Tensor& x) { return sum(x, all_dims(x.rank())); }

Tensor prod(const Tensor& x, const Dims& dims, bool keepdim) {
  return sum_like("prod", ReduceOp::Prod, x, dims, keepdim);
}
Tensor prod_all(const Tensor& x) { return prod(x, all_dims(x.rank())); }

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Dims over = normalize_dims("mean", dims, x.shape());
  ops::expect_float("mean", x);
  const auto count = static_cast<double>(count_of(x, over));
  const ReducePlan plan{.op = ReduceOp::Sum, .scalar = count};
  return with_history_of(run(plan, x, over, keepdim, x.dtype()), "mean", x, over);
}
Tensor mean_all(const Tensor& x) { return mean(x, all_dims(x.rank())); }

Tensor var(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  return variance("var", ReduceMode::Plain, x, dims, correction, keepdim);
}
Tensor var_all(const Tensor& x, double correction) {
  return var(x, all_dims(x.rank()), correction);
}
Tensor std_dev(const Tensor& x, const Dims& dims, double correction, bool keepdim) {
  return variance("std", ReduceMode::Root, x, dims, correction, keepdim);
}
Tensor std_dev_all(const Tensor& x, double correction) {
  return std_dev(x, all_dims(x.rank()), correction);
}

Tensor min(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("min", true, x, dims, keepdim);
}
Tensor min_all(const Tensor& x) { return min(x, all_dims(x.rank())); }
Tensor max(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("max", false, x, dims, keepdim);
}
Tensor max_all(const Tensor& x) { return max(x, all_dims(x.rank())); }

Tensor argmin(const Tensor& x, std::int64_t dim, bool keepdim) {
  return place_along("argmin", true, x, dim, keepdim);
}
Tensor argmin_all(const Tensor& x) { return place("argmin", true, x, all_dims(x.rank()), false); }
Tensor argmax(const Tensor& x, std::int64_t dim, bool keepdim) {
  return place_along("argmax", false, x, dim, keepdim);
}
Tensor argmax_all(const Tensor& x) { return place("argmax", false, x, all_dims(x.rank()), false); }

Tensor all(const Tensor& x, const Dims& dims, bool keepdim) {
  return count("all", ReduceMode::All, x, dims, keepdim);
}
Tensor all_all(const Tensor& x) { return all(x, all_dims(x.rank())); }
Tensor any(const Tensor& x, const Dims& dims, bool keepdim) {
  return count("any", ReduceMode::Any, x, dims, keepdim);
}
Tensor any_all(const Tensor& x) { return any(x, all_dims(x.rank())); }
Tensor count_nonzero(const Tensor& x, const Dims& dims, bool keepdim) {
  return count("count_nonzero", ReduceMode::Plain, x, dims, keepdim);
}
Tensor count_nonzero_all(const Tensor& x) { return count_nonzero(x, all_dims(x.rank())); }

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const Dims over = normalize_dims("logsumexp", dims, x.shape());
  ops::expect_float("logsumexp", x);
  const ReducePlan plan{.op = ReduceOp::LogSumExp};
  return with_history_of(run(plan, x, over, keepdim, x.dtype()), "logsumexp", x, over);
}
Tensor logsumexp_all(const Tensor& x) { return logsumexp(x, all_dims(x.rank())); }

Tensor norm(const Tensor& x, const Dims& dims, double p, bool keepdim) {
  const Dims over = normalize_dims("norm", dims, x.shape());
  if (std::isnan(p)) throw Error(ErrorKind::BadArgument, "norm", "p must be a number, got ", p);
  ReducePlan plan{.op = ReduceOp::Norm, .scalar = p};
  if (p == 1) {
    plan.mode = ReduceMode::Absolute;
  } else if (p == 2) {
    plan.mode = ReduceMode::Square;
  } else if (std::isinf(p) && p > 0) {
    plan.mode = ReduceMode::Largest;
  } else if (std::isinf(p)) {
    plan.mode = ReduceMode::Smallest;
  } else if (p == 0) {
    plan.mode = ReduceMode::Nonzero;
  } else {
    plan.op = ReduceOp::Power;
    plan.mode = ReduceMode::Power;
  }
  if (std::isinf(p)) expect_elements("norm", x, over);
  ops::expect_float("norm", x);
  return with_history_of(run(plan, x, over, keepdim, x.dtype()), "norm", x, over, p);
}
Tensor norm_all(const Tensor& x, double p) { return norm(x, all_dims(x.rank()), p); }

namespace ops {

namespace {

// As the table calls them: no dims means all of them.
template <Tensor (*kFunction)(const Tensor&, const Dims&, bool)>
Tensor over(const Tensor& x, const std::optional<Dims>& dims, bool keepdim) {
  return kFunction(x, dims.value_or(all_dims(x.rank())), keepdim);
}
template <Tensor (*kFunction)(const Tensor&, const Dims&, double, bool)>
Tensor over_with(const Tensor& x, const std::optional<Dims>& dims, double number, bool keepdim) {
  return kFunction(x, dims.value_or(all_dims(x.rank())), number, keepdim);
}
template <Tensor (*kAlong)(const Tensor&, std::int64_t, bool), Tensor (*kAll)(const Tensor&)>
Tensor place_of(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim) {
  if (dim) return kAlong(x, *dim, keepdim);
  const Tensor index = kAll(x);
  return keepdim ? index.view(Shape::repeated(x.rank(), 1)) : index;
}

constexpr std::string_view kDimsSignature = "(x, dims = none, keepdim = false)";

}  // namespace

std::span<const OpRow> reduce_rows() {
  static constexpr OpRow kRows[] = {
      {"sum", "reduce", kDimsSignature, kNumberSet, "The sum over dims; integers wrap.",
       call<&over<&sum>>},
      {"prod", "reduce", kDimsSignature, kNumberSet, "The product over dims; integers wrap.",
       call<&over<&prod>>},
      {"mean", "reduce", kDimsSignature, kFloatSet, "The mean over dims; NaN over nothing.",
       call<&over<&mean>>},
      {"var", "reduce", "(x, dims = none, correction = 1.0, keepdim = false)", kFloatSet,
       "The variance over dims: squared distances from the mean over (count - correction).",
       call<&over_with<&var>>},
      {"std", "reduce", "(x, dims = none, correction = 1.0, keepdim = false)", kFloatSet,
       "The standard deviation over dims.", call<&over_with<&std_dev>>},
      {"min", "reduce", kDimsSignature, kNumberSet, "The smallest element over dims; NaN wins.",
       call<&over<&min>>},
      {"max", "reduce", kDimsSignature, kNumberSet, "The largest element over dims; NaN wins.",
       call<&over<&max>>},
      {"argmin", "reduce", "(x, dim = none, keepdim = false)", kNumberSet,
       "The first index (u32) of the smallest element, or of the first NaN.",
       call<&place_of<&argmin, &argmin_all>>},
      {"argmax", "reduce", "(x, dim = none, keepdim = false)", kNumberSet,
       "The first index (u32) of the largest element, or of the first NaN.",
       call<&place_of<&argmax, &argmax_all>>},
      {"all", "reduce", kDimsSignature, kAnySet, "1 where no element over dims is 0, as u8.",
       call<&over<&all>>},
      {"any", "reduce", kDimsSignature, kAnySet, "1 where an element over dims is not 0, as u8.",
       call<&over<&any>>},
      {"count_nonzero", "reduce", kDimsSignature, kAnySet,
       "How many elements over dims are not 0, as i64.", call<&over<&count_nonzero>>},
      {"logsumexp", "reduce", kDimsSignature, kFloatSet,
       "log(sum(exp(x))) over dims without overflow.", call<&over<&logsumexp>>},
      {"norm", "reduce", "(x, dims = none, p = 2.0, keepdim = false)", kFloatSet,
       "(sum |x|^p)^(1/p) over dims; p may be infinite or 0.", call<&over_with<&norm>>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
