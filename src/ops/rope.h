// What both devices are told about a rotation.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tl/tensor/tensor.h"

namespace tl::ops {

// `in` and `out` are both seen as (b, h, t, d), whatever their strides.
struct RopeArguments {
  std::string_view op;
  Layout in;
  Layout out;
  std::int64_t rotated = 0;  // elements of each head, even
  bool interleaved = false;
  const Tensor* cosines = nullptr;  // contiguous (rows, rotated / 2)
  const Tensor* sines = nullptr;
  std::int64_t batch_rows = 0;        // rows of the tables between batches; 0: the same for all
  const Tensor* positions = nullptr;  // contiguous (t) or (b, t); may be null
  bool back = false;                  // turn the other way
};

enum class RopeForm : std::uint8_t { Halves, Interleaved, Thd };  // numbers that histories hold

// The gradient of what was turned, from that of the result: turned back by the same angles, in one
// pass. It has no history of its own.
Tensor rope_gradient(const Tensor& g, const Tensor& cosines, const Tensor& sines,
                     const std::optional<Tensor>& positions, RopeForm form);

}  // namespace tl::ops
