// Indexing: picking, placing and adding elements where a tensor of indices says.
//
// Indices have any integer dtype and any layout. Two rules hold for all of them, on every device:
//   - the largest value of the index dtype means "nothing": what it would pick is 0, what it would
//     place or add is left out (so 255 is never a real u8 index);
//   - any other index that is negative or not below the size is InvalidIndex. The CPU throws at
//     once; a GPU goes on as if it were "nothing" and throws at the next wait for the device, which
//     stays usable.
// Results do not depend on the order in which a device works. Where several sources go to one
// place, the last along the dimension stays; sums of small floats are kept in f32 and rounded once.
// Functions that end in _set change their first argument and nothing that shared memory with it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "tl/tensor/tensor.h"

namespace tl {

// Slices of `x` along `dim`, one per index; ids (n).
Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& ids);
// Rows of table (v, h); ids of any shape s. Gives s + (h).
Tensor embedding(const Tensor& table, const Tensor& ids);
// out[.. i ..] = x[.. ids[.. i ..] ..] along `dim`. The same rank; other sizes of `ids` may be
// smaller.
Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& ids);
// The same with the other dimensions of both broadcast.
Tensor take_along(const Tensor& x, std::int64_t dim, const Tensor& ids);
// Elements by their row-major position; the shape of `ids`.
Tensor take(const Tensor& x, const Tensor& ids);

// x with out[.. ids[.. i ..] ..] = src[.. i ..] along `dim`. ids and src have one shape, of the
// rank of x; sizes other than that of `dim` may be smaller than those of x.
Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);
Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& ids, Scalar value);
void scatter_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);
void scatter_set(Tensor& x, std::int64_t dim, const Tensor& ids, Scalar value);
// The same, adding. Not for bool.
Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);
void scatter_add_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);
// Adds the slices of `src` along `dim` to those of x that ids (n) name; src has n of them.
Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);
void index_add_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);
// Writes them instead.
Tensor index_copy(const Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);
void index_copy_set(Tensor& x, std::int64_t dim, const Tensor& ids, const Tensor& src);

// These wait for the device: the size of the result depends on values.
// The elements of x where mask (bool or u8) is not 0, both broadcast; (n).
Tensor masked_select(const Tensor& x, const Tensor& mask);
// Where x is not 0 (NaN is not), in row-major order: i64 (n, rank).
Tensor nonzero(const Tensor& x);
// x with the elements of `src`, in row-major order, where the mask is not 0. src has at least as
// many elements as that.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& src);

// ---- index(x, {...}): one entry per dimension from the first on

// start to end (not included), counted from the end when negative, in steps. Bounds beyond the size
// are errors; a start behind the end gives no elements.
struct Range {
  std::optional<std::int64_t> start = std::nullopt;
  std::optional<std::int64_t> end = std::nullopt;
  std::int64_t step = 1;
};

// One entry: an integer drops the dimension, a range keeps a part of it, a tensor of indices (n)
// picks from it. Several tensors act each on its own dimension, so two give every combination.
class At {
 public:
  // Not explicit: index(x, {2, At::all(), ids}).
  At(std::int64_t index) : value_(index) {}       // NOLINT(google-explicit-constructor)
  At(int index) : value_(std::int64_t{index}) {}  // NOLINT(google-explicit-constructor)
  At(Range range) : value_(range) {}              // NOLINT(google-explicit-constructor)
  At(Tensor ids) : value_(std::move(ids)) {}      // NOLINT(google-explicit-constructor)
  static At all() { return At(Range{}); }         // the whole dimension
  static At range(std::int64_t start, std::int64_t end, std::int64_t step = 1) {
    return At(Range{start, end, step});
  }
  static At from(std::int64_t start) { return At(Range{start, std::nullopt, 1}); }
  static At until(std::int64_t end) { return At(Range{std::nullopt, end, 1}); }
  static At rest() { return At(Kind::Rest); }         // as many whole dimensions as are left
  static At new_axis() { return At(Kind::NewAxis); }  // a dimension of size 1

  enum class Kind : std::uint8_t { Rest, NewAxis };
  using Value = std::variant<std::int64_t, Range, Tensor, Kind>;
  const Value& value() const noexcept { return value_; }

 private:
  explicit At(Kind kind) : value_(kind) {}
  Value value_;
};

// A view when no entry is a tensor.
Tensor index(const Tensor& x, std::span<const At> entries);
inline Tensor index(const Tensor& x, std::initializer_list<At> entries) {
  return index(x, std::span(entries.begin(), entries.size()));
}
// Writes `value`, broadcast, to what index(x, entries) shows. Sentinels are left out.
void assign_index(Tensor& x, std::span<const At> entries, const Tensor& value);
inline void assign_index(Tensor& x, std::initializer_list<At> entries, const Tensor& value) {
  assign_index(x, std::span(entries.begin(), entries.size()), value);
}
void assign_index(Tensor& x, std::initializer_list<At> entries, Scalar value);

}  // namespace tl
