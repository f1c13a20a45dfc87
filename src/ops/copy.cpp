#include "tl/ops/copy.h"

#include "ops/check.h"
#include "ops/cpu/copy.h"
#include "ops/gpu/copy.h"
#include "ops/rows.h"
#include "ops/write.h"

namespace tl {
namespace {

// Both on one device, equal shape and dtype.
void copy_elements(const Tensor& in, Tensor& out) {
  if (in.empty()) return;
  if (out.location().is_cpu()) {
    cpu::copy(in, out);
  } else {
    gpu::copy(in, out);
  }
}

void check_part(std::string_view op, const Tensor& x, const Layout& part) {
  const std::int64_t start = x.layout().offset();
  if (part.offset() < start ||
      !Layout(part.shape(), part.strides(), part.offset() - start).fits(x.layout().extent())) {
    throw Error(ErrorKind::BadArgument, op, "shape ", part.shape(), " with strides ",
                part.strides(), " and offset ", part.offset(), " is no part of shape ", x.shape(),
                " with strides ", x.strides(), " and offset ", start);
  }
}

// Broadcast to the shape that is written.
Tensor source_for(const Tensor& x, const Shape& shape, const Tensor& from) {
  const Tensor source = from.shape() == shape ? from : from.broadcast_as(shape);
  ops::expect_same_device("assign", x, source);
  ops::expect_same_dtype("assign", x, source);
  return source;
}

// `x`, after a write to a part of what `before` was, knows both.
void add_write(Tensor& x, const Tensor& before, const Layout& part, const Tensor& written) {
  add_history(x, "assign_at", {before, written},
              {before.strides(), Dims{before.layout().offset()}, part.shape(), part.strides(),
               Dims{part.offset()}});
}

// There is something to fill.
void fill_elements(Tensor& out, Scalar value) {
  if (out.location().is_cpu()) {
    cpu::fill(out, value);
  } else {
    gpu::fill(out, value);
  }
}

}  // namespace

Tensor copy(const Tensor& x) {
  Tensor out = Tensor::uninitialized(x.shape(), x.dtype(), x.device());
  copy_elements(x, out);
  if (has_history(x)) add_history(out, "copy", {x});
  return out;
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : copy(x); }

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape to = fill_hole("reshape", shape, x.count());
  return x.layout().reshape(to) ? x.view(to) : copy(x).view(to);
}

Tensor flatten(const Tensor& x, std::int64_t first, std::int64_t last) {
  if (x.rank() == 0) return x.view({1});
  const int from = normalize_dim("flatten", first, x.shape());
  const int to = normalize_dim("flatten", last, x.shape());
  if (from >= to) return x;
  Shape shape;
  for (int d = 0; d < x.rank(); ++d) {
    if (d > from && d <= to) {
      // Beside a size of 0 the others may be of any size.
      shape[from] = element_count("flatten", {shape[from], x.shape()[d]});
    } else {
      shape.push_back(x.shape()[d]);
    }
  }
  return reshape(x, shape);
}

Tensor to_dtype(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor out = Tensor::uninitialized(x.shape(), dtype, x.device());
  if (x.empty()) return out;
  if (x.location().is_cpu()) {
    cpu::cast(x, out);
  } else {
    gpu::cast(x, out);
  }
  if (has_history(x)) add_history(out, "to_dtype", {x});
  return out;
}

Tensor to(const Tensor& x, const Device& device) {
  if (x.device() == device) return x;
  // What lies between the first and the last element travels; a view with wide gaps is packed
  // first.
  const std::int64_t extent = x.layout().extent();
  if (extent > x.count() + x.count() / 2) return to(copy(x), device);
  RawMemory there(device, static_cast<std::uint64_t>(extent) * size_of(x.dtype()));
  there.copy_from(x.memory().slice(
      static_cast<std::uint64_t>(x.empty() ? 0 : x.layout().offset()) * size_of(x.dtype()),
      there.bytes()));
  Tensor out = Tensor::from_memory(std::move(there), x.dtype(), {x.shape(), x.strides(), 0});
  if (has_history(x)) add_history(out, "to", {x}, {x.location().text()});
  return out;
}

// What is assigned may share memory with what it is assigned to: the reference that `source` has
// keeps the old elements, and the write goes to new memory.

void assign(Tensor& to, const Tensor& from) {
  const Tensor source = source_for(to, to.shape(), from);
  if (to.empty()) return;
  ops::write_whole(to, [&](Tensor& target) { copy_elements(source, target); });
  if (has_history(source)) add_history(to, "copy", {source});
}

void assign_at(Tensor& x, const Layout& part, const Tensor& from) {
  check_part("assign", x, part);
  const Tensor source = source_for(x, part.shape(), from);
  if (part.count() == 0) return;
  const bool follows = has_history(x, source);
  const Tensor before = follows ? ops::without_memory(x) : Tensor();
  ops::write_part(x, part, [&](Tensor& target) { copy_elements(source, target); });
  if (follows) add_write(x, before, part, source);
}

void fill(Tensor& x, Scalar value) {
  ops::expect_whole("fill", value, x.dtype());
  if (x.empty()) return;
  ops::write_whole(x, [&](Tensor& target) { fill_elements(target, value); });
}

void fill_at(Tensor& x, const Layout& part, Scalar value) {
  check_part("fill", x, part);
  ops::expect_whole("fill", value, x.dtype());
  if (part.count() == 0) return;
  const bool follows = has_history(x);
  const Tensor before = follows ? ops::without_memory(x) : Tensor();
  ops::write_part(x, part, [&](Tensor& target) { fill_elements(target, value); });
  if (follows) add_write(x, before, part, Tensor());
}

namespace ops {

std::span<const OpRow> copy_rows() {
  static constexpr OpRow kRows[] = {
      {"contiguous", "copy", "(x)", kAnySet,
       "The same elements without gaps, copied only if needed.", call<&contiguous>},
      {"copy", "copy", "(x)", kAnySet, "A contiguous copy in memory of its own.", call<&copy>},
      {"reshape", "copy", "(x, shape)", kAnySet,
       "Another shape over the same elements; one size may be -1.", call<&reshape>},
      {"flatten", "copy", "(x, first = 0, last = -1)", kAnySet,
       "Dimensions first to last, both included, as one.", call<&flatten>},
      {"to_dtype", "copy", "(x, dtype)", kAnySet,
       "Converted: rounds to nearest even, saturates to integers, wraps between them.",
       call<&to_dtype>},
      {"to", "copy", "(x, device)", kAnySet,
       "On another device; moves only what the view addresses.", call<&to>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
