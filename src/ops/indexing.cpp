#include "tl/ops/indexing.h"

#include <algorithm>

#include "ops/check.h"
#include "ops/cpu/indexing.h"
#include "ops/gpu/indexing.h"
#include "ops/indexing.h"
#include "ops/rows.h"
#include "ops/write.h"
#include "tl/ops/copy.h"

namespace tl {
namespace {

using ops::Pick;
using ops::Place;

Tensor pick(const Pick& p, const Shape& shape) {
  Tensor out = Tensor::uninitialized(shape, p.x.dtype(), p.x.device());
  if (out.empty()) return out;
  if (out.location().is_cpu()) {
    cpu::gather(p, out);
  } else {
    gpu::gather(p, out);
  }
  return out;
}

// Both operands of an op that takes indices: devices, then dtypes.
void check_ids(std::string_view op, const Tensor& x, const Tensor& ids) {
  ops::expect_same_device(op, x, ids);
  ops::expect_index_dtype(op, ids);
}

Dims only_at(int rank, int dim, std::int64_t stride) {
  Dims strides = Dims::repeated(rank, 0);
  strides[dim] = stride;
  return strides;
}

Dims zero_at(Dims strides, int dim) {
  strides[dim] = 0;
  return strides;
}

Shape with_size(Shape shape, int dim, std::int64_t size) {
  shape[dim] = size;
  return shape;
}

// ids may be smaller than x everywhere but along `dim`.
void expect_within(std::string_view op, const Tensor& x, int dim, const Tensor& ids) {
  bool fits = ids.rank() == x.rank();
  for (int d = 0; d < x.rank() && fits; ++d) fits = d == dim || ids.shape()[d] <= x.shape()[d];
  if (!fits) {
    throw Error(ErrorKind::ShapeMismatch, op, "indices of shape ", ids.shape(),
                " do not go with dimension ", dim, " of shape ", x.shape());
  }
}

}  // namespace

// ---- picking

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& ids) {
  constexpr std::string_view kOp = "index_select";
  const int d = normalize_dim(kOp, dim, x.shape());
  ops::expect_rank(kOp, "the tensor of indices", ids, 1);
  check_ids(kOp, x, ids);
  Tensor out = pick({x, zero_at(x.strides(), d), x.strides()[d], x.shape()[d], ids,
                     only_at(x.rank(), d, ids.strides()[0]), kOp},
                    with_size(x.shape(), d, ids.count()));
  if (has_history(x)) add_history(out, kOp, {x, ids}, {d});
  return out;
}

Tensor embedding(const Tensor& table, const Tensor& ids) {
  constexpr std::string_view kOp = "embedding";
  ops::expect_rank(kOp, "the table", table, 2);
  check_ids(kOp, table, ids);
  Shape shape = ids.shape();
  Dims x_strides = Dims::repeated(ids.rank(), 0), ids_strides = ids.strides();
  shape.push_back(table.shape()[1]);
  x_strides.push_back(table.strides()[1]);
  ids_strides.push_back(0);
  Tensor out =
      pick({table, x_strides, table.strides()[0], table.shape()[0], ids, ids_strides, kOp}, shape);
  if (has_history(table)) add_history(out, kOp, {table, ids});
  return out;
}

namespace {

Tensor gather_as(std::string_view op, const Tensor& x, std::int64_t dim, const Tensor& ids) {
  if (x.rank() == 0 && ids.rank() == 0) {
    return gather_as(op, x.view({1}), dim, ids.view({1})).view({});
  }
  const int d = normalize_dim(op, dim, x.shape());
  expect_within(op, x, d, ids);
  check_ids(op, x, ids);
  Tensor out =
      pick({x, zero_at(x.strides(), d), x.strides()[d], x.shape()[d], ids, ids.strides(), op},
           ids.shape());
  if (has_history(x)) add_history(out, "gather", {x, ids}, {d});
  return out;
}

}  // namespace

Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& ids) {
  return gather_as("gather", x, dim, ids);
}

Tensor take_along(const Tensor& x, std::int64_t dim, const Tensor& ids) {
  constexpr std::string_view kOp = "take_along";
  if (x.rank() == 0 && ids.rank() == 0) return gather_as(kOp, x, dim, ids);
  const int d = normalize_dim(kOp, dim, x.shape());
  ops::expect_rank(kOp, "the tensor of indices", ids, x.rank());
  const Shape shape =
      broadcast_shapes(kOp, with_size(x.shape(), d, 1), with_size(ids.shape(), d, 1));
  return gather_as(kOp, x.broadcast_as(with_size(shape, d, x.shape()[d])), d,
                   ids.broadcast_as(with_size(shape, d, ids.shape()[d])));
}

Tensor take(const Tensor& x, const Tensor& ids) {
  constexpr std::string_view kOp = "take";
  check_ids(kOp, x, ids);
  const Tensor flat = reshape(x, {x.count()});
  Tensor out = pick({flat, Dims::repeated(ids.rank(), 0), flat.strides()[0], flat.count(), ids,
                     ids.strides(), kOp},
                    ids.shape());
  if (has_history(flat)) add_history(out, kOp, {flat, ids});
  return out;
}

// ---- placing and adding

namespace {

enum class How : std::uint8_t { Set, Add };
enum class Target : std::uint8_t { Given, Fresh };  // Fresh: nobody sees it after an error

// Into a view of x; `p` holds the reference to whatever the sources share with it.
void place(Tensor& x, const Layout& part, const Place& p, How how) {
  if (p.ids.empty()) return;
  ops::write_part(x, part, [&](Tensor& target) {
    if (target.location().is_cpu()) {
      how == How::Set ? cpu::scatter(p, target) : cpu::scatter_add(p, target);
    } else {
      how == How::Set ? gpu::scatter(p, target) : gpu::scatter_add(p, target);
    }
  });
}

void check_add_dtype(std::string_view op, const Tensor& x) {
  if (x.dtype() == DType::Bool) {
    throw Error(ErrorKind::Unsupported, op, "needs a tensor of numbers, got ", x.dtype());
  }
}

void scatter_as(std::string_view op, Tensor& x, std::int64_t dim, const Tensor& ids,
                const Tensor& src, How how, Target target = Target::Given) {
  if (x.rank() == 0 && ids.rank() == 0 && src.rank() == 0) {
    Tensor line = x.view({1});
    scatter_as(op, line, dim, ids.view({1}), src.view({1}), how, target);
    x = line.view({});
    return;
  }
  const int d = normalize_dim(op, dim, x.shape());
  expect_within(op, x, d, ids);
  if (src.shape() != ids.shape()) {
    throw Error(ErrorKind::ShapeMismatch, op, "sources of shape ", src.shape(),
                " for indices of shape ", ids.shape());
  }
  ops::expect_same_device(op, x, src);
  check_ids(op, x, ids);
  ops::expect_same_dtype(op, x, src);
  if (how == How::Add) check_add_dtype(op, x);
  if (!x.is_contiguous()) x = copy(x);
  const bool follows = has_history(x, src) && !ids.empty();
  const Tensor before = follows ? ops::without_memory(x) : Tensor();
  const Tensor written = follows ? ops::without_memory(src) : Tensor();  // src may be x itself
  place(x, x.layout(),
        {ids, src, zero_at(x.strides(), d), x.strides()[d], x.shape()[d], d, op,
         target == Target::Fresh},
        how);
  if (follows) {
    add_history(x, how == How::Set ? "scatter" : "scatter_add", {before, ids, written}, {d});
  }
}

void index_as(std::string_view op, Tensor& x, std::int64_t dim, const Tensor& ids,
              const Tensor& src, How how, Target target = Target::Given) {
  const int d = normalize_dim(op, dim, x.shape());
  ops::expect_rank(op, "the tensor of indices", ids, 1);
  if (src.rank() != x.rank() || src.shape() != with_size(x.shape(), d, ids.count())) {
    throw Error(ErrorKind::ShapeMismatch, op, "sources of shape ", src.shape(), " for ",
                ids.count(), " slices along dimension ", d, " of shape ", x.shape());
  }
  const Layout over(src.shape(), only_at(x.rank(), d, ids.strides()[0]), ids.layout().offset());
  scatter_as(op, x, d, ids.with_layout(over), src, how, target);
}

Tensor filled(std::string_view op, Scalar value, DType dtype, const Device& device) {
  ops::expect_whole(op, value, dtype);
  Tensor out = Tensor::uninitialized({}, dtype, device);
  fill(out, value);
  return out;
}

}  // namespace

void scatter_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  scatter_as("scatter", x, dim, ids, src, How::Set);
}
void scatter_set(Tensor& x, std::int64_t dim, const Tensor& ids, Scalar value) {
  const Tensor one = filled("scatter", value, x.dtype(), x.device());
  scatter_as("scatter", x, dim, ids, one.broadcast_as(ids.shape()), How::Set);
}
void scatter_add_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  scatter_as("scatter_add", x, dim, ids, src, How::Add);
}
void index_add_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  index_as("index_add", x, dim, ids, src, How::Add);
}
void index_copy_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  index_as("index_copy", x, dim, ids, src, How::Set);
}

Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  Tensor out = copy(x);
  scatter_as("scatter", out, dim, ids, src, How::Set, Target::Fresh);
  return out;
}
Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& ids, Scalar value) {
  Tensor out = copy(x);
  scatter_set(out, dim, ids, value);
  return out;
}
Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  Tensor out = x;  // a GPU may read it from there while it writes; else it is copied then
  if (x.location().is_cpu()) out = copy(x);
  scatter_as("scatter_add", out, dim, ids, src, How::Add, Target::Fresh);
  return out;
}
Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  Tensor out = copy(x);
  index_as("index_add", out, dim, ids, src, How::Add, Target::Fresh);
  return out;
}
Tensor index_copy(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  Tensor out = copy(x);
  index_as("index_copy", out, dim, ids, src, How::Set, Target::Fresh);
  return out;
}

// ---- masks

namespace {

// Row-major positions of what is not 0: i64 (n).
Tensor positions_of(const Tensor& x) {
  if (x.empty()) return Tensor::uninitialized({0}, DType::I64, x.device());
  return x.location().is_cpu() ? cpu::nonzero_positions(x) : gpu::nonzero_positions(x);
}

void check_mask(std::string_view op, const Tensor& x, const Tensor& mask) {
  ops::expect_same_device(op, x, mask);
  if (mask.dtype() != DType::Bool && mask.dtype() != DType::U8) {
    throw Error(ErrorKind::Unsupported, op, "needs a mask of bool or u8, got ", mask.dtype());
  }
}

}  // namespace

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  constexpr std::string_view kOp = "masked_select";
  const Shape shape = broadcast_shapes(kOp, x.shape(), mask.shape());
  check_mask(kOp, x, mask);
  return take(x.broadcast_as(shape), positions_of(mask.broadcast_as(shape)));
}

Tensor nonzero(const Tensor& x) {
  const Tensor positions = positions_of(x);
  Tensor out = Tensor::uninitialized({positions.count(), x.rank()}, DType::I64, x.device());
  if (out.empty()) return out;
  if (x.location().is_cpu()) {
    cpu::unravel(positions, x.shape(), out);
  } else {
    gpu::unravel(positions, x.shape(), out);
  }
  return out;
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& src) {
  constexpr std::string_view kOp = "masked_scatter";
  const Tensor over = mask.broadcast_as(x.shape());
  ops::expect_same_device(kOp, x, src);
  check_mask(kOp, x, mask);
  ops::expect_same_dtype(kOp, x, src);
  const Tensor positions = positions_of(over);
  if (positions.count() > src.count()) {
    throw Error(ErrorKind::ShapeMismatch, kOp, "the mask asks for ", positions.count(),
                " elements, and the source of shape ", src.shape(), " has ", src.count());
  }
  Tensor flat = reshape(x, {x.count()});
  const Tensor kept = reshape(src, {src.count()}).narrow(0, 0, positions.count());
  scatter_as(kOp, flat, 0, positions, kept, How::Set, Target::Fresh);
  return contiguous(flat).view(x.shape());
}

// ---- index(x, {...})

namespace {

// The view that integers and ranges make, and the tensors that then pick from it.
struct Indexed {
  Tensor view;
  std::vector<std::pair<int, Tensor>> picks;  // dimension of the view, indices
};

Indexed resolve(std::string_view op, const Tensor& x, std::span<const At> entries) {
  const auto takes_dim = [](const At& at) { return !std::holds_alternative<At::Kind>(at.value()); };
  const auto used = static_cast<int>(std::count_if(entries.begin(), entries.end(), takes_dim));
  if (used > x.rank()) {
    throw Error(ErrorKind::BadArgument, op, used, " entries for shape ", x.shape());
  }
  Indexed result{x, {}};
  int d = 0;
  bool had_rest = false;
  for (const At& entry : entries) {
    Tensor& view = result.view;
    if (const auto* at = std::get_if<std::int64_t>(&entry.value())) {
      view = view.get_on_dim(d, *at);
    } else if (const auto* range = std::get_if<Range>(&entry.value())) {
      view = view.slice(d, range->start.value_or(0), range->end.value_or(view.shape()[d]),
                        range->step);
      ++d;
    } else if (const auto* ids = std::get_if<Tensor>(&entry.value())) {
      ops::expect_rank(op, "a tensor of indices", *ids, 1);
      check_ids(op, x, *ids);
      result.picks.emplace_back(d++, *ids);
    } else if (std::get<At::Kind>(entry.value()) == At::Kind::NewAxis) {
      view = view.unsqueeze(d++);
    } else {
      if (had_rest) throw Error(ErrorKind::BadArgument, op, "'rest' stands twice");
      had_rest = true;
      d += x.rank() - used;
    }
  }
  return result;
}

// Writes into the part of x that `view`, a view of it, and the picks show.
void assign_picks(Tensor& x, const Layout& part, std::span<const std::pair<int, Tensor>> picks,
                  const Tensor& value) {
  constexpr std::string_view kOp = "assign_index";
  if (picks.empty()) {
    assign_at(x, part, value);
    return;
  }
  const auto& [dim, ids] = picks.front();
  const Shape shape = with_size(part.shape(), dim, ids.count());
  const bool follows = has_history(x, value);
  Tensor source = value;
  if (picks.size() > 1) {
    // Picked along this dimension, written along the others, and put back.
    source = index_select(x.with_layout(part), dim, ids);
    assign_picks(source, source.layout(), picks.subspan(1), value);
  }
  source = source.broadcast_as(shape);
  if (follows) {  // in steps, each of which knows its gradient
    assign_at(x, part, index_copy(x.with_layout(part), dim, ids, source));
    return;
  }
  const Layout over(shape, only_at(part.rank(), dim, ids.strides()[0]), ids.layout().offset());
  place(x, part,
        {ids.with_layout(over), source, zero_at(part.strides(), dim), part.strides()[dim],
         part.shape()[dim], dim, kOp},
        How::Set);
}

}  // namespace

Tensor index(const Tensor& x, std::span<const At> entries) {
  const Indexed found = resolve("index", x, entries);
  Tensor out = found.view;
  for (const auto& [dim, ids] : found.picks) out = index_select(out, dim, ids);
  return out;
}

void assign_index(Tensor& x, std::span<const At> entries, const Tensor& value) {
  constexpr std::string_view kOp = "assign_index";
  Tensor kept = value;                  // may be x itself
  if (!x.is_contiguous()) x = copy(x);  // a broadcast tensor has too few places
  Indexed found = resolve(kOp, x, entries);
  Shape shape = found.view.shape();
  for (const auto& [dim, ids] : found.picks) shape[dim] = ids.count();
  if (kept.shape() != shape) kept = kept.broadcast_as(shape);
  ops::expect_same_device(kOp, x, kept);
  ops::expect_same_dtype(kOp, x, kept);
  const Layout part = found.view.layout();
  found.view = Tensor();  // so that x is written in place
  assign_picks(x, part, found.picks, kept);
}

void assign_index(Tensor& x, std::initializer_list<At> entries, Scalar value) {
  assign_index(x, entries, filled("assign_index", value, x.dtype(), x.device()));
}

namespace ops {

namespace {

Tensor scatter_tensor(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src) {
  return scatter(x, dim, ids, src);
}
Tensor scatter_value(const Tensor& x, std::int64_t dim, const Tensor& ids, Scalar value) {
  return scatter(x, dim, ids, value);
}

}  // namespace

std::span<const OpRow> indexing_rows() {
  static constexpr OpRow kRows[] = {
      {"index_select", "indexing", "(x, dim, ids)", kAnySet,
       "Slices along a dimension, one per index.", call<&index_select>},
      {"embedding", "indexing", "(table, ids)", kAnySet,
       "Rows of a table, for indices of any shape.", call<&embedding>},
      {"gather", "indexing", "(x, dim, ids)", kAnySet,
       "Elements along a dimension, picked separately for every line.", call<&gather>},
      {"take_along", "indexing", "(x, dim, ids)", kAnySet,
       "gather with the other dimensions broadcast.", call<&take_along>},
      {"take", "indexing", "(x, ids)", kAnySet, "Elements by their row-major position.",
       call<&take>},
      {"scatter", "indexing", "(x, dim, ids, src)", kAnySet,
       "x with elements written where indices say; the last along the dimension stays.",
       call<&scatter_tensor>},
      {"scatter_value", "indexing", "(x, dim, ids, value)", kAnySet,
       "x with one value written where indices say.", call<&scatter_value>},
      {"scatter_add", "indexing", "(x, dim, ids, src)", kNumberSet,
       "x with elements added where indices say, the same sum in every run.", call<&scatter_add>},
      {"index_add", "indexing", "(x, dim, ids, src)", kNumberSet,
       "x with slices added where indices say.", call<&index_add>},
      {"index_copy", "indexing", "(x, dim, ids, src)", kAnySet,
       "x with slices written where indices say.", call<&index_copy>},
      {"masked_select", "indexing", "(x, mask)", kAnySet,
       "The elements where a mask is not 0; waits for the device.", call<&masked_select>},
      {"masked_scatter", "indexing", "(x, mask, src)", kAnySet,
       "x with the elements of src in order where a mask is not 0; waits for the device.",
       call<&masked_scatter>},
      {"nonzero", "indexing", "(x)", kAnySet,
       "The indices of what is not 0, one row each; waits for the device.", call<&nonzero>},
  };
  return kRows;
}

}  // namespace ops

}  // namespace tl
