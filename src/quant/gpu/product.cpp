#include "quant/gpu/product.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "kernels/gpu_quant.h"
#include "ops/gpu/launcher.h"
#include "quant/gpu/blocks.h"
#include "runtime/blas.h"
#include "tl/base/error.h"
#include "tl/kernels/quantized.h"
#include "tl/ops/binary.h"
#include "tl/ops/copy.h"

namespace tl::gpu {

namespace {

using kernels::QuantProduct;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

bool has_codes(QType type) {
  return place_in(kernels::kProductFormats, type) < kernels::kProductFormats.size();
}

// Kernels read words: every block lies as well as the first one does when that has this alignment.
bool is_aligned(QType type, const RawMemory& blocks, const Device& device) {
  const auto address = reinterpret_cast<std::uintptr_t>(blocks.data(device.stream()));
  return address % std::gcd<std::uintptr_t>(16, format_of(type).bytes) == 0;
}

// Every target of ours has matrix units but two generations of AMD's.
bool has_matrix_units(const Device& device) {
  const std::string_view name = device.architecture();
  return !name.starts_with("gfx906") && !name.starts_with("gfx10");
}

// Whether four warps have a matrix unit together, and a block the memory for it.
bool has_group_units(const Device& device) {
  return device.architecture() == "sm_90" && device.is_cuda();
}

// Whether it brings memory to shared memory by itself (kDelivers in kernels/gpu_together.h).
bool brings_memory(const Device& device) {
  return device.architecture().starts_with("sm_") && device.properties().major >= 9 &&
         device.warp_width() == 32;
}

// Whether copies to shared memory go on beside a warp's work (copy_aside() in kernels/gpu_mma.h).
bool copies_aside(const Device& device) {
  return device.architecture().starts_with("sm_") && device.properties().major >= 8;
}

constexpr std::int64_t kRowLongest = 16384;  // columns for row kernels of QUANT_ROW

QuantProduct describe(QType type, const ProductShape& shape, DType y) {
  QuantProduct p = {};
  p.n = shape.n;
  p.k = shape.k;
  p.m = shape.m;
  p.row_bytes =
      shape.k / format_of(type).elements * static_cast<std::int64_t>(format_of(type).bytes);
  p.y_type = static_cast<int>(decoded_place(y));
  p.parts = 1;
  return p;
}

// How many warps share a row of the weight: more where there are few rows, so that the device has
// enough reads under way. It does not depend on m, so that a row of x gives the same bits whatever
// comes with it (but for kernels of pieces, see takes_pieces()).
int parts_of(const Device& device, const ProductShape& shape) {
  constexpr std::int64_t kWarpsWanted = 16;  // of each multiprocessor
  const std::int64_t wanted = device.properties().multiprocessors * kWarpsWanted;
  const int most = kernels::kQuantVectorThreads / device.warp_width();
  int parts = 1;
  while (parts < most && shape.n * parts < wanted &&
         shape.k / 32 >= std::int64_t{2} * parts * device.warp_width()) {
    parts *= 2;
  }
  return parts;
}

// Rows of x as bytes, `rows` of them, of which those past m are never written.
struct Packed {
  Tensor bytes, scales;
  const std::uint8_t* read_bytes(const Stream& stream) const {
    return reinterpret_cast<const std::uint8_t*>(bytes.read(stream));
  }
  const kernels::QuantScale* read_scales(const Stream& stream) const {
    return reinterpret_cast<const kernels::QuantScale*>(scales.read(stream));
  }
};
Packed pack(QuantProduct& p, const Tensor& x, std::int64_t rows) {
  const Device device = x.device();
  const Stream& stream = device.stream();
  p.x_row = round_up(p.k, kernels::kQuantRowStep);
  Packed packed{Tensor::uninitialized({rows, p.x_row}, DType::U8, device),
                Tensor::uninitialized({rows, p.x_row / 32, 4}, DType::F32, device)};
  run(device, pack_kernel(x.dtype()),
      {.grid = {static_cast<std::uint64_t>(p.x_row / (4 * kernels::kQuantVectorThreads)),
                static_cast<std::uint64_t>(p.m)},
       .block = {kernels::kQuantVectorThreads}},
      x.read(stream), reinterpret_cast<std::uint8_t*>(packed.bytes.write(stream)),
      reinterpret_cast<kernels::QuantScale*>(packed.scales.write(stream)), p);
  return packed;
}

// Whether a warp of QUANT_ROW has four rows of the weight and more when each multiprocessor has one
// block.
bool has_many_rows(const Device& device, const ProductShape& shape) {
  return shape.n >= std::int64_t{4} * device.properties().multiprocessors *
                        kernels::kQuantRowThreads / device.warp_width();
}

// Whether one row of x is for the kernels of one launch: where those of several rows cut none of
// the weight's into parts, so that the bits are the same, and each block can keep x. Formats whose
// groups take many registers gain from it only while a warp has a row or two
// (docs/measurements/0005).
bool takes_row(const Device& device, QType type, const ProductShape& shape) {
  const bool large = type == QType::Q3_K || type == QType::Q5_K || type == QType::Q6_K;
  const std::int64_t warps = std::int64_t{device.properties().multiprocessors} *
                             kernels::kQuantRowBlocks * kernels::kQuantRowThreads /
                             device.warp_width();
  return shape.m == 1 && shape.k <= kRowLongest && parts_of(device, shape) == 1 &&
         (!large || shape.n <= 2 * warps);
}

void vector_product(QType type, const RawMemory& blocks, QuantProduct p, const ProductShape& shape,
                    const Tensor& x, Tensor& y) {
  const Device device = y.device();
  const Stream& stream = device.stream();
  const auto kind = static_cast<unsigned>(
      std::lower_bound(kernels::kProductVectors.begin(), kernels::kProductVectors.end(), shape.m) -
      kernels::kProductVectors.begin());
  // As many rows as the kernel reads; those that are not there are never written, nor their sums.
  const Packed packed = pack(p, x, kernels::kProductVectors[kind]);
  p.parts = parts_of(device, shape);
  const std::int64_t rows_of_block =
      kernels::kQuantVectorThreads / device.warp_width() / p.parts *
      (kind == 0 ? kernels::kQuantVectorRows<1> : kernels::kQuantVectorRows<2>);
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(stream));
  run(device, dot_kernel(place_in(kernels::kProductFormats, type), kind),
      {.grid = {static_cast<std::uint64_t>(round_up(p.n, rows_of_block) / rows_of_block)},
       .block = {kernels::kQuantVectorThreads}},
      from, packed.read_bytes(stream), packed.read_scales(stream), y.write(stream), p);
}

// `bytes` of shared memory where the device brings memory there by itself and a block may have as
// much, else none.
std::uint32_t shared_for_slots(const Device& device, KernelId id, int bytes) {
  constexpr std::uint64_t kBeside = 2048;  // what a kernel has in any case
  const auto wanted = static_cast<std::uint32_t>(bytes);
  if (!brings_memory(device) ||
      device.properties().shared_memory_per_block_optin < kBeside + wanted ||
      !allow_shared_bytes(device, device.modules().function(module_spec(id.module), id.index),
                          wanted)) {
    return 0;
  }
  return wanted;
}

// Blocks of QUANT_ROW that have some rows of the weight each, `at_once` of them at a time.
std::int64_t deal_rows(QuantProduct& p, const Device& device, int blocks_each,
                       std::int64_t at_once) {
  const std::int64_t grid =
      std::min(std::int64_t{device.properties().multiprocessors} * blocks_each,
               round_up(p.n, at_once) / at_once);
  p.x_row = p.n / grid;
  p.parts = static_cast<int>(p.n % grid);
  return grid;
}

void row_product(QType type, const RawMemory& blocks, QuantProduct p, const Tensor& x, Tensor& y) {
  const Device device = y.device();
  const Stream& stream = device.stream();
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(stream));
  // One block leaves room for the next product's to come, which pays once a warp has several rows
  // and few registers hold what is on its way (docs/measurements/0005).
  const std::int64_t warps = kernels::kQuantRowThreads / device.warp_width();
  const bool one = type == QType::Q4_0 && has_many_rows(device, {p.n, p.k, p.m});
  const int blocks_each = one ? 1 : kernels::kQuantRowBlocks;
  const std::int64_t grid = deal_rows(p, device, blocks_each, warps);
  run(device, row_kernel(place_in(kernels::kProductFormats, type)),
      {.grid = {static_cast<std::uint64_t>(grid)},
       .block = {kernels::kQuantRowThreads},
       .shared_bytes =
           static_cast<std::uint32_t>(kernels::row_vector_bytes(static_cast<int>(p.k / 32)))},
      from, x.read(stream), y.write(stream), p);
}

// How the kernels of pieces are launched; no threads where they cannot be.
struct PieceLaunch {
  QuantProduct p;
  std::int64_t grid;
  std::uint32_t threads, shared_bytes;
};
PieceLaunch piece_launch(const Device& device, QType type, const RawMemory& blocks,
                         QuantProduct p) {
  PieceLaunch none = {};
  const unsigned place = place_in(kernels::kPieceFormats, type);
  const auto address = reinterpret_cast<std::uintptr_t>(blocks.data(device.stream()));
  // Rows are copied in sixteens, the whole of which is the weight's.
  if (place >= kernels::kPieceFormats.size() || p.m != 1 || address % 16 != 0 ||
      p.n * p.row_bytes % 16 != 0) {
    return none;
  }
  const int warp = device.warp_width();
  const int across = kernels::piece_warps(p.k, warp);
  const auto block_bytes = static_cast<int>(format_of(type).bytes);
  const int slices = kernels::slice_bytes(warp, block_bytes);
  const int blocks_each = kernels::comes_aside(block_bytes) ? 1 : kernels::kQuantRowBlocks;
  const std::uint64_t limit = std::max(device.properties().shared_memory_per_block,
                                       device.properties().shared_memory_per_block_optin);
  for (int sets = kernels::kQuantRowThreads / warp / across; sets > 0; --sets) {
    const int threads = sets * across * warp;
    PieceLaunch launch{p, 0, static_cast<std::uint32_t>(threads), 0};
    launch.grid =
        deal_rows(launch.p, device, blocks_each, std::int64_t{kernels::kQuantPieceRows} * sets);
    const std::int64_t rows = launch.p.x_row + (launch.p.parts > 0 ? 1 : 0);
    const std::int64_t bytes = p.k / 32 * kernels::row_vector_bytes(1) +
                               std::int64_t{threads} / warp * slices +
                               rows * across * static_cast<std::int64_t>(sizeof(float));
    if (bytes > static_cast<std::int64_t>(limit)) continue;
    launch.shared_bytes = static_cast<std::uint32_t>(bytes);
    const KernelId id = piece_kernel(kernels::kFirstPieceFormat + place);
    if (bytes <= static_cast<std::int64_t>(device.properties().shared_memory_per_block) ||
        allow_shared_bytes(device, device.modules().function(module_spec(id.module), id.index),
                           launch.shared_bytes)) {
      return launch;
    }
  }
  return none;
}

// Whether one row of x is for them: where copies go on aside, there is room for nearly as many
// warps as there may be and work for most of their lanes and for every multiprocessor, and no other
// kernel would cut the weight's rows for more. Where nothing comes aside they begin later and are
// quicker afterwards (docs/measurements/0005).
bool takes_pieces(const Device& device, QType type, const RawMemory& blocks,
                  const ProductShape& shape) {
  if (shape.m != 1 || !copies_aside(device) || parts_of(device, shape) != 1) return false;
  const bool aside = kernels::comes_aside(static_cast<int>(format_of(type).bytes));
  if (!aside && !has_many_rows(device, shape)) return false;
  const int lanes = kernels::piece_warps(shape.k, device.warp_width()) * device.warp_width();
  if (shape.k / 64 < lanes * 3 / 4) return false;
  const PieceLaunch launch = piece_launch(device, type, blocks, describe(type, shape, DType::F32));
  return launch.threads >= kernels::kQuantRowThreads * 3 / 4 &&
         launch.grid >= device.properties().multiprocessors;
}

void piece_product(QType type, const RawMemory& blocks, const PieceLaunch& launch, const Tensor& x,
                   Tensor& y) {
  const Device device = y.device();
  const Stream& stream = device.stream();
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(stream));
  run(device, piece_kernel(place_in(kernels::kProductFormats, type)),
      {.grid = {static_cast<std::uint64_t>(launch.grid)},
       .block = {launch.threads},
       .shared_bytes = launch.shared_bytes},
      from, x.read(stream), y.write(stream), launch.p);
}

void decoded_product(QType type, const RawMemory& blocks, const QuantProduct& p, const Tensor& x,
                     Tensor& y) {
  const Device device = y.device();
  const Stream& stream = device.stream();
  const Tensor wide = to_dtype(x, DType::F32);
  const std::int64_t warps = kernels::kQuantVectorThreads / device.warp_width();
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(stream));
  run(device, decoded_kernel(place_in(kernels::kBlockFormats, type)),
      {.grid = {static_cast<std::uint64_t>(round_up(p.n, warps) / warps),
                static_cast<std::uint64_t>(p.m)},
       .block = {kernels::kQuantVectorThreads}},
      from, wide.read<float>(stream), y.write(stream), p);
}

// Rows of x as f16 with `step` elements from one to the next, and what each is to be multiplied by.
struct Halves {
  Tensor rows, scales;
};
Halves halve(QuantProduct& p, const Tensor& x, std::int64_t step) {
  const Device device = x.device();
  const Stream& stream = device.stream();
  p.x_row = round_up(p.k, step);
  Halves halves{Tensor::uninitialized({p.m, p.x_row}, DType::F16, device),
                Tensor::uninitialized({p.m, 1}, DType::F32, device)};
  run(device, halve_kernel(x.dtype()),
      {.grid = {static_cast<std::uint64_t>(p.m)}, .block = {kernels::kQuantVectorThreads}},
      x.read(stream), halves.rows.write(stream), halves.scales.write<float>(stream), p);
  return halves;
}

// Bytes of a row in a chunk of QUANT_GROUP's columns.
int chunk_bytes(QType type) {
  const QFormat& format = format_of(type);
  return static_cast<int>(kernels::kQuantGroupChunk / format.elements *
                          static_cast<std::int64_t>(format.bytes));
}

void group_product(QType type, const RawMemory& blocks, QuantProduct p, const Tensor& x,
                   Tensor& y) {
  const Device device = y.device();
  const Stream& stream = device.stream();
  const KernelId id = group_kernel(place_in(kernels::kProductFormats, type));
  const std::uint32_t shared =
      shared_for_slots(device, id, kernels::group_shared_bytes(chunk_bytes(type)));
  p.parts = shared == 0 ? 0 : 1;
  p.x_row = round_up(p.k, kernels::kQuantGroupChunk);
  const std::int64_t across = round_up(p.m, kernels::kQuantGroup.tokens);
  Tensor rows = Tensor::uninitialized({across, p.x_row}, DType::F16, device);
  Tensor scales = Tensor::uninitialized({p.m}, DType::F32, device);
  run(device, tile_kernel(x.dtype()),
      {.grid = {static_cast<std::uint64_t>(p.m)}, .block = {kernels::kQuantVectorThreads}},
      x.read(stream), rows.write(stream), scales.write<float>(stream), p);
  const auto tiles = static_cast<std::uint64_t>(round_up(p.n, kernels::kQuantGroup.rows) /
                                                kernels::kQuantGroup.rows *
                                                (across / kernels::kQuantGroup.tokens));
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(stream));
  run(device, id, {.grid = {tiles}, .block = {kernels::kQuantGroupThreads}, .shared_bytes = shared},
      from, rows.read(stream), scales.read<float>(stream), y.write(stream), p);
}

void matrix_product(bool wide, QType type, const RawMemory& blocks, QuantProduct p, const Tensor& x,
                    Tensor& y) {
  const Device device = y.device();
  const Stream& stream = device.stream();
  const Halves halves = halve(p, x, kernels::kQuantDeep);
  const kernels::QuantTile tile = wide ? kernels::kQuantWide : kernels::kQuantNarrow;
  const auto tiles = static_cast<std::uint64_t>(round_up(p.n, tile.rows) / tile.rows *
                                                (round_up(p.m, tile.tokens) / tile.tokens));
  const auto* from = reinterpret_cast<const std::uint8_t*>(blocks.data(stream));
  const auto threads =
      std::uint64_t{kernels::kQuantMatrixWarps} * static_cast<std::uint64_t>(device.warp_width());
  run(device, matrix_kernel(wide, place_in(kernels::kProductFormats, type)),
      {.grid = {tiles}, .block = {threads}}, from, halves.rows.read(stream),
      halves.scales.read<float>(stream), y.write(stream), p);
}

}  // namespace

std::optional<ProductPath> product_path(const Device& device, QType type, const RawMemory& blocks,
                                        const ProductShape& shape) {
  const bool by_codes = has_codes(type) && is_aligned(type, blocks, device);
  if (shape.m <= kernels::kQuantVectorMost) {
    if (!by_codes) return ProductPath::Decoded;
    if (takes_pieces(device, type, blocks, shape)) return ProductPath::Pieces;
    return takes_row(device, type, shape) ? ProductPath::Row : ProductPath::Vector;
  }
  if (!by_codes || !has_matrix_units(device)) return std::nullopt;
  if (has_group_units(device)) {
    // Their tiles are the largest: there have to be some for each multiprocessor, or few rows of x
    // more than the small tiles have would take longer (docs/measurements/0005).
    const std::int64_t tiles =
        round_up(shape.n, kernels::kQuantGroup.rows) / kernels::kQuantGroup.rows *
        (round_up(shape.m, kernels::kQuantGroup.tokens) / kernels::kQuantGroup.tokens);
    const int processors = device.properties().multiprocessors;
    if (tiles * 2 >= processors || (shape.m > 64 && tiles * 8 >= processors)) {
      return ProductPath::Group;
    }
    return ProductPath::Narrow;
  }
  // Large tiles need a quarter of the multiprocessors to be quicker than small ones, and more rows
  // of x than a small tile has (docs/measurements/0004).
  const std::int64_t tiles =
      round_up(shape.n, kernels::kQuantWide.rows) / kernels::kQuantWide.rows *
      (round_up(shape.m, kernels::kQuantWide.tokens) / kernels::kQuantWide.tokens);
  const bool few =
      shape.m <= kernels::kQuantNarrow.tokens || tiles * 4 < device.properties().multiprocessors;
  return few ? ProductPath::Narrow : ProductPath::Wide;
}

void product(ProductPath path, QType type, const RawMemory& blocks, const ProductShape& shape,
             const Tensor& x, Tensor& y) {
  const bool few = shape.m <= kernels::kQuantVectorMost;
  const bool by_codes = has_codes(type) && is_aligned(type, blocks, y.device());
  const bool vectors = path == ProductPath::Vector || path == ProductPath::Decoded;
  const QuantProduct p = describe(type, shape, y.dtype());
  PieceLaunch pieces = {};
  if (path == ProductPath::Pieces) pieces = piece_launch(y.device(), type, blocks, p);
  if ((vectors && !few) || (path == ProductPath::Row && (shape.m != 1 || shape.k > kRowLongest)) ||
      (path == ProductPath::Pieces && pieces.threads == 0) ||
      (path != ProductPath::Decoded && !by_codes)) {
    throw Error(ErrorKind::Unsupported, "linear", "no kernel for ", shape.m,
                " rows and a weight of ", type, " by this path");
  }
  switch (path) {
    case ProductPath::Vector:
      return vector_product(type, blocks, p, shape, x, y);
    case ProductPath::Row:
      return row_product(type, blocks, p, x, y);
    case ProductPath::Pieces:
      return piece_product(type, blocks, pieces, x, y);
    case ProductPath::Decoded:
      return decoded_product(type, blocks, p, x, y);
    case ProductPath::Narrow:
      return matrix_product(false, type, blocks, p, x, y);
    case ProductPath::Wide:
      return matrix_product(true, type, blocks, p, x, y);
    case ProductPath::Group:
      return group_product(type, blocks, p, x, y);
  }
}

bool plain_product(DType stored, const RawMemory& weight, const ProductShape& shape,
                   const Tensor& x, Tensor& y) {
  const Device device = y.device();
  Blas* blas = Blas::of(device);
  if (blas == nullptr) return false;
  const Stream& stream = device.stream();
  QuantProduct p = {};
  p.n = shape.n;
  p.k = shape.k;
  p.m = shape.m;
  Halves halves;
  if (stored == DType::F16) {
    halves = halve(p, x, 8);
  } else {
    halves.rows = to_dtype(x, stored);
    p.x_row = p.k;
  }
  // Row-major y is the library's column-major y', and y' = w'' * x'.
  const driver::BlasForm form{.in = stored,
                              .out = DType::F32,
                              .transpose_a = true,
                              .align_a = 16,
                              .align_b = 16,
                              .align_c = 16,
                              .m = p.n,
                              .n = p.m,
                              .k = p.k,
                              .lda = p.k,
                              .ldb = p.x_row,
                              .ldc = p.n};
  const driver::BlasOperands at{
      .a = weight.data(stream), .b = halves.rows.read(stream), .c = y.write(stream)};
  if (reinterpret_cast<std::uintptr_t>(at.a) % 16 != 0 || p.k % 8 != 0 || p.n % 4 != 0 ||
      !blas->multiply(device, form, at)) {
    return false;
  }
  if (stored == DType::F16) y = mul(y, halves.scales);
  return true;
}

}  // namespace tl::gpu
