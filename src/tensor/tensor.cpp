#include "tl/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

namespace tl {

// ---- making tensors

namespace {

std::uint64_t bytes_for(std::string_view op, const Shape& shape, DType dtype) {
  return checked_multiply(op, static_cast<std::uint64_t>(element_count(op, shape)), size_of(dtype));
}

}  // namespace

void detail::throw_ragged(std::int64_t size, std::int64_t first) {
  throw Error(ErrorKind::ShapeMismatch, "tensor", "a row has ", size, " entries, the first ",
              first);
}

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
  if (!layout.fits(static_cast<std::int64_t>(memory.bytes() / size_of(dtype)))) {
    throw Error(ErrorKind::SizeMismatch, "tensor", "shape ", layout.shape(), " of ", dtype,
                " with strides ", layout.strides(), " and offset ", layout.offset(),
                " reaches outside ", memory.bytes(), " bytes");
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

void Tensor::expect_dims(std::string_view op, int wanted) const {
  if (rank() != wanted) {
    throw Error(ErrorKind::ShapeMismatch, op, "needs ", wanted, " dimensions, and shape ", shape(),
                " has ", rank());
  }
}

// ---- histories

namespace {

thread_local bool histories_are_kept = true;

}  // namespace

bool keeps_history() noexcept { return histories_are_kept; }

HistoryScope::HistoryScope(bool keeps) noexcept : before_(histories_are_kept) {
  histories_are_kept = keeps;
}
HistoryScope::~HistoryScope() { histories_are_kept = before_; }

Tensor Tensor::with_history(std::shared_ptr<const History> history) const {
  Tensor out(memory_, dtype_, layout_);
  out.history_ = std::move(history);
  return out;
}

bool has_history(std::span<const Tensor> tensors) noexcept {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const Tensor& x) { return x.has_history(); }) &&
         keeps_history();
}

void add_history(Tensor& result, std::string_view op, std::span<const Tensor> inputs,
                 HistoryValues settings) {
  if (!keeps_history() || !is_float(result.dtype())) return;
  const auto followed =
      std::find_if(inputs.begin(), inputs.end(), [](const Tensor& x) { return x.has_history(); });
  if (followed == inputs.end()) return;
  result =
      result.with_history(followed->history()->extend(op, inputs, std::move(settings), result));
}

// ---- views

Tensor Tensor::seen(std::string_view op, const Layout& layout, const Dims& settings) const {
  Tensor out(memory_, dtype_, layout);
  if (has_history()) add_history(out, op, {*this}, {settings});
  return out;
}

Tensor Tensor::with_layout(const Layout& layout) const {
  Tensor out(memory_, dtype_, layout);
  if (has_history()) {
    add_history(
        out, "with_layout", {*this},
        {layout_.strides(), Dims{layout_.offset()}, layout.strides(), Dims{layout.offset()}});
  }
  return out;
}

Tensor Tensor::reinterpret(DType dtype) const {
  if (size_of(dtype) != size_of(dtype_)) {
    throw Error(ErrorKind::DTypeMismatch, "reinterpret", dtype_, " and ", dtype,
                " have elements of different sizes");
  }
  return {memory_, dtype, layout_};
}

Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const {
  const int first = normalize_dim("transpose", a, shape());
  const int second = normalize_dim("transpose", b, shape());
  return seen("transpose", layout_.transpose(first, second), {first, second});
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
  return seen("permute", layout_.permute(normal), normal);
}

Tensor Tensor::move_dim(std::int64_t from, std::int64_t to) const {
  Dims order = all_dims(rank());
  const int source = normalize_dim("move_dim", from, shape());
  const int target = normalize_dim("move_dim", to, shape());
  order.erase(source);
  order.insert(target, source);
  return seen("permute", layout_.permute(order), order);
}

Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  const int d = normalize_dim("narrow", dim, shape());
  if (start < 0 || length < 0 || start > shape()[d] || length > shape()[d] - start) {
    throw Error(ErrorKind::BadArgument, "narrow", "elements ", start, " to ", start, " + ", length,
                " are outside dimension ", d, " of shape ", shape());
  }
  return seen("slice", layout_.narrow(d, start, length), {d, start, 1});
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
  return seen("slice", step == 1 ? part : part.step(d, step), {d, first, step});
}

Tensor Tensor::get_on_dim(std::int64_t dim, std::int64_t index) const {
  const int d = normalize_dim("get", dim, shape());
  const std::int64_t size = shape()[d];
  if (index < -size || index >= size) {
    throw Error(ErrorKind::BadArgument, "get", "index ", index, " is outside dimension ", d,
                " of shape ", shape());
  }
  const std::int64_t at = index < 0 ? index + size : index;
  return seen("get", layout_.drop(d, at), {d, at});
}

Tensor Tensor::squeeze(std::int64_t dim) const {
  const int d = normalize_dim("squeeze", dim, shape());
  return shape()[d] == 1 ? seen("view", layout_.drop(d, 0)) : *this;
}

Tensor Tensor::unsqueeze(std::int64_t dim) const {
  return seen("view", layout_.insert(normalize_insertion("unsqueeze", dim, shape())));
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
  return seen("broadcast_as", layout_.broadcast_to(to));
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
  return seen("unfold", layout_.unfold(d, size, step), {d, size, step});
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
    out.push_back(seen("slice", layout_.narrow(d, start, length), {d, start, 1}));
    start += length;
  }
  return out;
}

std::vector<Tensor> Tensor::split(std::int64_t size, std::int64_t dim) const {
  const int d = normalize_dim("split", dim, shape());
  if (size < 1) throw Error(ErrorKind::BadArgument, "split", "pieces of size ", size);
  std::vector<Tensor> out;
  for (std::int64_t start = 0; start < shape()[d]; start += size) {
    const std::int64_t length = std::min(size, shape()[d] - start);
    out.push_back(seen("slice", layout_.narrow(d, start, length), {d, start, 1}));
  }
  return out;
}

Tensor Tensor::view(const Shape& wanted) const {
  const Shape to = fill_hole("view", wanted, count());
  if (const auto layout = layout_.reshape(to)) return seen("view", *layout);
  throw Error(ErrorKind::BadArgument, "view", "shape ", shape(), " with strides ", strides(),
              " cannot be seen as ", to, " without a copy");
}

// ---- to the host

namespace {

// One dimension of a read: how far its elements lie apart on the device and in the result.
struct ReadDim {
  std::int64_t size;
  std::int64_t from;
  std::int64_t to;
};

using ReadDims = std::span<const ReadDim>;

template <class T>
void scatter(const T* from, T* to, ReadDims dims) {
  if (dims.empty()) {
    *to = *from;
    return;
  }
  const ReadDim& d = dims.front();
  if (dims.size() == 1) {
    for (std::int64_t i = 0; i < d.size; ++i) to[i * d.to] = from[i * d.from];
    return;
  }
  for (std::int64_t i = 0; i < d.size; ++i) {
    scatter(from + i * d.from, to + i * d.to, dims.subspan(1));
  }
}

void scatter_bytes(const std::byte* from, std::byte* to, ReadDims dims, std::size_t size) {
  const auto as = [&]<class T>(T) {
    scatter(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), dims);
  };
  switch (size) {
    case 1:
      return as(std::uint8_t{});
    case 2:
      return as(std::uint16_t{});
    case 4:
      return as(std::uint32_t{});
    default:
      return as(std::uint64_t{});
  }
}

// A transfer costs as much as this many bytes of it, so smaller gaps travel along with what is
// wanted; larger ones are stepped over.
constexpr std::int64_t kSmallGap = std::int64_t{64} << 10;
// The most that is staged on the host at a time.
constexpr std::int64_t kStage = std::int64_t{16} << 20;

// Downloads what a layout addresses, piece by piece. Dimensions are sorted by their stride, widest
// first, so that a piece is a run of the innermost ones.
class PieceReader {
 public:
  PieceReader(const RawMemory& memory, std::int64_t element) : memory_(memory), size_(element) {}

  // `from` and `to` count elements.
  void read(ReadDims dims, std::int64_t from, std::byte* to) {
    if (is_plain(dims)) {
      memory_.download(bytes(from), to, bytes(extent(dims)));
      return;
    }
    if (!is_dense(dims)) {
      const ReadDim& d = dims.front();
      for (std::int64_t i = 0; i < d.size; ++i) {
        read(dims.subspan(1), from + i * d.from, to + i * d.to * size_);
      }
      return;
    }
    const std::int64_t most = kStage / size_;
    if (extent(dims) <= most || dims.front().from == 0) return read_staged(dims, from, to);
    // Dense, and more than is staged at a time: as many steps of the widest dimension as fit.
    std::vector<ReadDim> part(dims.begin(), dims.end());
    const std::int64_t inner = extent(dims.subspan(1));
    const std::int64_t steps =
        inner >= most ? 1 : std::max<std::int64_t>(1, (most - inner) / dims.front().from + 1);
    for (std::int64_t i = 0; i < dims.front().size; i += steps) {
      part.front().size = std::min(steps, dims.front().size - i);
      const ReadDims rest = part.front().size == 1 ? ReadDims(part).subspan(1) : ReadDims(part);
      read(rest, from + i * dims.front().from, to + i * dims.front().to * size_);
    }
  }

 private:
  std::uint64_t bytes(std::int64_t elements) const {
    return static_cast<std::uint64_t>(elements * size_);
  }
  static std::int64_t extent(ReadDims dims) {
    std::int64_t last = 0;
    for (const ReadDim& d : dims) last += (d.size - 1) * d.from;
    return last + 1;
  }
  // Elements lie on the device as they will in the result.
  static bool is_plain(ReadDims dims) {
    std::int64_t expected = 1;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
      if (d->from != expected || d->to != expected) return false;
      expected *= d->size;
    }
    return true;
  }
  // Are all gaps small?
  bool is_dense(ReadDims dims) const {
    for (; !dims.empty(); dims = dims.subspan(1)) {
      if ((dims.front().from - extent(dims.subspan(1))) * size_ > kSmallGap) return false;
    }
    return true;
  }
  void read_staged(ReadDims dims, std::int64_t from, std::byte* to) {
    const std::uint64_t span = bytes(extent(dims));
    if (span > capacity_) {
      stage_ = std::make_unique_for_overwrite<std::uint64_t[]>((span + 7) / 8);
      capacity_ = span;
    }
    memory_.download(bytes(from), stage_.get(), span);
    scatter_bytes(reinterpret_cast<const std::byte*>(stage_.get()), to, dims,
                  static_cast<std::size_t>(size_));
  }

  const RawMemory& memory_;
  std::int64_t size_;  // bytes of an element
  std::unique_ptr<std::uint64_t[]> stage_;
  std::uint64_t capacity_ = 0;  // bytes of it
};

}  // namespace

void Tensor::read_bytes(std::span<std::byte> to) const {
  if (to.size() != size_bytes()) throw SizeMismatch("read_bytes", size_bytes(), to.size());
  if (empty()) return;
  const std::size_t size = size_of(dtype_);
  const std::int64_t start = layout_.offset();
  if (is_contiguous()) {
    memory_.download(static_cast<std::uint64_t>(start) * size, to.data(), to.size());
    return;
  }
  std::vector<ReadDim> dims;
  const Dims row_major = contiguous_strides(shape());
  for (int d = 0; d < rank(); ++d) {
    if (shape()[d] > 1) dims.push_back({shape()[d], strides()[d], row_major[d]});
  }
  if (location().is_cpu()) {
    scatter_bytes(read(device().stream()), to.data(), dims, size);
    return;
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [](const ReadDim& a, const ReadDim& b) { return a.from > b.from; });
  PieceReader(memory_, static_cast<std::int64_t>(size)).read(dims, start, to.data());
}

Scalar Tensor::item() const {
  expect_one("item");
  return visit_dtype("item", dtype_, [&]<class T>() -> Scalar {
    // A byte that is neither 0 nor 1 is no bool to C++.
    std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T> value{};
    read_bytes(std::as_writable_bytes(std::span(&value, 1)));
    if constexpr (std::is_same_v<T, bool>) {
      return value != 0;
    } else {
      return value;
    }
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
  history_.reset();
  // A view that does not cover its memory must not lose what is around it.
  const bool covers = is_contiguous() && size_bytes() == memory_.bytes();
  return covers ? memory_.overwrite_data(stream) : update(stream);
}

std::byte* Tensor::update(const Stream& stream) {
  history_.reset();
  return memory_.mutable_data(stream) + start_byte(*this);
}

}  // namespace tl
