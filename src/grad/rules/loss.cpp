// Losses that are computed in one go. The others are made of ops, which have rules of their own.
#include "tl/ops/loss.h"

#include "grad/flow.h"
#include "grad/rules.h"
#include "ops/row_grad.h"
#include "tl/ops/affine.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/reduce.h"
#include "tl/ops/softmax.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

// The losses of rows from logits (n, c), targets (n) with "nothing" for rows that are left out, 1
// or 0 for each row that counts or does not, and what the softmax of each row is computed with. A
// row gets softmax(row) less the share that the target has of each class: by a kernel that reads
// the logits and writes this, once each, or by ops where it is to be differentiated.
void cross_entropy_rule(Flow& flow) {
  if (!flow.follows()) {
    return flow.give(0, ops::cross_entropy_gradient({.logits = flow.input(0),
                                                     .ids = flow.input(1),
                                                     .counted = flow.input(2),
                                                     .kept = flow.input(3),
                                                     .g = flow.gradient(),
                                                     .smoothing = flow.real(0)}));
  }
  const Tensor logits = flow.input(0), ids = flow.input(1).unsqueeze(1);
  const double smoothing = flow.real(0);
  const double everywhere = smoothing / static_cast<double>(logits.shape()[1]);
  const Tensor weights = where(ne(flow.input(2), 0), flow.gradient(), 0).unsqueeze(1);
  const Tensor g = to_dtype(weights, logits.dtype());

  Tensor slopes = softmax(logits, 1);
  const Tensor at_target = gather(slopes, 1, ids);
  if (everywhere != 0) slopes = sub(slopes, everywhere);
  slopes = mul(slopes, g);
  scatter_set(slopes, 1, ids, mul(affine(at_target, 1, smoothing - everywhere - 1), g));
  flow.give(0, slopes);
}

// The sum or the mean of the losses of rows that count. The mean over none has no slope.
void total_of_rows_rule(Flow& flow) {
  const Tensor g = to_dtype(flow.gradient(), flow.dtype(0));
  const Tensor counted = flow.input(1);
  const bool is_mean = flow.flag(0);
  const Tensor each = is_mean ? div(g, sum_all(counted)) : g;
  flow.give(0, where(ne(counted, 0), each, 0));
}

// max(log(x), least) and its slope: none where the logarithm is cut off, as it is for x = 0.
struct CutLog {
  Tensor is_cut;
  double least;

  CutLog(const Tensor& x, double at_least)
      : is_cut(le(log(x.detach()), at_least)), least(at_least) {}
  Tensor value(const Tensor& log_x) const { return where(is_cut, least, log_x); }
  Tensor slope(const Tensor& x) const { return where(is_cut, 0, recip(where(is_cut, 1, x))); }
};

// -(target log(x) + (1 - target) log(1 - x)), each logarithm at least the setting.
void binary_cross_entropy_rule(Flow& flow) {
  const Tensor& g = flow.gradient();
  const Tensor x = flow.input(0), target = flow.input(1);
  const Tensor rest = sub(1, x);
  const CutLog yes(x, flow.real(0)), no(rest, flow.real(0));
  if (flow.wants(0)) {
    const Tensor up = mul(sub(1, target), no.slope(rest)), down = mul(target, yes.slope(x));
    flow.give(0, mul(g, sub(up, down)));
  }
  if (flow.wants(1)) {
    const Tensor log_yes = yes.value(log(where(yes.is_cut, 1, x)));
    const Tensor log_no = no.value(log1p(neg(where(no.is_cut, 0, x))));
    flow.give(1, mul(g, sub(log_no, log_yes)));
  }
}

}  // namespace

std::span<const Rule> loss_rules() {
  static constexpr Rule kRules[] = {
      {"cross_entropy", cross_entropy_rule, kKeepsAll},
      {"total_of_rows", total_of_rows_rule, keeps_input(1)},
      {"binary_cross_entropy", binary_cross_entropy_rule, keeps_input(0) | keeps_input(1)},
  };
  return kRules;
}

}  // namespace tl::grad
