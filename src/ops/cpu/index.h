// Reading an index of any index dtype.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "tl/base/error.h"
#include "tl/tensor/tensor.h"

namespace tl::cpu {

// "Nothing": what the largest value of an index dtype means.
inline constexpr std::int64_t kNothing = -1;

// Element i of contiguous indices: kNothing, or `ignored` as it is, or else below `size`; throws
// InvalidIndex for any other.
template <class Id>
std::int64_t checked_index(std::string_view op, const Id* ids, std::int64_t i, std::int64_t size) {
  if (ids[i] == std::numeric_limits<Id>::max()) return kNothing;
  const auto id = static_cast<std::int64_t>(ids[i]);
  if (id < 0 || id >= size) {
    throw Error(ErrorKind::InvalidIndex, op, "index ", id, " is outside a dimension of size ",
                size);
  }
  return id;
}

// Calls f<Id>() with the C++ type of an index dtype.
template <class F>
void visit_index(DType dtype, F&& f) {
  switch (dtype) {
    case DType::U8:
      return f.template operator()<std::uint8_t>();
    case DType::U32:
      return f.template operator()<std::uint32_t>();
    case DType::I16:
      return f.template operator()<std::int16_t>();
    case DType::I32:
      return f.template operator()<std::int32_t>();
    default:
      return f.template operator()<std::int64_t>();
  }
}

}  // namespace tl::cpu
