#include "ops/gpu/sort.h"

#include "kernels/gpu_sort.h"
#include "ops/gpu/launcher.h"
#include "ops/order.h"
#include "tl/kernels/sort.h"

namespace tl::gpu {

namespace {

using kernels::kSortDigits;
using kernels::SortArgs;

// Rows of up to this many elements share a block.
constexpr std::int64_t kShortRow = 2048;
// Blocks loop over what is left.
constexpr std::int64_t kMostBlocks = 1 << 20;

LaunchShape blocks(std::int64_t count) {
  return {.grid = {static_cast<std::uint64_t>(std::min(count, kMostBlocks))}, .block = {kThreads}};
}

// Keys with their indices, or elements that are still where they came from.
struct Keys {
  const std::byte* keys = nullptr;
  const std::byte* indices = nullptr;  // null: elements
};

class Sorter {
 public:
  Sorter(const Tensor& x, bool descending, Tensor& values, Tensor& indices)
      : device_(values.device()),
        size_(size_of(x.dtype())),
        tile_(kernels::sort_tile(static_cast<int>(size_))),
        source_(x.read(device_.stream())),
        values_(values.write(device_.stream())),
        indices_(indices.write(device_.stream())) {
    args_.order = ops::order_of(x.dtype(), descending, !descending);
    args_.source_cols = args_.cols = x.shape()[x.rank() - 1];
    args_.rows = x.count() / args_.cols;
    args_.rows_per_tile = 1;
    args_.pieces = 1;
  }

  void run_all(std::int64_t keep) {
    if (args_.cols > tile_ && 4 * keep > tile_) return sort_long(keep);
    // Rounds in which blocks keep the best of their piece, until a row fits a block.
    Keys input{source_, nullptr};
    RawMemory keys[2], indices[2];
    for (int round = 0; args_.cols > tile_; round ^= 1) {
      args_.pieces = divide_up(args_.cols, tile_);
      const std::int64_t last = args_.cols - (args_.pieces - 1) * tile_;
      args_.keep = keep;
      args_.out_cols = (args_.pieces - 1) * keep + std::min(keep, last);
      args_.out_keys = 1;
      std::byte* out = fresh(keys[round], args_.out_cols, size_);
      std::byte* out_index = fresh(indices[round], args_.out_cols, 4);
      sort_tiles(input, out, out_index, args_.rows * args_.pieces);
      input = {out, out_index};
      args_.cols = args_.out_cols;
      args_.in_keys = 1;
    }
    args_.pieces = 1;
    args_.keep = args_.out_cols = keep;
    args_.out_keys = 0;
    if (args_.cols <= kShortRow) {
      args_.rows_per_tile = static_cast<unsigned>(
          std::min<std::int64_t>({tile_ / args_.cols, kSortDigits, args_.rows}));
      args_.by_cols = kernels::make_fast_div(static_cast<unsigned>(args_.cols));
    }
    args_.few = args_.rows_per_tile * args_.cols <= kernels::kFewSorted ? 1 : 0;
    sort_tiles(input, values_, indices_, divide_up(args_.rows, args_.rows_per_tile));
  }

 private:
  std::byte* fresh(RawMemory& memory, std::int64_t cols, std::uint64_t bytes) {
    memory = RawMemory(device_, static_cast<std::uint64_t>(args_.rows * cols) * bytes);
    return memory.overwrite_data(device_.stream());
  }

  void sort_tiles(const Keys& in, std::byte* out, std::byte* out_index, std::int64_t tiles) {
    run(device_, sort_tile_kernel(size_), blocks(tiles), in.keys, in.indices, source_, out,
        out_index, args_);
  }

  // All digits, one after the other, back and forth between two buffers.
  void sort_long(std::int64_t keep) {
    const bool partly = keep < args_.cols;
    args_.pieces = divide_up(args_.cols, tile_);
    args_.keep = args_.out_cols = args_.cols;
    const std::int64_t tiles = args_.rows * args_.pieces;
    RawMemory counts, totals, keys[2], indices[2], all_values, all_indices;
    std::byte* count = fresh(counts, args_.pieces * kSortDigits, 4);
    std::byte* total = fresh(totals, kSortDigits, 4);
    Keys input{source_, nullptr};
    for (unsigned digit = 0; digit < size_; ++digit) {
      args_.shift = 8 * digit;
      args_.in_keys = digit > 0 ? 1 : 0;
      const bool last = digit + 1 == size_;
      args_.out_keys = last ? 0 : 1;
      std::byte* out = values_;
      std::byte* out_index = indices_;
      if (!last) {
        out = fresh(keys[digit % 2], args_.cols, size_);
        out_index = fresh(indices[digit % 2], args_.cols, 4);
      } else if (partly) {
        out = fresh(all_values, args_.cols, size_);
        out_index = fresh(all_indices, args_.cols, 4);
      }
      run(device_, sort_count_kernel(size_), blocks(tiles), input.keys, count, args_);
      run(device_, sort_offsets_kernel(),
          blocks(divide_up(args_.rows * kSortDigits, kThreads / device_.warp_width())), count,
          total, args_);
      run(device_, sort_scatter_kernel(size_), blocks(tiles), input.keys, input.indices, source_,
          out, out_index, static_cast<const std::byte*>(count),
          static_cast<const std::byte*>(total), args_);
      input = {out, out_index};
    }
    if (!partly) return;
    const auto cut = [&](std::size_t size, const std::byte* from, std::byte* to) {
      run(device_, copy2d_kernel(size), resident_shape(device_, args_.rows * keep, 4), from, to,
          static_cast<Index>(args_.rows), static_cast<Index>(keep), args_.cols,
          static_cast<Index>(keep));
    };
    cut(size_, input.keys, values_);
    cut(4, input.indices, indices_);
  }

  Device device_;
  std::size_t size_;   // bytes of an element
  std::int64_t tile_;  // elements that a block sorts
  const std::byte* source_;
  std::byte* values_;
  std::byte* indices_;
  SortArgs args_{};
};

}  // namespace

void sort(const Tensor& x, bool descending, std::int64_t keep, Tensor& values, Tensor& indices) {
  Sorter(x, descending, values, indices).run_all(keep);
}

}  // namespace tl::gpu
