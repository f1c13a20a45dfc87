#include "tl/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace tl {

// ---- making tensors

namespace {

std::uint64_t bytes_for(std::string_view op, const Shape& shape, DType dtype) {
  return checked_multiply(op, static_cast<std::uint64_t>(element_count(op, shape)), size_of(dtype));
}

}  // namespace

Tensor Tensor::uninitialized(const Shape& shape, DType dtype, const Device& device) {
  RawMemory memory(device, bytes_for("tensor", shape, dtype));
  return {std::move(memory), dtype, Layout(shape)};
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, const Device& device) {
  Tensor out = uninitialized(shape, dtype, device);
  const std::uint8_t zero = 0;
  out.memory_.fill(&zero, 1);
  return out;
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                          const Device& device) {
  if (bytes.size() % size_of(dtype) != 0) {
    throw Error(ErrorKind::SizeMismatch, "tensor", bytes.size(),
                " bytes do not divide into elements of ", dtype);
  }
  const Shape filled =
      fill_hole("tensor", shape, static_cast<std::int64_t>(bytes.size() / size_of(dtype)));
  Tensor out = uninitialized(filled, dtype, device);
  if (!bytes.empty()) out.memory_.upload(0, bytes.data(), bytes.size());
  return out;
}

Tensor Tensor::from_memory(RawMemory memory, DType dtype, const Layout& layout) {
  const std::uint64_t end =
      layout.count() == 0
          ? 0
          : checked_multiply("tensor",
                             static_cast<std::uint64_t>(layout.offset() + layout.extent()),
                             size_of(dtype));
  if (layout.offset() < 0 || end > memory.bytes()) {
    throw Error(ErrorKind::SizeMismatch, "tensor", "shape ", layout.shape(), " with strides ",
                layout.strides(), " and offset ", layout.offset(), " reaches byte ", end, " of ",
                memory.bytes());
  }
  return {std::move(memory), dtype, layout};
}

// ---- asking

std::int64_t Tensor::dim(std::int64_t d) const { return shape()[normalize_dim("dim", d, shape())]; }

bool Tensor::shares_memory_with(const Tensor& other) const noexcept {
  return memory_.bytes() > 0 && memory_.block().get() == other.memory_.block().get();
}

void Tensor::expect_dtype(std::string_view op, DType wanted) const {
  if (dtype_ != wanted) {
    throw Error(ErrorKind::DTypeMismatch, op, "the tensor is ", dtype_, ", not ", wanted);
  }
}

void Tensor::expect_one(std::string_view op) const {
  if (count() != 1) {
    throw Error(ErrorKind::ShapeMismatch, op, "needs one element, and shape ", shape(), " has ",
                count());
  }
}

// ---- views

Tensor Tensor::with_layout(const Layout& layout) const { return {memory_, dtype_, layout}; }

Tensor Tensor::reinterpret(DType dtype) const {
  if (size_of(dtype) != size_of(dtype_)) {
    throw Error(ErrorKind::DTypeMismatch, "reinterpret", dtype_, " and ", dtype,
                " have elements of different sizes");
  }
  return {memory_, dtype, layout_};
}

Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  return with_layout(layout_.transpose(normalize_dim("transpose", a, shape()),
                                       normalize_dim("transpose", b, shape())));
}

Tensor Tensor::t() const {
  if (rank() < 2) {
    throw Error(ErrorKind::BadArgument, "t", "shape ", shape(), " has fewer than two dimensions");
  }
  return transpose(-2, -1);
}

Tensor Tensor::permute(const Dims& order) const {
  const Dims sorted = normalize_dims("permute", order, shape());
  if (sorted.size() != rank()) {
    throw Error(ErrorKind::BadArgument, "permute", "order ", order,
                " does not name every dimension of shape ", shape());
  }
  Dims normal;
  for (const std::int64_t d : order) normal.push_back(normalize_dim("permute", d, shape()));
  return with_layout(layout_.permute(normal));
}

Tensor Tensor::move_dim(std::int64_t from, std::int64_t to) const {
  Dims order = all_dims(rank());
  const int source = normalize_dim("move_dim", from, shape());
  const int target = normalize_dim("move_dim", to, shape());
  order.erase(source);
  order.insert(target, source);
  return with_layout(layout_.permute(order));
}

Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  const int d = normalize_dim("narrow", dim, shape());
  if (start < 0 || length < 0 || start > shape()[d] || length > shape()[d] - start) {
    throw Error(ErrorKind::BadArgument, "narrow", "elements ", start, " to ", start, " + ", length,
                " are outside dimension ", d, " of shape ", shape());
  }
  return with_layout(layout_.narrow(d, start, length));
}

Tensor Tensor::slice(std::int64_t dim, std::int64_t start, std::int64_t end,
                     std::int64_t step) const {
  const int d = normalize_dim("slice", dim, shape());
  if (step < 1)
    throw Error(ErrorKind::BadArgument, "slice", "a step of ", step, " is not positive");
  const std::int64_t size = shape()[d];
  const auto place = [&](std::int64_t i) {
    const std::int64_t from_start = i < 0 ? i + size : i;
    if (from_start < 0 || from_start > size) {
      throw Error(ErrorKind::BadArgument, "slice", "index ", i, " is outside dimension ", d,
                  " of shape ", shape());
    }
    return from_start;
  };
  const std::int64_t first = place(start), last = place(end);
  const Layout part = layout_.narrow(d, first, std::max<std::int64_t>(0, last - first));
  return with_layout(step == 1 ? part : part.step(d, step));
}

Tensor Tensor::get_on_dim(std::int64_t dim, std::int64_t index) const {
  const int d = normalize_dim("get", dim, shape());
  const std::int64_t size = shape()[d];
  if (index < -size || index >= size) {
    throw Error(ErrorKind::BadArgument, "get", "index ", index, " is outside dimension ", d,
                " of shape ", shape());
  }
  return with_layout(layout_.drop(d, index < 0 ? index + size : index));
}

Tensor Tensor::squeeze(std::int64_t dim) const {
  const int d = normalize_dim("squeeze", dim, shape());
  return shape()[d] == 1 ? with_layout(layout_.drop(d, 0)) : *this;
}

Tensor Tensor::unsqueeze(std::int64_t dim) const {
  return with_layout(layout_.insert(normalize_insertion("unsqueeze", dim, shape())));
}

Tensor Tensor::broadcast_as(const Shape& to) const {
  element_count("broadcast_as", to);
  const int lead = to.size() - rank();
  bool fits = lead >= 0;
  for (int d = 0; d < rank() && fits; ++d) {
    fits = shape()[d] == 1 || shape()[d] == to[lead + d];
  }
  if (!fits) {
    throw Error(ErrorKind::ShapeMismatch, "broadcast_as", "shape ", shape(),
                " does not broadcast to ", to);
  }
  return with_layout(layout_.broadcast_to(to));
}

Tensor Tensor::broadcast_left(const Shape& left) const {
  Shape to = left;
  for (const std::int64_t size : shape()) to.push_back(size);
  return broadcast_as(to);
}

Tensor Tensor::unfold(std::int64_t dim, std::int64_t size, std::int64_t step) const {
  const int d = normalize_dim("unfold", dim, shape());
  if (size < 1 || size > shape()[d] || step < 1) {
    throw Error(ErrorKind::BadArgument, "unfold", "windows of ", size, " with step ", step,
                " do not fit dimension ", d, " of shape ", shape());
  }
  return with_layout(layout_.unfold(d, size, step));
}

Tensor Tensor::diagonal(std::int64_t shift, std::int64_t a, std::int64_t b) const {
  const int first = normalize_dim("diagonal", a, shape());
  const int second = normalize_dim("diagonal", b, shape());
  if (first == second) {
    throw Error(ErrorKind::BadArgument, "diagonal", "dims ", a, " and ", b, " are the same");
  }
  return with_layout(layout_.diagonal(first, second, shift));
}

std::vector<Tensor> Tensor::chunk(std::int64_t pieces, std::int64_t dim) const {
  const int d = normalize_dim("chunk", dim, shape());
  if (pieces < 1) {
    throw Error(ErrorKind::BadArgument, "chunk", "cannot cut into ", pieces, " pieces");
  }
  const std::int64_t size = shape()[d];
  const std::int64_t count = std::min(pieces, size);
  std::vector<Tensor> out;
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = size / count + (i < size % count ? 1 : 0);
    out.push_back(with_layout(layout_.narrow(d, start, length)));
    start += length;
  }
  return out;
}

std::vector<Tensor> Tensor::split(std::int64_t size, std::int64_t dim) const {
  const int d = normalize_dim("split", dim, shape());
  if (size < 1) throw Error(ErrorKind::BadArgument, "split", "pieces of size ", size);
  std::vector<Tensor> out;
  for (std::int64_t start = 0; start < shape()[d]; start += size) {
    out.push_back(with_layout(layout_.narrow(d, start, std::min(size, shape()[d] - start))));
  }
  return out;
}

Tensor Tensor::view(const Shape& wanted) const {
  const Shape to = fill_hole("view", wanted, count());
  if (const auto layout = layout_.reshape(to)) return with_layout(*layout);
  throw Error(ErrorKind::BadArgument, "view", "shape ", shape(), " with strides ", strides(),
              " cannot be seen as ", to, " without a copy");
}

// ---- to the host

namespace {

// Copies elements out of `from`, which holds everything the layout addresses from offset() on, into
// row-major order.
template <class T>
void gather(const T* from, T* to, const Layout& layout) {
  const int rank = layout.rank();
  if (rank == 0) {
    *to = *from;
    return;
  }
  Dims at = Dims::repeated(rank, 0);
  const std::int64_t inner = layout.shape()[rank - 1], step = layout.strides()[rank - 1];
  const std::int64_t rows = layout.count() / inner;
  std::int64_t base = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < inner; ++i) *to++ = from[base + i * step];
    for (int d = rank - 2; d >= 0; --d) {
      base += layout.strides()[d];
      if (++at[d] < layout.shape()[d]) break;
      base -= layout.strides()[d] * layout.shape()[d];
      at[d] = 0;
    }
  }
}

void gather_bytes(const std::byte* from, std::byte* to, const Layout& layout, std::size_t size) {
  switch (size) {
    case 1:
      return gather(from, to, layout);
    case 2:
      return gather(reinterpret_cast<const std::uint16_t*>(from),
                    reinterpret_cast<std::uint16_t*>(to), layout);
    case 4:
      return gather(reinterpret_cast<const std::uint32_t*>(from),
                    reinterpret_cast<std::uint32_t*>(to), layout);
    default:
      return gather(reinterpret_cast<const std::uint64_t*>(from),
                    reinterpret_cast<std::uint64_t*>(to), layout);
  }
}

}  // namespace

void Tensor::read_bytes(std::span<std::byte> to) const {
  if (to.size() != size_bytes()) throw SizeMismatch("read_bytes", size_bytes(), to.size());
  if (empty()) return;
  const std::uint64_t size = size_of(dtype_);
  const std::uint64_t start = static_cast<std::uint64_t>(layout_.offset()) * size;
  if (is_contiguous()) {
    memory_.download(start, to.data(), to.size());
    return;
  }
  // A view with wide gaps between its slices is read slice by slice: what lies between does not
  // travel.
  const std::uint64_t span = static_cast<std::uint64_t>(layout_.extent()) * size;
  if (span > 2 * to.size() && rank() > 1 && span > 65536) {
    int widest = 0;
    for (int d = 1; d < rank(); ++d) {
      if (shape()[d] > 1 && strides()[d] > strides()[widest]) widest = d;
    }
    const Layout by_slice = layout_.permute([&] {
      Dims order = all_dims(rank());
      order.erase(widest);
      order.insert(0, widest);
      return order;
    }());
    if (widest == 0 && shape()[0] > 1) {
      const std::uint64_t each = to.size() / static_cast<std::uint64_t>(shape()[0]);
      for (std::int64_t i = 0; i < shape()[0]; ++i) {
        with_layout(by_slice.drop(0, i))
            .read_bytes(to.subspan(static_cast<std::uint64_t>(i) * each, each));
      }
      return;
    }
  }
  if (location().is_cpu()) {
    gather_bytes(memory_.data() + start, to.data(), layout_, size);
    return;
  }
  const auto stage = std::make_unique_for_overwrite<std::uint64_t[]>((span + 7) / 8);
  memory_.download(start, stage.get(), span);
  gather_bytes(reinterpret_cast<const std::byte*>(stage.get()), to.data(), layout_, size);
}

Scalar Tensor::item() const {
  expect_one("item");
  return visit_dtype("item", dtype_, [&]<class T>() -> Scalar {
    T value{};
    read_bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  });
}

// ---- for ops

namespace {

std::uint64_t start_byte(const Tensor& x) {
  return x.empty() ? 0 : static_cast<std::uint64_t>(x.layout().offset()) * size_of(x.dtype());
}

}  // namespace

const std::byte* Tensor::read(const Stream& stream) const {
  return memory_.data(stream) + start_byte(*this);
}

std::byte* Tensor::write(const Stream& stream) {
  // A view that does not cover its memory must not lose what is around it.
  const bool covers = is_contiguous() && size_bytes() == memory_.bytes();
  return covers ? memory_.overwrite_data(stream) : update(stream);
}

std::byte* Tensor::update(const Stream& stream) {
  return memory_.mutable_data(stream) + start_byte(*this);
}

}  // namespace tl
