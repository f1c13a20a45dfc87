#include "tl/quant/qtensor.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "quant/cpu/dequantize.h"
#include "quant/cpu/product.h"
#include "quant/cpu/quantize.h"
#include "quant/gpu/blocks.h"
#include "quant/gpu/product.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/join.h"
#include "tl/ops/matmul.h"

namespace tl {

namespace {

// Elements of the shape, its bytes in blocks of the type checked against `bytes`.
std::int64_t checked_count(std::string_view where, QType type, const Shape& shape,
                           std::uint64_t bytes) {
  const std::int64_t count = element_count(where, shape);
  const std::int64_t columns = shape.empty() ? 1 : shape[shape.size() - 1];
  const std::size_t wanted = q_bytes(where, type, columns == 0 ? 0 : count / columns, columns);
  if (wanted != bytes) {
    throw Error(ErrorKind::ShapeMismatch, where, "shape ", shape, " of ", type, " is ", wanted,
                " bytes, and there are ", bytes);
  }
  return count;
}

void expect_decoded(std::string_view where, DType dtype) {
  if (dtype != DType::F32 && dtype != DType::F16 && dtype != DType::BF16) {
    throw Error(ErrorKind::Unsupported, where, "gives f32, f16 or bf16, not ", dtype);
  }
}

constexpr std::string_view kLinear = "linear";

void expect_product(const Tensor& x, const QTensor& weight) {
  const std::int64_t k = x.rank() == 0 ? 1 : x.dim(-1);
  if (weight.rank() != 2 || x.rank() == 0 || k != weight.columns()) {
    throw Error(ErrorKind::ShapeMismatch, kLinear, "x of shape ", x.shape(),
                " and a weight of shape ", weight.shape(),
                " have no product: (..., k) and (n, k) are needed");
  }
  if (x.location() != weight.location()) {
    throw Error(ErrorKind::WrongDevice, kLinear, "x is on ", x.location(), ", the weight on ",
                weight.location());
  }
  if (!is_float(x.dtype())) {
    throw Error(ErrorKind::Unsupported, kLinear, "needs a float tensor, got ", x.dtype());
  }
}

Shape product_shape(const Tensor& x, const QTensor& weight) {
  Shape shape = x.shape();
  shape[x.rank() - 1] = weight.shape()[0];
  return shape;
}

bool is_half(QType type) { return type == QType::F16 || type == QType::BF16; }

// Whether cpu::products() takes it.
bool is_for_cpu(const Tensor& x, const QTensor& weight) {
  return x.device().is_cpu() &&
         (!is_plain(weight.type()) || (is_half(weight.type()) && x.dtype() == DType::F32));
}

std::vector<Tensor> products_on_cpu(const Tensor& x, std::span<const QTensor* const> weights) {
  const Tensor wide = contiguous(to_dtype(x, DType::F32));
  const Stream stream = x.device().stream();
  std::vector<Tensor> results;
  std::vector<cpu::Factor> factors;
  for (const QTensor* weight : weights) {
    Tensor& out = results.emplace_back(
        Tensor::uninitialized(product_shape(x, *weight), DType::F32, x.device()));
    if (out.empty()) continue;
    factors.push_back({weight->type(), weight->memory().data(stream), weight->shape()[0],
                       out.write<float>(stream)});
  }
  if (!factors.empty()) {
    std::int64_t m = 1;
    for (int d = 0; d + 1 < x.rank(); ++d) m *= x.dim(d);
    cpu::products(factors, x.dim(-1), wide.read<float>(stream), m);
  }
  for (Tensor& out : results) out = to_dtype(out, x.dtype());
  return results;
}

}  // namespace

QTensor QTensor::from_blocks(std::span<const std::byte> blocks, QType type, const Shape& shape,
                             const Device& device) {
  const std::int64_t count = checked_count("from_blocks", type, shape, blocks.size());
  RawMemory memory(device, blocks.size());
  memory.upload(0, blocks.data(), blocks.size());
  return {std::move(memory), type, shape, count};
}

QTensor QTensor::from_memory(RawMemory memory, QType type, const Shape& shape) {
  const std::int64_t count = checked_count("from_memory", type, shape, memory.bytes());
  return {std::move(memory), type, shape, count};
}

QTensor QTensor::quantize(const Tensor& x, QType type) { return encode(x, type, nullptr); }

QTensor QTensor::quantize(const Tensor& x, QType type, const Tensor& importance) {
  const std::int64_t columns = x.rank() == 0 ? 1 : x.dim(-1);
  if (importance.rank() != 1 || importance.dim(0) != columns) {
    throw Error(ErrorKind::ShapeMismatch, "quantize", "importance has shape ", importance.shape(),
                ", and ", columns, " columns need (", columns, ")");
  }
  const auto weights = to_dtype(importance, DType::F32).to_vector<float>();
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (!(weights[j] >= 0) || !std::isfinite(weights[j])) {
      throw Error(ErrorKind::BadArgument, "quantize", "the importance of column ", j, " is ",
                  weights[j]);
    }
  }
  return encode(x, type, weights.data());
}

QTensor QTensor::encode(const Tensor& x, QType type, const float* importance) {
  constexpr std::string_view kWhere = "quantize";
  const std::int64_t columns = x.rank() == 0 ? 1 : x.dim(-1);
  const std::int64_t rows = columns == 0 ? 0 : x.count() / columns;
  const std::size_t bytes = q_bytes(kWhere, type, rows, columns);
  if (!is_float(x.dtype())) {
    throw Error(ErrorKind::Unsupported, kWhere, "needs a float tensor, got ", x.dtype());
  }
  if (is_plain(type)) {
    const auto stored = plain_dtype(type);
    if (!stored) throw Error(ErrorKind::Unsupported, kWhere, type, " is no tensor's dtype");
    const Tensor plain = contiguous(to_dtype(x, *stored));
    return from_memory(
        plain.memory().slice(static_cast<std::uint64_t>(plain.layout().offset()) * size_of(*stored),
                             plain.size_bytes()),
        type, x.shape());
  }
  if (!cpu::can_quantize(type)) {
    throw Error(ErrorKind::Unsupported, kWhere, type, " can be read and not made");
  }
  const Tensor wide = contiguous(to_dtype(x, DType::F32));
  if (!x.device().is_cpu() && gpu::can_quantize(type)) {
    return {gpu::quantize(type, wide), type, x.shape(), x.count()};
  }
  const Tensor here = tl::to(wide, Device::cpu());
  RawMemory blocks(Device::cpu(), bytes);
  if (bytes > 0) {
    const Stream stream = Device::cpu().stream();
    cpu::quantize(type, here.read<float>(stream), rows, columns, importance,
                  blocks.overwrite_data(stream));
  }
  return QTensor(std::move(blocks), type, x.shape(), x.count()).to(x.device());
}

std::size_t QTensor::row_bytes() const { return q_bytes("row_bytes", type_, 1, columns()); }

bool QTensor::shares_memory_with(const QTensor& other) const noexcept {
  return size_bytes() > 0 && memory_.block().get() == other.memory_.block().get();
}

std::vector<std::byte> QTensor::to_blocks() const {
  std::vector<std::byte> blocks(memory_.bytes());
  memory_.download(0, blocks.data(), blocks.size());
  return blocks;
}

QTensor QTensor::to(const Device& device) const {
  if (device.location() == location()) return *this;
  RawMemory there(device, memory_.bytes());
  there.copy_from(memory_);
  return {std::move(there), type_, shape_, count_};
}

QTensor QTensor::get(std::int64_t index) const {
  if (rank() < 2) {
    throw Error(ErrorKind::ShapeMismatch, "get", "shape ", shape_, " has no matrices to take");
  }
  const std::int64_t size = shape_[0];
  const std::int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) {
    throw Error(ErrorKind::InvalidIndex, "get", "index ", index, " is outside 0 to ", size - 1);
  }
  Shape rest;
  for (int d = 1; d < rank(); ++d) rest.push_back(shape_[d]);
  const std::uint64_t bytes = memory_.bytes() / static_cast<std::uint64_t>(size);
  return {memory_.slice(static_cast<std::uint64_t>(at) * bytes, bytes), type_, rest, count_ / size};
}

Tensor QTensor::as_bytes() const {
  return Tensor::from_memory(memory_, DType::U8,
                             Layout(Shape{rows(), static_cast<std::int64_t>(row_bytes())}));
}

Tensor QTensor::dequantize(DType dtype) const {
  expect_decoded("dequantize", dtype);
  if (is_plain(type_)) {
    const auto stored = plain_dtype(type_);
    if (!stored) throw Error(ErrorKind::Unsupported, "dequantize", type_, " is no tensor's dtype");
    return to_dtype(Tensor::from_memory(memory_, *stored, Layout(shape_)), dtype);
  }
  Tensor out = Tensor::uninitialized(shape_, dtype, device());
  if (out.empty()) return out;
  if (device().is_cpu()) {
    const Stream stream = device().stream();
    cpu::dequantize(type_, memory_.data(stream), count_, dtype, out.write(stream));
  } else {
    gpu::dequantize(type_, memory_, out);
  }
  return out;
}

Tensor embedding(const QTensor& table, const Tensor& ids, DType dtype) {
  if (table.rank() != 2) {
    throw Error(ErrorKind::ShapeMismatch, "embedding",
                "the table must have 2 dimensions, and has shape ", table.shape());
  }
  expect_decoded("embedding", dtype);
  // The rows' blocks first, by the op that knows about indices, and then only those decoded.
  const Tensor rows = embedding(table.as_bytes(), ids);
  Shape shape = ids.shape();
  shape.push_back(table.columns());
  return QTensor::from_memory(contiguous(rows).memory(), table.type(), shape).dequantize(dtype);
}

QTensor QTensor::some_rows(std::int64_t first, std::int64_t count) const {
  if (rank() != 2) {
    throw Error(ErrorKind::ShapeMismatch, "some_rows", "shape ", shape_, " is no matrix's");
  }
  if (first < 0 || count < 0 || count > shape_[0] - first) {
    throw Error(ErrorKind::InvalidIndex, "some_rows", count, " rows from ", first,
                " on are outside 0 to ", shape_[0] - 1);
  }
  const std::uint64_t bytes = row_bytes();
  return {memory_.slice(static_cast<std::uint64_t>(first) * bytes,
                        static_cast<std::uint64_t>(count) * bytes),
          type_, Shape{count, columns()}, count * columns()};
}

Tensor linear(const Tensor& x, const QTensor& weight) {
  if (has_history(x)) {
    Tensor out = [&] {
      const NoHistory none;
      return linear(x, weight);
    }();
    // The blocks go along as bytes, which share the weight's memory.
    add_history(out, "quantized_linear", {x, weight.as_bytes()},
                {std::string(name(weight.type())), weight.shape()});
    return out;
  }
  expect_product(x, weight);
  if (is_for_cpu(x, weight)) {
    const QTensor* const one = &weight;
    return std::move(products_on_cpu(x, std::span(&one, 1)).front());
  }
  const std::int64_t n = weight.shape()[0], k = x.dim(-1);
  const Shape shape = product_shape(x, weight);
  const bool is_small = is_half(weight.type());
  if (!is_plain(weight.type()) && k > 0 && n > 0 && x.count() > 0) {
    const gpu::ProductShape sizes{n, k, x.count() / k};
    const auto path = gpu::product_path(x.device(), weight.type(), weight.memory(), sizes);
    if (path) {
      const bool small = x.dtype() == DType::F16 || x.dtype() == DType::BF16;
      const Tensor from = contiguous(small ? x : to_dtype(x, DType::F32));
      Tensor out = Tensor::uninitialized(shape, from.dtype(), x.device());
      gpu::product(*path, weight.type(), weight.memory(), sizes, from, out);
      return to_dtype(out, x.dtype());
    }
  }
  if (is_small && x.device().is_gpu() && x.dtype() == DType::F32 && k > 0 && n > 0 &&
      x.count() > 0) {
    const std::int64_t m = x.count() / k;
    Tensor out = Tensor::uninitialized({m, n}, DType::F32, x.device());
    const DType stored = weight.type() == QType::F16 ? DType::F16 : DType::BF16;
    if (gpu::plain_product(stored, weight.memory(), {n, k, m}, reshape(contiguous(x), {m, k}),
                           out)) {
      return reshape(out, shape);
    }
  }
  // Decoded in pieces that a cache may hold, so that no whole matrix ever is.
  constexpr std::int64_t kPiece = 1 << 22;
  const DType decoded =
      x.dtype() == DType::F16 || x.dtype() == DType::BF16 ? x.dtype() : DType::F32;
  const Tensor from = to_dtype(x, decoded);
  const std::int64_t together = std::max<std::int64_t>(1, kPiece / std::max<std::int64_t>(k, 1));
  std::vector<Tensor> parts;
  for (std::int64_t row = 0; row < n; row += together) {
    const QTensor some = weight.some_rows(row, std::min(together, n - row));
    parts.push_back(linear(from, some.dequantize(decoded)));
  }
  if (parts.empty()) return Tensor::zeros(shape, x.dtype(), x.device());
  return to_dtype(parts.size() == 1 ? parts[0] : cat(parts, -1), x.dtype());
}

std::vector<Tensor> linear(const Tensor& x, std::span<const QTensor* const> weights) {
  bool together = !has_history(x);
  for (const QTensor* weight : weights) {
    expect_product(x, *weight);
    together = together && is_for_cpu(x, *weight);
  }
  if (together) return products_on_cpu(x, weights);
  std::vector<Tensor> results;
  for (const QTensor* weight : weights) results.push_back(linear(x, *weight));
  return results;
}

std::ostream& operator<<(std::ostream& out, const QTensor& tensor) {
  return out << tensor.type() << ' ' << tensor.shape() << " on " << tensor.location();
}

}  // namespace tl
