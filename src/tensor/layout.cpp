#include "tl/tensor/layout.h"

#include <algorithm>
#include <limits>

namespace tl {

namespace {

// The sizes of a tensor without elements can have any product: (0, 2^62, 2^62) is a shape. Its
// strides are never used to find an element, but must be numbers.
std::int64_t times(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  const bool too_large = __builtin_mul_overflow(a, b, &product);
  return too_large ? std::numeric_limits<std::int64_t>::max() : product;
}

}  // namespace

Dims contiguous_strides(const Shape& shape) {
  Dims strides = shape;
  std::int64_t step = 1;
  for (int d = shape.size() - 1; d >= 0; --d) {
    strides[d] = step;
    step = times(step, std::max<std::int64_t>(shape[d], 1));
  }
  return strides;
}

Layout::Layout(const Shape& shape) : Layout(shape, contiguous_strides(shape), 0) {}

Layout::Layout(const Shape& shape, const Dims& strides, std::int64_t offset)
    : shape_(shape), strides_(strides), offset_(offset) {
  settle();
}

void Layout::settle() {
  count_ = std::find(shape_.begin(), shape_.end(), 0) != shape_.end() ? 0 : 1;
  for (const std::int64_t size : shape_) count_ = times(count_, size);
  contiguous_ = true;
  std::int64_t expected = 1;
  for (int d = rank() - 1; d >= 0 && count_ > 0; --d) {
    if (shape_[d] == 1) continue;
    contiguous_ = contiguous_ && strides_[d] == expected;
    expected = times(expected, shape_[d]);
  }
}

bool Layout::is_fortran_contiguous() const noexcept {
  std::int64_t expected = 1;
  for (int d = 0; d < rank() && count_ > 0; ++d) {
    if (shape_[d] == 1) continue;
    if (strides_[d] != expected) return false;
    expected *= shape_[d];
  }
  return true;
}

std::int64_t Layout::extent() const noexcept {
  if (count_ == 0) return 0;
  std::int64_t last = 0;
  for (int d = 0; d < rank(); ++d) last += (shape_[d] - 1) * strides_[d];
  return last + 1;
}

bool Layout::fits(std::int64_t room) const noexcept {
  if (strides_.size() != rank() || offset_ < 0) return false;
  bool none = false;
  bool too_large = false;
  std::int64_t count = 1, last = offset_, step = 0;
  for (int d = 0; d < rank(); ++d) {
    if (shape_[d] < 0 || strides_[d] < 0) return false;
    none = none || shape_[d] == 0;
    too_large = too_large || __builtin_mul_overflow(shape_[d] - 1, strides_[d], &step) ||
                __builtin_add_overflow(last, step, &last) ||
                __builtin_mul_overflow(count, shape_[d], &count);
  }
  return none || (!too_large && last < room);
}

bool Layout::overlaps() const noexcept {
  if (count_ < 2) return false;
  // From the narrowest stride on, each must step over all that the narrower ones reach.
  Dims order;
  for (int d = 0; d < rank(); ++d) {
    if (shape_[d] > 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return strides_[static_cast<int>(a)] < strides_[static_cast<int>(b)];
  });
  std::int64_t reach = 0;
  for (const std::int64_t at : order) {
    const int d = static_cast<int>(at);
    if (strides_[d] <= reach) return true;
    reach += (shape_[d] - 1) * strides_[d];
  }
  return false;
}

Layout Layout::transpose(int a, int b) const {
  Layout out = *this;
  std::swap(out.shape_[a], out.shape_[b]);
  std::swap(out.strides_[a], out.strides_[b]);
  out.settle();
  return out;
}

Layout Layout::permute(const Dims& order) const {
  Layout out = *this;
  for (int d = 0; d < rank(); ++d) {
    const int from = static_cast<int>(order[d]);
    out.shape_[d] = shape_[from];
    out.strides_[d] = strides_[from];
  }
  out.settle();
  return out;
}

Layout Layout::narrow(int dim, std::int64_t start, std::int64_t length) const {
  Layout out = *this;
  if (length > 0) out.offset_ += start * strides_[dim];  // an empty view points nowhere
  out.shape_[dim] = length;
  out.settle();
  return out;
}

Layout Layout::step(int dim, std::int64_t step) const {
  Layout out = *this;
  out.shape_[dim] = shape_[dim] == 0 ? 0 : (shape_[dim] - 1) / step + 1;
  if (out.shape_[dim] > 1) out.strides_[dim] *= step;  // else the step may be any number
  out.settle();
  return out;
}

Layout Layout::drop(int dim, std::int64_t index) const {
  Layout out = narrow(dim, index, 1);
  out.shape_.erase(dim);
  out.strides_.erase(dim);
  out.settle();
  return out;
}

Layout Layout::insert(int dim) const {
  Layout out = *this;
  const std::int64_t stride =
      dim < rank() ? times(strides_[dim], std::max<std::int64_t>(shape_[dim], 1)) : 1;
  out.shape_.insert(dim, 1);
  out.strides_.insert(dim, stride);
  return out;
}

Layout Layout::broadcast_to(const Shape& shape) const {
  Dims strides = Dims::repeated(shape.size(), 0);
  const int lead = shape.size() - rank();
  for (int d = 0; d < rank(); ++d) {
    if (shape_[d] == shape[lead + d]) strides[lead + d] = strides_[d];
  }
  return {shape, strides, offset_};
}

Layout Layout::unfold(int dim, std::int64_t size, std::int64_t step) const {
  Layout out = *this;
  out.shape_[dim] = (shape_[dim] - size) / step + 1;
  if (out.shape_[dim] > 1) out.strides_[dim] = strides_[dim] * step;
  out.shape_.push_back(size);
  out.strides_.push_back(strides_[dim]);
  out.settle();
  return out;
}

Layout Layout::diagonal(int a, int b, std::int64_t shift) const {
  const std::int64_t rows = shape_[a] + std::min<std::int64_t>(shift, 0);
  const std::int64_t cols = shape_[b] - std::max<std::int64_t>(shift, 0);
  const std::int64_t length = std::max<std::int64_t>(0, std::min(rows, cols));
  Layout out = *this;
  if (length > 0) out.offset_ += shift < 0 ? -shift * strides_[a] : shift * strides_[b];
  const std::int64_t stride = length > 1 ? strides_[a] + strides_[b] : 1;
  out.shape_.erase(std::max(a, b));
  out.shape_.erase(std::min(a, b));
  out.strides_.erase(std::max(a, b));
  out.strides_.erase(std::min(a, b));
  out.shape_.push_back(length);
  out.strides_.push_back(stride);
  out.settle();
  return out;
}

// Both shapes are cut into the smallest groups of neighbouring dimensions with equal element
// counts. Inside a group the old dimensions must lie as if they were one; the new ones then split
// it.
std::optional<Layout> Layout::reshape(const Shape& shape) const {
  if (contiguous_) return Layout(shape, contiguous_strides(shape), offset_);
  Dims strides = Dims::repeated(shape.size(), 0);
  int from = 0, to = 0;
  while (from < rank() || to < shape.size()) {
    const int first = from, first_new = to;
    std::int64_t old_count = from < rank() ? shape_[from++] : 1;
    std::int64_t new_count = to < shape.size() ? shape[to++] : 1;
    while (old_count != new_count) {
      if (old_count < new_count) {
        old_count *= shape_[from++];
      } else {
        new_count *= shape[to++];
      }
    }
    std::int64_t step = 0;  // distance between neighbours of the group; 0 until one is known
    std::int64_t expected = 0;
    for (int d = from - 1; d >= first; --d) {
      if (shape_[d] == 1) continue;
      if (expected == 0) {
        step = strides_[d];
      } else if (strides_[d] != expected) {
        return std::nullopt;
      }
      expected = strides_[d] * shape_[d];
      if (strides_[d] == 0) {  // a broadcast group stays one only with everything at stride 0
        for (int e = d - 1; e >= first; --e) {
          if (shape_[e] != 1 && strides_[e] != 0) return std::nullopt;
        }
        break;
      }
    }
    for (int d = to - 1; d >= first_new; --d) {
      strides[d] = step;
      step *= shape[d];
    }
  }
  return Layout(shape, strides, offset_);
}

}  // namespace tl
