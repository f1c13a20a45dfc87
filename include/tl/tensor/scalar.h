// A number given to an op beside its tensors: kept as the caller wrote it, converted to the
// tensor's dtype by the op.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "tl/base/dtype.h"

namespace tl {

class Scalar {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr Scalar(T value) noexcept {  // NOLINT(google-explicit-constructor): numbers pass as is
    if constexpr (std::is_integral_v<T>) {
      real_ = static_cast<double>(value);
      integer_ = static_cast<std::int64_t>(value);
      // What 64 bits with a sign do not hold goes on as the real number closest to it.
      is_integer_ = std::is_signed_v<T> || integer_ >= 0;
    } else {
      real_ = static_cast<double>(value);
    }
  }
  template <class Format>
  constexpr Scalar(SmallFloat<Format> value) noexcept  // NOLINT(google-explicit-constructor)
      : real_(static_cast<double>(value)) {}

  constexpr bool is_integer() const noexcept { return is_integer_; }  // was it given as one?
  // Has it an integer value (2 or 2.0) that 64 bits hold?
  bool is_integral() const noexcept;
  constexpr double real() const noexcept { return real_; }
  std::int64_t integer() const;  // throws BadArgument when is_integral() is false

  // As an element: by the rules of convert() from the type it was given as.
  template <class T>
  constexpr T to() const {
    return is_integer_ ? convert<T>(integer_) : convert<T>(real_);
  }

 private:
  double real_ = 0;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
};

std::ostream& operator<<(std::ostream& out, const Scalar& scalar);

}  // namespace tl
