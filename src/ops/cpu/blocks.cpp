#include "ops/cpu/blocks.h"

#include <cstring>

#include "ops/cpu/loops.h"

namespace tl::cpu {

namespace {

template <class T>
void gather(const std::byte* from, std::int64_t step, std::int64_t n, std::byte* to) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  if (step == 1) {
    std::memcpy(y, x, static_cast<std::size_t>(n) * sizeof(T));
  } else if (step == 0) {
    std::fill_n(y, n, *x);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i * step];
  }
}

}  // namespace

void pack(std::size_t size, const std::byte* from, std::int64_t step, std::int64_t n,
          std::byte* to) {
  switch (size) {
    case 1:
      return gather<std::uint8_t>(from, step, n, to);
    case 2:
      return gather<std::uint16_t>(from, step, n, to);
    case 4:
      return gather<std::uint32_t>(from, step, n, to);
    default:
      return gather<std::uint64_t>(from, step, n, to);
  }
}

void load_block(DType dtype, const std::byte* from, std::int64_t step, std::int64_t n,
                std::byte* to) {
  const DType computed = compute_dtype(dtype);
  if (size_of(computed) == size_of(dtype)) return pack(size_of(dtype), from, step, n, to);
  if (step == 0) {
    cast_loop(dtype, computed)(from, to, 1);
    return gather<std::uint32_t>(to, 0, n, to);
  }
  if (step == 1) return cast_loop(dtype, computed)(from, to, n);
  // Filled by pack(). NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  alignas(64) std::array<std::byte, kBlock * 2> packed;
  pack(size_of(dtype), from, step, n, packed.data());
  cast_loop(dtype, computed)(packed.data(), to, n);
}

void store_block(DType dtype, const std::byte* from, std::int64_t n, std::byte* to) {
  cast_loop(compute_dtype(dtype), dtype)(from, to, n);
}

}  // namespace tl::cpu
