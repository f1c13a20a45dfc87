#include "tl/quant/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <ostream>
#include <string>

#include "tl/base/error.h"

namespace tl {

namespace {

constexpr std::array kFormats = {
    QFormat{QType::F32, "F32", 1, 4},
    QFormat{QType::F16, "F16", 1, 2},
    QFormat{QType::Q4_0, "Q4_0", 32, 18},
    QFormat{QType::Q4_1, "Q4_1", 32, 20},
    QFormat{QType::Q5_0, "Q5_0", 32, 22},
    QFormat{QType::Q5_1, "Q5_1", 32, 24},
    QFormat{QType::Q8_0, "Q8_0", 32, 34},
    QFormat{QType::Q8_1, "Q8_1", 32, 36},
    QFormat{QType::Q2_K, "Q2_K", 256, 84},
    QFormat{QType::Q3_K, "Q3_K", 256, 110},
    QFormat{QType::Q4_K, "Q4_K", 256, 144},
    QFormat{QType::Q5_K, "Q5_K", 256, 176},
    QFormat{QType::Q6_K, "Q6_K", 256, 210},
    QFormat{QType::Q8_K, "Q8_K", 256, 292},
    QFormat{QType::IQ2_XXS, "IQ2_XXS", 256, 66},
    QFormat{QType::IQ2_XS, "IQ2_XS", 256, 74},
    QFormat{QType::IQ3_XXS, "IQ3_XXS", 256, 98},
    QFormat{QType::IQ1_S, "IQ1_S", 256, 50},
    QFormat{QType::IQ4_NL, "IQ4_NL", 32, 18},
    QFormat{QType::IQ3_S, "IQ3_S", 256, 110},
    QFormat{QType::IQ2_S, "IQ2_S", 256, 82},
    QFormat{QType::IQ4_XS, "IQ4_XS", 256, 136},
    QFormat{QType::I8, "I8", 1, 1},
    QFormat{QType::I16, "I16", 1, 2},
    QFormat{QType::I32, "I32", 1, 4},
    QFormat{QType::I64, "I64", 1, 8},
    QFormat{QType::F64, "F64", 1, 8},
    QFormat{QType::IQ1_M, "IQ1_M", 256, 56},
    QFormat{QType::BF16, "BF16", 1, 2},
    QFormat{QType::TQ1_0, "TQ1_0", 256, 54},
    QFormat{QType::TQ2_0, "TQ2_0", 256, 66},
    QFormat{QType::MXFP4, "MXFP4", 32, 17},
    QFormat{QType::NVFP4, "NVFP4", 64, 36},
    QFormat{QType::Q1_0, "Q1_0", 128, 18},
    QFormat{QType::Q2_0, "Q2_0", 64, 18},
};

constexpr std::size_t kCodes = 43;

// The place in kFormats of each code, and the number of formats for a code that has none.
constexpr std::array<std::uint8_t, kCodes> kPlaces = [] {
  std::array<std::uint8_t, kCodes> places{};
  places.fill(kFormats.size());
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    places[static_cast<std::size_t>(kFormats[i].type)] = static_cast<std::uint8_t>(i);
  }
  return places;
}();

}  // namespace

std::span<const QFormat> q_formats() { return kFormats; }

std::optional<QType> q_type(std::uint32_t code) {
  if (code >= kCodes || kPlaces[code] == kFormats.size()) return std::nullopt;
  return static_cast<QType>(code);
}

QType parse_q_type(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string names;
  for (const QFormat& each : kFormats) {
    if (each.name == upper) return each.type;
    names += names.empty() ? "" : ", ";
    names += each.name;
  }
  throw Error(ErrorKind::BadArgument, "type", "there is no type '", text, "'; there are ", names);
}

const QFormat& format_of(QType type) {
  const auto code = static_cast<std::size_t>(type);
  if (code >= kCodes || kPlaces[code] == kFormats.size()) {
    throw Error(ErrorKind::BadArgument, "type", "no type has the code ", code);
  }
  return kFormats[kPlaces[code]];
}

std::ostream& operator<<(std::ostream& out, QType type) { return out << name(type); }

std::optional<DType> plain_dtype(QType type) {
  switch (type) {
    case QType::F32:
      return DType::F32;
    case QType::F16:
      return DType::F16;
    case QType::BF16:
      return DType::BF16;
    case QType::F64:
      return DType::F64;
    case QType::I16:
      return DType::I16;
    case QType::I32:
      return DType::I32;
    case QType::I64:
      return DType::I64;
    default:
      return std::nullopt;
  }
}

std::optional<QType> q_type_of(DType dtype) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const QFormat& each) {
    return plain_dtype(each.type) == dtype;
  });
  return found == kFormats.end() ? std::nullopt : std::optional(found->type);
}

std::size_t q_bytes(std::string_view where, QType type, std::int64_t rows, std::int64_t columns) {
  const QFormat& format = format_of(type);
  if (rows < 0 || columns < 0) {
    throw Error(ErrorKind::BadArgument, where, "sizes below zero: ", rows, " rows of ", columns);
  }
  if (columns % format.elements != 0) {
    throw Error(ErrorKind::BadArgument, where, format.name, " has blocks of ", format.elements,
                " elements, and rows of ", columns, " are not a whole number of them");
  }
  const auto blocks = static_cast<std::size_t>(columns / format.elements);
  std::size_t in_row = 0, all = 0;
  if (__builtin_mul_overflow(blocks, static_cast<std::size_t>(format.bytes), &in_row) ||
      __builtin_mul_overflow(in_row, static_cast<std::size_t>(rows), &all) ||
      all > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error(ErrorKind::BadArgument, where, rows, " rows of ", columns, " elements of ",
                format.name, " are more bytes than there can be");
  }
  return all;
}

}  // namespace tl
