// Module SORT: stable sorting of rows, by radix.
//
// Elements become unsigned keys (gpu_order.h) that are sorted by one byte after the other, least
// significant first. Within a block each warp counts the digits of its own elements in order, lanes
// with equal digits finding each other by ballots, so that ranks are stable and nothing depends on
// timing. Kernels go by element size.
//   sort_tile      rows that fit a block, or pieces of longer rows, in shared memory; short rows
//                  share a block and are told apart by one more digit, their number
//   sort_count     longer rows, per digit: how often each digit occurs in each piece of a row,
//   sort_offsets   where the digits of each piece begin,
//   sort_scatter   and every element to its place
// 256 threads per block; any grid.
#define GPU_LEAST_BLOCKS 2
#include "gpu.h"
#include "gpu_sort.h"

using tl::kernels::kFewSorted;
using tl::kernels::kSortDigits;
using tl::kernels::Order;
using tl::kernels::sort_tile;
using tl::kernels::SortArgs;

constexpr unsigned kThreads = kBlockThreads;
constexpr unsigned kWarps = kThreads / kWarp;
static_assert(kSortDigits == kThreads);

template <unsigned kLanes>
struct MaskOf {
  using Type = Bits32;
};
template <>
struct MaskOf<64> {
  using Type = Bits64;
};
using LaneMask = MaskOf<kWarp>::Type;

GPU_INLINE LaneMask lanes_where(bool predicate) {
  return static_cast<LaneMask>(warp_ballot(predicate));
}

// The sum over the threads before this one; `total` is that of all.
GPU_INLINE Bits32 sum_before(Bits32 value, Bits32& total) {
  GPU_SHARED Bits32 sums[kWarps];
  Bits32 sum = value;
  for (unsigned apart = 1; apart < kWarp; apart *= 2) {
    const Bits32 other = shuffle(sum, lane() >= apart ? lane() - apart : lane());
    if (lane() >= apart) sum += other;
  }
  if (lane() == kWarp - 1) sums[warp_index()] = sum;
  barrier();
  Bits32 before = 0;
  total = 0;
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp_index()) before += sums[w];
    total += sums[w];
  }
  barrier();
  return before + sum - value;
}

// Elements in the registers of a block: number i of a thread is at position(i), so that a warp has
// its elements in order. Where there are fewer, what is left over has the largest key and comes
// after them in every order.
template <class K, int kEach>
struct Tile {
  static constexpr int kItems = kEach;
  K key[kItems];
  Bits32 load[kItems];  // travels with the key
  unsigned rank[kItems];

  GPU_INLINE static unsigned position(int i) {
    return (warp_index() * kItems + static_cast<unsigned>(i)) * kWarp + lane();
  }

  // Fills rank[]: positions in the order of digit_of(i), ties in the order they are in. `counters`
  // has kWarps * kSortDigits words of shared memory. Gives the number of elements whose digit is
  // below this thread's number.
  template <class DigitOf>
  GPU_INLINE unsigned find_ranks(Bits32* counters, DigitOf digit_of) {
    const unsigned t = thread_index();
    for (unsigned w = 0; w < kWarps; ++w) counters[w * kSortDigits + t] = 0;
    barrier();
    Bits32* mine = counters + warp_index() * kSortDigits;
    const LaneMask below = (LaneMask{1} << lane()) - 1;
    GPU_UNROLLED
    for (int i = 0; i < kItems; ++i) {
      const unsigned digit = digit_of(i);
      LaneMask peers = static_cast<LaneMask>(~0ull);
      for (int bit = 0; bit < 8; ++bit) {
        const bool set = (digit >> bit & 1) != 0;
        const LaneMask others = lanes_where(set);
        peers &= set ? others : ~others;
      }
      // The first of the lanes with this digit counts them all.
      const LaneMask lowest = peers & (~peers + 1);
      Bits32 seen = 0;
      if ((peers & below) == 0) seen = atomic_add(&mine[digit], count_bits(peers));
      seen = shuffle(seen, count_bits(static_cast<LaneMask>(lowest - 1)));
      rank[i] = seen + count_bits(static_cast<LaneMask>(peers & below));
      keep_order();
    }
    barrier();
    Bits32 sum = 0;
    for (unsigned w = 0; w < kWarps; ++w) {
      const Bits32 here = counters[w * kSortDigits + t];
      counters[w * kSortDigits + t] = sum;
      sum += here;
    }
    Bits32 total = 0;
    const Bits32 start = sum_before(sum, total);
    for (unsigned w = 0; w < kWarps; ++w) counters[w * kSortDigits + t] += start;
    barrier();
    GPU_UNROLLED
    for (int i = 0; i < kItems; ++i) {
      rank[i] += mine[digit_of(i)];
    }
    return start;
  }
};

// The element behind a key. Zeros have one key for both signs, and NaNs one for all: those are
// fetched from where they came from.
template <class K>
GPU_INLINE K element_of(const Order& order, K key, const K* source, Bits32 index) {
  const K zero = order_key(order, K{0});
  if (key == zero || key == static_cast<K>(order.nan)) return source[index];
  return bits_of_key(order, key);
}

// What sort_tiles has in shared memory.
template <class K>
struct Room {
  K keys[sort_tile(sizeof(K))];
  Bits16 places[sort_tile(sizeof(K))];
  Bits32 counters[kWarps * kSortDigits];
  Order order;  // here it takes no registers while digits are sorted
};

// kItems elements per thread are enough for every tile.
template <int kItems, class K>
GPU_INLINE void sort_tiles_of(Room<K>& room, const K* in, const Bits32* in_index, const K* source,
                              K* out, Bits32* out_index, const SortArgs& args) {
  constexpr unsigned kTile = static_cast<unsigned>(sort_tile(sizeof(K)));
  K* keys = room.keys;
  Bits16* places = room.places;
  Bits32* counters = room.counters;
  const Index tiles = args.pieces > 1 ? args.rows * args.pieces
                                      : (args.rows + args.rows_per_tile - 1) / args.rows_per_tile;
  GPU_ROLLED
  for (Index tile_index = block_index(); tile_index < tiles; tile_index += block_count()) {
    Index row = tile_index * args.rows_per_tile;
    Index piece = 0;
    const Index rows_here =
        args.rows - row < args.rows_per_tile ? args.rows - row : args.rows_per_tile;
    unsigned count = static_cast<unsigned>(rows_here * args.cols);
    if (args.pieces > 1) {
      row = tile_index / args.pieces;
      piece = tile_index - row * args.pieces;
      const Index left = args.cols - piece * kTile;
      count = static_cast<unsigned>(left < kTile ? left : kTile);
    }
    const Index base = row * args.cols + piece * kTile;

    Tile<K, kItems> tile;
    GPU_UNROLLED
    for (int i = 0; i < kItems; ++i) {
      const unsigned p = tile.position(i);
      tile.key[i] = static_cast<K>(~0ull);
      if (p < count) {
        const K raw = in[base + p];
        tile.key[i] = args.in_keys ? raw : order_key(room.order, raw);
      }
      tile.load[i] = p;
    }
    const unsigned passes = sizeof(K) + (args.rows_per_tile > 1 ? 1 : 0);
    GPU_ROLLED
    for (unsigned pass = 0; pass < passes; ++pass) {
      if (pass < sizeof(K)) {
        tile.find_ranks(counters, [&](int i) {
          return static_cast<unsigned>(tile.key[i] >> (8 * pass)) & 255u;
        });
      } else {
        tile.find_ranks(counters, [&](int i) {
          const unsigned r = args.by_cols.divide(tile.load[i]);
          return r < 255u ? r : 255u;
        });
      }
      GPU_UNROLLED
      for (int i = 0; i < kItems; ++i) {
        keys[tile.rank[i]] = tile.key[i];
        places[tile.rank[i]] = static_cast<Bits16>(tile.load[i]);
      }
      barrier();
      GPU_UNROLLED
      for (int i = 0; i < kItems; ++i) {
        tile.key[i] = keys[tile.position(i)];
        tile.load[i] = places[tile.position(i)];
      }
    }

    GPU_ROLLED
    for (unsigned q = thread_index(); q < count; q += kThreads) {
      const unsigned r = args.rows_per_tile > 1 ? args.by_cols.divide(q) : 0;
      const Index c = q - r * args.cols;
      if (c >= args.keep) continue;
      const unsigned p = places[q];
      const Index to = (row + r) * args.out_cols + piece * args.keep + c;
      const Bits32 index = in_index != nullptr ? in_index[base + p]
                           : args.pieces > 1   ? static_cast<Bits32>(piece * kTile + p)
                                               : static_cast<Bits32>(p - r * args.cols);
      out_index[to] = index;
      const K key = keys[q];
      out[to] = args.out_keys
                    ? key
                    : element_of(room.order, key, source + (row + r) * args.source_cols, index);
    }
    barrier();  // before the next tile overwrites what is read here
  }
}

template <class K>
GPU_INLINE void sort_tiles(const K* in, const Bits32* in_index, const K* source, K* out,
                           Bits32* out_index, const SortArgs& args) {
  await_earlier();
  GPU_SHARED Room<K> room;
  if (thread_index() == 0) room.order = args.order;
  barrier();
  if (args.few) {
    sort_tiles_of<kFewSorted / kThreads>(room, in, in_index, source, out, out_index, args);
  } else {
    sort_tiles_of<sort_tile(sizeof(K)) / kThreads>(room, in, in_index, source, out, out_index,
                                                   args);
  }
}

// counts[(row, digit, piece)]
template <class K>
GPU_INLINE void sort_count(const K* in, Bits32* counts, const SortArgs& args) {
  await_earlier();
  constexpr Index kTile = sort_tile(sizeof(K));
  GPU_SHARED Bits32 seen[kSortDigits];
  const unsigned t = thread_index();
  GPU_ROLLED
  for (Index tile = block_index(); tile < args.rows * args.pieces; tile += block_count()) {
    const Index row = tile / args.pieces, piece = tile - row * args.pieces;
    const Index left = args.cols - piece * kTile;
    const Index count = left < kTile ? left : kTile;
    const K* x = in + row * args.cols + piece * kTile;
    seen[t] = 0;
    barrier();
    GPU_ROLLED
    for (Index i = t; i < count; i += kThreads) {
      const K key = args.in_keys ? x[i] : order_key(args.order, x[i]);
      atomic_add(&seen[static_cast<unsigned>(key >> args.shift) & 255u], 1u);
    }
    barrier();
    counts[(row * kSortDigits + t) * args.pieces + piece] = seen[t];
  }
}

// Each count becomes the sum of those before it in its (row, digit), whose sum goes to totals.
GPU_INLINE void sort_offsets_of(Bits32* counts, Bits32* totals, const SortArgs& args) {
  await_earlier();
  GPU_ROLLED
  for (Index line = static_cast<Index>(block_index()) * kWarps + warp_index();
       line < args.rows * kSortDigits; line += static_cast<Index>(block_count()) * kWarps) {
    Bits32* x = counts + line * args.pieces;
    Bits32 before = 0;
    GPU_ROLLED
    for (Index first = 0; first < args.pieces; first += kWarp) {
      const Index i = first + lane();
      const Bits32 here = i < args.pieces ? x[i] : 0;
      Bits32 sum = here;
      for (unsigned apart = 1; apart < kWarp; apart *= 2) {
        const Bits32 other = shuffle(sum, lane() >= apart ? lane() - apart : lane());
        if (lane() >= apart) sum += other;
      }
      if (i < args.pieces) x[i] = before + sum - here;
      before += shuffle(sum, kWarp - 1);
    }
    if (lane() == 0) totals[line] = before;
  }
}

template <class K>
GPU_INLINE void sort_scatter(const K* in, const Bits32* in_index, const K* source, K* out,
                             Bits32* out_index, const Bits32* counts, const Bits32* totals,
                             const SortArgs& args) {
  await_earlier();
  constexpr unsigned kTile = static_cast<unsigned>(sort_tile(sizeof(K)));
  constexpr int kItems = kTile / kThreads;
  GPU_SHARED K keys[kTile];
  GPU_SHARED Bits32 indices[kTile];
  GPU_SHARED Bits32 counters[kWarps * kSortDigits];
  GPU_SHARED Bits32 targets[kSortDigits];
  const unsigned t = thread_index();
  GPU_ROLLED
  for (Index tile_index = block_index(); tile_index < args.rows * args.pieces;
       tile_index += block_count()) {
    const Index row = tile_index / args.pieces, piece = tile_index - row * args.pieces;
    const Index left = args.cols - piece * kTile;
    const Index base = row * args.cols + piece * kTile;

    const unsigned count = static_cast<unsigned>(left < kTile ? left : kTile);
    Tile<K, kItems> tile;
    GPU_UNROLLED
    for (int i = 0; i < kItems; ++i) {
      const unsigned p = tile.position(i);
      tile.key[i] = static_cast<K>(~0ull);
      if (p < count) {
        const K raw = in[base + p];
        tile.key[i] = args.in_keys ? raw : order_key(args.order, raw);
      }
      tile.load[i] = static_cast<Bits32>(piece * kTile + p);
      if (in_index != nullptr && p < count) tile.load[i] = in_index[base + p];
    }
    const unsigned start = tile.find_ranks(
        counters, [&](int i) { return static_cast<unsigned>(tile.key[i] >> args.shift) & 255u; });
    // Where this thread's digit goes in the row, less where it begins here.
    Bits32 total = 0;
    const Bits32 digit_start = sum_before(totals[row * kSortDigits + t], total);
    targets[t] = digit_start + counts[(row * kSortDigits + t) * args.pieces + piece] - start;
    GPU_UNROLLED
    for (int i = 0; i < kItems; ++i) {
      keys[tile.rank[i]] = tile.key[i];
      indices[tile.rank[i]] = tile.load[i];
    }
    barrier();
    GPU_ROLLED
    for (unsigned q = t; q < count; q += kThreads) {
      const K key = keys[q];
      const Bits32 index = indices[q];
      const Bits32 place = targets[static_cast<unsigned>(key >> args.shift) & 255u] + q;
      const Index to = row * args.cols + place;
      out_index[to] = index;
      out[to] =
          args.out_keys ? key : element_of(args.order, key, source + row * args.source_cols, index);
    }
    barrier();
  }
}

GPU_KERNEL void sort_offsets(Bits32* counts, Bits32* totals, SortArgs args) {
  sort_offsets_of(counts, totals, args);
}

GPU_KERNEL void sort_tile_1(const Bits8* in, const Bits32* in_index, const Bits8* source,
                            Bits8* out, Bits32* out_index, SortArgs args) {
  sort_tiles(in, in_index, source, out, out_index, args);
}
GPU_KERNEL void sort_tile_2(const Bits16* in, const Bits32* in_index, const Bits16* source,
                            Bits16* out, Bits32* out_index, SortArgs args) {
  sort_tiles(in, in_index, source, out, out_index, args);
}
GPU_KERNEL void sort_tile_4(const Bits32* in, const Bits32* in_index, const Bits32* source,
                            Bits32* out, Bits32* out_index, SortArgs args) {
  sort_tiles(in, in_index, source, out, out_index, args);
}
GPU_KERNEL void sort_tile_8(const Bits64* in, const Bits32* in_index, const Bits64* source,
                            Bits64* out, Bits32* out_index, SortArgs args) {
  sort_tiles(in, in_index, source, out, out_index, args);
}

GPU_KERNEL void sort_count_1(const Bits8* in, Bits32* counts, SortArgs args) {
  sort_count(in, counts, args);
}
GPU_KERNEL void sort_count_2(const Bits16* in, Bits32* counts, SortArgs args) {
  sort_count(in, counts, args);
}
GPU_KERNEL void sort_count_4(const Bits32* in, Bits32* counts, SortArgs args) {
  sort_count(in, counts, args);
}
GPU_KERNEL void sort_count_8(const Bits64* in, Bits32* counts, SortArgs args) {
  sort_count(in, counts, args);
}

GPU_KERNEL void sort_scatter_1(const Bits8* in, const Bits32* in_index, const Bits8* source,
                               Bits8* out, Bits32* out_index, const Bits32* counts,
                               const Bits32* totals, SortArgs args) {
  sort_scatter(in, in_index, source, out, out_index, counts, totals, args);
}
GPU_KERNEL void sort_scatter_2(const Bits16* in, const Bits32* in_index, const Bits16* source,
                               Bits16* out, Bits32* out_index, const Bits32* counts,
                               const Bits32* totals, SortArgs args) {
  sort_scatter(in, in_index, source, out, out_index, counts, totals, args);
}
GPU_KERNEL void sort_scatter_4(const Bits32* in, const Bits32* in_index, const Bits32* source,
                               Bits32* out, Bits32* out_index, const Bits32* counts,
                               const Bits32* totals, SortArgs args) {
  sort_scatter(in, in_index, source, out, out_index, counts, totals, args);
}
GPU_KERNEL void sort_scatter_8(const Bits64* in, const Bits32* in_index, const Bits64* source,
                               Bits64* out, Bits32* out_index, const Bits32* counts,
                               const Bits32* totals, SortArgs args) {
  sort_scatter(in, in_index, source, out, out_index, counts, totals, args);
}
