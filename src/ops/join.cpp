#include "tl/ops/join.h"

#include "ops/check.h"
#include "ops/cpu/indexing.h"
#include "ops/gpu/indexing.h"
#include "ops/rows.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

Tensor like(const Tensor& x, const Shape& shape) {
  return Tensor::uninitialized(shape, x.dtype(), x.device());
}

Shape with_size(Shape shape, int dim, std::int64_t size) {
  shape[dim] = size;
  return shape;
}

// Writes `from` to [start, start + its size) of a dimension of a new tensor.
void write_part(Tensor& out, int dim, std::int64_t start, const Tensor& from) {
  if (from.empty()) return;
  assign_at(out, out.layout().narrow(dim, start, from.shape()[dim]), from);
}

void expect_not_negative(std::string_view op, std::int64_t left, std::int64_t right) {
  if (left < 0 || right < 0) {
    throw Error(ErrorKind::BadArgument, op, "a padding of ", left, " and ", right, " is negative");
  }
}

std::int64_t padded_size(std::string_view op, std::int64_t size, std::int64_t left,
                         std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(size, left, &sum) || __builtin_add_overflow(sum, right, &sum)) {
    throw Error(ErrorKind::Overflow, op, size, " + ", left, " + ", right,
                " does not fit in 64 bits");
  }
  return sum;
}

}  // namespace

// ---- joining

Tensor cat(std::span<const Tensor> list, std::int64_t dim) {
  if (list.empty()) throw Error(ErrorKind::BadArgument, "cat", "the list is empty");
  const Tensor& first = list[0];
  const int d = normalize_dim("cat", dim, first.shape());
  std::int64_t size = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Tensor& x = list[i];
    if (x.rank() != first.rank() || with_size(x.shape(), d, 0) != with_size(first.shape(), d, 0)) {
      throw Error(ErrorKind::ShapeMismatch, "cat", "tensor ", i + 1, " of ", list.size(),
                  " has shape ", x.shape(), ", which does not go with ", first.shape(),
                  " along dimension ", d);
    }
    size = padded_size("cat", size, x.shape()[d], 0);
  }
  for (const Tensor& x : list) ops::expect_same_device("cat", first, x);
  for (const Tensor& x : list) ops::expect_same_dtype("cat", first, x);
  if (list.size() == 1) return contiguous(first);
  Tensor out = like(first, with_size(first.shape(), d, size));
  std::int64_t at = 0;
  for (const Tensor& x : list) {
    write_part(out, d, at, x.detach());  // one step for the history, not one for each part
    at += x.shape()[d];
  }
  if (has_history(list)) add_history(out, "cat", list, {d});
  return out;
}

Tensor stack(std::span<const Tensor> list, std::int64_t dim) {
  if (list.empty()) throw Error(ErrorKind::BadArgument, "stack", "the list is empty");
  const int d = normalize_insertion("stack", dim, list[0].shape());
  std::vector<Tensor> slices;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].shape() != list[0].shape()) {
      throw Error(ErrorKind::ShapeMismatch, "stack", "tensor ", i + 1, " of ", list.size(),
                  " has shape ", list[i].shape(), ", the first ", list[0].shape());
    }
    slices.push_back(list[i].unsqueeze(d));
  }
  return cat(slices, d);
}

// ---- repeating

namespace {

std::int64_t repeated_size(std::string_view op, std::int64_t size, std::int64_t times) {
  return static_cast<std::int64_t>(
      checked_multiply(op, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(times)));
}

// One dimension: a copy of (left, times, size * right) with stride 0 for the times.
Tensor repeat_dim(const Tensor& x, int d, std::int64_t times) {
  std::int64_t left = 1, rest = 1;
  for (int k = 0; k < d; ++k) left *= x.shape()[k];
  for (int k = d; k < x.rank(); ++k) rest *= x.shape()[k];
  const Tensor lines = reshape(x, {left, 1, rest}).broadcast_as({left, times, rest});
  return copy(lines).view(with_size(x.shape(), d, x.shape()[d] * times));
}

}  // namespace

Tensor repeat(const Tensor& x, const Dims& counts) {
  for (const std::int64_t count : counts) {
    if (count < 0)
      throw Error(ErrorKind::BadArgument, "repeat", "counts ", counts, " are negative");
  }
  Tensor from = x;
  Dims aligned = counts;
  while (from.rank() < aligned.size()) from = from.unsqueeze(0);
  while (aligned.size() < from.rank()) aligned.insert(0, 1);
  Shape shape = from.shape();
  int rank = from.rank();  // of a view in which each repeated dimension stands as (times, size)
  for (int d = 0; d < from.rank(); ++d) {
    shape[d] = repeated_size("repeat", shape[d], aligned[d]);
    if (aligned[d] != 1) ++rank;
  }
  if (element_count("repeat", shape) == 0) return like(x, shape);
  if (rank > Dims::kMax) {  // more than a view can have: one after another
    for (int d = 0; d < from.rank(); ++d) {
      if (aligned[d] != 1) from = repeat_dim(from, d, aligned[d]);
    }
    return contiguous(from);
  }
  Shape split;
  Tensor apart = from;
  for (int d = 0; d < from.rank(); ++d) {
    if (aligned[d] != 1) {
      apart = apart.unsqueeze(split.size());
      split.push_back(aligned[d]);
    }
    split.push_back(from.shape()[d]);
  }
  return copy(apart.broadcast_as(split)).view(shape);
}

Tensor repeat_interleave(const Tensor& x, std::int64_t times, std::int64_t dim) {
  constexpr std::string_view kOp = "repeat_interleave";
  const int d = normalize_dim(kOp, dim, x.shape());
  if (times < 0) throw Error(ErrorKind::BadArgument, kOp, times, " times is negative");
  Shape shape = x.shape();
  shape[d] = repeated_size(kOp, shape[d], times);
  if (element_count(kOp, shape) == 0) return like(x, shape);
  // (left, size, 1, right), whatever the rank
  std::int64_t left = 1, right = 1;
  for (int k = 0; k < d; ++k) left *= x.shape()[k];
  for (int k = d + 1; k < x.rank(); ++k) right *= x.shape()[k];
  const std::int64_t size = x.shape()[d];
  const Tensor lines =
      x.rank() < Dims::kMax ? x.unsqueeze(d + 1) : reshape(x, {left, size, 1, right});
  const int at = x.rank() < Dims::kMax ? d + 1 : 2;
  return copy(lines.broadcast_as(with_size(lines.shape(), at, times))).view(shape);
}

// ---- padding

Tensor pad(const Tensor& x, const Dims& before, const Dims& after, Scalar value) {
  if (before.size() != x.rank() || after.size() != x.rank()) {
    throw Error(ErrorKind::BadArgument, "pad", "paddings ", before, " and ", after, " for shape ",
                x.shape());
  }
  Shape shape = x.shape();
  for (int d = 0; d < x.rank(); ++d) {
    expect_not_negative("pad", before[d], after[d]);
    shape[d] = padded_size("pad", shape[d], before[d], after[d]);
  }
  ops::expect_whole("pad", value, x.dtype());
  if (shape == x.shape()) return contiguous(x);
  Tensor out = like(x, shape);
  if (out.empty()) return out;
  // The box shrinks dimension by dimension; what is cut off on both sides is filled once.
  Layout box = out.layout();
  for (int d = 0; d < x.rank(); ++d) {
    if (before[d] > 0) fill_at(out, box.narrow(d, 0, before[d]), value);
    if (after[d] > 0) fill_at(out, box.narrow(d, shape[d] - after[d], after[d]), value);
    box = box.narrow(d, before[d], x.shape()[d]);
  }
  if (!x.empty()) assign_at(out, box, x.detach());
  if (has_history(x)) add_history(out, "pad", {x}, {before});
  return out;
}

Tensor pad_with_zeros(const Tensor& x, std::int64_t dim, std::int64_t left, std::int64_t right) {
  const int d = normalize_dim("pad_with_zeros", dim, x.shape());
  expect_not_negative("pad_with_zeros", left, right);
  const Dims none = Dims::repeated(x.rank(), 0);
  return pad(x, with_size(none, d, left), with_size(none, d, right), 0);
}

Tensor pad_with_same(const Tensor& x, std::int64_t dim, std::int64_t left, std::int64_t right) {
  constexpr std::string_view kOp = "pad_with_same";
  const int d = normalize_dim(kOp, dim, x.shape());
  expect_not_negative(kOp, left, right);
  const std::int64_t size = x.shape()[d];
  if (left == 0 && right == 0) return contiguous(x);
  if (size == 0) {
    throw Error(ErrorKind::BadArgument, kOp, "dimension ", d, " of shape ", x.shape(),
                " has no slice to repeat");
  }
  static_cast<void>(padded_size(kOp, size, left, right));  // throws where it does not fit
  const auto repeated = [&](std::int64_t at, std::int64_t times) {
    return x.narrow(d, at, 1).broadcast_as(with_size(x.shape(), d, times));
  };
  return cat({repeated(0, left), x, repeated(size - 1, right)}, d);
}

Tensor pad_reflect(const Tensor& x, std::int64_t dim, std::int64_t left, std::int64_t right) {
  constexpr std::string_view kOp = "pad_reflect";
  const int d = normalize_dim(kOp, dim, x.shape());
  expect_not_negative(kOp, left, right);
  const std::int64_t size = x.shape()[d];
  if (left == 0 && right == 0) return contiguous(x);
  if (left >= size || right >= size) {
    throw Error(ErrorKind::BadArgument, kOp, "a padding of ", left, " and ", right,
                " must be smaller than dimension ", d, " of shape ", x.shape());
  }
  static_cast<void>(padded_size(kOp, size, left, right));  // throws where it does not fit
  return cat({flip(x.narrow(d, 1, left), {d}), x, flip(x.narrow(d, size - 1 - right, right), {d})},
             d);
}

// ---- rearranging

Tensor roll(const Tensor& x, std::int64_t shift, std::int64_t dim) {
  const int d = normalize_dim("roll", dim, x.shape());
  const std::int64_t size = x.shape()[d];
  if (size == 0) return contiguous(x);
  const std::int64_t by = (shift % size + size) % size;
  if (by == 0) return contiguous(x);
  const Tensor line = x.detach();
  Tensor out = cat({line.narrow(d, size - by, by), line.narrow(d, 0, size - by)}, d);
  if (has_history(x)) add_history(out, "roll", {x}, {by, d});
  return out;
}

Tensor flip(const Tensor& x, const Dims& dims) {
  const Dims normal = normalize_dims("flip", dims, x.shape());
  if (normal.empty()) return contiguous(x);
  Tensor out = like(x, x.shape());
  if (out.empty()) return out;
  if (out.location().is_cpu()) {
    cpu::flip(x, normal, out);
  } else {
    gpu::flip(x, normal, out);
  }
  if (has_history(x)) add_history(out, "flip", {x}, {normal});
  return out;
}

Tensor rot90(const Tensor& x, std::int64_t times, std::int64_t from, std::int64_t to) {
  const int a = normalize_dim("rot90", from, x.shape());
  const int b = normalize_dim("rot90", to, x.shape());
  if (a == b) {
    throw Error(ErrorKind::BadArgument, "rot90", "dimensions ", from, " and ", to, " of shape ",
                x.shape(), " are the same");
  }
  switch ((times % 4 + 4) % 4) {
    case 1:
      return flip(x.transpose(a, b), {a});
    case 2:
      return flip(x, {a, b});
    case 3:
      return flip(x.transpose(a, b), {b});
    default:
      return contiguous(x);
  }
}

std::vector<Tensor> meshgrid(std::span<const Tensor> vectors, bool xy) {
  if (vectors.empty()) throw Error(ErrorKind::BadArgument, "meshgrid", "the list is empty");
  Shape shape;
  for (const Tensor& v : vectors) {
    ops::expect_rank("meshgrid", "each tensor", v, 1);
    shape.push_back(v.count());
  }
  for (const Tensor& v : vectors) ops::expect_same_device("meshgrid", vectors[0], v);
  for (const Tensor& v : vectors) ops::expect_same_dtype("meshgrid", vectors[0], v);
  std::vector<Tensor> out;
  for (int k = 0; k < shape.size(); ++k) {
    const Tensor& v = vectors[static_cast<std::size_t>(k)];
    const Shape alone = with_size(Shape::repeated(shape.size(), 1), k, v.count());
    const Tensor grid = v.view(alone).broadcast_as(shape);
    out.push_back(copy(xy && shape.size() > 1 ? grid.transpose(0, 1) : grid));
  }
  return out;
}

// ---- slices

namespace {

void slice_set_as(std::string_view op, Tensor& x, const Tensor& src, std::int64_t dim,
                  std::int64_t offset) {
  const int d = normalize_dim(op, dim, x.shape());
  if (src.rank() != x.rank() || with_size(src.shape(), d, 0) != with_size(x.shape(), d, 0)) {
    throw Error(ErrorKind::ShapeMismatch, op, "a source of shape ", src.shape(),
                " does not go into dimension ", d, " of shape ", x.shape());
  }
  const std::int64_t length = src.shape()[d], size = x.shape()[d];
  if (offset < 0 || length > size || offset > size - length) {
    throw Error(ErrorKind::BadArgument, op, length, " slices at ", offset,
                " reach outside dimension ", d, " of shape ", x.shape());
  }
  ops::expect_same_device(op, x, src);
  ops::expect_same_dtype(op, x, src);
  if (src.empty()) return;
  if (!x.is_contiguous()) x = copy(x);  // a broadcast tensor has too few places
  assign_at(x, x.layout().narrow(d, offset, length), src);
}

}  // namespace

void slice_set(Tensor& x, const Tensor& src, std::int64_t dim, std::int64_t offset) {
  slice_set_as("slice_set", x, src, dim, offset);
}

Tensor slice_scatter(const Tensor& x, const Tensor& src, std::int64_t dim, std::int64_t start) {
  Tensor out = copy(x);
  slice_set_as("slice_scatter", out, src, dim, start);
  return out;
}

Tensor slice_assign(const Tensor& x, std::span<const Range> ranges, const Tensor& src) {
  constexpr std::string_view kOp = "slice_assign";
  if (static_cast<int>(ranges.size()) != x.rank()) {
    throw Error(ErrorKind::BadArgument, kOp, ranges.size(), " ranges for shape ", x.shape());
  }
  Tensor out = copy(x);
  Tensor part = out;
  for (int d = 0; d < x.rank(); ++d) {
    const Range& range = ranges[static_cast<std::size_t>(d)];
    part = part.slice(d, range.start.value_or(0), range.end.value_or(x.shape()[d]), range.step);
    if (part.shape()[d] == 0) {
      throw Error(ErrorKind::BadArgument, kOp, "the range for dimension ", d, " of shape ",
                  x.shape(), " is empty");
    }
  }
  const Tensor source = src.broadcast_as(part.shape());
  ops::expect_same_device(kOp, x, src);
  ops::expect_same_dtype(kOp, x, src);
  const Layout box = part.layout();
  part = Tensor();  // so that `out` is written in place
  assign_at(out, box, source);
  return out;
}

namespace ops {

namespace {

Tensor cat_list(std::span<const Tensor> list, std::int64_t dim) { return cat(list, dim); }
Tensor stack_list(std::span<const Tensor> list, std::int64_t dim) { return stack(list, dim); }

}  // namespace

std::span<const OpRow> join_rows() {
  static constexpr OpRow kRows[] = {
      {"cat", "join", "(list, dim)", kAnySet, "Tensors one after another along a dimension.",
       call<&cat_list>},
      {"stack", "join", "(list, dim)", kAnySet, "Tensors of one shape along a new dimension.",
       call<&stack_list>},
      {"repeat", "join", "(x, counts)", kAnySet,
       "x as often as counts say, which are aligned at the last dimension.", call<&repeat>},
      {"repeat_interleave", "join", "(x, times, dim)", kAnySet,
       "Each slice along a dimension several times in a row.", call<&repeat_interleave>},
      {"pad", "join", "(x, before, after, value = 0)", kAnySet,
       "A constant around x, with one size before and after for every dimension.", call<&pad>},
      {"pad_with_zeros", "join", "(x, dim, left, right)", kAnySet,
       "Zeros before and after along a dimension.", call<&pad_with_zeros>},
      {"pad_with_same", "join", "(x, dim, left, right)", kAnySet,
       "The first and the last slice repeated.", call<&pad_with_same>},
      {"pad_reflect", "join", "(x, dim, left, right)", kAnySet,
       "Mirrored at the first and the last slice.", call<&pad_reflect>},
      {"roll", "join", "(x, shift, dim)", kAnySet,
       "Moved along a dimension; what leaves at one end enters at the other.", call<&roll>},
      {"flip", "join", "(x, dims)", kAnySet, "The order along dimensions reversed.", call<&flip>},
      {"rot90", "join", "(x, times = 1, from = 0, to = 1)", kAnySet,
       "Turned by 90 degrees in the plane of two dimensions.", call<&rot90>},
      {"meshgrid", "join", "(vectors, xy = false)", kAnySet,
       "For each vector a tensor over all of them that varies along its own dimension.",
       call<&meshgrid>},
      {"slice_scatter", "join", "(x, src, dim, start)", kAnySet,
       "x with src written into a part of a dimension.", call<&slice_scatter>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
