// A resize along one axis, as both implementations are told of it.
#pragma once

#include <array>
#include <cstdint>

namespace tl::ops {

struct ResizingAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  // Bilinear only: place i lies at scale * i + shift in the input, and not below 0.
  double scale = 1;
  double shift = 0;
};

using Resizing = std::array<ResizingAxis, 2>;  // height, width

}  // namespace tl::ops
