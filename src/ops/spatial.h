// What convolutions, pooling and resizing check alike: settings with one entry per spatial
// dimension, and sizes that stay below 2^31, so that positions fit the kernels' integers.
#pragma once

#include <cstdint>
#include <string_view>

#include "tl/base/error.h"
#include "tl/tensor/dims.h"

namespace tl::ops {

inline constexpr std::int64_t kMostPlaces = (std::int64_t{1} << 31) - 1;

// One entry for each of `axes` spatial dimensions, from a list that has as many or one for all.
inline Dims spread_over(std::string_view op, std::string_view what, const Dims& given, int axes,
                        std::int64_t least) {
  if (given.size() != 1 && given.size() != axes) {
    throw Error(ErrorKind::BadArgument, op, what, " ", given, " must have 1 or ", axes, " entries");
  }
  const Dims all = given.size() == axes ? given : Dims::repeated(axes, given[0]);
  for (const std::int64_t entry : all) {
    if (entry < least || entry > kMostPlaces) {
      throw Error(ErrorKind::BadArgument, op, what, " ", given, " must be from ", least, " to ",
                  kMostPlaces);
    }
  }
  return all;
}

inline void expect_places(std::string_view op, std::string_view what, const Shape& shape) {
  for (const std::int64_t size : shape) {
    if (size > kMostPlaces) {
      throw Error(ErrorKind::Unsupported, op, what, " ", shape, " has a dimension above ",
                  kMostPlaces);
    }
  }
}

}  // namespace tl::ops
