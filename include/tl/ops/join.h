// Joining, repeating, padding and rearranging. Results are contiguous and own their memory, except
// where nothing changes and the operand is contiguous already.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "tl/ops/indexing.h"
#include "tl/tensor/tensor.h"

namespace tl {

// One after another along `dim`; all other sizes equal, same dtype and device.
Tensor cat(std::span<const Tensor> list, std::int64_t dim);
inline Tensor cat(std::initializer_list<Tensor> list, std::int64_t dim) {
  return cat(std::span(list.begin(), list.size()), dim);
}
// Along a new dimension; all shapes equal.
Tensor stack(std::span<const Tensor> list, std::int64_t dim);
inline Tensor stack(std::initializer_list<Tensor> list, std::int64_t dim) {
  return stack(std::span(list.begin(), list.size()), dim);
}

// x as often as `counts` says along each dimension. Counts and dimensions are aligned at the last,
// as in NumPy: what is missing on either side counts as 1.
Tensor repeat(const Tensor& x, const Dims& counts);
inline Tensor tile(const Tensor& x, const Dims& counts) { return repeat(x, counts); }
// Each slice `times` times in a row.
Tensor repeat_interleave(const Tensor& x, std::int64_t times, std::int64_t dim);

// `before` and `after` hold one size per dimension.
Tensor pad(const Tensor& x, const Dims& before, const Dims& after, Scalar value = 0);
Tensor pad_with_zeros(const Tensor& x, std::int64_t dim, std::int64_t left, std::int64_t right);
// The first and the last slice again and again; throws for a dimension without slices.
Tensor pad_with_same(const Tensor& x, std::int64_t dim, std::int64_t left, std::int64_t right);
// Mirrored at the first and the last slice, which are not repeated; at most size - 1 on each side.
Tensor pad_reflect(const Tensor& x, std::int64_t dim, std::int64_t left, std::int64_t right);

// Moves elements by `shift` along `dim`, to higher indices when it is positive; what leaves at one
// end enters at the other.
Tensor roll(const Tensor& x, std::int64_t shift, std::int64_t dim);
// The order along each of `dims` reversed.
Tensor flip(const Tensor& x, const Dims& dims);
// Turned by 90 degrees `times` times in the plane of two dimensions, from the first to the second.
Tensor rot90(const Tensor& x, std::int64_t times = 1, std::int64_t from = 0, std::int64_t to = 1);

// For vectors of n0, n1, ... elements: one tensor of shape (n0, n1, ...) each, which varies along
// its own dimension. With xy the first two dimensions are exchanged.
std::vector<Tensor> meshgrid(std::span<const Tensor> vectors, bool xy = false);

// Writes src into [offset, offset + src's size) of `dim`. src may be x itself or share its memory:
// its old values are written.
void slice_set(Tensor& x, const Tensor& src, std::int64_t dim, std::int64_t offset);
Tensor slice_scatter(const Tensor& x, const Tensor& src, std::int64_t dim, std::int64_t start);
// x with src, broadcast, in the box that one range per dimension names. Each must name elements.
Tensor slice_assign(const Tensor& x, std::span<const Range> ranges, const Tensor& src);

}  // namespace tl
