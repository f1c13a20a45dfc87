#include "tl/ops/loss.h"

#include "ops/check.h"
#include "ops/cpu/loss.h"
#include "ops/gpu/loss.h"
#include "ops/rows.h"
#include "tl/ops/copy.h"

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

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, std::string_view reduction,
                     std::optional<std::int64_t> ignore_index, double label_smoothing) {
  constexpr std::string_view kOp = "cross_entropy";
  const Reduction reduce = parse_reduction(kOp, reduction);
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    throw Error(ErrorKind::BadArgument, kOp, "label smoothing is from 0 to 1, not ",
                label_smoothing);
  }
  ops::expect_rank(kOp, "logits", logits, 2);
  const std::int64_t n = logits.shape()[0];
  if (targets.shape() != Shape{n}) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "targets have shape ", targets.shape(),
                ", and logits have shape ", logits.shape());
  }
  if (n > 0 && logits.shape()[1] == 0) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "logits of shape ", logits.shape(),
                " have no classes");
  }
  ops::expect_same_device(kOp, logits, targets);
  ops::expect_float(kOp, logits);
  ops::expect_index_dtype(kOp, targets);

  const DType wide = logits.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Tensor losses = Tensor::uninitialized({n}, wide, logits.device());
  Tensor counted = Tensor::uninitialized({n}, wide, logits.device());
  const bool on_cpu = logits.location().is_cpu();
  if (n > 0) {
    const ops::CrossEntropyArguments arguments{ignore_index, label_smoothing};
    const Tensor ids = contiguous(targets);
    if (on_cpu) {
      cpu::cross_entropy(logits, ids, losses, counted, arguments);
    } else {
      gpu::cross_entropy(logits, ids, losses, counted, arguments);
    }
  }
  if (reduce == Reduction::None) return to_dtype(losses, logits.dtype());
  Tensor out = Tensor::uninitialized({}, logits.dtype(), logits.device());
  if (on_cpu) {
    cpu::total(losses, counted, out, reduce == Reduction::Mean);
  } else {
    gpu::total(losses, counted, out, reduce == Reduction::Mean);
  }
  return out;
}

namespace ops {

std::span<const OpRow> loss_rows() {
  static constexpr OpRow kRows[] = {
      {"cross_entropy", "loss",
       "(logits, targets, reduction = \"mean\", ignore_index = none, label_smoothing = 0.0)",
       kFloatSet, "-log(softmax(logits))[target] for logits (n, c) and targets (n).",
       call<&cross_entropy>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
