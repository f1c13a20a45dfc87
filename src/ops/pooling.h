// The windows of a pooling, as both implementations are told of them.
#pragma once

#include <array>
#include <cstdint>

namespace tl::ops {

struct PoolingAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;  // 0: adaptive
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

struct Pooling {
  std::array<PoolingAxis, 2> axes;  // height, width
  bool count_include_pad = true;
};

}  // namespace tl::ops
