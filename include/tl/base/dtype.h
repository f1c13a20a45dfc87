// The eleven element types a tensor can have, the C++ types behind them, and conversion between any
// two of them by the rules of tl/base/float_bits.h (the same rules, and bits, as on a GPU).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string_view>
#include <type_traits>

#include "tl/base/error.h"
#include "tl/base/float_bits.h"

namespace tl {

// ---- the types

enum class DType : std::uint8_t { U8, U32, I16, I32, I64, F8E4M3, F16, BF16, F32, F64, Bool };

inline constexpr int kDTypeCount = 11;

inline constexpr std::array<DType, kDTypeCount> kDTypes = {
    DType::U8,  DType::U32,  DType::I16, DType::I32, DType::I64, DType::F8E4M3,
    DType::F16, DType::BF16, DType::F32, DType::F64, DType::Bool};

namespace detail {

enum class DTypeClass : std::uint8_t { Int, Float, Bool };

struct DTypeRow {
  std::string_view name;
  std::uint8_t bytes;
  DTypeClass kind;
};

inline constexpr std::array<DTypeRow, kDTypeCount> kDTypeTable = {{
    {"u8", 1, DTypeClass::Int},
    {"u32", 4, DTypeClass::Int},
    {"i16", 2, DTypeClass::Int},
    {"i32", 4, DTypeClass::Int},
    {"i64", 8, DTypeClass::Int},
    {"f8e4m3", 1, DTypeClass::Float},
    {"f16", 2, DTypeClass::Float},
    {"bf16", 2, DTypeClass::Float},
    {"f32", 4, DTypeClass::Float},
    {"f64", 8, DTypeClass::Float},
    {"bool", 1, DTypeClass::Bool},
}};

constexpr const DTypeRow& row(DType t) { return kDTypeTable[static_cast<std::size_t>(t)]; }

}  // namespace detail

constexpr std::string_view name(DType t) { return detail::row(t).name; }
constexpr std::size_t size_of(DType t) { return detail::row(t).bytes; }  // bytes per element
constexpr std::size_t bits_of(DType t) { return 8 * size_of(t); }
constexpr bool is_float(DType t) { return detail::row(t).kind == detail::DTypeClass::Float; }
constexpr bool is_int(DType t) { return detail::row(t).kind == detail::DTypeClass::Int; }

// Exactly one of the names above, in lower case; anything else throws BadArgument and lists them.
DType parse_dtype(std::string_view text);

std::ostream& operator<<(std::ostream& out, DType t);

// ---- C++ types for the small floats

namespace detail {

struct F16Format {
  using Bits = std::uint16_t;
  static constexpr float to_f32(Bits b) { return float_bits::f16_to_f32(b); }
  static constexpr Bits from_f32(float x) { return float_bits::f32_to_f16(x); }
  static constexpr int kMantissaBits = 10;
  static constexpr int kMaxExponent = 16;  // as in numeric_limits: max is below 2^16
  static constexpr int kMinExponent = -13;
  static constexpr Bits kMax = 0x7bff, kInfinity = 0x7c00, kNaN = 0x7e00;
};

struct BF16Format {
  using Bits = std::uint16_t;
  static constexpr float to_f32(Bits b) { return float_bits::bf16_to_f32(b); }
  static constexpr Bits from_f32(float x) { return float_bits::f32_to_bf16(x); }
  static constexpr int kMantissaBits = 7;
  static constexpr int kMaxExponent = 128;
  static constexpr int kMinExponent = -125;
  static constexpr Bits kMax = 0x7f7f, kInfinity = 0x7f80, kNaN = 0x7fc0;
};

struct F8E4M3Format {
  using Bits = std::uint8_t;
  static constexpr float to_f32(Bits b) { return float_bits::f8e4m3_to_f32(b); }
  static constexpr Bits from_f32(float x) { return float_bits::f32_to_f8e4m3(x); }
  static constexpr int kMantissaBits = 3;
  static constexpr int kMaxExponent = 9;
  static constexpr int kMinExponent = -5;
  static constexpr Bits kMax = 0x7e, kInfinity = 0, kNaN = 0x7f;  // there is no infinity
};

}  // namespace detail

// A number stored in fewer bits than the CPU computes with. It converts (explicitly) from any
// number with a single rounding and to float and double exactly; arithmetic is done in those.
// Comparison is by value: -0 equals 0, NaN equals nothing.
template <class Format>
class SmallFloat {
 public:
  using Bits = typename Format::Bits;

  SmallFloat() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr explicit SmallFloat(T x) : bits_(Format::from_f32(float_bits::round_ready(x))) {}

  static constexpr SmallFloat from_bits(Bits bits) {
    SmallFloat result{};
    result.bits_ = bits;
    return result;
  }
  constexpr Bits bits() const { return bits_; }
  constexpr explicit operator float() const { return Format::to_f32(bits_); }
  constexpr explicit operator double() const { return Format::to_f32(bits_); }

  friend constexpr bool operator==(SmallFloat a, SmallFloat b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
  friend constexpr std::partial_ordering operator<=>(SmallFloat a, SmallFloat b) {
    return static_cast<float>(a) <=> static_cast<float>(b);
  }

 private:
  Bits bits_;
};

using half = SmallFloat<detail::F16Format>;
using bfloat16 = SmallFloat<detail::BF16Format>;
using float8_e4m3 = SmallFloat<detail::F8E4M3Format>;

static_assert(std::is_trivial_v<half> && sizeof(half) == 2);
static_assert(std::is_trivial_v<bfloat16> && sizeof(bfloat16) == 2);
static_assert(std::is_trivial_v<float8_e4m3> && sizeof(float8_e4m3) == 1);

template <class T>
inline constexpr bool kIsSmallFloat = false;
template <class Format>
inline constexpr bool kIsSmallFloat<SmallFloat<Format>> = true;

// ---- from a C++ type to its dtype, and back

namespace detail {

template <DType kType>
struct DTypeConstant {
  static constexpr DType value = kType;
};

template <class T>
struct DTypeOf;  // no dtype for T
template <>
struct DTypeOf<std::uint8_t> : DTypeConstant<DType::U8> {};
template <>
struct DTypeOf<std::uint32_t> : DTypeConstant<DType::U32> {};
template <>
struct DTypeOf<std::int16_t> : DTypeConstant<DType::I16> {};
template <>
struct DTypeOf<std::int32_t> : DTypeConstant<DType::I32> {};
template <>
struct DTypeOf<std::int64_t> : DTypeConstant<DType::I64> {};
template <>
struct DTypeOf<float8_e4m3> : DTypeConstant<DType::F8E4M3> {};
template <>
struct DTypeOf<half> : DTypeConstant<DType::F16> {};
template <>
struct DTypeOf<bfloat16> : DTypeConstant<DType::BF16> {};
template <>
struct DTypeOf<float> : DTypeConstant<DType::F32> {};
template <>
struct DTypeOf<double> : DTypeConstant<DType::F64> {};
template <>
struct DTypeOf<bool> : DTypeConstant<DType::Bool> {};

[[noreturn]] void throw_not(std::string_view op, std::string_view wanted, DType got);

}  // namespace detail

template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

// Calls f<T>() with the C++ type behind `t`: visit_dtype("fill", t, [&]<class T> { ... }).
template <class F>
decltype(auto) visit_dtype(std::string_view op, DType t, F&& f) {
  switch (t) {
    case DType::U8:
      return f.template operator()<std::uint8_t>();
    case DType::U32:
      return f.template operator()<std::uint32_t>();
    case DType::I16:
      return f.template operator()<std::int16_t>();
    case DType::I32:
      return f.template operator()<std::int32_t>();
    case DType::I64:
      return f.template operator()<std::int64_t>();
    case DType::F8E4M3:
      return f.template operator()<float8_e4m3>();
    case DType::F16:
      return f.template operator()<half>();
    case DType::BF16:
      return f.template operator()<bfloat16>();
    case DType::F32:
      return f.template operator()<float>();
    case DType::F64:
      return f.template operator()<double>();
    case DType::Bool:
      return f.template operator()<bool>();
  }
  detail::throw_not(op, "a known dtype", t);
}

// The same for floats of every width; throws Unsupported for the others.
template <class F>
decltype(auto) visit_float(std::string_view op, DType t, F&& f) {
  switch (t) {
    case DType::F8E4M3:
      return f.template operator()<float8_e4m3>();
    case DType::F16:
      return f.template operator()<half>();
    case DType::BF16:
      return f.template operator()<bfloat16>();
    case DType::F32:
      return f.template operator()<float>();
    case DType::F64:
      return f.template operator()<double>();
    default:
      detail::throw_not(op, "a float tensor", t);
  }
}

// ---- conversion

// Any of the eleven types to any other: rounds once, saturates, wraps or truncates as float_bits.h
// says. To the type itself it copies the bits.
template <class To, class From>
constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsSmallFloat<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (kIsSmallFloat<To>) {
    return To(x);
  } else {
    return float_bits::convert_number<To>(x);
  }
}

}  // namespace tl

// ---- std::numeric_limits

template <class Format>
class std::numeric_limits<tl::SmallFloat<Format>> {
  using T = tl::SmallFloat<Format>;
  using Bits = typename T::Bits;

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool has_infinity = Format::kInfinity != 0;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = false;
  static constexpr bool is_iec559 = has_infinity;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2;
  static constexpr int digits = Format::kMantissaBits + 1;
  static constexpr int digits10 = Format::kMantissaBits * 30103 / 100000;
  static constexpr int max_digits10 = 2 + digits * 30103 / 100000;
  static constexpr int min_exponent = Format::kMinExponent;
  static constexpr int max_exponent = Format::kMaxExponent;
  static constexpr int min_exponent10 = (min_exponent - 1) * 30103 / 100000;
  static constexpr int max_exponent10 = (max_exponent - 1) * 30103 / 100000;

  static constexpr T min() noexcept { return T::from_bits(Bits{1} << Format::kMantissaBits); }
  static constexpr T max() noexcept { return T::from_bits(Format::kMax); }
  static constexpr T lowest() noexcept {
    return T::from_bits(Format::kMax | Bits{1} << (8 * sizeof(Bits) - 1));
  }
  static constexpr T epsilon() noexcept { return T(1.0f / (1 << Format::kMantissaBits)); }
  static constexpr T round_error() noexcept { return T(0.5f); }
  static constexpr T infinity() noexcept { return T::from_bits(Format::kInfinity); }
  static constexpr T quiet_NaN() noexcept { return T::from_bits(Format::kNaN); }
  static constexpr T signaling_NaN() noexcept { return T::from_bits(0); }
  static constexpr T denorm_min() noexcept { return T::from_bits(1); }
};
