#include "tl/ops/matmul.h"

#include <array>
#include <atomic>

#include "ops/check.h"
#include "ops/cpu/matmul.h"
#include "ops/gpu/matmul.h"
#include "ops/rows.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

void expect_number(std::string_view op, const Tensor& x) {
  if (x.dtype() == DType::Bool) {
    throw Error(ErrorKind::Unsupported, op, "needs a tensor of numbers, got ", x.dtype());
  }
}

[[noreturn]] void throw_no_match(std::string_view op, const Tensor& a, const Tensor& b) {
  throw Error(ErrorKind::ShapeMismatch, op, "shapes ", a.shape(), " and ", b.shape(),
              " do not fit: the inner sizes must be equal");
}

// The dimensions in front of the last two.
Shape batch_of(const Tensor& x) {
  Shape batch;
  for (int d = 0; d + 2 < x.rank(); ++d) batch.push_back(x.shape()[d]);
  return batch;
}

Tensor with_batch(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.dim(-2));
  shape.push_back(x.dim(-1));
  return x.shape() == shape ? x : x.broadcast_as(shape);
}

// Makes the batch part of the rows where every item multiplies the same B and the rows of A are a
// regular distance apart.
void fold_batch(ops::Product& p) {
  if (p.batch.empty()) return;
  for (const std::int64_t stride : p.batch_strides(p.b)) {
    if (stride != 0) return;
  }
  if (p.bias && p.bias->strides()[0] != 0) return;
  const std::int64_t rows = p.items() * p.m;
  const auto a = p.a.layout().reshape({rows, p.k});
  if (!a) return;
  p.a = p.a.with_layout(*a);
  p.b = p.b.with_layout(Layout({p.k, p.n}, {p.b_row(), p.b_col()}, p.b.layout().offset()));
  if (p.bias) p.bias = p.bias->narrow(0, 0, 1).broadcast_as({rows, p.n});
  p.m = rows;
  p.batch = {};
}

// a and b have rank 2 or more and fit; devices and dtypes are checked. `bias` broadcasts to (m, n).
Tensor multiply(const Tensor& a, const Tensor& b, const std::optional<Tensor>& bias,
                const Shape& batch) {
  const Tensor added = bias.value_or(Tensor());
  if (has_history(a, b, added)) {
    Tensor out = [&] {
      const NoHistory none;
      return multiply(a, b, bias, batch);
    }();
    add_history(out, "matmul", {a, b, added});
    return out;
  }
  ops::Product p;
  p.m = a.dim(-2);
  p.n = b.dim(-1);
  p.k = a.dim(-1);
  Shape shape = batch;
  shape.push_back(p.m);
  shape.push_back(p.n);
  Tensor out = Tensor::uninitialized(shape, a.dtype(), a.device());
  if (out.empty()) return out;
  if (bias) p.bias = bias->broadcast_as({p.m, p.n});
  if (p.k == 0) {
    if (p.bias) {
      assign(out, *p.bias);
    } else {
      fill(out, Scalar(0));
    }
    return out;
  }
  p.a = with_batch(a, batch);
  p.b = with_batch(b, batch);
  p.batch = batch;
  // A batch dimension of size 1 has no stride worth looking at.
  for (int d = p.batch.size() - 1; d >= 0; --d) {
    if (p.batch[d] != 1) continue;
    p.batch.erase(d);
    p.a = p.a.squeeze(d);
    p.b = p.b.squeeze(d);
  }
  fold_batch(p);
  if (out.location().is_cpu()) {
    cpu::matmul(p, out);
  } else {
    gpu::matmul(p, out);
  }
  return out;
}

void expect_same_kind(std::string_view op, const Tensor& a, const Tensor& b) {
  ops::expect_same_device(op, a, b);
  ops::expect_same_dtype(op, a, b);
  expect_number(op, a);
}

Tensor checked_matmul(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0) {
    throw Error(ErrorKind::ShapeMismatch, op, "shapes ", a.shape(), " and ", b.shape(),
                ": both need at least one dimension");
  }
  const Tensor left = a.rank() == 1 ? a.unsqueeze(0) : a;
  const Tensor right = b.rank() == 1 ? b.unsqueeze(1) : b;
  if (left.dim(-1) != right.dim(-2)) throw_no_match(op, a, b);
  const Shape left_batch = batch_of(left);
  const Shape right_batch = batch_of(right);
  Shape batch;
  try {
    batch = broadcast_shapes(op, left_batch, right_batch);
  } catch (const Error&) {
    throw Error(ErrorKind::ShapeMismatch, op, "shapes ", a.shape(), " and ", b.shape(),
                " do not broadcast in the dimensions in front of the last two");
  }
  expect_same_kind(op, a, b);
  Tensor out = multiply(left, right, std::nullopt, batch);
  if (a.rank() == 1) out = out.squeeze(-2);
  if (b.rank() == 1) out = out.squeeze(-1);
  return out;
}

// The switch of each device; more GPUs than this share the last.
constexpr std::size_t kMostDevices = 64;

std::atomic<bool>& tf32_of(const Device& device) {
  static std::array<std::atomic<bool>, 3 * kMostDevices> flags;
  const auto index = std::min(static_cast<std::size_t>(device.index()), kMostDevices - 1);
  return flags[static_cast<std::size_t>(device.kind()) * kMostDevices + index];
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return checked_matmul("matmul", a, b); }

Tensor bmm(const Tensor& a, const Tensor& b) {
  ops::expect_rank("bmm", "the left operand", a, 3);
  ops::expect_rank("bmm", "the right operand", b, 3);
  if (a.dim(0) != b.dim(0)) {
    throw Error(ErrorKind::ShapeMismatch, "bmm", "shapes ", a.shape(), " and ", b.shape(),
                " have different batch sizes");
  }
  return checked_matmul("bmm", a, b);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  ops::expect_rank("dot", "the left operand", a, 1);
  ops::expect_rank("dot", "the right operand", b, 1);
  return checked_matmul("dot", a, b);
}

Tensor mv(const Tensor& a, const Tensor& b) {
  ops::expect_rank("mv", "the matrix", a, 2);
  ops::expect_rank("mv", "the vector", b, 1);
  return checked_matmul("mv", a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  ops::expect_rank("outer", "the left operand", a, 1);
  ops::expect_rank("outer", "the right operand", b, 1);
  return checked_matmul("outer", a.unsqueeze(1), b.unsqueeze(0));
}

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  ops::expect_rank("linear", "the weight", weight, 2);
  if (x.rank() == 0 || x.dim(-1) != weight.dim(1)) {
    throw Error(ErrorKind::ShapeMismatch, "linear", "shapes ", x.shape(), " and ", weight.shape(),
                " do not fit: the last sizes must be equal");
  }
  if (bias && (bias->rank() != 1 || bias->dim(0) != weight.dim(0))) {
    throw Error(ErrorKind::ShapeMismatch, "linear", "a bias of shape ", bias->shape(),
                " does not fit a weight of shape ", weight.shape());
  }
  if (bias) ops::expect_same_device("linear", weight, *bias);
  ops::expect_same_device("linear", x, weight);
  if (bias) ops::expect_same_dtype("linear", weight, *bias);
  ops::expect_same_dtype("linear", x, weight);
  expect_number("linear", x);
  const Tensor rows = x.rank() == 1 ? x.unsqueeze(0) : x;
  Tensor out = multiply(rows, weight.t(), bias, batch_of(rows));
  return x.rank() == 1 ? out.squeeze(0) : out;
}

Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b) {
  ops::expect_rank("addmm", "the left operand", a, 2);
  ops::expect_rank("addmm", "the right operand", b, 2);
  if (a.dim(1) != b.dim(0)) throw_no_match("addmm", a, b);
  const Shape shape{a.dim(0), b.dim(1)};
  bool fits = bias.rank() <= 2;
  for (int d = 0; fits && d < bias.rank(); ++d) {
    const std::int64_t size = bias.shape()[d];
    fits = size == 1 || size == shape[2 - bias.rank() + d];
  }
  if (!fits) {
    throw Error(ErrorKind::ShapeMismatch, "addmm", "a bias of shape ", bias.shape(),
                " does not broadcast to ", shape);
  }
  ops::expect_same_device("addmm", a, bias);
  ops::expect_same_device("addmm", a, b);
  ops::expect_same_dtype("addmm", a, bias);
  ops::expect_same_dtype("addmm", a, b);
  expect_number("addmm", a);
  return multiply(a, b, bias, {});
}

void set_allow_tf32(const Device& device, bool allow) {
  tf32_of(device).store(allow, std::memory_order_relaxed);
}
bool allow_tf32(const Device& device) { return tf32_of(device).load(std::memory_order_relaxed); }

namespace ops {

std::span<const OpRow> matmul_rows() {
  static constexpr OpRow kRows[] = {
      {"matmul", "matmul", "(a, b)", kNumberSet,
       "Matrix product over the last two dimensions; those in front broadcast.", call<&matmul>},
      {"bmm", "matmul", "(a, b)", kNumberSet, "Matrix products of a batch: both of rank 3.",
       call<&bmm>},
      {"dot", "matmul", "(a, b)", kNumberSet, "Sum of the products of two vectors.", call<&dot>},
      {"mv", "matmul", "(a, b)", kNumberSet, "Matrix times vector.", call<&mv>},
      {"outer", "matmul", "(a, b)", kNumberSet, "Every product of two vectors' elements.",
       call<&outer>},
      {"linear", "matmul", "(x, weight, bias = none)", kNumberSet,
       "x * transpose(weight) + bias over the last dimension.", call<&linear>},
      {"addmm", "matmul", "(bias, a, b)", kNumberSet, "bias + a * b, rounded once.", call<&addmm>},
      {"einsum", "matmul", "(equation, tensors)", kNumberSet,
       "Sum of products named by indices, as in \"ij,jk->ik\".",
       call<static_cast<Tensor (*)(std::string_view, std::span<const Tensor>)>(&einsum)>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
