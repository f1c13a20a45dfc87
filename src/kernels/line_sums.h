// Sums along lines of a tensor: scatter_add where many lines of some length lie along the indexed
// dimension. Included by indexing.cu.
//
// A block takes a line of the result, or a tile of it, and the sources of that line, a chunk at a
// time. The chunk is put in order by place: sources of each place are counted by atomics, which
// says where those of each place begin, and the number of every source is written there. Numbers of
// one place come in any order, so they are sorted before anything is added: up to four in
// registers, some where they lie, many by a warp with a bit for each source of the chunk. What
// comes out is what adding one source after the other gives.
#pragma once

#include "gpu_together.h"
#include "read_ids.h"

// Along one line of the dimension: `length` indices and sources, and the distances between them.
struct Line {
  Index length, ids_step, src_step, out_step;
};

// What sums of T are kept in.
template <class T>
struct Accumulator {
  using Type = float;
};
template <>
struct Accumulator<double> {
  using Type = double;
};
template <>
struct Accumulator<Bits8> {
  using Type = Bits32;
};
template <>
struct Accumulator<Bits16> {
  using Type = Bits32;
};
template <class T>
using AccumulatorOf = typename Accumulator<T>::Type;

GPU_INLINE double widen(double x) { return x; }
GPU_INLINE Bits32 widen(Bits8 x) { return x; }
GPU_INLINE Bits32 widen(Bits16 x) { return x; }
template <class T>
GPU_INLINE float widen(T x) {
  return to_float(x);
}

constexpr unsigned kLineEach = 16;   // places, and sources of a chunk, of a thread
constexpr unsigned kLineFew = 32;    // more sources of one place are sorted by a warp
constexpr Bits16 kNowhere = 0xffff;  // the place of a source that is not added here

// Dynamic shared memory, for kLineEach * threads places and as many sources.
template <class A>
struct LineRoom {
  unsigned size;
  A* values;       // of the sources
  Bits16* ends;    // of each place: how many sources, where they begin in `order`, where they end
  Bits16* order;   // numbers of sources, those of one place together
  Bits16* places;  // of the sources
  A* sums;         // of the places, where a line has several chunks

  GPU_INLINE LineRoom()
      : size(kLineEach * block_threads()),
        values(static_cast<A*>(dynamic_shared())),
        ends(reinterpret_cast<Bits16*>(values + size)),
        order(ends + size),
        places(order + size),
        sums(reinterpret_cast<A*>(places + size)) {}

  GPU_INLINE unsigned begin(unsigned place) const { return place == 0 ? 0 : ends[place - 1]; }
  // A word counts two places.
  GPU_INLINE Bits32* words() const { return reinterpret_cast<Bits32*>(ends); }
  // A bit for each source, for every warp: where places were, once these are not needed.
  GPU_INLINE Bits32* mask() const {
    return reinterpret_cast<Bits32*>(places) + warp_index() * (size / 32);
  }
};

// One more of a place; returns what there was.
template <class A>
GPU_INLINE unsigned count_place(const LineRoom<A>& room, unsigned place) {
  const unsigned shift = place % 2 * 16;
  return atomic_add(room.words() + place / 2, Bits32{1} << shift) >> shift & 0xffffu;
}

// Counts the `live` sources of a chunk by place, and keeps their values and places. `src` and
// `ids_at` are of the first of them.
template <class T, class A>
GPU_INLINE void count_sources(const LineRoom<A>& room, const T* src, Index src_step, const Ids& ids,
                              Index ids_at, unsigned live, Index tile, unsigned here) {
  const unsigned threads = block_threads(), t = thread_index();
  {
    constexpr int kAtOnce = 8;  // loads on their way
    const Index hop = threads * src_step;
    src += t * src_step;
    GPU_ROLLED
    for (unsigned first = t; first < room.size; first += kAtOnce * threads) {
      T value[kAtOnce] = {};
      GPU_UNROLLED
      for (unsigned u = 0; u < kAtOnce; ++u) {
        if (first + u * threads < live) value[u] = *src;
        src += hop;
      }
      GPU_UNROLLED
      for (unsigned u = 0; u < kAtOnce; ++u) room.values[first + u * threads] = widen(value[u]);
    }
  }
  constexpr int kAtOnce = 4;
  GPU_ROLLED
  for (unsigned first = t; first < room.size; first += kAtOnce * threads) {
    Index where[kAtOnce], id[kAtOnce];
    GPU_UNROLLED
    for (unsigned u = 0; u < kAtOnce; ++u) {
      const unsigned n = first + u * threads;
      where[u] = n < live ? ids_at + n : -1;
    }
    load_ids(ids, where, id);
    GPU_UNROLLED
    for (unsigned u = 0; u < kAtOnce; ++u) {
      const unsigned n = first + u * threads;
      const auto place = static_cast<Bits64>(id[u] - tile);
      const bool inside = place < here && id[u] != ids.nothing;
      if (inside) count_place(room, static_cast<unsigned>(place));
      room.places[n] = inside ? static_cast<Bits16>(place) : kNowhere;
      if (!inside && n < live) check_id(ids, id[u]);  // reports a bad one
    }
  }
}

// Counts become beginnings. Called by all threads; the counts are there.
template <class A>
GPU_INLINE void settle_begins(const LineRoom<A>& room) {
  struct alignas(16) Words {
    Bits32 at[4];
  };
  GPU_SHARED Bits32 of_warps[kBlockThreads / kWarp];
  constexpr unsigned kWords = kLineEach / 8;
  Words* const own = reinterpret_cast<Words*>(room.words()) + thread_index() * kWords;
  Words words[kWords];
  Bits32 mine = 0;
  GPU_UNROLLED
  for (unsigned w = 0; w < kWords; ++w) {
    words[w] = own[w];
    GPU_UNROLLED
    for (int k = 0; k < 4; ++k) mine += (words[w].at[k] & 0xffffu) + (words[w].at[k] >> 16);
  }
  const Bits32 sum = sum_to_here(mine);
  if (lane() == kWarp - 1) of_warps[warp_index()] = sum;
  barrier();
  Bits32 begin = sum - mine;
  GPU_ROLLED
  for (unsigned w = 0; w < warp_index(); ++w) begin += of_warps[w];
  GPU_UNROLLED
  for (unsigned w = 0; w < kWords; ++w) {
    GPU_UNROLLED
    for (int k = 0; k < 4; ++k) {
      const Bits32 high = begin + (words[w].at[k] & 0xffffu);
      const Bits32 next = high + (words[w].at[k] >> 16);
      words[w].at[k] = begin | high << 16;
      begin = next;
    }
    own[w] = words[w];
  }
}

GPU_INLINE void put_in_order(unsigned& a, unsigned& b) {
  const unsigned low = a < b ? a : b;
  b = a < b ? b : a;
  a = low;
}

// sum + the sources order[begin, begin + count), few of them, in their order.
template <class A>
GPU_INLINE A add_few(const LineRoom<A>& room, unsigned begin, unsigned count, A sum) {
  Bits16* const numbers = room.order + begin;
  if (count <= 4) {
    unsigned k[4];
    GPU_UNROLLED
    for (unsigned j = 0; j < 4; ++j) k[j] = j < count ? numbers[j] : 0xffffu;
    put_in_order(k[0], k[1]);
    put_in_order(k[2], k[3]);
    put_in_order(k[0], k[2]);
    put_in_order(k[1], k[3]);
    put_in_order(k[1], k[2]);
    GPU_UNROLLED
    for (unsigned j = 0; j < 4; ++j) {
      if (j < count) sum += room.values[k[j]];
    }
    return sum;
  }
  GPU_ROLLED
  for (unsigned j = 1; j < count; ++j) {
    const Bits16 number = numbers[j];
    unsigned to = j;
    GPU_ROLLED
    for (; to > 0 && numbers[to - 1] > number; --to) numbers[to] = numbers[to - 1];
    numbers[to] = number;
  }
  GPU_ROLLED
  for (unsigned j = 0; j < count; ++j) sum += room.values[numbers[j]];
  return sum;
}

// The same for any number of sources, by a warp. All lanes have the result.
template <class A>
GPU_INLINE A add_many(const LineRoom<A>& room, unsigned begin, unsigned count, A sum) {
  const unsigned words = room.size / 32;
  Bits32* const mask = room.mask();
  Bits16* const numbers = room.order + begin;
  GPU_ROLLED
  for (unsigned w = lane(); w < words; w += kWarp) mask[w] = 0;
  warp_meet();
  GPU_ROLLED
  for (unsigned j = lane(); j < count; j += kWarp) {
    atomic_or(mask + numbers[j] / 32, Bits32{1} << numbers[j] % 32);
  }
  warp_meet();
  unsigned done = 0;  // numbers written so far, in ascending order
  GPU_ROLLED
  for (unsigned w = lane(); w - lane() < words; w += kWarp) {
    Bits32 bits = w < words ? mask[w] : 0;
    const unsigned mine = count_bits(bits);
    const unsigned end = sum_to_here(mine);
    GPU_ROLLED
    for (unsigned at = done + end - mine; bits != 0; bits &= bits - 1) {
      numbers[at++] = static_cast<Bits16>(w * 32 + count_bits((bits & (0 - bits)) - 1));
    }
    done += shuffle(end, kWarp - 1);
  }
  warp_meet();
  GPU_ROLLED
  for (unsigned j = 0; j < count; j += kWarp) {
    const A value = j + lane() < count ? room.values[numbers[j + lane()]] : A(0);
    const unsigned live = count - j < kWarp ? count - j : kWarp;
    GPU_ROLLED
    for (unsigned l = 0; l < live; ++l) sum += shuffle(value, l);
  }
  return sum;
}

// out[place] = before[place] + the sources of the place. `before` has the places of `out`, and may
// be it. Indices lie side by side. The grid's second axis counts tiles of a line. A block has up to
// 256 threads, and dynamic shared memory for its LineRoom; `sums` of that only where a line has
// more sources than a chunk. Operands: ids, src, out, for the lines.
template <class T>
GPU_INLINE void add_lines(T* out, const T* before, const T* src, const Ids& ids, const Line& line,
                          Index places, const Strided<3>& at) {
  await_earlier();
  using A = AccumulatorOf<T>;
  const LineRoom<A> room;
  // Places with many sources. More of them than this do not fit a chunk.
  GPU_SHARED Bits16 many[kLineEach * kBlockThreads / kLineFew];
  GPU_SHARED Bits32 many_count;
  GPU_SHARED Offsets<3> o;
  const unsigned threads = block_threads(), t = thread_index();
  const Index hop = threads * line.out_step;
  const Index tile = Index{block_index<1>()} * room.size;
  const unsigned here =
      places - tile < room.size ? static_cast<unsigned>(places - tile) : room.size;
  GPU_ROLLED
  for (Index number = block_index(); number < at.count; number += block_count()) {
    if (t == 0) o = offsets(at, number);  // seen after the next barrier
    GPU_ROLLED
    for (Index first = 0; first < line.length; first += room.size) {
      const Index left = line.length - first;
      const bool is_first = first == 0, is_last = left <= room.size;
      GPU_UNROLLED
      for (unsigned i = 0; i < kLineEach / 2; ++i) room.words()[i * threads + t] = 0;
      if (t == 0) many_count = 0;
      barrier();
      count_sources(room, src + o.at[1] + first * line.src_step, line.src_step, ids,
                    o.at[0] + first, is_last ? static_cast<unsigned>(left) : room.size, tile, here);
      barrier();
      settle_begins(room);
      barrier();
      GPU_ROLLED
      for (unsigned n = t; n < room.size; n += threads) {
        const Bits16 place = room.places[n];
        if (place != kNowhere) room.order[count_place(room, place)] = static_cast<Bits16>(n);
      }
      barrier();
      const Index at_tile = o.at[2] + tile * line.out_step;
      const T* old = before + at_tile + t * line.out_step;
      T* to = out + at_tile + t * line.out_step;
      constexpr unsigned kAtOnce = 4;
      GPU_ROLLED
      for (unsigned place = t; place < here;) {
        A sums[kAtOnce] = {};
        GPU_UNROLLED
        for (unsigned u = 0; u < kAtOnce; ++u) {
          const unsigned k = place + u * threads;
          if (k < here) sums[u] = is_first ? A(widen(*old)) : room.sums[k];
          old += hop;
        }
        GPU_ROLLED
        for (unsigned u = 0; u < kAtOnce && place < here; ++u) {
          const unsigned begin = room.begin(place), count = room.ends[place] - begin;
          A sum = u == 0 ? sums[0] : u == 1 ? sums[1] : u == 2 ? sums[2] : sums[3];
          if (count > kLineFew) {
            many[atomic_add(&many_count, 1u)] = static_cast<Bits16>(place);
          } else {
            sum = add_few(room, begin, count, sum);
          }
          if (is_last && count <= kLineFew) *to = convert<T>(sum);
          if (!is_last) room.sums[place] = sum;
          place += threads;
          to += hop;
        }
      }
      barrier();
      GPU_ROLLED
      for (unsigned m = warp_index(); m < many_count; m += threads / kWarp) {
        const unsigned place = many[m];
        const unsigned begin = room.begin(place);
        const Index at_place = at_tile + place * line.out_step;
        const A start = is_first ? A(widen(before[at_place])) : room.sums[place];
        const A sum = add_many(room, begin, room.ends[place] - begin, start);
        if (lane() == 0 && is_last) out[at_place] = convert<T>(sum);
        if (lane() == 0 && !is_last) room.sums[place] = sum;
      }
      barrier();
    }
  }
}
