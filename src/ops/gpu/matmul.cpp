#include "ops/gpu/matmul.h"

#include <algorithm>
#include <utility>

#include "kernels/gpu_matmul.h"
#include "ops/gpu/launcher.h"
#include "tl/kernels/matmul.h"

namespace tl::gpu {

namespace {

using kernels::Gemm;

// A dimension of size 1 has no stride worth looking at: the one given serves best.
Index stride_or(std::int64_t size, std::int64_t stride, std::int64_t best) {
  return size == 1 ? best : stride;
}

bool is_aligned(const void* p, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}

struct Operands {
  const std::byte* a;
  const std::byte* b;
  const std::byte* bias;
  std::byte* c;
};

Gemm describe(const ops::Product& p) {
  Gemm g = {};
  g.m = p.m;
  g.n = p.n;
  g.k = p.k;
  g.a_row = p.a_row();
  g.a_col = stride_or(p.k, p.a_col(), 1);
  g.b_row = stride_or(p.k, p.b_row(), 1);
  g.b_col = p.b_col();
  g.c_row = p.n;
  g.c_col = 1;
  g.c_batch = p.m * p.n;
  if (p.bias) {
    g.bias_row = p.bias->strides()[0];
    g.bias_col = p.bias->strides()[1];
  }
  const Layout a(p.batch, p.batch_strides(p.a), 0);
  const Layout b(p.batch, p.batch_strides(p.b), 0);
  g.batch = walk<2>(p.batch, {&a, &b});
  return g;
}

// The same product seen as C' = B' * A', each of them transposed.
void transpose(Gemm& g, Operands& at) {
  std::swap(g.m, g.n);
  std::swap(at.a, at.b);
  std::swap(g.a_row, g.b_col);
  std::swap(g.a_col, g.b_row);
  std::swap(g.c_row, g.c_col);
  std::swap(g.bias_row, g.bias_col);
  for (int d = 0; d < kernels::kMaxRank; ++d) {
    std::swap(g.batch.stride[0][d], g.batch.stride[1][d]);
  }
}

// May columns of B and rows of A be read sixteen bytes at a time? (The kernel reads eight of f8 and
// u8.)
bool reads_vectors(const Gemm& g, const Operands& at, std::size_t size) {
  const auto each = static_cast<Index>(size == 1 ? 8 : 16 / size);
  if (g.a_col != 1 || g.b_row != 1 || g.k < each) return false;
  if (!is_aligned(at.a, size * static_cast<std::size_t>(each)) ||
      !is_aligned(at.b, size * static_cast<std::size_t>(each))) {
    return false;
  }
  Index strides = (g.m > 1 ? g.a_row : 0) | (g.n > 1 ? g.b_col : 0);
  if (g.batch.count > 1) {
    for (unsigned d = 0; d < g.batch.rank; ++d) {
      strides |= g.batch.stride[0][d] | g.batch.stride[1][d];
    }
  }
  return strides % each == 0;
}

void launch_all(const Device& device, KernelId kernel, Gemm g, const Operands& at, Index blocks) {
  constexpr Index kMostBlocks = 1 << 23;  // below 2^32 threads
  constexpr Index kMostItems = 65535;
  for (g.first_item = 0; g.first_item < g.batch.count; g.first_item += kMostItems) {
    for (g.first = 0; g.first < blocks; g.first += kMostBlocks) {
      const auto x = static_cast<std::uint64_t>(std::min(kMostBlocks, blocks - g.first));
      const auto y = static_cast<std::uint64_t>(std::min(kMostItems, g.batch.count - g.first_item));
      run(device, kernel, {.grid = {x, y}, .block = {kThreads}}, at.a, at.b, at.bias, at.c, g);
    }
  }
}

Index blocks_of(Index count, Index each) { return (count + each - 1) / each; }

void run_own(const Device& device, DType dtype, Gemm g, Operands at) {
  if (g.n < g.m && g.n <= kernels::kGemvRows) transpose(g, at);
  if (g.m <= kernels::kGemvRows) {
    if (g.b_row == 1) {
      g.vector = reads_vectors(g, at, size_of(dtype)) ? 1 : 0;
      const Index warps = Index{kThreads} / device.warp_width();
      launch_all(device, matmul_kernel(MatmulFamily::Gemv, dtype), g, at, blocks_of(g.n, warps));
    } else {
      launch_all(device, matmul_kernel(MatmulFamily::Gevm, dtype), g, at,
                 blocks_of(g.n, kernels::kGevmColumns));
    }
    return;
  }
  // Large tiles read less of A and B, when there are enough of them to keep the device busy.
  const auto tiles = [&](Index side) { return blocks_of(g.m, side) * blocks_of(g.n, side); };
  const bool wide = has_wide_gemm(dtype) && tiles(kernels::kGemmWideTile) * g.batch.count >=
                                                device.properties().multiprocessors;
  launch_all(device, matmul_kernel(wide ? MatmulFamily::GemmWide : MatmulFamily::Gemm, dtype), g,
             at, tiles(wide ? kernels::kGemmWideTile : kernels::kGemmTile));
}

}  // namespace

void matmul(const ops::Product& product, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Operands at{product.a.read(stream), product.b.read(stream),
                    product.bias ? product.bias->read(stream) : nullptr, out.write(stream)};
  run_own(device, out.dtype(), describe(product), at);
}

}  // namespace tl::gpu
