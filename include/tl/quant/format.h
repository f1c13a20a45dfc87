// The types that tensors in GGUF files have: plain numbers, and blocks of numbers that share a
// scale. How each is laid out, and what its numbers are, is in tl/quant/blocks.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string_view>

#include "tl/base/dtype.h"

namespace tl {

// The values are the codes in the files.
enum class QType : std::uint8_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q8_1 = 9,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  Q8_K = 15,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  Q1_0 = 41,
  Q2_0 = 42,
};

struct QFormat {
  QType type;
  std::string_view name;   // as it is written everywhere: "Q4_K"
  std::uint16_t elements;  // in a block
  std::uint16_t bytes;     // of a block
};

// All of them, by code.
std::span<const QFormat> q_formats();

// Nothing for a code that no type has (now).
std::optional<QType> q_type(std::uint32_t code);
// The name in any case; throws BadArgument and lists the names.
QType parse_q_type(std::string_view text);

const QFormat& format_of(QType type);
inline std::string_view name(QType type) { return format_of(type).name; }
std::ostream& operator<<(std::ostream& out, QType type);

// Whether elements are stored one by one, as a tensor's are.
inline bool is_plain(QType type) { return format_of(type).elements == 1; }
// The dtype of a plain type; nothing for blocks and for I8, which tensors do not have.
std::optional<DType> plain_dtype(QType type);
// The plain type of a dtype; nothing where GGUF has none.
std::optional<QType> q_type_of(DType dtype);

// Bytes of `rows` rows of `columns` elements. Throws BadArgument, naming `where`, for columns that
// are not a multiple of the block's elements and for more bytes than there can be.
std::size_t q_bytes(std::string_view where, QType type, std::int64_t rows, std::int64_t columns);

}  // namespace tl
