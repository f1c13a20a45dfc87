// The header of a .npy file, read and checked; it makes no tensors, so that a fuzzer can have it
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/stored.h"
#include "tl/tensor/dims.h"

namespace tl::files {

// The most that a header and what stands before it may take.
inline constexpr std::size_t kMostNpyHeader = (1 << 20) + 12;

struct NpyHeader {
  std::string descr;     // "<f4"
  bool fortran = false;  // the first dimension is the innermost
  Shape shape;
  std::optional<Stored> type;  // of an element; nothing where no dtype holds it
  bool big_endian = false;
  std::uint64_t bytes = 0;  // of the elements, when their type is known
  std::size_t data = 0;     // where they begin
};

// `bytes` need not reach to the end of the elements. Structured arrays throw Unsupported.
NpyHeader read_npy_header(std::string_view label, std::span<const std::byte> bytes);

}  // namespace tl::files
