// Elements as files hold them, and tensors made of them. Files know integer types that tensors do
// not have; those are widened to one that holds their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tl/tensor/tensor.h"

namespace tl::files {

enum class Stored : std::uint8_t {
  Bool,
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  U64,
  I64,
  F8E4M3,
  F16,
  BF16,
  F32,
  F64
};

DType loaded_dtype(Stored type) noexcept;
std::size_t size_of(Stored type) noexcept;

// Row-major elements at any alignment, exactly as many as the shape has. `what` names file and
// tensor in messages.
Tensor make_tensor(std::string_view what, Stored type, bool big_endian,
                   std::span<const std::byte> bytes, const Shape& shape, const Device& device);

// Hands the elements in row-major order to `sink`, in pieces of bounded size where the tensor is
// contiguous.
void for_each_piece(const Tensor& x, const std::function<void(std::span<const std::byte>)>& sink);

}  // namespace tl::files
