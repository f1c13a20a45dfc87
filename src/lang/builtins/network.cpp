// Layers of neural networks.
#include <cmath>
#include <limits>

#include "lang/builtins/library.h"
#include "lang/builtins/rope_tables.h"
#include "lang/builtins/tensors.h"
#include "lang/operators.h"
#include "lang/row_work.h"
#include "tl/ops/attention.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/matmul.h"
#include "tl/ops/norm.h"
#include "tl/ops/random.h"
#include "tl/ops/reduce.h"
#include "tl/ops/unary.h"
#include "tl/ops/where.h"

namespace tl::lang {

namespace {

// ---- products

Value call_linear(Context& context, Args& args) {
  const auto bias = args.has(2) ? std::optional<std::size_t>(2) : std::nullopt;
  return times_weight(context, float_tensor(context, args, 0), args, 1, bias);
}

Value call_embedding(Context& context, Args& args) {
  if (args[0].is(Kind::QTensor)) {
    const tl::QTensor& table = args[0].qtensor();
    const tl::Tensor ids = row_ids(context, args, 1, table.shape()[0], table.device());
    return embedding(table, ids.rank() == 0 ? ids.unsqueeze(0) : ids);
  }
  const tl::Tensor table = args.tensor(context, 0);
  if (table.rank() != 2) {
    throw type_error(args.name(), "() expects a table of rank 2, got rank ", table.rank());
  }
  const tl::Tensor ids = row_ids(context, args, 1, table.dim(0), table.device());
  return embedding(table, ids.rank() == 0 ? ids.unsqueeze(0) : ids);
}

// gelu(x) w + bias, with w (k, n).
Value call_fused_gelu_linear(Context& context, Args& args) {
  const Value activated = gelu(float_tensor(context, args, 0));
  const Value product = binary(context, ast::BinaryOp::MatrixProduct, activated, args[1]);
  return binary(context, ast::BinaryOp::Add, product, args[2]);
}

template <ast::BinaryOp kOp>
Value call_fused_relu(Context& context, Args& args) {
  return relu(to_tensor(context, join(args.name(), "()"), binary(context, kOp, args[0], args[1])));
}

Value call_fused_affine(Context& context, Args& args) {
  const Value scaled = binary(context, ast::BinaryOp::Multiply, args[0], args[1]);
  return binary(context, ast::BinaryOp::Add, scaled, args[2]);
}

// ---- norms

// Over the last dimensions, as many as the weight has.
Value call_rms_norm(Context& context, Args& args) {
  tl::Tensor x = float_tensor(context, args, 0);
  const double eps = args.real(2);
  if (!args.has(1)) return rms_norm(x, std::nullopt, eps);
  tl::Tensor weight = float_tensor(context, args, 1);
  together(context, x, weight);
  if (weight.rank() <= 1) {
    if (auto* queue = row_queue(context, x)) {
      if (auto out = queue->norm(x, weight, eps)) return *std::move(out);
    }
    return rms_norm(x, weight, eps);
  }
  if (weight.rank() > x.rank()) {
    throw type_error("rms_norm() expects a weight of rank ", x.rank(), " or less, got ",
                     weight.rank());
  }
  const tl::Tensor flat = flatten(x, -weight.rank(), -1);
  return reshape(rms_norm(flat, flatten(weight), eps), x.shape());
}

// (x, weight, bias, eps). Older programs write (x, anything, eps): what is no tensor of the last
// size is left out.
Value call_layer_norm(Context& context, Args& args) {
  tl::Tensor x = float_tensor(context, args, 0);
  const bool old_eps = args.has(2) && args[2].is_number();
  const double eps = args.has(3) ? args.real(3) : old_eps ? args.real(2) : 1e-5;
  const auto parameter = [&](std::size_t i) -> std::optional<tl::Tensor> {
    if (!args.has(i) || !is_tensor_like(args[i])) return std::nullopt;
    tl::Tensor given = float_tensor(context, args, i);
    const bool size = is_list_like(args[i]) && !has_floats(args[i]) && given.count() == 1 &&
                      x.rank() > 0 && x.dim(-1) != 1;
    if (size) return std::nullopt;
    together(context, x, given);
    return given;
  };
  auto weight = parameter(1);
  const auto bias = old_eps ? std::nullopt : parameter(2);
  if (weight) weight = to_dtype(*weight, x.dtype());
  return layer_norm(x, weight, bias, eps);
}

// Each feature (dimension 1) over all other dimensions, or with the mean and variance given.
Value call_batch_norm(Context& context, Args& args) {
  tl::Tensor x = float_tensor(context, args, 0);
  if (x.rank() < 2) {
    throw type_error("batch_norm() expects a tensor of rank 2 or more, got ", x.rank());
  }
  if (args.has(4) != args.has(5)) args.bad(args.has(4) ? 5 : 4, "mean and variance together");
  Dims dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  const auto parameter = [&](std::size_t i) {
    return to(args.tensor(context, i, x.dtype()), x.device());
  };
  const tl::Tensor middle = args.has(4) ? parameter(4) : mean(x, dims);
  const tl::Tensor spread = args.has(5) ? parameter(5) : var(x, dims, 0);
  const auto optional = [&](std::size_t i) {
    return args.has(i) ? std::optional(parameter(i)) : std::nullopt;
  };
  return batch_norm(x, middle, spread, optional(1), optional(2), args.real(3));
}

Value call_dropout(Context& context, Args& args) {
  const tl::Tensor x = float_tensor(context, args, 0);
  const double probability = args.has(1) ? args.real(1) : context.dropout;
  const bool training = args.has(2) ? args.boolean(2) : context.training;
  if (!(probability >= 0 && probability <= 1)) args.bad_value(1, "a probability from 0 to 1");
  return training ? dropout(x, probability) : x;
}

// ---- attention

// Large enough that softmax gives 0, and finite, so that a row without any key stays a number.
double hidden_score(DType dtype) {
  return dtype == DType::F16 ? -65504.0 : dtype == DType::F8E4M3 ? -448.0 : -1e9;
}

Value call_apply_mask(Context& context, Args& args) {
  const tl::Tensor scores = float_tensor(context, args, 0);
  const tl::Tensor mask =
      to(mask_tensor(context, join(args.name(), "()"), args[1]), scores.device());
  const tl::Tensor hidden = logical_not(mask);
  return masked_fill(scores, hidden, hidden_score(scores.dtype()));
}

Value call_combine_masks(Context& context, Args& args) {
  return binary(context, ast::BinaryOp::Multiply, args[0], args[1]);
}

// q (s, E), k and v (c, Ekv), w (E, E): rope on q, attention by heads, the product with w.
Value call_attention_with_cache(Context& context, Args& args) {
  tl::Tensor q = float_tensor(context, args, 0);
  tl::Tensor k = float_tensor(context, args, 1);
  tl::Tensor v = float_tensor(context, args, 2);
  bring_together(context, std::array{&q, &k, &v});
  for (const tl::Tensor* x : {&q, &k, &v}) {
    if (x->rank() != 2) {
      throw type_error(args.name(), "() expects q, k and v of rank 2, got rank ", x->rank());
    }
  }
  const std::int64_t width = q.dim(1);
  const std::int64_t heads = args.integer(4);
  if (heads <= 0 || width % heads != 0) {
    throw type_error(args.name(), "(): ", heads, " heads do not divide ", width,
                     " columns; say `heads`");
  }
  const std::int64_t size = width / heads;
  const std::int64_t steps = q.dim(0);
  const std::int64_t keys = k.dim(0);
  if (k.dim(1) % size != 0 || v.shape() != k.shape() || keys < steps) {
    throw RuntimeError(join("Tensor error: Shape mismatch: keys of shape ", k.shape(),
                            " and values of shape ", v.shape(), " for queries of shape ", q.shape(),
                            " and heads of ", size));
  }
  const auto by_heads = [&](const tl::Tensor& x) {  // (1, heads, n, size)
    return reshape(x, {1, x.dim(0), -1, size}).transpose(1, 2);
  };
  const tl::Tensor queries =
      turned(context, reshape(q, {steps, heads, size}), keys - steps, args.real(5), false);
  const tl::Tensor out = scaled_dot_product_attention(by_heads(reshape(queries, {steps, width})),
                                                      by_heads(k), by_heads(v), {.causal = true});
  return times_weight(context, reshape(out.transpose(1, 2), {steps, width}), args, 3);
}

constexpr std::string_view kSection = "network";

}  // namespace

BuiltinRows network_builtins() {
  using Op = ast::BinaryOp;
  static const Builtin rows[] = {
      {"linear", kSection, "(x, weight, bias = none)",
       "x * transpose(weight) + bias; the weight is [out, in], quantised or not.", call_linear},
      {"embedding", kSection, "(table, ids)",
       "Rows of a table [entries, size] for token ids, integers or a tensor of them.",
       call_embedding},
      {"rms_norm", kSection, "(x, weight = none, eps = 1e-6)",
       "x / sqrt(mean(x^2) + eps) * weight over the dimensions that the weight has.",
       call_rms_norm},
      {"layer_norm", kSection, "(x, weight = none, bias = none, eps = none)",
       "(x - mean) / sqrt(variance + eps) * weight + bias over the last dimension.",
       call_layer_norm},
      {"batch_norm", kSection,
       "(x, gamma = none, beta = none, eps = 1e-5, mean = none, variance = none)",
       "Each feature of x (batch, features, ...) with mean 0 and variance 1, times gamma plus "
       "beta.",
       call_batch_norm},
      {"dropout", kSection, "(x, p = none, training = none)",
       "In training elements become 0 with probability p and the others grow by 1 / (1 - p); p is "
       "what the learn block says, or 0.5.",
       call_dropout},
      {"apply_attention_mask", kSection, "(scores, mask)",
       "Scores that softmax makes 0 where the mask is 0.", call_apply_mask},
      {"apply_mask", kSection, "(scores, mask)", "The same as apply_attention_mask.",
       call_apply_mask},
      {"combine_masks", kSection, "(a, b)", "1 where both masks are.", call_combine_masks},
      {"attention_with_cache", kSection, "(q, k, v, w, heads = 32, base = 10000.0)",
       "Attention of queries [s, E] over a cache of keys and values [c, Ekv], times w transposed.",
       call_attention_with_cache},
      {"fused_add_relu", kSection, "(a, b)", "relu(a + b).", call_fused_relu<Op::Add>},
      {"fused_mul_relu", kSection, "(a, b)", "relu(a * b).", call_fused_relu<Op::Multiply>},
      {"fused_affine", kSection, "(x, scale, bias)", "x * scale + bias.", call_fused_affine},
      {"fused_gelu_linear", kSection, "(x, w, bias)", "gelu(x) @ w + bias.",
       call_fused_gelu_linear},
  };
  static const std::vector<Builtin> all_rows = joined({rows, rope_builtins()});
  return all_rows;
}

}  // namespace tl::lang
