#include "tl/tensor/scalar.h"

#include <cmath>
#include <ostream>

#include "tl/base/error.h"

namespace tl {

bool Scalar::is_integral() const noexcept {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  return is_integer_ || (real_ >= -kEnd && real_ < kEnd && std::trunc(real_) == real_);
}

std::int64_t Scalar::integer() const {
  if (is_integer_) return integer_;
  if (!is_integral()) {
    throw Error(ErrorKind::BadArgument, "scalar", real_, " is not an integer of 64 bits");
  }
  return static_cast<std::int64_t>(real_);
}

std::ostream& operator<<(std::ostream& out, const Scalar& scalar) {
  return scalar.is_integer() ? out << scalar.integer() : out << scalar.real();
}

}  // namespace tl
