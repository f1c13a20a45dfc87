#include "ops/gpu/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ops/gpu/launcher.h"

namespace tl::gpu {

namespace {

// The element's bytes in the low end of an unsigned word of its size.
template <class F>
void with_word(std::size_t size, std::uint64_t bits, F&& f) {
  switch (size) {
    case 1:
      return f(static_cast<std::uint8_t>(bits));
    case 2:
      return f(static_cast<std::uint16_t>(bits));
    case 4:
      return f(static_cast<std::uint32_t>(bits));
    default:
      return f(bits);
  }
}

}  // namespace

namespace {

// A copy whose input has its neighbours along another dimension than the output has: matrices
// transposed through shared memory. False when the layout is not of that kind.
bool copy_transposed(const Device& device, std::size_t size, const std::byte* from, std::byte* to,
                     const Strided<1>& at) {
  constexpr Index kWorthIt = 16;  // smaller sides leave most of a tile unused
  if (at.rank < 2 || at.stride[0][0] == 1 || at.stride[0][0] == 0) return false;
  unsigned along = 0;  // the input's innermost dimension
  Index out_stride = 1, found_stride = 0;
  Index dims[Dims::kMax];
  Index steps[2][Dims::kMax];
  int rank = 0;  // of the batch, innermost first
  for (unsigned d = 0; d < at.rank; ++d) {
    const auto extent = static_cast<Index>(at.dim[d].size);
    if (d > 0 && at.stride[0][d] == 1 && along == 0) {
      along = d;
      found_stride = out_stride;
    } else if (d > 0) {
      dims[rank] = extent;
      steps[0][rank] = at.stride[0][d];
      steps[1][rank] = out_stride;
      ++rank;
    }
    out_stride *= extent;
  }
  if (along == 0) return false;
  const auto rows = static_cast<Index>(at.dim[along].size);
  const auto cols = static_cast<Index>(at.dim[0].size);
  if (rows < kWorthIt || cols < kWorthIt) return false;
  std::reverse(dims, dims + rank);
  std::reverse(steps[0], steps[0] + rank);
  std::reverse(steps[1], steps[1] + rank);
  const auto batch = kernels::make_strided<2>(rank, dims, {steps[0], steps[1]});
  const Index tile = size == 8 ? 32 : 64;
  const Index tiles = ((rows + tile - 1) / tile) * ((cols + tile - 1) / tile) * batch.count;
  const Index most = Index{device.properties().multiprocessors} * 64;
  const LaunchShape shape{.grid = {static_cast<std::uint64_t>(std::min(tiles, most))},
                          .block = {kThreads}};
  run(device, transpose_kernel(size), shape, from, to, rows, cols, at.stride[0][0], found_stride,
      batch);
  return true;
}

// Rows of neighbours in the input: the walk again in larger elements, up to 8 bytes, where all of
// it lies on their multiples. Gives their size.
std::size_t widen(std::size_t size, const std::byte* from, Strided<1>& at) {
  if (at.stride[0][0] != 1) return size;
  std::size_t each = 8 / size;
  while (each > 1) {
    const auto n = static_cast<Index>(each);
    bool fits = static_cast<Index>(at.dim[0].size) % n == 0 &&
                reinterpret_cast<std::uintptr_t>(from) % (size * each) == 0;
    for (unsigned d = 1; d < at.rank; ++d) fits = fits && at.stride[0][d] % n == 0;
    if (fits) break;
    each /= 2;
  }
  if (each <= 1) return size;
  const auto n = static_cast<Index>(each);
  Index dims[Dims::kMax];
  Index steps[Dims::kMax];
  const int rank = static_cast<int>(at.rank);
  for (int d = 0; d < rank; ++d) {
    dims[rank - 1 - d] = static_cast<Index>(at.dim[d].size) / (d == 0 ? n : 1);
    steps[rank - 1 - d] = d == 0 ? 1 : at.stride[0][d] / n;
  }
  at = kernels::make_strided<1>(rank, dims, {steps});
  return size * each;
}

}  // namespace

void copy(const Tensor& in, Tensor& out) {
  const Device device = out.device();
  const std::size_t size = size_of(in.dtype());
  const std::byte* from = in.read(device.stream());
  if (out.is_contiguous()) {
    std::byte* to = out.write(device.stream());
    auto at = walk<1>(in.shape(), {&in.layout()});
    if (at.contiguous != 0 || (at.rank == 2 && at.stride[0][0] == 1)) {
      // Rows at equal distances: the kernel that moves 16 bytes at a time.
      const auto cols = static_cast<Index>(at.dim[0].size);
      const Index rows = at.contiguous != 0 ? 1 : static_cast<Index>(at.dim[1].size);
      const Index stride = at.contiguous != 0 ? cols : at.stride[0][1];
      const int each = static_cast<int>(16 / size);
      const LaunchShape shape = rows == 1 ? elementwise_shape(in.count(), each)
                                          : resident_shape(device, in.count(), each);
      run(device, copy2d_kernel(size), shape, from, to, rows, cols, stride, cols);
      return;
    }
    if (copy_transposed(device, size, from, to, at)) return;
    const std::size_t wide = widen(size, from, at);
    run(device, copy_strided_kernel(wide), elementwise_shape(at.count, 1), from, to, at);
    return;
  }
  std::byte* to = out.update(device.stream());
  run(device, copy_between_kernel(size), elementwise_shape(in.count(), 1), from, to,
      walk<2>(in.shape(), {&in.layout(), &out.layout()}));
}

void cast(const Tensor& in, Tensor& out) {
  const Device device = out.device();
  const std::byte* from = in.read(device.stream());
  std::byte* to = out.write(device.stream());
  const auto at = walk<1>(in.shape(), {&in.layout()});
  const std::size_t wider = std::max(size_of(in.dtype()), size_of(out.dtype()));
  const int each = at.contiguous != 0 ? static_cast<int>(16 / wider) : 1;
  run(device, cast_kernel(in.dtype(), out.dtype()), elementwise_shape(in.count(), each), from, to,
      at);
}

void fill(Tensor& out, Scalar value) {
  const Device device = out.device();
  const std::size_t size = size_of(out.dtype());
  std::uint64_t bits = 0;
  visit_dtype("fill", out.dtype(), [&]<class T> {
    const T element = value.to<T>();
    std::memcpy(&bits, &element, sizeof(T));
  });
  std::byte* to = out.write(device.stream());
  with_word(size, bits, [&](auto word) {
    if (out.is_contiguous()) {
      run(device, fill_kernel(size), elementwise_shape(out.count(), static_cast<int>(16 / size)),
          to, word, static_cast<Index>(out.count()));
    } else {
      run(device, const_set_kernel(size), elementwise_shape(out.count(), 1), to, word,
          walk<1>(out.shape(), {&out.layout()}));
    }
  });
}

}  // namespace tl::gpu
