#include "tensor/stored.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/little_endian.h"

namespace tl::files {

DType loaded_dtype(Stored type) noexcept {
  switch (type) {
    case Stored::Bool:
      return DType::Bool;
    case Stored::U8:
      return DType::U8;
    case Stored::I8:
    case Stored::I16:
      return DType::I16;
    case Stored::U16:
    case Stored::U32:
      return DType::U32;
    case Stored::I32:
      return DType::I32;
    case Stored::U64:
    case Stored::I64:
      return DType::I64;
    case Stored::F8E4M3:
      return DType::F8E4M3;
    case Stored::F16:
      return DType::F16;
    case Stored::BF16:
      return DType::BF16;
    case Stored::F32:
      return DType::F32;
    case Stored::F64:
      return DType::F64;
  }
  return DType::U8;
}

std::size_t size_of(Stored type) noexcept {
  switch (type) {
    case Stored::I8:
      return 1;
    case Stored::U16:
      return 2;
    default:
      return tl::size_of(loaded_dtype(type));
  }
}

namespace {

std::vector<std::byte> swapped(std::span<const std::byte> bytes, std::size_t size) {
  std::vector<std::byte> out(bytes.begin(), bytes.end());
  for (auto at = out.begin(); at != out.end(); at += static_cast<std::ptrdiff_t>(size)) {
    std::reverse(at, at + static_cast<std::ptrdiff_t>(size));
  }
  return out;
}

template <class From, class To>
Tensor widen(std::string_view what, std::span<const std::byte> bytes, const Shape& shape,
             const Device& device) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const From value = load_number<From>(bytes.data() + i * sizeof(From));
    if constexpr (sizeof(From) == sizeof(To)) {
      if (value > static_cast<From>(std::numeric_limits<To>::max())) {
        throw Error(ErrorKind::Overflow, what, "element ", i, " is ", value, ", more than ",
                    dtype_of<To>, " holds");
      }
    }
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number, not a character
    values[i] = static_cast<To>(value);
  }
  return Tensor::from(values, shape, device);
}

void check_bools(std::string_view what, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (std::to_integer<unsigned>(bytes[i]) > 1) {
      throw Error(ErrorKind::BadFile, what, "element ", i, " is the byte ",
                  std::to_integer<unsigned>(bytes[i]), ", which is no bool");
    }
  }
}

}  // namespace

Tensor make_tensor(std::string_view what, Stored type, bool big_endian,
                   std::span<const std::byte> bytes, const Shape& shape, const Device& device) {
  if (big_endian && size_of(type) > 1) {
    return make_tensor(what, type, false, swapped(bytes, size_of(type)), shape, device);
  }
  switch (type) {
    case Stored::I8:
      return widen<std::int8_t, std::int16_t>(what, bytes, shape, device);
    case Stored::U16:
      return widen<std::uint16_t, std::uint32_t>(what, bytes, shape, device);
    case Stored::U64:
      return widen<std::uint64_t, std::int64_t>(what, bytes, shape, device);
    case Stored::Bool:
      check_bools(what, bytes);
      [[fallthrough]];
    default:
      return Tensor::from_bytes(bytes, loaded_dtype(type), shape, device);
  }
}

void for_each_piece(const Tensor& x, const std::function<void(std::span<const std::byte>)>& sink) {
  if (x.empty()) return;
  constexpr std::int64_t kPiece = std::int64_t{16} << 20;  // bytes
  std::vector<std::byte> piece;
  const auto pass = [&](const Tensor& part) {
    piece.resize(part.size_bytes());
    part.read_bytes(piece);
    sink(piece);
  };
  if (!x.is_contiguous()) return pass(x);
  const Tensor flat = x.view({-1});
  const std::int64_t most = kPiece / static_cast<std::int64_t>(tl::size_of(x.dtype()));
  for (std::int64_t at = 0; at < flat.count(); at += most) {
    pass(flat.narrow(0, at, std::min(most, flat.count() - at)));
  }
}

}  // namespace tl::files
