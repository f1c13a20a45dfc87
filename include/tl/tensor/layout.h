// Where the elements of a tensor lie in its memory: shape, strides and offset, counted in elements.
//
// A value apart from the memory: views are made here and never touch it. Strides are never
// negative; a broadcast dimension has stride 0. Arguments are already normalised and checked (the
// methods of Tensor do that and name the op).
#pragma once

#include <cstdint>
#include <optional>

#include "tl/tensor/dims.h"

namespace tl {

class Layout {
 public:
  Layout() noexcept = default;          // shape (), one element
  explicit Layout(const Shape& shape);  // contiguous (row-major), offset 0
  Layout(const Shape& shape, const Dims& strides, std::int64_t offset);

  const Shape& shape() const noexcept { return shape_; }
  const Dims& strides() const noexcept { return strides_; }
  std::int64_t offset() const noexcept { return offset_; }
  int rank() const noexcept { return shape_.size(); }
  std::int64_t count() const noexcept { return count_; }
  // Row-major without gaps (the offset does not matter). Always true for no elements.
  bool is_contiguous() const noexcept { return contiguous_; }
  // Column-major without gaps.
  bool is_fortran_contiguous() const noexcept;
  // One past the largest offset an element has, counted from offset(); 0 for no elements.
  std::int64_t extent() const noexcept;
  // Does every element lie inside memory for `room` elements? Safe to ask of any sizes and strides;
  // false for negative ones and for more elements than 63 bits count.
  bool fits(std::int64_t room) const noexcept;
  // May two elements lie in one place, as they do in a broadcast dimension or in windows? Never
  // false when they do; layouts made by views from a contiguous one are judged exactly unless
  // windows are cut again.
  bool overlaps() const noexcept;

  Layout transpose(int a, int b) const;
  Layout permute(const Dims& order) const;
  Layout narrow(int dim, std::int64_t start, std::int64_t length) const;
  Layout step(int dim, std::int64_t step) const;   // every step-th index of a dimension
  Layout drop(int dim, std::int64_t index) const;  // the slice at an index, without that dimension
  Layout insert(int dim) const;                    // a dimension of size 1
  Layout broadcast_to(const Shape& shape) const;   // shapes known to be compatible
  Layout unfold(int dim, std::int64_t size, std::int64_t step) const;
  Layout diagonal(int a, int b, std::int64_t shift) const;
  // The same elements in the same order under another shape of equal count, where strides allow it.
  std::optional<Layout> reshape(const Shape& shape) const;

  friend bool operator==(const Layout& a, const Layout& b) noexcept {
    return a.shape_ == b.shape_ && a.strides_ == b.strides_ && a.offset_ == b.offset_;
  }

 private:
  void settle();  // computes count_ and contiguous_

  Shape shape_;
  Dims strides_;
  std::int64_t offset_ = 0;
  std::int64_t count_ = 1;
  bool contiguous_ = true;
};

// The strides of a row-major tensor without gaps.
Dims contiguous_strides(const Shape& shape);

}  // namespace tl
