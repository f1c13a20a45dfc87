#include "tl/ops/where.h"

#include "ops/check.h"
#include "ops/cpu/where.h"
#include "ops/gpu/where.h"
#include "ops/rows.h"

namespace tl {

namespace {

void expect_condition(std::string_view op, const Tensor& condition) {
  if (is_float(condition.dtype())) {
    throw Error(ErrorKind::Unsupported, op, "needs an integer or bool condition, got ",
                condition.dtype());
  }
}

Layout broadcast(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x.layout() : x.layout().broadcast_to(shape);
}

// A null tensor stands for `value`.
Tensor compute(const Tensor& condition, const Tensor* yes, const Tensor* no, Scalar value,
               const Shape& shape) {
  const Tensor& values = yes != nullptr ? *yes : *no;
  Tensor out = Tensor::uninitialized(shape, values.dtype(), values.device());
  if (out.empty()) return out;
  const Layout none;
  const Layout mask = broadcast(condition, shape);
  const Layout left = yes != nullptr ? broadcast(*yes, shape) : none;
  const Layout right = no != nullptr ? broadcast(*no, shape) : none;
  const ops::Choice choice{&condition, &mask, yes, &left, no, &right, value};
  if (out.location().is_cpu()) {
    cpu::where(choice, out);
  } else {
    gpu::where(choice, out);
  }
  if (has_history(values) || (no != nullptr && has_history(*no))) {
    add_history(out, "where",
                {condition, yes != nullptr ? *yes : Tensor(), no != nullptr ? *no : Tensor()});
  }
  return out;
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  const Shape values = broadcast_shapes("where", yes.shape(), no.shape());
  const Shape shape = broadcast_shapes("where", condition.shape(), values);
  ops::expect_same_device("where", yes, no);
  ops::expect_same_device("where", condition, yes);
  ops::expect_same_dtype("where", yes, no);
  expect_condition("where", condition);
  return compute(condition, &yes, &no, 0, shape);
}

Tensor where(const Tensor& condition, const Tensor& yes, Scalar no) {
  const Shape shape = broadcast_shapes("where", condition.shape(), yes.shape());
  ops::expect_same_device("where", condition, yes);
  expect_condition("where", condition);
  ops::expect_whole("where", no, yes.dtype());
  return compute(condition, &yes, nullptr, no, shape);
}

Tensor where(const Tensor& condition, Scalar yes, const Tensor& no) {
  const Shape shape = broadcast_shapes("where", condition.shape(), no.shape());
  ops::expect_same_device("where", condition, no);
  expect_condition("where", condition);
  ops::expect_whole("where", yes, no.dtype());
  return compute(condition, nullptr, &no, yes, shape);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  if (broadcast_shapes("masked_fill", x.shape(), mask.shape()) != x.shape()) {
    throw Error(ErrorKind::ShapeMismatch, "masked_fill", "a mask of shape ", mask.shape(),
                " does not broadcast to shape ", x.shape());
  }
  ops::expect_same_device("masked_fill", x, mask);
  expect_condition("masked_fill", mask);
  ops::expect_whole("masked_fill", value, x.dtype());
  return compute(mask, nullptr, &x, value, x.shape());
}

namespace ops {

namespace {

std::vector<Tensor> run_where(std::string_view op, std::span<const OpValue> arguments) {
  using T = const Tensor&;
  if (!std::holds_alternative<Tensor>(arguments[1])) {
    return call<static_cast<Tensor (*)(T, Scalar, T)>(&where)>(op, arguments);
  }
  if (!std::holds_alternative<Tensor>(arguments[2])) {
    return call<static_cast<Tensor (*)(T, T, Scalar)>(&where)>(op, arguments);
  }
  return call<static_cast<Tensor (*)(T, T, T)>(&where)>(op, arguments);
}

constexpr OpParameter kWhere[] = {
    {OpKind::Tensor}, {OpKind::TensorOrNumber}, {OpKind::TensorOrNumber}};

}  // namespace

std::span<const OpRow> where_rows() {
  static constexpr OpRow kRows[] = {
      {"where",
       "where",
       "(condition, yes, no)",
       kIntSet | DTypeSet{DType::Bool},
       "Elements of one tensor or the other, by a condition.",
       {&run_where, kWhere}},
      {"masked_fill", "where", "(x, mask, value)", kAnySet,
       "x, with a number where the mask is not 0.", call<&masked_fill>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
