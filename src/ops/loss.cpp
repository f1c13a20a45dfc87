#include "tl/ops/loss.h"

#include <limits>
#include <utility>

#include "ops/check.h"
#include "ops/cpu/index.h"
#include "ops/cpu/indexing.h"
#include "ops/cpu/loss.h"
#include "ops/gpu/indexing.h"
#include "ops/gpu/loss.h"
#include "ops/rows.h"
#include "tl/ops/affine.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl {
namespace {

enum class Reduction : std::uint8_t { Mean, Sum, None };

Reduction parse_reduction(std::string_view op, std::string_view text) {
  if (text == "mean") return Reduction::Mean;
  if (text == "sum") return Reduction::Sum;
  if (text == "none") return Reduction::None;
  throw Error(ErrorKind::BadArgument, op, "reduction is \"mean\", \"sum\" or \"none\", not \"",
              text, "\"");
}

// What losses are computed in.
DType wide(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }
Tensor widened(const Tensor& x) { return to_dtype(x, wide(x.dtype())); }

// x (n, c) and targets (n).
void check_classes(std::string_view op, std::string_view what, const Tensor& x,
                   const Tensor& targets) {
  ops::expect_rank(op, what, x, 2);
  const std::int64_t n = x.shape()[0];
  if (targets.shape() != Shape{n}) {
    throw Error(ErrorKind::ShapeMismatch, op, "targets have shape ", targets.shape(), ", and ",
                what, " have shape ", x.shape());
  }
  if (n > 0 && x.shape()[1] == 0) {
    throw Error(ErrorKind::ShapeMismatch, op, what, " of shape ", x.shape(), " have no classes");
  }
  ops::expect_same_device(op, x, targets);
  ops::expect_float(op, x);
  ops::expect_index_dtype(op, targets);
}

// Targets with "nothing" where a row is ignored: indexing then leaves it out.
Tensor without_ignored(const Tensor& targets, std::optional<std::int64_t> ignore_index) {
  Tensor ids = targets;
  cpu::visit_index(targets.dtype(), [&]<class Id> {
    if (!ignore_index.has_value() || !std::in_range<Id>(*ignore_index)) return;
    ids = masked_fill(targets, eq(targets, *ignore_index), std::numeric_limits<Id>::max());
  });
  return ids;
}

// Losses (n) and 1 or 0 for each row that counts or does not, both wide.
Tensor total_of_rows(const Tensor& losses, const Tensor& counted, Reduction reduce, DType dtype) {
  if (reduce == Reduction::None) return to_dtype(losses, dtype);
  Tensor out = Tensor::uninitialized({}, dtype, losses.device());
  if (out.location().is_cpu()) {
    cpu::total(losses, counted, out, reduce == Reduction::Mean);
  } else {
    gpu::total(losses, counted, out, reduce == Reduction::Mean);
  }
  if (has_history(losses)) {
    add_history(out, "total_of_rows", {losses, counted}, {reduce == Reduction::Mean});
  }
  return out;
}

void check_pair(std::string_view op, const Tensor& x, const Tensor& target) {
  if (x.shape() != target.shape()) {
    throw Error(ErrorKind::ShapeMismatch, op, "the input has shape ", x.shape(),
                ", and the target ", target.shape());
  }
  ops::expect_same_device(op, x, target);
  ops::expect_float(op, x);
  ops::expect_same_dtype(op, x, target);
}

Tensor total_of(const Tensor& losses, Reduction reduce, DType dtype) {
  if (reduce == Reduction::None) return to_dtype(losses, dtype);
  return to_dtype(reduce == Reduction::Mean ? mean_all(losses) : sum_all(losses), dtype);
}

// Both wide, checked.
Tensor distance(const Tensor& x, const Tensor& target) {
  return abs(sub(widened(x), widened(target)));
}

// With m = min(d, edge), d^2 / 2 up to the edge and edge (d - edge / 2) beyond are both
// m (d - m / 2).
Tensor huber_of(const Tensor& d, double edge, double scale) {
  const Tensor near = minimum(d, edge);
  return mul(affine(near, scale, 0), add(d, affine(near, -0.5, 0)));
}

// a (1 - target) + b target; one of the two weights is 0 for a target of 0 or 1.
Tensor mixed(const Tensor& a, const Tensor& b, const Tensor& target) {
  return add(mul(a, sub(1, target)), mul(b, target));
}

// The norm along `dim`, at least eps.
Tensor length(const Tensor& x, double p, int dim, double eps, bool keepdim = false) {
  return maximum(norm(x, {dim}, p, keepdim), eps);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, std::string_view reduction,
                     std::optional<std::int64_t> ignore_index, double label_smoothing) {
  constexpr std::string_view kOp = "cross_entropy";
  const Reduction reduce = parse_reduction(kOp, reduction);
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    throw Error(ErrorKind::BadArgument, kOp, "label smoothing is from 0 to 1, not ",
                label_smoothing);
  }
  check_classes(kOp, "logits", logits, targets);
  const std::int64_t n = logits.shape()[0];
  const DType sums = wide(logits.dtype());
  Tensor losses = Tensor::uninitialized({n}, sums, logits.device());
  Tensor counted = Tensor::uninitialized({n}, sums, logits.device());
  if (n > 0) {
    const bool keeps = has_history(logits);
    Tensor kept = keeps ? Tensor::uninitialized({2, n}, sums, logits.device()) : Tensor();
    const ops::CrossEntropyArguments arguments{ignore_index, label_smoothing,
                                               keeps ? &kept : nullptr};
    const Tensor ids = contiguous(targets);
    if (logits.location().is_cpu()) {
      cpu::cross_entropy(logits, ids, losses, counted, arguments);
    } else {
      gpu::cross_entropy(logits, ids, losses, counted, arguments);
    }
    if (keeps) {
      add_history(losses, kOp, {logits, without_ignored(ids, ignore_index), counted, kept},
                  {label_smoothing});
    }
  }
  return total_of_rows(losses, counted, reduce, logits.dtype());
}

Tensor nll_loss(const Tensor& x, const Tensor& targets, std::string_view reduction,
                std::optional<std::int64_t> ignore_index) {
  constexpr std::string_view kOp = "nll_loss";
  const Reduction reduce = parse_reduction(kOp, reduction);
  check_classes(kOp, "logarithms of probabilities", x, targets);
  const Tensor ids = without_ignored(targets, ignore_index);
  Tensor counts;
  if (reduce == Reduction::Mean) {
    cpu::visit_index(ids.dtype(), [&]<class Id> {
      counts = to_dtype(ne(ids, std::numeric_limits<Id>::max()), wide(x.dtype()));
    });
  }
  // As gather() along dimension 1 has it, with a 0 for a row without a target.
  const Tensor column = ids.unsqueeze(1);
  const ops::Pick pick{
      x, {x.strides()[0], 0}, x.strides()[1], x.shape()[1], column, column.strides(), kOp};
  Tensor picked = Tensor::uninitialized(column.shape(), x.dtype(), x.device());
  if (!picked.empty()) {
    if (x.location().is_cpu()) {
      cpu::gather(pick, picked);
    } else {
      gpu::gather(pick, picked);
    }
  }
  if (has_history(x)) add_history(picked, "gather", {x, column}, {1});
  // Not neg(): the loss of a row that is left out is 0, not -0.
  const Tensor losses = sub(0, widened(picked.squeeze(1)));
  return reduce == Reduction::Mean ? total_of_rows(losses, counts, reduce, x.dtype())
                                   : total_of(losses, reduce, x.dtype());
}

// ---- numbers

Tensor mse_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  const Reduction reduce = parse_reduction("mse_loss", reduction);
  check_pair("mse_loss", x, target);
  return total_of(sqr(sub(widened(x), widened(target))), reduce, x.dtype());
}

Tensor l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  const Reduction reduce = parse_reduction("l1_loss", reduction);
  check_pair("l1_loss", x, target);
  return total_of(distance(x, target), reduce, x.dtype());
}

Tensor huber_loss(const Tensor& x, const Tensor& target, std::string_view reduction, double delta) {
  constexpr std::string_view kOp = "huber_loss";
  const Reduction reduce = parse_reduction(kOp, reduction);
  if (!(delta > 0)) throw Error(ErrorKind::BadArgument, kOp, "delta is above 0, not ", delta);
  check_pair(kOp, x, target);
  return total_of(huber_of(distance(x, target), delta, 1), reduce, x.dtype());
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction,
                      double beta) {
  constexpr std::string_view kOp = "smooth_l1_loss";
  const Reduction reduce = parse_reduction(kOp, reduction);
  if (!(beta >= 0)) throw Error(ErrorKind::BadArgument, kOp, "beta is at least 0, not ", beta);
  check_pair(kOp, x, target);
  const Tensor d = distance(x, target);
  return total_of(beta == 0 ? d : huber_of(d, beta, 1 / beta), reduce, x.dtype());
}

// ---- probabilities

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, std::string_view reduction) {
  constexpr std::string_view kOp = "binary_cross_entropy";
  const Reduction reduce = parse_reduction(kOp, reduction);
  check_pair(kOp, x, target);
  constexpr double kLeast = -100;  // log(0) would be -infinity, and 0 times it NaN
  const Tensor p = widened(x), t = widened(target);
  Tensor losses;
  {
    const NoHistory whole;  // at 0 and 1 the slope of a logarithm is no number
    losses = sub(0, mixed(maximum(log1p(neg(p)), kLeast), maximum(log(p), kLeast), t));
  }
  if (has_history(p, t)) add_history(losses, kOp, {p, t}, {kLeast});
  return total_of(losses, reduce, x.dtype());
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target,
                                        std::string_view reduction,
                                        const std::optional<Tensor>& pos_weight) {
  constexpr std::string_view kOp = "binary_cross_entropy_with_logits";
  const Reduction reduce = parse_reduction(kOp, reduction);
  if (pos_weight.has_value() &&
      broadcast_shapes(kOp, x.shape(), pos_weight->shape()) != x.shape()) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "pos_weight of shape ", pos_weight->shape(),
                " does not broadcast to the input's shape ", x.shape());
  }
  check_pair(kOp, x, target);
  if (pos_weight.has_value()) {
    ops::expect_same_device(kOp, x, *pos_weight);
    ops::expect_same_dtype(kOp, x, *pos_weight);
  }
  // -log(sigmoid(x)) is softplus(-x), and -log(1 - sigmoid(x)) softplus(x). Neither is negative, so
  // their sum loses no digits, however large x is.
  const Tensor logits = widened(x);
  Tensor yes = softplus(neg(logits));
  if (pos_weight.has_value()) yes = mul(yes, widened(*pos_weight));
  return total_of(mixed(softplus(logits), yes, widened(target)), reduce, x.dtype());
}

Tensor kl_div(const Tensor& x, const Tensor& target, std::string_view reduction, bool log_target) {
  const bool batch_mean = reduction == "batchmean";
  const Reduction reduce = batch_mean ? Reduction::Sum : parse_reduction("kl_div", reduction);
  check_pair("kl_div", x, target);
  const Tensor t = widened(target);
  Tensor losses;
  if (log_target) {
    losses = mul(exp(t), sub(t, widened(x)));
  } else {
    losses = mul(t, sub(log(masked_fill(t, eq(t, 0), 1)), widened(x)));  // 0 where t is 0
  }
  if (!batch_mean) return total_of(losses, reduce, x.dtype());
  const std::int64_t rows = x.rank() == 0 ? 1 : x.shape()[0];
  return to_dtype(div(sum_all(losses), rows), x.dtype());
}

// ---- vectors

Tensor normalize(const Tensor& x, double p, std::int64_t dim, double eps) {
  const int d = normalize_dim("normalize", dim, x.shape());
  ops::expect_float("normalize", x);
  const Tensor values = widened(x);
  return to_dtype(div(values, length(values, p, d, eps, true)), x.dtype());
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim, double eps) {
  constexpr std::string_view kOp = "cosine_similarity";
  const Shape shape = broadcast_shapes(kOp, a.shape(), b.shape());
  const int d = normalize_dim(kOp, dim, shape);
  ops::expect_same_device(kOp, a, b);
  ops::expect_float(kOp, a);
  ops::expect_same_dtype(kOp, a, b);
  const Tensor x = widened(a).broadcast_as(shape), y = widened(b).broadcast_as(shape);
  // Divided one after the other: the product of two small lengths could be 0.
  const Tensor dot = sum(mul(x, y), {d});
  const Tensor cosine = div(div(dot, length(x, 2, d, eps)), length(y, 2, d, eps));
  return to_dtype(cosine, a.dtype());
}

namespace ops {

std::span<const OpRow> loss_rows() {
  static constexpr OpRow kRows[] = {
      {"cross_entropy", "loss",
       "(logits, targets, reduction = \"mean\", ignore_index = none, label_smoothing = 0.0)",
       kFloatSet, "-log(softmax(logits))[target] for logits (n, c) and targets (n).",
       call<&cross_entropy>},
      {"nll_loss", "loss", "(x, targets, reduction = \"mean\", ignore_index = none)", kFloatSet,
       "-x[target] for logarithms of probabilities x (n, c) and targets (n).", call<&nll_loss>},
      {"mse_loss", "loss", "(x, target, reduction = \"mean\")", kFloatSet, "(x - target)^2.",
       call<&mse_loss>},
      {"l1_loss", "loss", "(x, target, reduction = \"mean\")", kFloatSet, "|x - target|.",
       call<&l1_loss>},
      {"huber_loss", "loss", "(x, target, reduction = \"mean\", delta = 1.0)", kFloatSet,
       "d^2 / 2 for d = |x - target| up to delta, delta (d - delta / 2) beyond.",
       call<&huber_loss>},
      {"smooth_l1_loss", "loss", "(x, target, reduction = \"mean\", beta = 1.0)", kFloatSet,
       "huber_loss over beta; l1_loss when it is 0.", call<&smooth_l1_loss>},
      {"binary_cross_entropy", "loss", "(x, target, reduction = \"mean\")", kFloatSet,
       "-(target log(x) + (1 - target) log(1 - x)), logarithms at least -100.",
       call<&binary_cross_entropy>},
      {"binary_cross_entropy_with_logits", "loss",
       "(x, target, reduction = \"mean\", pos_weight = none)", kFloatSet,
       "binary_cross_entropy of sigmoid(x), without its loss of digits.",
       call<&binary_cross_entropy_with_logits>},
      {"kl_div", "loss", "(x, target, reduction = \"mean\", log_target = false)", kFloatSet,
       "target (log(target) - x) for logarithms x.", call<&kl_div>},
      {"normalize", "loss", "(x, p = 2.0, dim = 1, eps = 1e-12)", kFloatSet,
       "x / max(norm(x), eps) along a dimension.", call<&normalize>},
      {"cosine_similarity", "loss", "(a, b, dim = 1, eps = 1e-8)", kFloatSet,
       "The dot product of two normalised vectors along a dimension.", call<&cosine_similarity>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
