// A tensor: elements of one dtype on one device, seen through a layout.
//
// A tensor is a value. Copies and views share memory and cost nothing; a write to one of them first
// detaches it, so no other ever changes. This header has what needs no computing: making tensors,
// asking about them, views, and moving elements to and from the host. Everything that computes or
// may have to copy is a function in tl/ops/.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tl/base/dtype.h"
#include "tl/base/error.h"
#include "tl/runtime/device.h"
#include "tl/runtime/raw_memory.h"
#include "tl/tensor/dims.h"
#include "tl/tensor/history.h"
#include "tl/tensor/layout.h"
#include "tl/tensor/scalar.h"

namespace tl {

namespace detail {

// Vectors of vectors: what they hold, how deep, and their values in row-major order.
template <class T>
struct Nested {
  using Element = T;
  static constexpr int kDepth = 0;
};
template <class T>
struct Nested<std::vector<T>> {
  using Element = typename Nested<T>::Element;
  static constexpr int kDepth = Nested<T>::kDepth + 1;
};

[[noreturn]] void throw_ragged(std::int64_t size, std::int64_t first);

template <class T, class Element>
void append_nested(const std::vector<T>& values, int depth, Shape& shape,
                   std::vector<Element>& out) {
  const auto size = static_cast<std::int64_t>(values.size());
  if (shape.size() == depth) shape.push_back(size);
  if (shape[depth] != size) throw_ragged(size, shape[depth]);
  if constexpr (Nested<T>::kDepth == 0) {
    out.insert(out.end(), values.begin(), values.end());
  } else {
    for (const T& part : values) append_nested(part, depth + 1, shape, out);
  }
}

}  // namespace detail

class Tensor {
 public:
  Tensor() : layout_(Shape{0}) {}  // no elements: f32, shape (0), on the CPU

  // ---- making tensors
  static Tensor uninitialized(const Shape& shape, DType dtype, const Device& device);
  static Tensor zeros(const Shape& shape, DType dtype, const Device& device = Device::cpu());
  // Row-major values. One entry of `shape` may be -1. Throws ShapeMismatch when the sizes differ.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape,
                     const Device& device = Device::cpu()) {
    return from_bytes(std::as_bytes(values), dtype_of<T>, shape, device);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape,
                     const Device& device = Device::cpu()) {
    return from(std::span<const T>(values), shape, device);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape,
                     const Device& device = Device::cpu()) {
    return from(std::span<const T>(values.begin(), values.size()), shape, device);
  }
  // Shape (n).
  template <class T>
  static Tensor from(const std::vector<T>& values, const Device& device = Device::cpu()) {
    return from(std::span<const T>(values), Shape{static_cast<std::int64_t>(values.size())},
                device);
  }
  // Vectors of vectors, as deep as wanted: a dimension each. Throws ShapeMismatch for rows of
  // different lengths.
  template <class T>
  static Tensor from(const std::vector<std::vector<T>>& nested,
                     const Device& device = Device::cpu()) {
    using Outer = detail::Nested<std::vector<std::vector<T>>>;
    Shape shape;
    std::vector<typename Outer::Element> values;
    detail::append_nested(nested, 0, shape, values);
    while (shape.size() < Outer::kDepth) shape.push_back(0);  // nothing says how long a row is
    return from(values, shape, device);
  }
  // Little-endian elements.
  static Tensor from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                           const Device& device = Device::cpu());
  // Memory that is there already. Throws when the layout reaches outside it.
  static Tensor from_memory(RawMemory memory, DType dtype, const Layout& layout);

  // ---- asking
  DType dtype() const noexcept { return dtype_; }
  Device device() const { return memory_.device(); }
  DeviceLocation location() const noexcept { return memory_.location(); }
  const Layout& layout() const noexcept { return layout_; }
  const Shape& shape() const noexcept { return layout_.shape(); }
  const Dims& strides() const noexcept { return layout_.strides(); }
  int rank() const noexcept { return layout_.rank(); }
  std::int64_t count() const noexcept { return layout_.count(); }
  bool empty() const noexcept { return count() == 0; }
  std::int64_t dim(std::int64_t d) const;  // a size; negative counts from the end
  // All sizes of a tensor with exactly that many: const auto [b, c, h, w] = x.dims<4>(). Throws
  // ShapeMismatch for another rank.
  template <int kRank>
  std::array<std::int64_t, kRank> dims() const {
    expect_dims("dims", kRank);
    std::array<std::int64_t, kRank> sizes{};
    for (int d = 0; d < kRank; ++d) sizes[static_cast<std::size_t>(d)] = shape()[d];
    return sizes;
  }
  std::uint64_t size_bytes() const noexcept {
    return static_cast<std::uint64_t>(count()) * size_of(dtype_);
  }
  bool is_contiguous() const noexcept { return layout_.is_contiguous(); }
  bool is_fortran_contiguous() const noexcept { return layout_.is_fortran_contiguous(); }
  // Do the two see the same memory, so that a write to one has to detach?
  bool shares_memory_with(const Tensor& other) const noexcept;
  // What it was computed from, for gradients; null for most tensors. A write ends it.
  const std::shared_ptr<const History>& history() const noexcept { return history_; }
  bool has_history() const noexcept { return history_ != nullptr; }
  Tensor detach() const { return {memory_, dtype_, layout_}; }  // without a history
  Tensor with_history(std::shared_ptr<const History> history) const;

  // ---- views: share memory, whatever the size
  Tensor transpose(std::int64_t a, std::int64_t b) const;
  Tensor t() const;  // the last two dimensions exchanged
  Tensor permute(const Dims& order) const;
  Tensor move_dim(std::int64_t from, std::int64_t to) const;
  Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  Tensor slice(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1) const;
  Tensor get(std::int64_t index) const { return get_on_dim(0, index); }
  Tensor get_on_dim(std::int64_t dim, std::int64_t index) const;  // without that dimension
  Tensor squeeze(std::int64_t dim) const;                         // itself when the size is not 1
  Tensor unsqueeze(std::int64_t dim) const;
  Tensor broadcast_as(const Shape& to) const;
  Tensor expand(const Shape& shape) const { return broadcast_as(shape); }
  Tensor broadcast_left(const Shape& left) const;  // prepends dimensions
  Tensor unfold(std::int64_t dim, std::int64_t size, std::int64_t step) const;
  Tensor diagonal(std::int64_t shift = 0, std::int64_t a = -2, std::int64_t b = -1) const;
  std::vector<Tensor> chunk(std::int64_t pieces, std::int64_t dim) const;
  std::vector<Tensor> split(std::int64_t size, std::int64_t dim) const;
  // Another shape over the same elements; one entry may be -1. Throws BadArgument where only a copy
  // could have that shape: reshape() in tl/ops/copy.h makes one.
  Tensor view(const Shape& wanted) const;
  Tensor with_layout(const Layout& layout) const;  // the caller keeps within the memory
  Tensor reinterpret(DType dtype) const;           // the same bytes, element size equal

  // ---- to the host, in logical order; waits for the device
  template <class T>
  std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>, "read bool tensors as std::uint8_t");
    expect_dtype("to_vector", host_dtype<T>());
    std::vector<T> values(static_cast<std::size_t>(count()));
    read_bytes(std::as_writable_bytes(std::span(values)));
    return values;
  }
  // Two and three dimensions as vectors of vectors.
  template <class T>
  std::vector<std::vector<T>> to_vector2() const {
    expect_dims("to_vector2", 2);
    return cut(to_vector<T>(), shape()[0], shape()[1]);
  }
  template <class T>
  std::vector<std::vector<std::vector<T>>> to_vector3() const {
    expect_dims("to_vector3", 3);
    const std::int64_t rows = element_count("to_vector3", {shape()[0], shape()[1]});
    return cut(cut(to_vector<T>(), rows, shape()[2]), shape()[0], shape()[1]);
  }
  template <class T>
  T item() const {  // the one element
    expect_one("item");
    expect_dtype("item", host_dtype<T>());
    if constexpr (std::is_same_v<T, bool>) return item().integer() != 0;  // any byte but 0
    T value{};
    read_bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  Scalar item() const;  // the one element, whatever its dtype
  // All elements in row-major order into exactly size_bytes() bytes. Downloads only what the layout
  // addresses.
  void read_bytes(std::span<std::byte> to) const;

  // ---- for ops: addresses for work on a stream, the offset included
  const std::byte* read(const Stream& stream) const;
  std::byte* write(const Stream& stream);   // every element is going to be written; detaches
  std::byte* update(const Stream& stream);  // some elements are; detaches and keeps the others
  template <class T>
  const T* read(const Stream& stream) const {
    return reinterpret_cast<const T*>(read(stream));
  }
  template <class T>
  T* write(const Stream& stream) {
    return reinterpret_cast<T*>(write(stream));
  }
  template <class T>
  T* update(const Stream& stream) {
    return reinterpret_cast<T*>(update(stream));
  }
  const RawMemory& memory() const noexcept { return memory_; }
  RawMemory& memory() noexcept { return memory_; }

  std::string text() const;  // values and shape, as printing shows them (tl/tensor/print.h)

 private:
  Tensor(RawMemory memory, DType dtype, const Layout& layout)
      : memory_(std::move(memory)), layout_(layout), dtype_(dtype) {}
  template <class T>
  DType host_dtype() const {  // bool is read as bytes
    return std::is_same_v<T, std::uint8_t> && dtype_ == DType::Bool ? DType::Bool : dtype_of<T>;
  }
  template <class T>
  static std::vector<std::vector<T>> cut(const std::vector<T>& values, std::int64_t pieces,
                                         std::int64_t length) {
    std::vector<std::vector<T>> out;
    auto at = values.begin();
    for (std::int64_t i = 0; i < pieces; ++i, at += length) out.emplace_back(at, at + length);
    return out;
  }
  // A view; what it is called and was told goes to its history.
  Tensor seen(std::string_view op, const Layout& layout, const Dims& settings = {}) const;
  void expect_dtype(std::string_view op, DType wanted) const;
  void expect_one(std::string_view op) const;
  void expect_dims(std::string_view op, int wanted) const;

  RawMemory memory_;
  Layout layout_;
  DType dtype_ = DType::F32;
  std::shared_ptr<const History> history_;
};

// ---- for ops: what a result was computed from

// Is one of them followed?
template <std::same_as<Tensor>... Tensors>
bool has_history(const Tensors&... tensors) noexcept {
  return (tensors.has_history() || ...) && keeps_history();
}
bool has_history(std::span<const Tensor> tensors) noexcept;
// Gives `result` a history when an input has one and the result is of floats. An optional input
// that is not there is Tensor().
void add_history(Tensor& result, std::string_view op, std::span<const Tensor> inputs,
                 HistoryValues settings = {});
inline void add_history(Tensor& result, std::string_view op, std::initializer_list<Tensor> inputs,
                        HistoryValues settings = {}) {
  add_history(result, op, std::span(inputs.begin(), inputs.size()), std::move(settings));
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tl
