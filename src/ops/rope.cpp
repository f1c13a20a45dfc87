#include "tl/ops/rope.h"

#include "ops/check.h"
#include "ops/cpu/rope.h"
#include "ops/gpu/rope.h"
#include "ops/recorded.h"
#include "ops/rows.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

using Form = ops::RopeForm;

void check_shapes(std::string_view op, const Tensor& x, const Tensor& cosines, const Tensor& sines,
                  const std::optional<Tensor>& positions, std::int64_t batch, std::int64_t length) {
  if (cosines.shape() != sines.shape()) {
    throw Error(ErrorKind::ShapeMismatch, op, "the tables have shapes ", cosines.shape(), " and ",
                sines.shape());
  }
  const bool per_batch = cosines.rank() == 3;
  bool fits = cosines.rank() == 2 || per_batch;
  if (fits) {
    fits = 2 * cosines.dim(-1) <= x.dim(-1);
    if (per_batch) {
      fits = fits && cosines.dim(0) == batch && cosines.dim(1) == length && !positions.has_value();
    } else if (!positions.has_value()) {
      fits = fits && length <= cosines.dim(0);
    }
  }
  if (!fits) {
    throw Error(ErrorKind::ShapeMismatch, op, "tables of shape ", cosines.shape(),
                " do not fit x of shape ", x.shape(),
                positions.has_value() ? " with positions" : "");
  }
  if (positions.has_value() && positions->shape() != Shape{length} &&
      positions->shape() != Shape{batch, length}) {
    throw Error(ErrorKind::ShapeMismatch, op, "positions have shape ", positions->shape(),
                ", and x has shape ", x.shape());
  }
}

Tensor rotate(std::string_view op, const Tensor& x, const Tensor& cosines, const Tensor& sines,
              const std::optional<Tensor>& positions, Form form, bool back = false) {
  if (has_history(x, cosines, sines)) {
    Tensor out =
        ops::without_history([&] { return rotate(op, x, cosines, sines, positions, form); });
    // Only gradients of the tables read x, so it is not kept for those of x.
    const bool of_tables = has_history(cosines, sines);
    add_history(out, of_tables ? "rope_and_tables" : "rope",
                {x, cosines, sines, positions.value_or(Tensor())},
                {static_cast<int>(form), positions.has_value()});
    return out;
  }
  ops::expect_rank(op, "x", x, 4);
  const std::int64_t length = x.shape()[form == Form::Thd ? 1 : 2];
  check_shapes(op, x, cosines, sines, positions, x.shape()[0], length);
  ops::expect_same_device(op, x, cosines);
  ops::expect_same_device(op, x, sines);
  if (positions.has_value()) ops::expect_same_device(op, x, *positions);
  ops::expect_float(op, x);
  ops::expect_same_dtype(op, x, cosines);
  ops::expect_same_dtype(op, x, sines);
  if (positions.has_value()) ops::expect_index_dtype(op, *positions);

  Tensor out = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  if (x.empty()) return out;
  const Tensor c = contiguous(cosines), s = contiguous(sines);
  const Tensor p = positions.has_value() ? contiguous(*positions) : Tensor();
  const auto by_head = [&](const Layout& layout) {
    return form == Form::Thd ? layout.transpose(1, 2) : layout;
  };
  const ops::RopeArguments arguments{.op = op,
                                     .in = by_head(x.layout()),
                                     .out = by_head(out.layout()),
                                     .rotated = 2 * c.dim(-1),
                                     .interleaved = form == Form::Interleaved,
                                     .cosines = &c,
                                     .sines = &s,
                                     .batch_rows = c.rank() == 3 ? length : 0,
                                     .positions = positions.has_value() ? &p : nullptr,
                                     .back = back};
  if (x.location().is_cpu()) {
    cpu::rope(x, out, arguments);
  } else {
    gpu::rope(x, out, arguments);
  }
  return out;
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& cosines, const Tensor& sines,
            const std::optional<Tensor>& positions) {
  return rotate("rope", x, cosines, sines, positions, Form::Halves);
}

Tensor rope_i(const Tensor& x, const Tensor& cosines, const Tensor& sines,
              const std::optional<Tensor>& positions) {
  return rotate("rope_i", x, cosines, sines, positions, Form::Interleaved);
}

Tensor rope_thd(const Tensor& x, const Tensor& cosines, const Tensor& sines,
                const std::optional<Tensor>& positions) {
  return rotate("rope_thd", x, cosines, sines, positions, Form::Thd);
}

namespace ops {

Tensor rope_gradient(const Tensor& g, const Tensor& cosines, const Tensor& sines,
                     const std::optional<Tensor>& positions, RopeForm form) {
  const NoHistory none;
  constexpr std::string_view kNames[] = {"rope", "rope_i", "rope_thd"};
  return rotate(kNames[static_cast<std::size_t>(form)], g, cosines, sines, positions, form, true);
}

std::span<const OpRow> rope_rows() {
  static constexpr OpRow kRows[] = {
      {"rope", "rope", "(x, cosines, sines, positions = none)", kFloatSet,
       "Rotary embedding of x (b, h, t, d): element i turns with i + r / 2.", call<&rope>},
      {"rope_i", "rope", "(x, cosines, sines, positions = none)", kFloatSet,
       "Rotary embedding of x (b, h, t, d): element 2i turns with 2i + 1.", call<&rope_i>},
      {"rope_thd", "rope", "(x, cosines, sines, positions = none)", kFloatSet,
       "Rotary embedding of x (b, t, h, d): element i turns with i + r / 2.", call<&rope_thd>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
