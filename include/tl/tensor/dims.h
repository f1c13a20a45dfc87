// A short list of sizes: a shape, strides, or the dimensions an op works on. At most eight entries,
// kept in place.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

namespace tl {

class Dims {
 public:
  static constexpr int kMax = 8;  // the largest rank a tensor can have

  constexpr Dims() noexcept = default;
  constexpr Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span(values.begin(), values.size())) {}
  constexpr explicit Dims(std::span<const std::int64_t> values) {
    if (values.size() > kMax) throw_too_long(values.size());
    std::copy(values.begin(), values.end(), values_.begin());
    size_ = static_cast<int>(values.size());
  }
  static constexpr Dims repeated(int size, std::int64_t value) {
    Dims dims;
    for (int i = 0; i < size; ++i) dims.push_back(value);
    return dims;
  }

  constexpr int size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr std::int64_t operator[](int i) const noexcept {
    return values_[static_cast<std::size_t>(i)];
  }
  constexpr std::int64_t& operator[](int i) noexcept {
    return values_[static_cast<std::size_t>(i)];
  }
  constexpr const std::int64_t* data() const noexcept { return values_.data(); }
  constexpr const std::int64_t* begin() const noexcept { return values_.data(); }
  constexpr const std::int64_t* end() const noexcept { return values_.data() + size_; }
  constexpr std::int64_t* begin() noexcept { return values_.data(); }
  constexpr std::int64_t* end() noexcept { return values_.data() + size_; }
  constexpr std::int64_t back() const noexcept { return (*this)[size_ - 1]; }

  constexpr void push_back(std::int64_t value) { insert(size_, value); }
  constexpr void insert(int at, std::int64_t value) {
    if (size_ == kMax) throw_too_long(kMax + 1);
    for (int i = size_; i > at; --i) (*this)[i] = (*this)[i - 1];
    (*this)[at] = value;
    ++size_;
  }
  constexpr void erase(int at) noexcept {
    --size_;
    for (int i = at; i < size_; ++i) (*this)[i] = (*this)[i + 1];
    (*this)[size_] = 0;
  }

  // Places past size_ are always 0, so equal lists have equal bytes.
  friend constexpr bool operator==(const Dims&, const Dims&) noexcept = default;

  std::string text() const;  // "(2, 3)", "(5,)", "()"

 private:
  [[noreturn]] static void throw_too_long(std::size_t size);

  std::array<std::int64_t, kMax> values_{};
  int size_ = 0;
};

using Shape = Dims;

std::ostream& operator<<(std::ostream& out, const Dims& dims);

// The number of elements; throws BadArgument for a negative size and Overflow beyond 2^63 - 1.
std::int64_t element_count(std::string_view op, const Shape& shape);

// A dimension given as 0 ... rank - 1 or, from the end, -1 ... -rank; throws BadArgument otherwise,
// naming `op` and the shape.
int normalize_dim(std::string_view op, std::int64_t dim, const Shape& shape);
// The same for a place where a dimension is inserted: rank is allowed too, and -1 means after the
// last.
int normalize_insertion(std::string_view op, std::int64_t dim, const Shape& shape);
// Each dimension normalised, sorted ascending; a dimension given twice is an error.
Dims normalize_dims(std::string_view op, const Dims& dims, const Shape& shape);
// 0, 1, ... rank - 1
Dims all_dims(int rank);

// A shape in which one entry may be -1 and is computed, so that it has `count` elements.
Shape fill_hole(std::string_view op, const Shape& shape, std::int64_t count);

// The shape two operands broadcast to (right-aligned; equal, or one of them 1). Throws
// ShapeMismatch.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

}  // namespace tl
