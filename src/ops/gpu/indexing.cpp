// How indexing is done on a GPU, by shape.
//
// Setting. Without duplicates any thread may write. With them the last along the dimension must
// stay: either one thread walks each line, when there are enough lines to fill the device, or the
// writers first claim their places by an atomic maximum and only the winner writes.
//
// Adding integers of 4 and 8 bytes: atomics, since integer addition commutes.
//
// Adding floats (and integers of 1 and 2 bytes, for which there are no atomics) so that every run
// gives the same bits:
//   lines  one block per line puts its sources in order by place, in shared memory, and adds those
//          of each place: for many lines of some length that lie along the dimension.
//   walk   one thread per line goes along the dimension: for many lines, or few sources each.
//   bins   exact sums in fixed point by integer atomics, 128 bytes for every place of the result:
//          for lines that are long, when the result is not larger than what is added. One atomic
//          per element, as PyTorch's float atomics, plus the pass that reads the sums.
//   sort   the indices are sorted (stable radix sort) and runs of equal ones summed in order: for
//          whole rows (index_add), whose few indices cost little to sort and whose data is then
//          read once without atomics, and for whatever the others do not fit.
#include "ops/gpu/indexing.h"

#include <array>
#include <bit>
#include <limits>

#include "kernels/gpu_ids.h"
#include "ops/gpu/copy.h"
#include "ops/gpu/launcher.h"
#include "tl/kernels/indexing.h"
#include "tl/ops/copy.h"

namespace tl::gpu {

namespace {

using Family = IndexingFamily;
using kernels::Ids;
using Word = std::uint32_t;

constexpr std::int64_t kWordEnd = std::numeric_limits<Word>::max();  // keys and stamps stay below
constexpr std::int64_t kManyLines = 32768;                           // fill a large device
constexpr std::int64_t kShortLine = 64;  // a thread may walk it without coalescing
constexpr std::int64_t kBinBytes = 132;  // per place, see add_bins in indexing.cu
constexpr std::int64_t kBinLimit = std::int64_t{1} << 30;
constexpr std::int64_t kBinAddends = std::int64_t{1} << 24;
constexpr std::int64_t kSortTile = 2048;      // as in indexing.cu
constexpr std::int64_t kSumTile = 64;         // as in indexing.cu
constexpr std::int64_t kLineEach = 16;        // as in line_sums.h
constexpr std::int64_t kMostLines = 1 << 22;  // in one grid
constexpr int kDigits = 256;

template <int kOperands>
Strided<kOperands> walk_of(const Shape& shape, const std::array<const Dims*, kOperands>& strides) {
  Index dims[Dims::kMax];
  Index steps[kOperands][Dims::kMax];
  const Index* operands[kOperands];
  for (int d = 0; d < shape.size(); ++d) dims[d] = shape[d];
  for (int k = 0; k < kOperands; ++k) {
    for (int d = 0; d < shape.size(); ++d) steps[k][d] = (*strides[k])[d];
    operands[k] = steps[k];
  }
  return kernels::make_strided<kOperands>(shape.size(), dims, operands);
}

Ids ids_of(const Device& device, const Tensor& ids, std::int64_t size, std::string_view op) {
  Ids out{};
  out.data = ids.read(device.stream());
  out.size = size;
  out.fault = device.fault_word();
  out.kind = static_cast<unsigned>(ids.dtype());
  out.tag = fault_tag(op);
  static_assert(static_cast<int>(DType::U8) == 0 && static_cast<int>(DType::U32) == 1 &&
                static_cast<int>(DType::I16) == 2 && static_cast<int>(DType::I32) == 3 &&
                static_cast<int>(DType::I64) == 4);
  switch (ids.dtype()) {
    case DType::U8:
      out.nothing = std::numeric_limits<std::uint8_t>::max();
      break;
    case DType::U32:
      out.nothing = std::numeric_limits<std::uint32_t>::max();
      break;
    case DType::I16:
      out.nothing = std::numeric_limits<std::int16_t>::max();
      break;
    case DType::I32:
      out.nothing = std::numeric_limits<std::int32_t>::max();
      break;
    default:
      out.nothing = std::numeric_limits<std::int64_t>::max();
  }
  return out;
}

// A walk in units of several elements, where the innermost part of both sides allows it.
struct Units {
  Shape shape;        // in units
  Dims from;          // strides of the source, in units
  Dims ids;           // strides of the indices
  std::int64_t step;  // along the indexed dimension, in units
  std::size_t bytes;
};

Units in_units(const Shape& shape, const Dims& from, const Dims& ids, std::int64_t step,
               std::size_t size, const void* source, const void* target) {
  int d = shape.size() - 1;
  std::int64_t inner = 1;
  for (; d >= 0; --d) {
    if (shape[d] == 1) continue;
    if (ids[d] != 0 || from[d] != inner) break;
    inner *= shape[d];
  }
  auto together =
      reinterpret_cast<std::uintptr_t>(source) | reinterpret_cast<std::uintptr_t>(target);
  const auto each = static_cast<std::int64_t>(size);
  std::int64_t joint = (inner | step) * each;
  for (int k = 0; k <= d; ++k) {
    if (shape[k] > 1) joint |= from[k] * each;  // two's complement: a sign changes no low bits
  }
  together |= static_cast<std::uintptr_t>(joint) | 16;
  Units units{{}, {}, {}, 0, static_cast<std::size_t>(together & (~together + 1))};
  const auto factor = static_cast<std::int64_t>(units.bytes / size);
  for (int k = 0; k <= d; ++k) {
    units.shape.push_back(shape[k]);
    units.from.push_back(shape[k] > 1 ? from[k] / factor : 0);
    units.ids.push_back(ids[k]);
  }
  if (inner > 1 || d < 0) {
    units.shape.push_back(inner / factor);
    units.from.push_back(1);
    units.ids.push_back(0);
  }
  units.step = step / factor;
  return units;
}

Tensor words(std::int64_t count, const Device& device) {
  return Tensor::uninitialized({count}, DType::U32, device);
}

// Is a result of that many bytes more than the caches can keep beside what is read?
unsigned passes_caches(const Device& device, const Tensor& out) {
  const std::uint64_t room = device.properties().l2_bytes / 2;
  return room != 0 && out.size_bytes() > room ? 1 : 0;
}

// Do lines of the innermost dimension, each with indices of its own, fit a block's shared memory,
// and are they worth bringing there?
bool picks_from_lines(const ops::Pick& p, const Tensor& out) {
  constexpr std::int64_t kLeastLines = 64, kMostBytes = 32768;
  const int d = out.rank() - 1;
  if (d < 0 || p.step != 1 || p.ids_strides[d] != 1 || p.x_strides[d] != 0) return false;
  const std::int64_t length = out.shape()[d];
  return out.count() / length >= kLeastLines && length >= p.size / 2 && length >= kThreads &&
         p.size * static_cast<std::int64_t>(size_of(out.dtype())) <= kMostBytes;
}

void gather_lines(const ops::Pick& p, Tensor& out) {
  const Device device = out.device();
  const std::byte* from = p.x.read(device.stream());
  const Ids ids = ids_of(device, p.ids, p.size, p.op);
  std::byte* to = out.write(device.stream());
  const int d = out.rank() - 1;
  const Dims ids_strides = ops::without(p.ids_strides, d), strides = ops::without(p.x_strides, d);
  const Strided<2> at = walk_of<2>(ops::without(out.shape(), d), {&ids_strides, &strides});
  const std::size_t size = size_of(out.dtype());
  LaunchShape shape = elementwise_shape(at.count * kThreads, 1);
  shape.shared_bytes = static_cast<std::uint32_t>(static_cast<std::size_t>(p.size) * size);
  run(device, indexing_move_kernel(Family::GatherLines, size), shape, from, to, ids,
      Index{out.shape()[d]}, passes_caches(device, out), at);
}

}  // namespace

void gather(const ops::Pick& p, Tensor& out) {
  if (picks_from_lines(p, out)) return gather_lines(p, out);
  const Device device = out.device();
  const std::byte* from = p.x.read(device.stream());
  const Ids ids = ids_of(device, p.ids, p.size, p.op);
  std::byte* to = out.write(device.stream());
  Units units =
      in_units(out.shape(), p.x_strides, p.ids_strides, p.step, size_of(out.dtype()), from, to);
  Dims places = contiguous_strides(units.shape);
  const unsigned passes = passes_caches(device, out);
  // A block's part of every row, then the next part of every row: between two uses of a row there
  // is then less than the caches hold.
  const int last = units.shape.size() - 1;
  if (passes != 0 && last > 0 && last < Dims::kMax - 1 && units.ids[last] == 0 &&
      units.shape[last] > kThreads && units.shape[last] % kThreads == 0) {
    const std::int64_t parts = units.shape[last] / kThreads;
    units.shape[last] = kThreads;
    units.shape.insert(0, parts);
    for (Dims* strides : {&units.from, &places}) strides->insert(0, kThreads);
    units.ids.insert(0, 0);
  }
  const Strided<3> at = walk_of<3>(units.shape, {&units.ids, &units.from, &places});
  run(device, indexing_move_kernel(Family::Gather, units.bytes), elementwise_shape(at.count, 4),
      from, to, ids, Index{units.step}, passes, at);
}

void flip(const Tensor& x, const Dims& dims, Tensor& out) {
  const Device device = out.device();
  Dims strides = x.strides();
  std::int64_t start = 0;
  for (const std::int64_t dim : dims) {
    const int d = static_cast<int>(dim);
    start += (x.shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  const std::byte* from =
      x.read(device.stream()) + start * static_cast<std::int64_t>(size_of(x.dtype()));
  std::byte* to = out.write(device.stream());
  const Units units =
      in_units(x.shape(), strides, Dims::repeated(x.rank(), 0), 0, size_of(x.dtype()), from, to);
  const Strided<1> at = walk_of<1>(units.shape, {&units.from});
  run(device, indexing_move_kernel(Family::Flip, units.bytes), elementwise_shape(at.count, 1), from,
      to, at);
}

// ---- setting

namespace {

// One thread per line.
void walk_lines(const ops::Place& p, Tensor& out, KernelId kernel, const LaunchShape& shape) {
  const Device device = out.device();
  const Dims ids_strides = ops::without(p.ids.strides(), p.dim);
  const Dims src_strides = ops::without(p.src.strides(), p.dim);
  const Dims out_strides = ops::without(p.out_strides, p.dim);
  const Strided<3> at =
      walk_of<3>(ops::without(p.shape(), p.dim), {&ids_strides, &src_strides, &out_strides});
  const std::byte* src = p.src.read(device.stream());
  const Ids ids = ids_of(device, p.ids, p.size, p.op);
  std::byte* to = out.update(device.stream());
  run(device, kernel, shape, to, src, ids, Index{p.length()}, Index{p.ids.strides()[p.dim]},
      Index{p.src.strides()[p.dim]}, Index{p.step}, at);
}

// Are all sources the same element, so that it does not matter which of them stays?
bool is_one_value(const Tensor& src) { return src.layout().extent() == 1; }

}  // namespace

void scatter(const ops::Place& p, Tensor& out) {
  const Device device = out.device();
  const std::size_t size = size_of(out.dtype());
  const bool is_last = p.dim == p.ids.rank() - 1;
  const bool claims = p.length() > 1 && !is_one_value(p.src);
  // A claim is stamped with the offset of its index, which must grow along the dimension.
  ops::Place placed = p;
  if (claims && p.ids.strides()[p.dim] == 0) placed.ids = copy(p.ids);
  const std::int64_t places = placed.is_uniform() ? p.size : p.lines() * p.size;
  const bool many = p.lines() >= kManyLines && (!is_last || p.length() <= kShortLine);
  if (claims && (many || placed.ids.layout().extent() >= kWordEnd || places >= kWordEnd)) {
    walk_lines(p, out, indexing_move_kernel(Family::PutWalk, size),
               elementwise_shape(p.lines(), 1));
    return;
  }
  const Ids ids = ids_of(device, placed.ids, p.size, p.op);
  Dims winner_strides = Dims::repeated(p.ids.rank(), 0);
  Index winner_step = 1;
  Tensor winner;
  const Word* won = nullptr;
  if (claims) {
    Shape claimed = p.shape();
    Shape walked = p.shape();
    claimed[p.dim] = p.size;
    if (placed.is_uniform()) {  // one claim per index serves all lines
      for (int d = 0; d < claimed.size(); ++d) {
        if (d != p.dim) claimed[d] = walked[d] = 1;
      }
    }
    winner_strides = contiguous_strides(claimed);
    winner_step = winner_strides[p.dim];
    winner_strides[p.dim] = 0;
    for (int d = 0; d < claimed.size(); ++d) {
      if (claimed[d] == 1) winner_strides[d] = 0;
    }
    winner = Tensor::zeros({places}, DType::U32, device);
    const Strided<2> at = walk_of<2>(walked, {&placed.ids.strides(), &winner_strides});
    run(device, indexing_kernel(Family::Claim), elementwise_shape(at.count, 1),
        winner.update<Word>(device.stream()), ids, winner_step, at);
    won = winner.read<Word>(device.stream());
  }
  const std::byte* src = p.src.read(device.stream());
  std::byte* to = out.update(device.stream());
  const Strided<4> at = walk_of<4>(
      p.shape(), {&placed.ids.strides(), &p.src.strides(), &p.out_strides, &winner_strides});
  run(device, indexing_move_kernel(Family::Put, size), elementwise_shape(at.count, 1), to, src, ids,
      Index{p.step}, won, winner_step, at);
}

// ---- adding

namespace {

// By one thread per line.
void add_by_walk(const ops::Place& p, Tensor& out) {
  const KernelId kernel = indexing_add_kernel(Family::AddWalk, out.dtype());
  const LaunchShape shape = elementwise_shape(p.lines(), 1);
  if (is_float(out.dtype()) && size_of(out.dtype()) < 4) {
    Tensor sums = to_dtype(out, DType::F32);  // rounded once, at the end
    walk_lines(p, sums, kernel, shape);
    cast(sums, out);
  } else {
    walk_lines(p, out, kernel, shape);
  }
}

// By one block per line. Where others see the memory too, what was there is read from the old
// memory and the sums go to new, so that nothing has to be copied first.
void add_by_lines(const ops::Place& p, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Dims ids_strides = ops::without(p.ids.strides(), p.dim);
  const Dims src_strides = ops::without(p.src.strides(), p.dim);
  const Dims out_strides = ops::without(p.out_strides, p.dim);
  const Strided<3> at =
      walk_of<3>(ops::without(p.shape(), p.dim), {&ids_strides, &src_strides, &out_strides});
  const bool moves = !out.memory().is_unique() && p.lines() * p.size == out.count();
  const Tensor shared = moves ? out : Tensor();
  const std::byte* src = p.src.read(stream);
  const Ids ids = ids_of(device, p.ids, p.size, p.op);
  const std::byte* before = moves ? shared.read(stream) : nullptr;
  std::byte* to = moves ? out.write(stream) : out.update(stream);
  const std::int64_t warp = device.warp_width(), sum_bytes = out.dtype() == DType::F64 ? 8 : 4;
  // LineRoom then takes 40 KiB at most: of every device a block may have 48.
  const std::int64_t most = sum_bytes == 8 || p.length() > kLineEach * kThreads ? 128 : kThreads;
  const std::int64_t threads =
      std::min(divide_up(std::max(p.size, p.length()), kLineEach * warp) * warp, most);
  const std::int64_t size = kLineEach * threads;  // places of a block, and sources of a chunk
  const std::int64_t bytes = size * sum_bytes * (p.length() > size ? 2 : 1) + 6 * size;
  const LaunchShape shape{.grid = {static_cast<std::uint64_t>(std::min(p.lines(), kMostLines)),
                                   static_cast<std::uint64_t>(divide_up(p.size, size))},
                          .block = {static_cast<std::uint64_t>(threads)},
                          .shared_bytes = static_cast<std::uint32_t>(bytes)};
  run(device, indexing_add_kernel(Family::AddLines, out.dtype()), shape, to,
      moves ? before : static_cast<const std::byte*>(to), src, ids, Index{p.length()},
      Index{p.src.strides()[p.dim]}, Index{p.step}, Index{p.size}, at);
}

// Enough lines for many warps, of some length, and read along their neighbours.
bool fits_lines(const ops::Place& p) {
  constexpr std::int64_t kLeastLines = 64, kLeastLength = 64, kMostPlaces = 16384;
  return p.lines() >= kLeastLines && p.length() >= kLeastLength && p.size <= kMostPlaces &&
         p.ids.strides()[p.dim] == 1;
}

void add_by_bins(const ops::Place& p, Tensor& out) {
  const Device device = out.device();
  Tensor bins = Tensor::zeros({out.count(), 16}, DType::I64, device);
  Tensor special = Tensor::zeros({out.count()}, DType::U32, device);
  const Strided<3> at = walk_of<3>(p.shape(), {&p.ids.strides(), &p.src.strides(), &p.out_strides});
  const std::byte* src = p.src.read(device.stream());
  const Ids ids = ids_of(device, p.ids, p.size, p.op);
  auto* sums = bins.update<std::uint64_t>(device.stream());
  auto* flags = special.update<Word>(device.stream());
  run(device, indexing_bins_kernel(Family::AddBins, out.dtype()), elementwise_shape(at.count, 1),
      sums, flags, src, ids, Index{p.step}, at);
  std::byte* to = out.update(device.stream());
  run(device, indexing_bins_kernel(Family::SettleBins, out.dtype()),
      elementwise_shape(out.count(), 1), to, static_cast<const std::uint64_t*>(sums),
      static_cast<const Word*>(flags), Index{out.count()});
}

struct Sorted {
  Tensor keys;
  Tensor positions;
};

// The keys of a walk over indices in ascending order, equal ones as they stood, with `none`, the
// largest, for those that name nothing.
Sorted sort_keys(const Device& device, const Ids& ids, Index step, std::int64_t none,
                 const Strided<2>& at) {
  const Stream& stream = device.stream();
  const std::int64_t count = at.count;
  std::array<Sorted, 2> both;
  for (Sorted& s : both) s = {words(count, device), words(count, device)};
  run(device, indexing_kernel(Family::MakeKeys), elementwise_shape(count, 1),
      both[0].keys.write<Word>(stream), both[0].positions.write<Word>(stream), ids, step,
      static_cast<Word>(none), at);

  const std::int64_t tiles = (count + kSortTile - 1) / kSortTile;
  const std::int64_t most = std::min<std::int64_t>(
      1024, std::max<std::int64_t>(1, std::int64_t{device.properties().multiprocessors} * 4));
  const std::int64_t each = (tiles + most - 1) / most * kSortTile;
  const std::int64_t blocks = (count + each - 1) / each;
  const LaunchShape grid{.grid = {static_cast<std::uint64_t>(blocks)}, .block = {kThreads}};
  Tensor counts = words(kDigits * blocks, device);
  Tensor totals = words(kDigits, device);
  auto* in_blocks = counts.write<Word>(stream);
  auto* in_all = totals.write<Word>(stream);
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(none)));
  std::size_t now = 0;
  for (int shift = 0; shift < bits; shift += 8) {
    Sorted &from = both[now], &to = both[1 - now];
    const Word* keys = from.keys.read<Word>(stream);
    const Word* positions = from.positions.read<Word>(stream);
    run(device, indexing_kernel(Family::RadixCount), grid, keys, in_blocks, Index{count},
        Index{each}, static_cast<unsigned>(shift));
    run(device, indexing_kernel(Family::RadixScan), {.grid = {kDigits}, .block = {kThreads}},
        in_blocks, in_all, Index{blocks});
    run(device, indexing_kernel(Family::RadixMove), grid, keys, positions,
        to.keys.write<Word>(stream), to.positions.write<Word>(stream),
        static_cast<const Word*>(in_blocks), static_cast<const Word*>(in_all), Index{count},
        Index{each}, static_cast<unsigned>(shift));
    now = 1 - now;
  }
  return both[now];
}

// Indices that all lines share are sorted alone, and each carries a row of all lines; others are
// sorted as places of the result.
void add_by_sort(const ops::Place& p, Tensor& out) {
  const Device device = out.device();
  const Stream& stream = device.stream();
  const Ids ids = ids_of(device, p.ids, p.size, p.op);
  const bool rows = p.is_uniform();
  const Tensor source = rows ? p.src : contiguous(p.src);
  const std::int64_t none = rows ? p.size : out.layout().extent();
  // (tiles, columns): a column is one element of a row.
  Shape columns;
  Dims src_strides, out_strides;
  Strided<2> at{};
  if (rows) {
    columns = ops::without(p.shape(), p.dim);
    src_strides = ops::without(p.src.strides(), p.dim);
    out_strides = ops::without(p.out_strides, p.dim);
    const Dims ids_stride{p.ids.strides()[p.dim]}, nowhere{0};
    at = walk_of<2>({p.length()}, {&ids_stride, &nowhere});
  } else {
    at = walk_of<2>(p.shape(), {&p.ids.strides(), &p.out_strides});
  }
  const Index src_step = rows ? p.src.strides()[p.dim] : 1;
  const Index key_step = rows ? p.step : 1;
  const Sorted sorted = sort_keys(device, ids, rows ? 1 : p.step, none, at);

  const std::int64_t tiles = (at.count + kSumTile - 1) / kSumTile;
  const Index width = rows ? p.lines() : 1;
  Dims column_strides = contiguous_strides(columns);
  Dims tile_strides = Dims::repeated(columns.size(), 0);
  columns.insert(0, tiles);
  tile_strides.insert(0, 1);
  for (Dims* strides : {&column_strides, &src_strides, &out_strides}) strides->insert(0, 0);
  const auto tiles_of = [&](std::int64_t count) {
    columns[0] = count;
    return walk_of<4>(columns, {&tile_strides, &column_strides, &src_strides, &out_strides});
  };
  const DType sums = out.dtype() == DType::F64 ? DType::F64
                     : is_float(out.dtype())   ? DType::F32
                                               : DType::U32;
  Tensor partial = Tensor::uninitialized({tiles, 2, width}, sums, device);
  const Word* keys = sorted.keys.read<Word>(stream);
  const std::byte* src = source.read(stream);
  std::byte* pieces = partial.write(stream);
  std::byte* to = out.update(stream);
  run(device, indexing_add_kernel(Family::AddSorted, out.dtype()),
      elementwise_shape(tiles * width, 1), to, src, keys, sorted.positions.read<Word>(stream),
      pieces, Index{at.count}, width, static_cast<Word>(none), src_step, key_step, tiles_of(tiles));
  if (tiles == 1) return;
  run(device, indexing_add_kernel(Family::AddTails, out.dtype()),
      elementwise_shape((tiles - 1) * width, 1), to, keys, static_cast<const std::byte*>(pieces),
      Index{at.count}, width, static_cast<Word>(none), key_step, tiles_of(tiles - 1));
}

void add_by_atomics(const ops::Place& p, Tensor& out) {
  const Device device = out.device();
  const Strided<3> at = walk_of<3>(p.shape(), {&p.ids.strides(), &p.src.strides(), &p.out_strides});
  const std::byte* src = p.src.read(device.stream());
  const Ids ids = ids_of(device, p.ids, p.size, p.op);
  std::byte* to = out.update(device.stream());
  run(device, add_atomic_kernel(size_of(out.dtype())), elementwise_shape(at.count, 1), to, src, ids,
      Index{p.step}, at);
}

bool fits_bins(const ops::Place& p, const Tensor& out) {
  return is_float(out.dtype()) && out.dtype() != DType::F64 && p.length() <= kBinAddends &&
         out.count() <= p.ids.count() && out.count() <= kBinLimit / kBinBytes;
}

}  // namespace

void scatter_add(const ops::Place& p, Tensor& out) {
  if (is_int(out.dtype()) && size_of(out.dtype()) >= 4) return add_by_atomics(p, out);
  constexpr std::int64_t kFew = 4;       // sources that a thread may add by itself
  constexpr std::int64_t kRowWidth = 8;  // columns that make sorting rows worth it
  const bool rows = p.is_uniform();
  if (!rows && fits_lines(p)) return add_by_lines(p, out);
  const std::int64_t sorted = rows ? p.length() : p.ids.count();
  const std::int64_t places = rows ? p.size : out.layout().extent();
  if (p.length() <= kFew || (!rows && p.lines() >= kManyLines) || sorted >= kWordEnd ||
      places >= kWordEnd) {
    return add_by_walk(p, out);
  }
  if (!(rows && p.lines() >= kRowWidth) && fits_bins(p, out)) return add_by_bins(p, out);
  add_by_sort(p, out);
}

// ---- masks

namespace {

// What of an element's bits makes it something other than 0: all but the sign of a float.
std::uint64_t significant_bits(DType dtype) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits_of(dtype));
  return is_float(dtype) ? all >> 1 : all;
}

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

Tensor nonzero_positions(const Tensor& x) {
  const Device device = x.device();
  const Stream& stream = device.stream();
  const std::int64_t tiles = (x.count() + kSortTile - 1) / kSortTile;
  const std::int64_t most = std::max<std::int64_t>(1, device.properties().multiprocessors * 4);
  const std::int64_t each = (tiles + most - 1) / most * kSortTile;
  const std::int64_t blocks = (x.count() + each - 1) / each;
  const LaunchShape grid{.grid = {static_cast<std::uint64_t>(blocks)}, .block = {kThreads}};
  const Strided<1> at = walk_of<1>(x.shape(), {&x.strides()});
  const std::byte* from = x.read(stream);
  Tensor counts = Tensor::uninitialized({blocks + 1}, DType::I64, device);
  auto* starts = counts.write<Index>(stream);
  const std::size_t size = size_of(x.dtype());
  Tensor out;
  with_word(size, significant_bits(x.dtype()), [&](auto bits) {
    run(device, indexing_move_kernel(Family::MaskCount, size), grid, from, bits, starts,
        Index{each}, at);
    run(device, indexing_kernel(Family::MaskOffsets), {.grid = {1}, .block = {kThreads}}, starts,
        Index{blocks});
    const auto total = counts.narrow(0, blocks, 1).item<std::int64_t>();
    out = Tensor::uninitialized({total}, DType::I64, device);
    if (total == 0) return;
    run(device, indexing_move_kernel(Family::MaskPositions, size), grid, from, bits,
        static_cast<const Index*>(starts), out.write<Index>(stream), Index{each}, at);
  });
  return out;
}

void unravel(const Tensor& positions, const Shape& shape, Tensor& out) {
  const Device device = out.device();
  const auto* from = positions.read<Index>(device.stream());
  auto* to = out.write<Index>(device.stream());
  for (int d = 0; d < shape.size(); ++d) {
    Dims strides = Dims::repeated(shape.size(), 0);
    strides[d] = 1;
    run(device, indexing_kernel(Family::Unravel), elementwise_shape(positions.count(), 1), from,
        to + d, Index{positions.count()}, Index{shape.size()}, walk_of<1>(shape, {&strides}));
  }
}

}  // namespace tl::gpu
