// Attention. Inputs: q, k, v, a mask and slopes, which may be missing, and what the kernels of its
// gradient start from. Settings: scale, softcap, window (-1: none), causal, and whether there are a
// mask and slopes.
//
// Nothing of the size of (queries, keys) is kept: the probabilities are computed again, by kernels
// tile by tile. Where there are none (gradients of masks and slopes, those that are differentiated
// themselves, on a GPU all but f32, long heads and products that may round), by ops for as many
// queries at a time as take little memory.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "grad/flow.h"
#include "grad/rules.h"
#include "grad/rules/windows.h"
#include "ops/attention.h"
#include "ops/row_grad.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/create.h"
#include "tl/ops/join.h"
#include "tl/ops/matmul.h"
#include "tl/ops/reduce.h"
#include "tl/ops/softmax.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::grad {

namespace {

void accumulate(std::optional<Tensor>& total, const Tensor& part) {
  total = total ? add(*total, part) : part;
}

class AttentionFlow {
 public:
  explicit AttentionFlow(Flow& flow)
      : flow_(flow),
        // Heads side by side, as they often come, would be a product each.
        q_(contiguous(mul(widened(flow.input(0)), flow.real(0)))),
        k_(contiguous(widened(flow.input(1)))),
        v_(contiguous(widened(flow.input(2)))),
        g_(contiguous(widened(flow.gradient()))),
        scale_(flow.real(0)),
        softcap_(flow.real(1)),
        window_(flow.integer(2)),
        causal_(flow.flag(3)) {
    if (flow.flag(4)) {
      mask_ = flow.input(3).broadcast_as({q_.dim(0), q_.dim(1), q_.dim(2), k_.dim(2)});
    }
    if (flow.flag(5)) slopes_ = reshape(widened(flow.input(4)), {q_.dim(1), 1, 1});
  }

  void run() {
    constexpr std::int64_t kMost = 1 << 24;  // scores at a time
    const std::int64_t queries = q_.dim(2), each = q_.dim(0) * q_.dim(1) * k_.dim(2);
    const std::int64_t together = std::max<std::int64_t>(1, kMost / each);
    for (std::int64_t first = 0; first < queries; first += together) {
      some(first, std::min(together, queries - first));
    }
    if (flow_.wants(0)) flow_.give(0, joined(dq_));
    if (flow_.wants(1)) flow_.give(1, *dk_);
    if (flow_.wants(2)) flow_.give(2, *dv_);
    if (flow_.wants(3)) flow_.give(3, joined(dmask_));
    if (flow_.wants(4)) flow_.give(4, *dslopes_);
  }

 private:
  static Tensor joined(const std::vector<Tensor>& parts) {
    return parts.size() == 1 ? parts[0] : cat(parts, 2);
  }

  // (b, h, t, n) as (b, h_kv, h / h_kv t, n): the rows that share keys are one matrix.
  Tensor by_key_head(const Tensor& x) const {
    return reshape(x, {x.dim(0), k_.dim(1), q_.dim(1) / k_.dim(1) * x.dim(2), x.dim(3)});
  }
  Tensor by_head(const Tensor& x, std::int64_t queries) const {
    return reshape(x, {q_.dim(0), q_.dim(1), queries, x.dim(-1)});
  }

  // (count, keys): how far behind the key of its own each key lies, for queries from `first` on.
  Tensor distances(std::int64_t first, std::int64_t count, std::int64_t keys) const {
    const std::int64_t own = first + k_.dim(2) - q_.dim(2);
    const Tensor key = arange(0, keys, 1, q_.dtype(), q_.device());
    const Tensor query = arange(own, own + count, 1, q_.dtype(), q_.device());
    return sub(key, query.unsqueeze(1));
  }

  // Keys that no query sees become -inf.
  Tensor hidden(Tensor scores, const Tensor& distance, const Tensor& mask) const {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    if (!mask.empty()) {
      scores = is_float(mask.dtype()) ? add(scores, widened(mask)) : where(mask, scores, kNever);
    }
    if (causal_) scores = where(le(distance, 0), scores, kNever);
    if (window_ >= 0) scores = where(ge(distance, -window_), scores, kNever);
    return scores;
  }

  // The softmax of each row; zeros where a row has nothing but -inf. What is taken off before the
  // exponential does not change the result, and is no part of its gradient.
  Tensor probabilities(const Tensor& scores) const {
    const bool sees_itself =
        mask_.empty() && k_.dim(2) >= q_.dim(2);  // at least the key of its own
    if (!flow_.follows() && sees_itself) return softmax(scores);
    Tensor most = max(scores.detach(), {-1}, true);
    most = where(isinf(most), 0, most);
    const Tensor weights = exp(sub(scores, most));
    const Tensor total = sum(weights, {-1}, true);
    return div(weights, where(eq(total, 0), 1, total));
  }

  Tensor through_softmax(const Tensor& p, const Tensor& dp) const {
    if (!flow_.follows()) return ops::softmax_gradient(p, dp, false);
    const Tensor weighted = mul(dp, p);
    return sub(weighted, mul(p, sum(weighted, {-1}, true)));
  }

  // Queries [first, first + count), which are scaled already. Names as in s = q k^T, p =
  // softmax(s), o = p v.
  void some(std::int64_t first, std::int64_t count) {
    const std::int64_t all = k_.dim(2), own_last = first + count - 1 + all - q_.dim(2);
    const std::int64_t keys = causal_ ? std::clamp<std::int64_t>(own_last + 1, 1, all) : all;
    const Tensor q = by_key_head(q_.narrow(2, first, count)), k = k_.narrow(2, 0, keys);
    const Tensor g = by_key_head(g_.narrow(2, first, count)), v = v_.narrow(2, 0, keys);
    const Tensor mask = mask_.empty() ? mask_ : mask_.narrow(2, first, count).narrow(3, 0, keys);
    const Tensor distance = distances(first, count, keys);

    Tensor s = by_head(matmul(q, k.t()), count);
    Tensor cap_slope;
    if (softcap_ != 0) {
      const Tensor bent = tanh(div(s, softcap_));
      cap_slope = sub(1, sqr(bent));
      s = mul(bent, softcap_);
    }
    if (!slopes_.empty()) s = add(s, mul(slopes_, distance));
    const Tensor p = probabilities(hidden(s, distance, mask));

    if (flow_.wants(2)) {
      accumulate(dv_, padded(matmul(by_key_head(p).t(), g), 2, 0, all - keys));
    }
    Tensor ds = through_softmax(p, by_head(matmul(g, v.t()), count));
    if (flow_.wants(3)) dmask_.push_back(padded(ds, 3, 0, all - keys));
    if (flow_.wants(4)) accumulate(dslopes_, sum(mul(ds, distance), {0, 2, 3}));
    if (softcap_ != 0) ds = mul(ds, cap_slope);
    ds = by_key_head(ds);
    if (flow_.wants(0)) dq_.push_back(by_head(mul(matmul(ds, k), scale_), count));
    if (flow_.wants(1)) accumulate(dk_, padded(matmul(ds.t(), q), 2, 0, all - keys));
  }

  Flow& flow_;
  Tensor q_, k_, v_, g_;
  double scale_, softcap_;
  std::int64_t window_;
  bool causal_;
  Tensor mask_;    // (b, h, t, s), or empty
  Tensor slopes_;  // (h, 1, 1), or empty
  std::vector<Tensor> dq_, dmask_;
  std::optional<Tensor> dk_, dv_, dslopes_;
};

void attention_and_masks_rule(Flow& flow) {
  if (flow.gradient().empty() || flow.shape(1)[2] == 0) return;  // nothing was added up
  AttentionFlow(flow).run();
}

// Its kernels were there when it ran.
void attention_rule(Flow& flow) {
  if (flow.follows() || flow.gradient().empty() || flow.shape(1)[2] == 0) {
    return attention_and_masks_rule(flow);
  }
  AttentionOptions options{.causal = flow.flag(3), .scale = flow.real(0), .softcap = flow.real(1)};
  if (flow.flag(4)) options.mask = flow.input(3);
  if (flow.flag(5)) options.slopes = flow.input(4);
  if (flow.integer(2) >= 0) options.window = flow.integer(2);
  ops::AttentionGradients found =
      ops::attention_gradients(flow.input(0), flow.input(1), flow.input(2), options, flow.result(),
                               flow.input(5), flow.gradient());
  if (flow.wants(0)) flow.give(0, std::move(found.q));
  if (flow.wants(1)) flow.give(1, std::move(found.k));
  if (flow.wants(2)) flow.give(2, std::move(found.v));
}

}  // namespace

std::span<const Rule> attention_rules() {
  static constexpr Rule kRules[] = {
      {"attention", attention_rule, kKeepsAll | kKeepsResult},
      {"attention_and_masks", attention_and_masks_rule, kKeepsAll},
  };
  return kRules;
}

}  // namespace tl::grad
