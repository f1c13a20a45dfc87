// A tensor whose elements lie in blocks that share scales, as GGUF files hold them.
//
// It is a value like a Tensor: copies share memory, on every device. The blocks are kept as they
// are; nothing here expands a whole tensor but dequantize(), whose result is what was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include "tl/base/dtype.h"
#include "tl/quant/format.h"
#include "tl/runtime/device.h"
#include "tl/runtime/raw_memory.h"
#include "tl/tensor/dims.h"
#include "tl/tensor/tensor.h"

namespace tl {

class QTensor {
 public:
  QTensor() : shape_{0} {}  // no elements: F32, on the CPU

  // Rows of whole blocks one after the other. Throws ShapeMismatch when the bytes are not those of
  // that shape, BadArgument when a row is not a whole number of blocks.
  static QTensor from_blocks(std::span<const std::byte> blocks, QType type, const Shape& shape,
                             const Device& device = Device::cpu());
  // Memory that is there already.
  static QTensor from_memory(RawMemory memory, QType type, const Shape& shape);

  // Numbers of any float dtype and layout in blocks of that type. `importance` has one weight per
  // column: how much an error there counts where the format leaves scales to choose (the K types,
  // IQ4_NL and IQ4_XS). Formats with a fixed rule are made on the device; for the others the search
  // runs on the CPU. Throws Unsupported for types that are only read.
  static QTensor quantize(const Tensor& x, QType type);
  static QTensor quantize(const Tensor& x, QType type, const Tensor& importance);

  QType type() const noexcept { return type_; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.size(); }
  std::int64_t count() const noexcept { return count_; }  // elements
  std::int64_t columns() const noexcept { return rank() == 0 ? 1 : shape_[rank() - 1]; }
  std::int64_t rows() const noexcept { return columns() == 0 ? 0 : count_ / columns(); }
  std::size_t row_bytes() const;
  std::uint64_t size_bytes() const noexcept { return memory_.bytes(); }
  Device device() const { return memory_.device(); }
  DeviceLocation location() const noexcept { return memory_.location(); }
  bool shares_memory_with(const QTensor& other) const noexcept;
  const RawMemory& memory() const noexcept { return memory_; }

  // The blocks, in the order of the file. Waits for the device.
  std::vector<std::byte> to_blocks() const;
  // The same blocks on another device; itself where it already is.
  QTensor to(const Device& device) const;
  // One matrix of a stack, and so on: without the first dimension. Shares memory.
  QTensor get(std::int64_t index) const;
  // Some rows of a matrix: the parts of one that was merged. Shares memory.
  QTensor some_rows(std::int64_t first, std::int64_t count) const;

  // All elements as f32, f16 or bf16: the formula of the format in f32, rounded once.
  Tensor dequantize(DType dtype = DType::F32) const;

 private:
  QTensor(RawMemory memory, QType type, const Shape& shape, std::int64_t count)
      : memory_(std::move(memory)), shape_(shape), count_(count), type_(type) {}
  Tensor as_bytes() const;  // (rows, row_bytes) of u8
  friend Tensor linear(const Tensor& x, const QTensor& weight);
  static QTensor encode(const Tensor& x, QType type, const float* importance);
  friend Tensor embedding(const QTensor& table, const Tensor& ids, DType dtype);

  RawMemory memory_;
  Shape shape_;
  std::int64_t count_ = 0;
  QType type_ = QType::F32;
};

// Rows of a table, for indices of any shape: only the rows asked for are expanded. A bad index is
// an error as for embedding() of a Tensor (tl/ops/indexing.h).
Tensor embedding(const QTensor& table, const Tensor& ids, DType dtype = DType::F32);

// x * transpose(weight): (..., k) and (n, k) give (..., n), for x of any float dtype and layout;
// the result has x's dtype. On the CPU x is rounded to bytes block by block and products are sums
// of integers, except for formats whose numbers are not whole multiples of a scale
// (docs/numerics.md); a row's result does not depend on how many rows come with it. On a GPU the
// same is done for up to eight rows, and more go through the matrix units with x and the weight as
// f16; the IQ formats but IQ4_NL and IQ4_XS, and devices without matrix units, decode a few rows of
// the weight at a time. A weight of f16 or bf16 is multiplied there by the vendor's library where
// there is one, with x rounded to its type and sums in f32.
Tensor linear(const Tensor& x, const QTensor& weight);
// The same for several weights, such as those of queries, keys and values: a result for each. On
// the CPU this is quicker than one after the other, and gives the same bits.
std::vector<Tensor> linear(const Tensor& x, std::span<const QTensor* const> weights);

std::ostream& operator<<(std::ostream& out, const QTensor& tensor);  // type, shape and device

}  // namespace tl
