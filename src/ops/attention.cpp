#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "ops/check.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/attention_grad.h"
#include "ops/gpu/attention.h"
#include "ops/recorded.h"
#include "ops/rows.h"
#include "tl/kernels/attention_grad.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"

namespace tl {
namespace {

constexpr std::string_view kOp = "attention";

void check_shapes(const Tensor& q, const Tensor& k, const Tensor& v,
                  const AttentionOptions& options) {
  ops::expect_rank(kOp, "q", q, 4);
  ops::expect_rank(kOp, "k", k, 4);
  ops::expect_rank(kOp, "v", v, 4);
  const std::int64_t heads = q.shape()[1], kv_heads = k.shape()[1];
  const bool shared = kv_heads == heads || (kv_heads > 0 && heads % kv_heads == 0);
  if (k.shape()[0] != q.shape()[0] || v.shape()[0] != q.shape()[0] || !shared ||
      v.shape()[1] != kv_heads || k.shape()[3] != q.shape()[3] || v.shape()[2] != k.shape()[2]) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "q ", q.shape(), ", k ", k.shape(), " and v ",
                v.shape(), " do not fit together");
  }
  if (options.mask.has_value()) {
    const Shape wanted{q.shape()[0], heads, q.shape()[2], k.shape()[2]};
    if (options.mask->rank() > 4 ||
        broadcast_shapes(kOp, options.mask->shape(), wanted) != wanted) {
      throw Error(ErrorKind::ShapeMismatch, kOp, "a mask of shape ", options.mask->shape(),
                  " does not broadcast to ", wanted);
    }
  }
  if (options.slopes.has_value() && options.slopes->shape() != Shape{heads}) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "slopes have shape ", options.slopes->shape(),
                ", and q has shape ", q.shape());
  }
}

void check_kinds(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  ops::expect_same_device(kOp, q, k);
  ops::expect_same_device(kOp, q, v);
  if (options.mask.has_value()) ops::expect_same_device(kOp, q, *options.mask);
  if (options.slopes.has_value()) ops::expect_same_device(kOp, q, *options.slopes);
  ops::expect_float(kOp, q);
  ops::expect_same_dtype(kOp, q, k);
  ops::expect_same_dtype(kOp, q, v);
  if (options.slopes.has_value()) ops::expect_same_dtype(kOp, q, *options.slopes);
  if (options.mask.has_value()) {
    const DType kind = options.mask->dtype();
    if (kind != DType::U8 && kind != DType::Bool && kind != q.dtype()) {
      throw Error(ErrorKind::DTypeMismatch, kOp, "a mask is u8, bool or ", q.dtype(), ", not ",
                  kind);
    }
  }
}

double scale_of(const Tensor& q, const AttentionOptions& options) {
  const std::int64_t depth = std::max<std::int64_t>(q.dim(-1), 1);
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(depth)));
}

// The options as both devices take them; lives as long as they are used.
class Arguments {
 public:
  Arguments(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options)
      : mask_(options.mask.has_value() ? options.mask->broadcast_as({q.shape()[0], q.shape()[1],
                                                                     q.shape()[2], k.shape()[2]})
                                       : Tensor()),
        slopes_(options.slopes.has_value() ? contiguous(*options.slopes) : Tensor()),
        all_{.q = &q,
             .k = &k,
             .v = &v,
             .mask = options.mask.has_value() ? &mask_ : nullptr,
             .slopes = options.slopes.has_value() ? &slopes_ : nullptr,
             .scale = scale_of(q, options),
             .softcap = options.softcap,
             .window = options.window.value_or(-1),
             .causal = options.causal} {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  ops::AttentionArguments& get() { return all_; }

 private:
  Tensor mask_, slopes_;
  ops::AttentionArguments all_;
};

// `logs` may be null.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
              Tensor* logs) {
  check_shapes(q, k, v, options);
  if (options.softcap < 0 || !std::isfinite(options.softcap)) {
    throw Error(ErrorKind::BadArgument, kOp, "softcap is 0 or positive, not ", options.softcap);
  }
  if (options.window.has_value() && *options.window < 0) {
    throw Error(ErrorKind::BadArgument, kOp, "a window of ", *options.window, " keys");
  }
  check_kinds(q, k, v, options);

  const Shape shape{q.shape()[0], q.shape()[1], q.shape()[2], v.shape()[3]};
  if (element_count(kOp, shape) == 0 || k.shape()[2] == 0) {
    return Tensor::zeros(shape, q.dtype(), q.device());
  }
  Tensor out = Tensor::uninitialized(shape, q.dtype(), q.device());
  Arguments arguments(q, k, v, options);
  if (logs != nullptr) {
    const DType wide = q.dtype() == DType::F64 ? DType::F64 : DType::F32;
    *logs = Tensor::uninitialized({shape[0], shape[1], shape[2]}, wide, q.device());
    arguments.get().logs = logs;
  }
  if (q.location().is_cpu()) {
    cpu::attention(arguments.get(), out);
  } else {
    gpu::attention(arguments.get(), out);
  }
  return out;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options) {
  const Tensor added = options.mask.value_or(Tensor()), tilted = options.slopes.value_or(Tensor());
  if (!has_history(q, k, v, added, tilted)) return attend(q, k, v, options, nullptr);
  // The kernels give no gradients of masks and slopes.
  const bool has_kernel = !has_history(added, tilted) && ops::has_attention_gradient(q, v);
  Tensor logs;
  Tensor out =
      ops::without_history([&] { return attend(q, k, v, options, has_kernel ? &logs : nullptr); });
  add_history(out, has_kernel ? kOp : "attention_and_masks", {q, k, v, added, tilted, logs},
              {scale_of(q, options), options.softcap, options.window.value_or(-1), options.causal,
               options.mask.has_value(), options.slopes.has_value()});
  return out;
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const std::optional<Tensor>& mask, bool causal, std::optional<double> scale,
                 double softcap, std::optional<std::int64_t> window,
                 const std::optional<Tensor>& slopes) {
  return scaled_dot_product_attention(q, k, v,
                                      {.mask = mask,
                                       .causal = causal,
                                       .window = window,
                                       .scale = scale,
                                       .softcap = softcap,
                                       .slopes = slopes});
}

namespace ops {

bool has_attention_gradient(const Tensor& q, const Tensor& v) {
  if (q.rank() != 4 || v.rank() != 4) return false;  // which is an error, and not said here
  const std::int64_t depth = q.dim(-1), value_depth = v.dim(-1);
  if (depth == 0 || value_depth == 0) return false;
  if (q.location().is_cpu()) return true;
  // The kernels compute f32 as it is. Products that may round to TF32 are so much faster that even
  // with the scores written down they are done sooner.
  if (q.dtype() == DType::F32 && allow_tf32(q.device())) return false;
  return has_attention_grad(q.dtype()) && std::max(depth, value_depth) <= gpu::kMostGradientDepth;
}

AttentionGradients attention_gradients(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const AttentionOptions& options, const Tensor& out,
                                       const Tensor& logs, const Tensor& g) {
  const NoHistory none;
  Arguments arguments(q, k, v, options);
  const AttentionGradientArguments all{
      .forward = arguments.get(), .out = &out, .logs = &logs, .g = &g};
  AttentionGradients found{.q = Tensor::uninitialized(q.shape(), q.dtype(), q.device()),
                           .k = Tensor::uninitialized(k.shape(), k.dtype(), k.device()),
                           .v = Tensor::uninitialized(v.shape(), v.dtype(), v.device())};
  if (q.location().is_cpu()) {
    cpu::attention_gradient(all, found);
  } else {
    gpu::attention_gradient(all, found);
  }
  return found;
}

std::span<const OpRow> attention_rows() {
  static constexpr OpRow kRows[] = {
      {"attention", "attention",
       "(q, k, v, mask = none, causal = false, scale = none, softcap = 0.0, window = none, "
       "slopes = none)",
       kFloatSet,
       "softmax(q k^T * scale) v for q (b, h, t, d), k (b, h_kv, s, d) and v (b, h_kv, s, dv).",
       call<&attention>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
