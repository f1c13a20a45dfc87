#include "tl/base/dtype.h"

#include <ostream>
#include <string>

namespace tl {

DType parse_dtype(std::string_view text) {
  for (const DType t : kDTypes) {
    if (name(t) == text) return t;
  }
  std::string known;
  for (const DType t : kDTypes) {
    if (!known.empty()) known += ", ";
    known += name(t);
  }
  throw Error(ErrorKind::BadArgument, "dtype", "\"", text, "\" is not one of ", known);
}

// A value outside the enum prints as a number: it is on its way into an error message.
std::ostream& operator<<(std::ostream& out, DType t) {
  const auto code = static_cast<unsigned>(t);
  if (code >= kDTypeCount) return out << "dtype code " << code;
  return out << name(t);
}

void detail::throw_not(std::string_view op, std::string_view wanted, DType got) {
  throw Error(ErrorKind::Unsupported, op, "needs ", wanted, ", got ", got);
}

}  // namespace tl
