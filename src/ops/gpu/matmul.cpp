#include "ops/gpu/matmul.h"

#include <algorithm>
#include <utility>

#include "kernels/gpu_matmul.h"
#include "ops/gpu/copy.h"
#include "ops/gpu/launcher.h"
#include "runtime/blas.h"
#include "tl/kernels/matmul.h"
#include "tl/ops/copy.h"
#include "tl/ops/matmul.h"

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

// ---- the vendor's library

using driver::BlasForm;
using driver::BlasOperands;

// How a library sees a row-major matrix: as the transposed one in column-major order, or, when
// columns are what is contiguous, as it is.
struct Seen {
  bool possible = false;
  bool transposed = false;  // columns are contiguous
  std::int64_t leading = 1;
};

Seen see(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
    return {true, false, rows == 1 ? columns : row};
  }
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
    return {true, true, columns == 1 ? rows : column};
  }
  return {};
}

// The operand itself, or a contiguous copy where no library could read it. Dimensions that are
// broadcast are not copied over and over.
Tensor readable(const Tensor& x) {
  const std::int64_t rows = x.dim(-2), columns = x.dim(-1);
  if (see(rows, columns, x.strides()[x.rank() - 2], x.strides()[x.rank() - 1]).possible) return x;
  Shape once = x.shape();
  Layout part = x.layout();
  for (int d = 0; d + 2 < x.rank(); ++d) {
    if (x.strides()[d] == 0) part = part.narrow(d, 0, 1);
  }
  return contiguous(x.with_layout(part)).broadcast_as(once);
}

std::uint16_t alignment_of(const void* p, std::int64_t stride, std::size_t size) {
  const auto bits = reinterpret_cast<std::uintptr_t>(p) |
                    static_cast<std::uintptr_t>(stride) * static_cast<std::uintptr_t>(size) | 256u;
  return static_cast<std::uint16_t>(bits & (~bits + 1));
}

// C = A * B, or C += A * B, for operands that readable() has seen. Row-major C is the library's
// column-major C', and C' = B' * A'.
bool run_vendor(Blas& blas, const Device& device, const ops::Product& p, Tensor& out,
                const std::byte* bias, bool accumulate) {
  const Seen a = see(p.m, p.k, p.a_row(), p.a_col());
  const Seen b = see(p.k, p.n, p.b_row(), p.b_col());
  if (!a.possible || !b.possible) return false;
  const Gemm g = describe(p);
  // One dimension of the batch goes to the library, the longest; the others are a loop.
  unsigned inner = 0;
  for (unsigned d = 1; d < g.batch.rank; ++d) {
    if (g.batch.dim[d].size > g.batch.dim[inner].size) inner = d;
  }
  const auto inner_size = static_cast<Index>(g.batch.dim[inner].size);
  constexpr Index kMostCalls = 256;
  const Index calls = g.batch.count / inner_size;
  if (calls > kMostCalls) return false;

  const Stream& stream = device.stream();
  const std::size_t in_size = size_of(p.a.dtype()), out_size = size_of(out.dtype());
  const std::byte* from_a = p.a.read(stream);
  const std::byte* from_b = p.b.read(stream);
  std::byte* to = accumulate ? out.update(stream) : out.write(stream);

  BlasForm form;
  form.in = p.a.dtype();
  form.out = out.dtype();
  form.tf32 = form.in == DType::F32 && allow_tf32(device);
  form.transpose_a = b.transposed;
  form.transpose_b = a.transposed;
  form.accumulate = accumulate;
  form.bias = bias != nullptr;
  form.m = p.n;
  form.n = p.m;
  form.k = p.k;
  form.lda = b.leading;
  form.ldb = a.leading;
  form.ldc = p.n;
  form.batch = inner_size;
  form.stride_a = inner_size == 1 ? 0 : g.batch.stride[1][inner];
  form.stride_b = inner_size == 1 ? 0 : g.batch.stride[0][inner];
  // Items of C lie in the order of the batch, innermost first.
  Index c_stride[kernels::kMaxRank];
  Index items = 1;
  for (unsigned d = 0; d < g.batch.rank; ++d) {
    c_stride[d] = items * p.m * p.n;
    items *= static_cast<Index>(g.batch.dim[d].size);
  }
  form.stride_c = inner_size == 1 ? 0 : c_stride[inner];

  for (Index call = 0; call < calls; ++call) {
    Index rest = call, at_a = 0, at_b = 0, at_c = 0;
    for (unsigned d = 0; d < g.batch.rank; ++d) {
      if (d == inner) continue;
      const auto size = static_cast<Index>(g.batch.dim[d].size);
      at_a += rest % size * g.batch.stride[0][d];
      at_b += rest % size * g.batch.stride[1][d];
      at_c += rest % size * c_stride[d];
      rest /= size;
    }
    BlasOperands at;
    at.a = from_b + static_cast<std::size_t>(at_b) * in_size;
    at.b = from_a + static_cast<std::size_t>(at_a) * in_size;
    at.c = to + static_cast<std::size_t>(at_c) * out_size;
    at.bias = bias;
    form.align_a = alignment_of(at.a, form.stride_a, in_size);
    form.align_b = alignment_of(at.b, form.stride_b, in_size);
    form.align_c = alignment_of(at.c, form.stride_c, out_size);
    // A refusal comes at the first call or not at all, but a later one would lose nothing: our
    // kernels write the whole result. Only what was added to C could not be taken back.
    if (!blas.multiply(device, form, at)) {
      if (call == 0 || !accumulate) return false;
      throw Error(ErrorKind::Device, "matmul", "the vendor's library failed half-way on ",
                  device.location());
    }
  }
  return true;
}

// Is a library worth asking?
bool suits_vendor(const ops::Product& p, DType dtype) {
  if (!is_float(dtype)) return false;
  if (std::min(p.m, p.n) <= kernels::kGemvRows) {
    // Reading the large operand once is all there is to it, and ours does when k is contiguous.
    const bool ours = p.m <= p.n ? p.b_row() == 1 || p.k == 1 : p.a_col() == 1 || p.k == 1;
    if (ours) return false;
  }
  constexpr std::int64_t kSmall = 32 * 32 * 32;
  return p.m * p.n * p.k >= kSmall;
}

bool try_vendor(const Device& device, const ops::Product& product, Tensor& out) {
  if (!suits_vendor(product, out.dtype())) return false;
  Blas* blas = Blas::of(device);
  if (blas == nullptr) return false;
  const Stream& stream = device.stream();
  ops::Product p = product;
  if (out.dtype() == DType::F8E4M3) {
    // f16 holds every f8; the sum comes as f32 and is rounded once, here.
    constexpr std::int64_t kWorthCasting = 256 * 256 * 256;
    if (p.bias || p.m * p.n * p.k < kWorthCasting) return false;
    p.a = to_dtype(p.a, DType::F16);
    p.b = to_dtype(p.b, DType::F16);
    Tensor wide = Tensor::uninitialized(out.shape(), DType::F32, device);
    if (!run_vendor(*blas, device, p, wide, nullptr, false)) return false;
    cast(wide, out);
    return true;
  }
  p.a = readable(p.a);
  p.b = readable(p.b);
  if (!p.bias) return run_vendor(*blas, device, p, out, nullptr, false);
  // A bias for each column may be the library's to add.
  const bool by_column = p.m == 1 || p.bias->strides()[0] == 0;
  if (by_column && (p.n == 1 || p.bias->strides()[1] == 1) &&
      run_vendor(*blas, device, p, out, p.bias->read(stream), false)) {
    return true;
  }
  // Else it is there before the product is added to it; the sum is still rounded once.
  copy(p.batch.empty() ? reshape(*p.bias, out.shape()) : p.bias->broadcast_as(out.shape()), out);
  return run_vendor(*blas, device, p, out, nullptr, true);
}

}  // namespace

void matmul(const ops::Product& product, Tensor& out) {
  const Device device = out.device();
  if (try_vendor(device, product, out)) return;
  const Stream& stream = device.stream();
  const Operands at{product.a.read(stream), product.b.read(stream),
                    product.bias ? product.bias->read(stream) : nullptr, out.write(stream)};
  run_own(device, out.dtype(), describe(product), at);
}

}  // namespace tl::gpu
