// Brackets on tensors: numbers drop a dimension, slices keep a part of it, lists and tensors of
// integers pick from it, truth values say which elements are meant.
#include <algorithm>
#include <optional>

#include "lang/convert.h"
#include "lang/operators_index.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/reduce.h"
#include "tl/ops/where.h"

namespace tl::lang {

namespace {

[[noreturn]] void throw_too_many(std::size_t given, const Shape& shape) {
  throw type_error(given, " indices for a tensor of ", shape.size(), " dimensions");
}

bool is_mask(const Value& value) {
  if (value.is(Kind::Tensor)) return value.tensor().dtype() == DType::Bool;
  if (!is_list_like(value) || list_size(value) == 0) return false;
  Value first = list_item(value, 0);
  while (is_list_like(first) && list_size(first) > 0) first = list_item(first, 0);
  return first.is(Kind::Bool);
}

// Indices along a dimension of that size, none negative, on the device of `x`.
tl::Tensor ids_for(const Context& context, const Value& value, const tl::Tensor& x,
                   std::int64_t size) {
  if (!is_tensor_like(value)) throw type_error("A tensor cannot be indexed by ", type_name(value));
  if (is_list_like(value)) {  // known here: checked at once, on every device
    auto ids = list_tensor(value, DType::I64);
    if (!ids) throw type_error("An index must be a list of integers");
    std::vector<std::int64_t> all = ids->to_vector<std::int64_t>();
    for (std::int64_t& id : all) id = index_of(id, size);
    return tl::Tensor::from(all, ids->shape(), x.device());
  }
  const tl::Tensor ids =
      to_dtype(to(index_tensor(context, "index", value), x.device()), DType::I64);
  return where(lt(ids, 0), add(ids, size), ids);
}

tl::Tensor mask_for(const Context& context, const Value& value, const tl::Tensor& x) {
  return to(mask_tensor(context, "index", value), x.device());
}

// The places where a mask over one dimension is true.
tl::Tensor chosen(const Context& context, const Value& value, const tl::Tensor& x, int dim) {
  const tl::Tensor mask = mask_for(context, value, x);
  if (mask.rank() != 1 || dim >= x.rank() || mask.dim(0) != x.shape()[dim]) {
    throw RuntimeError(join("Tensor error: Shape mismatch: a mask of shape ", mask.shape(),
                            " for dimension ", dim, " of shape ", x.shape()));
  }
  return reshape(nonzero(mask), {-1});
}

// Slices along `dim` by indices of any shape, which takes the place of the dimension.
tl::Tensor pick(const tl::Tensor& x, int dim, const tl::Tensor& ids) {
  if (ids.rank() == 1) return index_select(x, dim, ids);
  Shape shape = x.shape();
  shape.erase(dim);
  for (int d = 0; d < ids.rank(); ++d) shape.insert(dim + d, ids.shape()[d]);
  return reshape(index_select(x, dim, reshape(ids, {-1})), shape);
}

// A mask alone that covers the whole tensor.
bool is_whole_mask(const tl::Tensor& x, std::span<const IndexArg> at) {
  if (at.size() != 1 || at[0].is_slice || !is_mask(at[0].index)) return false;
  if (at[0].index.is(Kind::Tensor)) return at[0].index.tensor().rank() == x.rank();
  return x.rank() != 1 ? is_list_like(list_item(at[0].index, 0)) : true;
}

tl::Tensor whole_mask(const Context& context, const tl::Tensor& x, const Value& value) {
  tl::Tensor mask = mask_for(context, value, x);
  if (mask.shape() != x.shape()) {
    throw RuntimeError(join("Tensor error: Shape mismatch: a mask of shape ", mask.shape(),
                            " for a tensor of shape ", x.shape()));
  }
  return mask;
}

Layout cut(const Layout& layout, int dim, const Slice& slice) {
  if (slice.count == 0) return layout.narrow(dim, 0, 0);
  const std::int64_t length = (slice.count - 1) * std::abs(slice.step) + 1;
  const Layout part = layout.narrow(dim, slice.lowest(), length);
  return slice.step == 1 || slice.step == -1 ? part : part.step(dim, std::abs(slice.step));
}

}  // namespace

Value index_tensor_at(Context& context, const tl::Tensor& x, std::span<const IndexArg> at) {
  if (is_whole_mask(x, at)) return masked_select(x, whole_mask(context, x, at[0].index));
  if (static_cast<int>(at.size()) > x.rank()) throw_too_many(at.size(), x.shape());
  // Numbers and slices are a view; what picks elements comes after, on what is left.
  Layout layout = x.layout();
  Dims reversed;
  struct Pick {
    int dim;
    const Value* value;
  };
  std::vector<Pick> picks;
  int dim = 0;
  bool all_numbers = static_cast<int>(at.size()) == x.rank();
  for (const IndexArg& place : at) {
    const std::int64_t size = layout.shape()[dim];
    if (place.is_slice) {
      const Slice slice = slice_of(place, size);
      layout = cut(layout, dim, slice);
      if (slice.step < 0) reversed.push_back(dim);
      all_numbers = false;
      ++dim;
    } else if (is_whole_index(place.index)) {
      layout = layout.drop(dim, index_of(place.index, size));
    } else {
      picks.push_back({dim, &place.index});
      all_numbers = false;
      ++dim;
    }
  }
  tl::Tensor part = x.with_layout(layout);
  if (all_numbers) return number_of(part);
  if (!reversed.empty()) part = flip(part, reversed);
  // From the last: an index of another rank than 1 moves the dimensions behind it.
  for (std::size_t i = picks.size(); i-- > 0;) {
    const auto& [where, value] = picks[i];
    part = is_mask(*value) ? index_select(part, where, chosen(context, *value, part, where))
                           : pick(part, where, ids_for(context, *value, part, part.dim(where)));
  }
  return part;
}

Value index_quantised(Context& context, const tl::QTensor& x, std::span<const IndexArg> at) {
  if (x.rank() >= 2 && !at.empty()) {
    const IndexArg& first = at[0];
    if (!first.is_slice && is_whole_index(first.index)) {  // only that part is expanded
      const tl::Tensor part = x.get(index_of(first.index, x.shape()[0])).dequantize();
      return at.size() == 1 ? Value(part) : index_tensor_at(context, part, at.subspan(1));
    }
    if (first.is_slice && x.rank() == 2) {
      if (const Slice slice = slice_of(first, x.shape()[0]); slice.step == 1 && slice.count > 0) {
        const tl::Tensor part = x.some_rows(slice.start, slice.count).dequantize();
        std::vector<IndexArg> rest(at.begin(), at.end());
        rest[0] = IndexArg{true, {}, Value::missing(), Value::missing(), Value::missing()};
        return index_tensor_at(context, part, rest);
      }
    }
  }
  return index_tensor_at(context, x.dequantize(), at);
}

// ---- writing

namespace {

// A mask over all elements: a number or one element goes everywhere, several go one by one.
void assign_masked(Context& context, tl::Tensor& x, const Value& mask_value, const Value& value) {
  const tl::Tensor mask = whole_mask(context, x, mask_value);
  const tl::Tensor from = to(to_tensor(context, "assignment", value, x.dtype()), x.device());
  if (from.count() == 1) {
    x = where(mask, reshape(from, {}), x);
    return;
  }
  const std::int64_t wanted = count_nonzero_all(mask).item().integer();
  if (from.count() != wanted) {
    throw RuntimeError(
        join("Tensor error: Shape mismatch: ", from.count(), " values for ", wanted, " elements"));
  }
  x = masked_scatter(x, mask, from);
}

}  // namespace

void assign_tensor_at(Context& context, tl::Tensor& x, std::span<const IndexArg> at,
                      const Value& value) {
  if (is_whole_mask(x, at)) return assign_masked(context, x, at[0].index, value);
  if (static_cast<int>(at.size()) > x.rank()) throw_too_many(at.size(), x.shape());
  // Where it goes: a view where it is one, else entries of which some pick.
  Layout layout = x.layout();
  std::vector<At> entries;
  Dims reversed;
  bool picks = false;
  int dim = 0;    // of the layout
  int whole = 0;  // of x
  for (const IndexArg& place : at) {
    const std::int64_t size = layout.shape()[dim];
    if (place.is_slice) {
      const Slice slice = slice_of(place, size);
      layout = cut(layout, dim, slice);
      if (slice.step < 0) reversed.push_back(dim);
      const std::int64_t step = std::abs(slice.step);
      const std::int64_t low = slice.count == 0 ? 0 : slice.lowest();
      const std::int64_t end = slice.count == 0 ? 0 : low + (slice.count - 1) * step + 1;
      entries.push_back(At::range(low, end, step));
      ++dim;
    } else if (is_whole_index(place.index)) {
      const std::int64_t i = index_of(place.index, size);
      layout = layout.drop(dim, i);
      entries.emplace_back(i);
    } else {
      picks = true;
      entries.emplace_back(is_mask(place.index) ? chosen(context, place.index, x, whole)
                                                : ids_for(context, place.index, x, size));
      ++dim;
    }
    ++whole;
  }
  if (!picks && (value.is_number() || value.is(Kind::Bool))) {
    const Scalar number = value.is(Kind::Float) ? Scalar(value.real()) : Scalar(value.integer());
    fill_at(x, layout, number);
    return;
  }
  tl::Tensor from = to(to_tensor(context, "assignment", value, x.dtype()), x.device());
  if (!reversed.empty()) {
    Shape shape = layout.shape();
    if (picks) throw invalid_operation("A reversed slice beside a list of indices");
    from = flip(from.broadcast_as(shape), reversed);
  }
  if (picks) {
    tl::assign_index(x, entries, from);
  } else {
    assign_at(x, layout, from);
  }
}

}  // namespace tl::lang
