// Elementwise work on the CPU in blocks: whatever the layouts and dtypes, the loops that compute
// see contiguous elements of the type computed in.
//
// A block is some hundred elements that fit the first-level cache. An operand that is contiguous
// and of the right type is used where it lies; any other is first gathered into a small buffer,
// which also is where halves become floats. So there is one loop per op and type, and it
// vectorises.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/cpu/walk.h"
#include "tl/base/dtype.h"
#include "tl/tensor/layout.h"

namespace tl::cpu {

inline constexpr std::int64_t kBlock = 1024;     // elements
inline constexpr std::int64_t kDirectRun = 128;  // shorter runs are gathered into a block

// The type in which elements of a dtype are computed.
constexpr DType compute_dtype(DType t) {
  switch (t) {
    case DType::F8E4M3:
    case DType::F16:
    case DType::BF16:
      return DType::F32;
    case DType::Bool:
      return DType::U8;
    default:
      return t;
  }
}

// Copies n elements of `size` bytes that lie `step` apart to neighbouring places.
void pack(std::size_t size, const std::byte* from, std::int64_t step, std::int64_t n,
          std::byte* to);
// Copies n elements that lie `step` apart, as elements of compute_dtype(dtype).
void load_block(DType dtype, const std::byte* from, std::int64_t step, std::int64_t n,
                std::byte* to);
// The way back for contiguous elements: rounds to the dtype.
void store_block(DType dtype, const std::byte* from, std::int64_t n, std::byte* to);

struct BlockInput {
  const std::byte* data;
  DType dtype;
  const Dims* strides;  // of the result's shape
};

// Calls loop(inputs, out, n) for blocks that together cover `shape`; inputs[k] points to n elements
// of the compute dtype of input k. `out` is contiguous. The loop writes elements of
// compute_dtype(out_dtype).
template <int kInputs, class Loop>
void for_blocks(const Shape& shape, const std::array<BlockInput, kInputs>& inputs, std::byte* out,
                DType out_dtype, Loop&& loop) {
  constexpr auto kCount = static_cast<std::size_t>(kInputs);
  std::array<const Dims*, kCount> strides{};
  std::array<std::int64_t, kCount> size{}, computed{};
  std::array<bool, kCount> as_is{};
  for (std::size_t k = 0; k < kCount; ++k) {
    strides[k] = inputs[k].strides;
    size[k] = static_cast<std::int64_t>(size_of(inputs[k].dtype));
    computed[k] = static_cast<std::int64_t>(size_of(compute_dtype(inputs[k].dtype)));
    as_is[k] = size[k] == computed[k];
  }
  const auto out_size = static_cast<std::int64_t>(size_of(out_dtype));
  const bool out_as_is = size_of(compute_dtype(out_dtype)) == size_of(out_dtype);

  walk_ranges<kInputs>(shape, strides, [&](Walker<kInputs> walker) {
    // Too large to be cleared for nothing: what is read was written before.
    // NOLINTBEGIN(cppcoreguidelines-pro-type-member-init)
    alignas(64) std::array<std::array<std::byte, kBlock * 8>, kCount> buffer;
    alignas(64) std::array<std::byte, kBlock * 8> result;
    // NOLINTEND(cppcoreguidelines-pro-type-member-init)
    // What a buffer holds when it is one element over and over.
    std::array<const std::byte*, kCount> splat{};
    std::array<std::int64_t, kCount> splat_count{};

    std::array<const void*, kCount> from{};
    const auto finish = [&](std::int64_t position, std::int64_t n) {
      std::byte* to = out + position * out_size;
      if (out_as_is) {
        loop(from, static_cast<void*>(to), n);
      } else {
        loop(from, static_cast<void*>(result.data()), n);
        store_block(out_dtype, result.data(), n, to);
      }
    };
    while (!walker.done()) {
      const std::int64_t position = walker.position();
      if (walker.run() >= std::min(kDirectRun, walker.left())) {
        const std::int64_t n = std::min(walker.run(), kBlock);
        for (std::size_t k = 0; k < kCount; ++k) {
          const std::byte* at = inputs[k].data + walker.offset(static_cast<int>(k)) * size[k];
          const std::int64_t step = walker.step(static_cast<int>(k));
          from[k] = at;
          if (as_is[k] && (step == 1 || n == 1)) continue;
          from[k] = buffer[k].data();
          if (step == 0 && splat[k] == at && splat_count[k] >= n) continue;
          load_block(inputs[k].dtype, at, step, n, buffer[k].data());
          splat[k] = step == 0 ? at : nullptr;
          splat_count[k] = n;
        }
        walker.advance(n);
        finish(position, n);
        continue;
      }
      std::int64_t n = 0;
      while (n < kBlock && !walker.done()) {
        const std::int64_t part = std::min(walker.run(), kBlock - n);
        for (std::size_t k = 0; k < kCount; ++k) {
          load_block(inputs[k].dtype, inputs[k].data + walker.offset(static_cast<int>(k)) * size[k],
                     walker.step(static_cast<int>(k)), part, buffer[k].data() + n * computed[k]);
        }
        walker.advance(part);
        n += part;
      }
      for (std::size_t k = 0; k < kCount; ++k) {
        from[k] = buffer[k].data();
        splat[k] = nullptr;
      }
      finish(position, n);
    }
  });
}

}  // namespace tl::cpu
