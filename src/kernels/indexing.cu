// Module INDEXING: moving and adding elements to where indices say.
//
// Every kernel walks the shape of the result (or of the indices) with strided operands, so
// index_select, embedding and gather are one kernel, and scatter, index_add and indexed assignment
// share theirs. An operand's stride along the indexed dimension is left out of its walk and given
// as `step`. Moves go by the size of what is moved, up to 16 bytes where a row allows it; adds go
// by dtype. A bad index is reported and treated as the sentinel.
//
// Results never depend on the order in which threads run. Integers are added by atomics, which
// commute; of several writes to one place the last along the dimension is chosen by an atomic
// maximum; floats are added in one of four ways, see src/ops/gpu/indexing.cpp.
//
// Launched with 256 threads per block; any grid unless a kernel says otherwise.
#include "gpu.h"
#include "line_sums.h"
#include "read_ids.h"

struct alignas(16) Bits128 {
  Bits64 low, high;
};

GPU_INLINE unsigned count_ones(Bits64 x) {
  x -= x >> 1 & 0x5555555555555555ull;
  x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
  return static_cast<unsigned>(x * 0x0101010101010101ull >> 56);
}
GPU_INLINE Bits64 lanes_below() { return (Bits64{1} << lane()) - 1; }

// ---- moves

// Results that are larger than caches pass by them, so that what is read again stays.
template <class T>
GPU_INLINE void store_result(T* p, T value, bool passes) {
  if (passes) {
    store_once(p, value);
  } else {
    *p = value;
  }
}

// out[at out] = in[at in + id * step], 0 for the sentinel. Operands of the walk: ids, in, out. Four
// elements at a time, so that their loads are under way together.
template <class T>
GPU_INLINE void gather(const T* in, T* out, const Ids& ids, Index step, unsigned passes,
                       const Strided<3>& at) {
  await_earlier();
  constexpr int kEach = 4;
  const Index tile = Index{kEach} * block_threads();
  GPU_ROLLED
  for (Index start = block_index() * tile; start < at.count; start += block_count() * tile) {
    const Index i = start + thread_index();
    Index where[kEach], from[kEach], to[kEach], id[kEach];
    GPU_UNROLLED
    for (int u = 0; u < kEach; ++u) {
      where[u] = -1;
      from[u] = to[u] = 0;
      if (i + u * Index{block_threads()} < at.count) {
        const Offsets<3> o = offsets(at, i + u * Index{block_threads()});
        where[u] = o.at[0];
        from[u] = o.at[1];
        to[u] = o.at[2];
      }
    }
    load_ids(ids, where, id);
    T value[kEach];
    GPU_UNROLLED
    for (int u = 0; u < kEach; ++u) {
      value[u] = T{};
      const Index found = where[u] >= 0 ? check_id(ids, id[u]) : -1;
      if (found >= 0) value[u] = in[from[u] + found * step];
    }
    GPU_UNROLLED
    for (int u = 0; u < kEach; ++u) {
      if (where[u] >= 0) store_result(out + to[u], value[u], passes != 0);
    }
  }
}

GPU_KERNEL void gather_1(const Bits8* in, Bits8* out, Ids ids, Index step, unsigned passes,
                         Strided<3> at) {
  gather(in, out, ids, step, passes, at);
}
GPU_KERNEL void gather_2(const Bits16* in, Bits16* out, Ids ids, Index step, unsigned passes,
                         Strided<3> at) {
  gather(in, out, ids, step, passes, at);
}
GPU_KERNEL void gather_4(const Bits32* in, Bits32* out, Ids ids, Index step, unsigned passes,
                         Strided<3> at) {
  gather(in, out, ids, step, passes, at);
}
GPU_KERNEL void gather_8(const Bits64* in, Bits64* out, Ids ids, Index step, unsigned passes,
                         Strided<3> at) {
  gather(in, out, ids, step, passes, at);
}
GPU_KERNEL void gather_16(const Bits128* in, Bits128* out, Ids ids, Index step, unsigned passes,
                          Strided<3> at) {
  gather(in, out, ids, step, passes, at);
}

// The same for lines whose indices are their own: a block takes a line, `size` elements without
// gaps, into dynamic shared memory and picks from there. Of each line `length` are picked, which is
// how they lie in the result; their indices have no gaps. Operands of the walk over lines: ids, in.
template <class T>
GPU_INLINE void gather_lines(const T* in, T* out, const Ids& ids, Index length, unsigned passes,
                             const Strided<2>& at) {
  await_earlier();
  constexpr int kEach = 4, kVector = 16 / sizeof(T);
  constexpr Index kBatch = Index{kEach} * kBlockThreads;
  T* kept = static_cast<T*>(dynamic_shared());
  const unsigned size = static_cast<unsigned>(ids.size);
  GPU_ROLLED
  for (Index line = block_index(); line < at.count; line += block_count()) {
    const Offsets<2> o = offsets(at, line);
    const T* from = in + o.at[1];
    // Indices are on their way while the line is brought, and then the next while these are used.
    Index id[kEach] = {};
    GPU_ROLLED
    for (Index first = -kBatch; first < length; first += kBatch) {
      int place[kEach];
      Index where[kEach];
      const Index self = first + thread_index();
      GPU_UNROLLED
      for (int u = 0; u < kEach; ++u) {
        const bool is_there = first >= 0 && self + u * kBlockThreads < length;
        place[u] = is_there ? static_cast<int>(check_id(ids, id[u])) : -1;
        const Index next = self + kBatch + u * kBlockThreads;
        where[u] = next < length ? o.at[0] + next : -1;
      }
      load_ids(ids, where, id);
      if (first < 0) {
        const unsigned vectors = is_vec_aligned<kVector>(from) ? size / kVector : 0;
        GPU_ROLLED
        for (unsigned i = thread_index(); i < vectors; i += kEach * kBlockThreads) {
          Vec<T, kVector> part[kEach];
          GPU_UNROLLED
          for (int u = 0; u < kEach; ++u) {
            const unsigned k = i + u * kBlockThreads;
            if (k < vectors) part[u] = load_vec<kVector>(from + k * kVector);
          }
          GPU_UNROLLED
          for (int u = 0; u < kEach; ++u) {
            const unsigned k = i + u * kBlockThreads;
            if (k < vectors) store_vec(kept + k * kVector, part[u]);
          }
        }
        GPU_ROLLED
        for (unsigned i = vectors * kVector + thread_index(); i < size; i += kBlockThreads) {
          kept[i] = from[i];
        }
        barrier();
        continue;
      }
      T* to = out + line * length + self;
      GPU_UNROLLED
      for (int u = 0; u < kEach; ++u) {
        if (self + u * kBlockThreads >= length) continue;
        store_result(to + u * kBlockThreads, place[u] >= 0 ? kept[place[u]] : T{}, passes != 0);
      }
    }
    barrier();
  }
}

GPU_KERNEL void gather_lines_1(const Bits8* in, Bits8* out, Ids ids, Index length, unsigned passes,
                               Strided<2> at) {
  gather_lines(in, out, ids, length, passes, at);
}
GPU_KERNEL void gather_lines_2(const Bits16* in, Bits16* out, Ids ids, Index length,
                               unsigned passes, Strided<2> at) {
  gather_lines(in, out, ids, length, passes, at);
}
GPU_KERNEL void gather_lines_4(const Bits32* in, Bits32* out, Ids ids, Index length,
                               unsigned passes, Strided<2> at) {
  gather_lines(in, out, ids, length, passes, at);
}
GPU_KERNEL void gather_lines_8(const Bits64* in, Bits64* out, Ids ids, Index length,
                               unsigned passes, Strided<2> at) {
  gather_lines(in, out, ids, length, passes, at);
}

// A copy whose source strides may be negative: `in` is the element at position 0.
template <class T>
GPU_INLINE void flip(const T* in, T* out, const Strided<1>& at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) { out[i] = in[offset(at, i)]; });
}

GPU_KERNEL void flip_1(const Bits8* in, Bits8* out, Strided<1> at) { flip(in, out, at); }
GPU_KERNEL void flip_2(const Bits16* in, Bits16* out, Strided<1> at) { flip(in, out, at); }
GPU_KERNEL void flip_4(const Bits32* in, Bits32* out, Strided<1> at) { flip(in, out, at); }
GPU_KERNEL void flip_8(const Bits64* in, Bits64* out, Strided<1> at) { flip(in, out, at); }
GPU_KERNEL void flip_16(const Bits128* in, Bits128* out, Strided<1> at) { flip(in, out, at); }

// Which of the writes to a place comes last: the one whose index lies furthest in the tensor of
// indices, since that offset grows along the dimension. Operands: ids, winner.
GPU_KERNEL void claim(Bits32* winner, Ids ids, Index step, Strided<2> at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Offsets<2> o = offsets(at, i);
    const Index id = read_id(ids, o.at[0]);
    if (id >= 0) atomic_max(winner + o.at[1] + id * step, static_cast<Bits32>(o.at[0] + 1));
  });
}

// Writes where the claim was won, or everywhere without claims. Operands: ids, src, out, winner.
template <class T>
GPU_INLINE void put(T* out, const T* src, const Ids& ids, Index step, const Bits32* winner,
                    Index winner_step, const Strided<4>& at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Offsets<4> o = offsets(at, i);
    const Index id = read_id(ids, o.at[0]);
    if (id < 0) return;
    if (winner != nullptr &&
        winner[o.at[3] + id * winner_step] != static_cast<Bits32>(o.at[0] + 1)) {
      return;
    }
    out[o.at[2] + id * step] = src[o.at[1]];
  });
}

GPU_KERNEL void put_1(Bits8* out, const Bits8* src, Ids ids, Index step, const Bits32* winner,
                      Index winner_step, Strided<4> at) {
  put(out, src, ids, step, winner, winner_step, at);
}
GPU_KERNEL void put_2(Bits16* out, const Bits16* src, Ids ids, Index step, const Bits32* winner,
                      Index winner_step, Strided<4> at) {
  put(out, src, ids, step, winner, winner_step, at);
}
GPU_KERNEL void put_4(Bits32* out, const Bits32* src, Ids ids, Index step, const Bits32* winner,
                      Index winner_step, Strided<4> at) {
  put(out, src, ids, step, winner, winner_step, at);
}
GPU_KERNEL void put_8(Bits64* out, const Bits64* src, Ids ids, Index step, const Bits32* winner,
                      Index winner_step, Strided<4> at) {
  put(out, src, ids, step, winner, winner_step, at);
}

// f(out offset, src offset) for every element in order, one thread per line. Operands: ids, src,
// out.
template <class F>
GPU_INLINE void walk_lines(const Ids& ids, const Line& line, const Strided<3>& at, F f) {
  grid_stride(at.count, [&](Index i) {
    const Offsets<3> o = offsets(at, i);
    GPU_ROLLED
    for (Index k = 0; k < line.length; ++k) {
      const Index id = read_id(ids, o.at[0] + k * line.ids_step);
      if (id >= 0) f(o.at[2] + id * line.out_step, o.at[1] + k * line.src_step);
    }
  });
}

template <class T>
GPU_INLINE void put_walk(T* out, const T* src, const Ids& ids, const Line& line,
                         const Strided<3>& at) {
  await_earlier();
  walk_lines(ids, line, at, [&](Index to, Index from) { out[to] = src[from]; });
}

GPU_KERNEL void put_walk_1(Bits8* out, const Bits8* src, Ids ids, Index length, Index ids_step,
                           Index src_step, Index out_step, Strided<3> at) {
  put_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void put_walk_2(Bits16* out, const Bits16* src, Ids ids, Index length, Index ids_step,
                           Index src_step, Index out_step, Strided<3> at) {
  put_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void put_walk_4(Bits32* out, const Bits32* src, Ids ids, Index length, Index ids_step,
                           Index src_step, Index out_step, Strided<3> at) {
  put_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void put_walk_8(Bits64* out, const Bits64* src, Ids ids, Index length, Index ids_step,
                           Index src_step, Index out_step, Strided<3> at) {
  put_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}

// ---- adds: integers of 4 and 8 bytes, by atomics

template <class T>
GPU_INLINE void add_atomic(T* out, const T* src, const Ids& ids, Index step, const Strided<3>& at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Offsets<3> o = offsets(at, i);
    const Index id = read_id(ids, o.at[0]);
    if (id >= 0) atomic_add(out + o.at[2] + id * step, src[o.at[1]]);
  });
}

GPU_KERNEL void add_atomic_4(Bits32* out, const Bits32* src, Ids ids, Index step, Strided<3> at) {
  add_atomic(out, src, ids, step, at);
}
GPU_KERNEL void add_atomic_8(Bits64* out, const Bits64* src, Ids ids, Index step, Strided<3> at) {
  add_atomic(out, src, ids, step, at);
}

// ---- adds: one thread per line

// `out` has the type of the sums for small floats (each is rounded once, at the end, by a cast) and
// T itself for the others.
template <class To, class T>
GPU_INLINE void add_walk(To* out, const T* src, const Ids& ids, const Line& line,
                         const Strided<3>& at) {
  await_earlier();
  walk_lines(ids, line, at, [&](Index to, Index from) {
    out[to] = static_cast<To>(widen(out[to]) + widen(src[from]));
  });
}

GPU_KERNEL void add_walk_1(Bits8* out, const Bits8* src, Ids ids, Index length, Index ids_step,
                           Index src_step, Index out_step, Strided<3> at) {
  add_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void add_walk_2(Bits16* out, const Bits16* src, Ids ids, Index length, Index ids_step,
                           Index src_step, Index out_step, Strided<3> at) {
  add_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void add_walk_f8e4m3(float* out, const Float8* src, Ids ids, Index length,
                                Index ids_step, Index src_step, Index out_step, Strided<3> at) {
  add_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void add_walk_f16(float* out, const Half* src, Ids ids, Index length, Index ids_step,
                             Index src_step, Index out_step, Strided<3> at) {
  add_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void add_walk_bf16(float* out, const BFloat16* src, Ids ids, Index length,
                              Index ids_step, Index src_step, Index out_step, Strided<3> at) {
  add_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void add_walk_f32(float* out, const float* src, Ids ids, Index length, Index ids_step,
                             Index src_step, Index out_step, Strided<3> at) {
  add_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}
GPU_KERNEL void add_walk_f64(double* out, const double* src, Ids ids, Index length, Index ids_step,
                             Index src_step, Index out_step, Strided<3> at) {
  add_walk(out, src, ids, {length, ids_step, src_step, out_step}, at);
}

// ---- adds: exact sums in fixed point
//
// A float is a 24-bit integer m times 2^(e - 150), with e from 1 to 254. Each place of the result
// has 16 integers of 64 bits, one for every 16 values of e; m << (e mod 16) is added to the one
// that e belongs to. Such an addend is below 2^39, so 2^24 of them fit, and adding integers by
// atomics gives the same sum in any order. One atomic per element, as for an inexact sum of floats.

constexpr int kBins = 16;
constexpr Bits32 kPlusInfinity = 1, kMinusInfinity = 2, kNotANumber = 4;

// Operands: ids, src, out (whose offsets count places).
template <class T>
GPU_INLINE void add_bins(Bits64* bins, Bits32* special, const T* src, const Ids& ids, Index step,
                         const Strided<3>& at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Offsets<3> o = offsets(at, i);
    const Index id = read_id(ids, o.at[0]);
    if (id < 0) return;
    const Bits32 b = bits::bits_of(to_float(src[o.at[1]]));
    const bool negative = b >> 31 != 0;
    unsigned exponent = b >> 23 & 0xff;
    Bits64 mantissa = b & 0x7fffff;
    const Index place = o.at[2] + id * step;
    if (exponent == 0xff) {
      atomic_or(special + place, mantissa != 0 ? kNotANumber
                                 : negative    ? kMinusInfinity
                                               : kPlusInfinity);
      return;
    }
    if (exponent == 0) {
      if (mantissa == 0) return;
      exponent = 1;
    } else {
      mantissa |= 0x800000;
    }
    const Bits64 addend = mantissa << (exponent & 15);
    atomic_add(bins + place * kBins + (exponent >> 4), negative ? 0 - addend : addend);
  });
}

GPU_KERNEL void add_bins_f8e4m3(Bits64* bins, Bits32* special, const Float8* src, Ids ids,
                                Index step, Strided<3> at) {
  add_bins(bins, special, src, ids, step, at);
}
GPU_KERNEL void add_bins_f16(Bits64* bins, Bits32* special, const Half* src, Ids ids, Index step,
                             Strided<3> at) {
  add_bins(bins, special, src, ids, step, at);
}
GPU_KERNEL void add_bins_bf16(Bits64* bins, Bits32* special, const BFloat16* src, Ids ids,
                              Index step, Strided<3> at) {
  add_bins(bins, special, src, ids, step, at);
}
GPU_KERNEL void add_bins_f32(Bits64* bins, Bits32* special, const float* src, Ids ids, Index step,
                             Strided<3> at) {
  add_bins(bins, special, src, ids, step, at);
}

// out[i] += the sum of its bins, added up in double.
template <class T>
GPU_INLINE void settle_bins(T* out, const Bits64* bins, const Bits32* special, Index count) {
  await_earlier();
  grid_stride(count, [&](Index i) {
    double sum = 0;
    bool any = false;
    for (int b = kBins - 2; b >= 0; b -= 2) {
      const Vec<Bits64, 2> pair = load_vec<2>(bins + i * kBins + b);
      for (int k = 1; k >= 0; --k) {
        const auto bin = static_cast<long long>(pair.get(k));
        if (bin == 0) continue;
        any = true;
        const auto exponent = static_cast<Bits64>(1023 - 150 + 16 * (b + k));
        sum += static_cast<double>(bin) * __builtin_bit_cast(double, exponent << 52);
      }
    }
    if (const Bits32 seen = special[i]; seen != 0) {
      any = true;
      if (seen & kPlusInfinity) sum += static_cast<double>(math::kInfinity);
      if (seen & kMinusInfinity) sum -= static_cast<double>(math::kInfinity);
      if (seen & kNotANumber) sum += static_cast<double>(bits::float_of(0x7fc00000u));
    }
    if (any) out[i] = convert<T>(static_cast<double>(to_float(out[i])) + sum);
  });
}

GPU_KERNEL void settle_bins_f8e4m3(Float8* out, const Bits64* bins, const Bits32* special,
                                   Index count) {
  settle_bins(out, bins, special, count);
}
GPU_KERNEL void settle_bins_f16(Half* out, const Bits64* bins, const Bits32* special, Index count) {
  settle_bins(out, bins, special, count);
}
GPU_KERNEL void settle_bins_bf16(BFloat16* out, const Bits64* bins, const Bits32* special,
                                 Index count) {
  settle_bins(out, bins, special, count);
}
GPU_KERNEL void settle_bins_f32(float* out, const Bits64* bins, const Bits32* special,
                                Index count) {
  settle_bins(out, bins, special, count);
}

// ---- scans over a block

// The sum over threads before this one in a block of kBlockThreads; `total` is over all of them.
template <class T>
GPU_INLINE T block_sum_before(T value, T* total) {
  constexpr unsigned kWarps = kBlockThreads / kWarp;
  GPU_SHARED T sums[kWarps];
  const T sum = sum_to_here(value);
  if (lane() == kWarp - 1) sums[warp_index()] = sum;
  barrier();
  T result = sum - value, all = T(0);
  GPU_UNROLLED
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp_index()) result += sums[w];
    all += sums[w];
  }
  *total = all;
  barrier();
  return result;
}

// ---- adds: a block per line, see line_sums.h

#undef GPU_LEAST_BLOCKS
#define GPU_LEAST_BLOCKS 4  // take 0.87 of the time of three

GPU_KERNEL void add_lines_1(Bits8* out, const Bits8* before, const Bits8* src, Ids ids,
                            Index length, Index src_step, Index out_step, Index places,
                            Strided<3> at) {
  add_lines(out, before, src, ids, {length, 1, src_step, out_step}, places, at);
}
GPU_KERNEL void add_lines_2(Bits16* out, const Bits16* before, const Bits16* src, Ids ids,
                            Index length, Index src_step, Index out_step, Index places,
                            Strided<3> at) {
  add_lines(out, before, src, ids, {length, 1, src_step, out_step}, places, at);
}
GPU_KERNEL void add_lines_f8e4m3(Float8* out, const Float8* before, const Float8* src, Ids ids,
                                 Index length, Index src_step, Index out_step, Index places,
                                 Strided<3> at) {
  add_lines(out, before, src, ids, {length, 1, src_step, out_step}, places, at);
}
GPU_KERNEL void add_lines_f16(Half* out, const Half* before, const Half* src, Ids ids, Index length,
                              Index src_step, Index out_step, Index places, Strided<3> at) {
  add_lines(out, before, src, ids, {length, 1, src_step, out_step}, places, at);
}
GPU_KERNEL void add_lines_bf16(BFloat16* out, const BFloat16* before, const BFloat16* src, Ids ids,
                               Index length, Index src_step, Index out_step, Index places,
                               Strided<3> at) {
  add_lines(out, before, src, ids, {length, 1, src_step, out_step}, places, at);
}
GPU_KERNEL void add_lines_f32(float* out, const float* before, const float* src, Ids ids,
                              Index length, Index src_step, Index out_step, Index places,
                              Strided<3> at) {
  add_lines(out, before, src, ids, {length, 1, src_step, out_step}, places, at);
}
GPU_KERNEL void add_lines_f64(double* out, const double* before, const double* src, Ids ids,
                              Index length, Index src_step, Index out_step, Index places,
                              Strided<3> at) {
  add_lines(out, before, src, ids, {length, 1, src_step, out_step}, places, at);
}

#undef GPU_LEAST_BLOCKS
#define GPU_LEAST_BLOCKS 0

// Replaces each of `count` values by the sum of those before it, in one block; returns the whole
// sum.
template <class T>
GPU_INLINE T scan_in_block(T* values, Index count) {
  const Index each = (count + kBlockThreads - 1) / kBlockThreads;
  const Index first = thread_index() * each;
  const Index last = first + each < count ? first + each : count;
  T mine = 0;
  for (Index i = first; i < last; ++i) mine += values[i];
  T total = 0;
  T sum = block_sum_before(mine, &total);
  for (Index i = first; i < last; ++i) {
    const T value = values[i];
    values[i] = sum;
    sum += value;
  }
  return total;
}

// ---- sorting keys, stable: least significant digit first, eight bits at a time

constexpr int kDigits = 256;
constexpr int kEachThread = 8;
constexpr Index kSortTile = kBlockThreads * kEachThread;
static_assert(kBlockThreads == kDigits);  // a thread per digit

// The place each index names, or `none`, and where it stands. Operands: ids, out.
GPU_KERNEL void make_keys(Bits32* keys, Bits32* positions, Ids ids, Index step, Bits32 none,
                          Strided<2> at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Offsets<2> o = offsets(at, i);
    const Index id = read_id(ids, o.at[0]);
    keys[i] = id >= 0 ? static_cast<Bits32>(o.at[1] + id * step) : none;
    positions[i] = static_cast<Bits32>(i);
  });
}

// counts[digit][block]: how often each digit occurs in a block's part, `each` keys.
GPU_KERNEL void radix_count(const Bits32* keys, Bits32* counts, Index count, Index each,
                            unsigned shift) {
  await_earlier();
  GPU_SHARED Bits32 seen[kDigits];
  seen[thread_index()] = 0;
  barrier();
  const Index first = block_index() * each;
  const Index last = first + each < count ? first + each : count;
  for (Index i = first + thread_index(); i < last; i += kBlockThreads) {
    atomic_add(&seen[keys[i] >> shift & (kDigits - 1)], 1u);
  }
  barrier();
  counts[static_cast<Index>(thread_index()) * block_count() + block_index()] = seen[thread_index()];
}

// A block per digit: its counts become offsets, its sum goes to `totals`.
GPU_KERNEL void radix_scan(Bits32* counts, Bits32* totals, Index blocks) {
  await_earlier();
  const Bits32 total = scan_in_block(counts + block_index() * blocks, blocks);
  if (thread_index() == 0) totals[block_index()] = total;
}

// The same grid as radix_count. A warp takes consecutive keys, and in each round its lanes do too,
// so ranks follow the order of the input.
GPU_KERNEL void radix_move(const Bits32* keys, const Bits32* positions, Bits32* keys_out,
                           Bits32* positions_out, const Bits32* counts, const Bits32* totals,
                           Index count, Index each, unsigned shift) {
  await_earlier();
  constexpr unsigned kWarps = kBlockThreads / kWarp;
  GPU_SHARED Bits32 next[kWarps][kDigits];  // first counts, then where a warp's next key goes
  const unsigned self = thread_index(), warp = warp_index();
  Bits32 unused = 0;
  Bits32 start = block_sum_before(totals[self], &unused) +
                 counts[static_cast<Index>(self) * block_count() + block_index()];

  const Index first = block_index() * each;
  const Index last = first + each < count ? first + each : count;
  GPU_ROLLED
  for (Index tile = first; tile < last; tile += kSortTile) {
    for (unsigned w = 0; w < kWarps; ++w) next[w][self] = 0;
    barrier();
    Bits32 key[kEachThread], rank[kEachThread];
    const Index from = tile + warp * kWarp * kEachThread + lane();
    for (int round = 0; round < kEachThread; ++round) {
      const Index i = from + round * kWarp;
      const bool live = i < last;
      key[round] = live ? keys[i] : 0;
      const Bits32 digit = key[round] >> shift & (kDigits - 1);
      Bits64 peers = warp_ballot(live);  // lanes with the same digit
      for (int bit = 0; bit < 8; ++bit) {
        const bool set = (digit >> bit & 1) != 0;
        const Bits64 those = warp_ballot(set);
        peers &= set ? those : ~those;
      }
      const unsigned leader = live ? count_ones((peers & (0 - peers)) - 1) : lane();
      Bits32 before = 0;
      if (live && leader == lane()) before = atomic_add(&next[warp][digit], count_ones(peers));
      rank[round] = shuffle(before, leader) + count_ones(peers & lanes_below());
    }
    barrier();
    for (unsigned w = 0; w < kWarps; ++w) {
      const Bits32 here = next[w][self];
      next[w][self] = start;
      start += here;
    }
    barrier();
    for (int round = 0; round < kEachThread; ++round) {
      const Index i = from + round * kWarp;
      if (i >= last) continue;
      const Bits32 to = next[warp][key[round] >> shift & (kDigits - 1)] + rank[round];
      keys_out[to] = key[round];
      positions_out[to] = positions[i];
    }
    barrier();
  }
}

// ---- adds: sums over runs of equal sorted keys
//
// A thread sums one column over a tile of 64 entries. A run that lies within its tile is added to
// the result at once. One that crosses into the next tile leaves what it has in `partial`, as the
// tail of its first tile and the head of each later one, and add_tails puts the pieces together in
// order: no thread walks a long run alone, and the order of additions is always the same.

constexpr Index kSumTile = 64;

// The walk goes over (tiles, columns). Operands: tile, column, src and out, the last two without
// the step between entries and the step between keys.
struct Tile {
  Index number, column, src, out;
  GPU_INLINE Tile(const Strided<4>& at, Index i) {
    const Offsets<4> o = offsets(at, i);
    number = o.at[0];
    column = o.at[1];
    src = o.at[2];
    out = o.at[3];
  }
};

template <class T>
GPU_INLINE void add_sorted(T* out, const T* src, const Bits32* keys, const Bits32* positions,
                           AccumulatorOf<T>* partial, Index count, Index width, Bits32 none,
                           Index src_step, Index key_step, const Strided<4>& at) {
  await_earlier();
  constexpr int kEach = 4;
  grid_stride(at.count, [&](Index item) {
    const Tile tile(at, item);
    const Index begin = tile.number * kSumTile;
    const Index end = begin + kSumTile < count ? begin + kSumTile : count;
    Bits32 current = keys[begin];
    bool is_head = begin > 0 && keys[begin - 1] == current;
    AccumulatorOf<T> sum = 0;
    const auto finish = [&](bool goes_on) {
      if (current == none) return;
      if (is_head) {
        partial[2 * tile.number * width + tile.column] = sum;
      } else if (goes_on) {
        partial[(2 * tile.number + 1) * width + tile.column] = sum;
      } else {
        T* to = out + tile.out + current * key_step;
        *to = convert<T>(widen(*to) + sum);
      }
    };
    GPU_ROLLED
    for (Index i = begin; i < end; i += kEach) {
      Bits32 key[kEach] = {};
      AccumulatorOf<T> value[kEach] = {};
      for (int u = 0; u < kEach; ++u) {
        if (i + u >= end) continue;
        key[u] = keys[i + u];
        value[u] = widen(src[tile.src + positions[i + u] * src_step]);
      }
      for (int u = 0; u < kEach; ++u) {
        if (i + u >= end) continue;
        if (key[u] != current) {
          finish(false);
          is_head = false;
          current = key[u];
          sum = 0;
        }
        sum += value[u];
      }
    }
    finish(end < count && keys[end] == current);
  });
}

// The walk leaves out the last tile: no run goes on after it.
template <class T>
GPU_INLINE void add_tails(T* out, const Bits32* keys, const AccumulatorOf<T>* partial, Index count,
                          Index width, Bits32 none, Index key_step, const Strided<4>& at) {
  await_earlier();
  const auto crosses = [&](Index border) {  // does a run go on over it?
    return border < count && keys[border - 1] == keys[border];
  };
  grid_stride(at.count, [&](Index item) {
    const Tile tile(at, item);
    const Index begin = tile.number * kSumTile, end = begin + kSumTile;
    const Bits32 key = keys[end - 1];
    if (key == none || !crosses(end)) return;
    if (begin > 0 && keys[begin - 1] == key) return;  // the run began before this tile
    AccumulatorOf<T> sum = partial[(2 * tile.number + 1) * width + tile.column];
    Index next = tile.number + 1;
    do {
      sum += partial[2 * next * width + tile.column];
      ++next;
    } while (next * kSumTile < count && keys[next * kSumTile - 1] == key &&
             crosses(next * kSumTile));
    T* to = out + tile.out + key * key_step;
    *to = convert<T>(widen(*to) + sum);
  });
}

GPU_KERNEL void add_sorted_1(Bits8* out, const Bits8* src, const Bits32* keys,
                             const Bits32* positions, Bits32* partial, Index count, Index width,
                             Bits32 none, Index src_step, Index key_step, Strided<4> at) {
  add_sorted(out, src, keys, positions, partial, count, width, none, src_step, key_step, at);
}
GPU_KERNEL void add_sorted_2(Bits16* out, const Bits16* src, const Bits32* keys,
                             const Bits32* positions, Bits32* partial, Index count, Index width,
                             Bits32 none, Index src_step, Index key_step, Strided<4> at) {
  add_sorted(out, src, keys, positions, partial, count, width, none, src_step, key_step, at);
}
GPU_KERNEL void add_sorted_f8e4m3(Float8* out, const Float8* src, const Bits32* keys,
                                  const Bits32* positions, float* partial, Index count, Index width,
                                  Bits32 none, Index src_step, Index key_step, Strided<4> at) {
  add_sorted(out, src, keys, positions, partial, count, width, none, src_step, key_step, at);
}
GPU_KERNEL void add_sorted_f16(Half* out, const Half* src, const Bits32* keys,
                               const Bits32* positions, float* partial, Index count, Index width,
                               Bits32 none, Index src_step, Index key_step, Strided<4> at) {
  add_sorted(out, src, keys, positions, partial, count, width, none, src_step, key_step, at);
}
GPU_KERNEL void add_sorted_bf16(BFloat16* out, const BFloat16* src, const Bits32* keys,
                                const Bits32* positions, float* partial, Index count, Index width,
                                Bits32 none, Index src_step, Index key_step, Strided<4> at) {
  add_sorted(out, src, keys, positions, partial, count, width, none, src_step, key_step, at);
}
GPU_KERNEL void add_sorted_f32(float* out, const float* src, const Bits32* keys,
                               const Bits32* positions, float* partial, Index count, Index width,
                               Bits32 none, Index src_step, Index key_step, Strided<4> at) {
  add_sorted(out, src, keys, positions, partial, count, width, none, src_step, key_step, at);
}
GPU_KERNEL void add_sorted_f64(double* out, const double* src, const Bits32* keys,
                               const Bits32* positions, double* partial, Index count, Index width,
                               Bits32 none, Index src_step, Index key_step, Strided<4> at) {
  add_sorted(out, src, keys, positions, partial, count, width, none, src_step, key_step, at);
}

GPU_KERNEL void add_tails_1(Bits8* out, const Bits32* keys, const Bits32* partial, Index count,
                            Index width, Bits32 none, Index key_step, Strided<4> at) {
  add_tails(out, keys, partial, count, width, none, key_step, at);
}
GPU_KERNEL void add_tails_2(Bits16* out, const Bits32* keys, const Bits32* partial, Index count,
                            Index width, Bits32 none, Index key_step, Strided<4> at) {
  add_tails(out, keys, partial, count, width, none, key_step, at);
}
GPU_KERNEL void add_tails_f8e4m3(Float8* out, const Bits32* keys, const float* partial, Index count,
                                 Index width, Bits32 none, Index key_step, Strided<4> at) {
  add_tails(out, keys, partial, count, width, none, key_step, at);
}
GPU_KERNEL void add_tails_f16(Half* out, const Bits32* keys, const float* partial, Index count,
                              Index width, Bits32 none, Index key_step, Strided<4> at) {
  add_tails(out, keys, partial, count, width, none, key_step, at);
}
GPU_KERNEL void add_tails_bf16(BFloat16* out, const Bits32* keys, const float* partial, Index count,
                               Index width, Bits32 none, Index key_step, Strided<4> at) {
  add_tails(out, keys, partial, count, width, none, key_step, at);
}
GPU_KERNEL void add_tails_f32(float* out, const Bits32* keys, const float* partial, Index count,
                              Index width, Bits32 none, Index key_step, Strided<4> at) {
  add_tails(out, keys, partial, count, width, none, key_step, at);
}
GPU_KERNEL void add_tails_f64(double* out, const Bits32* keys, const double* partial, Index count,
                              Index width, Bits32 none, Index key_step, Strided<4> at) {
  add_tails(out, keys, partial, count, width, none, key_step, at);
}

// ---- where a tensor is not zero

// An element counts when any of its `significant` bits is set: all of them, or all but the sign of
// a float. Each block looks at `each` elements.
template <class T>
GPU_INLINE void mask_count(const T* mask, T significant, Index* counts, Index each,
                           const Strided<1>& at) {
  await_earlier();
  const Index first = block_index() * each;
  const Index last = first + each < at.count ? first + each : at.count;
  Index mine = 0;
  for (Index i = first + thread_index(); i < last; i += kBlockThreads) {
    mine += (mask[offset(at, i)] & significant) != 0 ? 1 : 0;
  }
  const Index all = block_sum(mine);
  if (thread_index() == 0) counts[block_index()] = all;
}

GPU_KERNEL void mask_count_1(const Bits8* mask, Bits8 significant, Index* counts, Index each,
                             Strided<1> at) {
  mask_count(mask, significant, counts, each, at);
}
GPU_KERNEL void mask_count_2(const Bits16* mask, Bits16 significant, Index* counts, Index each,
                             Strided<1> at) {
  mask_count(mask, significant, counts, each, at);
}
GPU_KERNEL void mask_count_4(const Bits32* mask, Bits32 significant, Index* counts, Index each,
                             Strided<1> at) {
  mask_count(mask, significant, counts, each, at);
}
GPU_KERNEL void mask_count_8(const Bits64* mask, Bits64 significant, Index* counts, Index each,
                             Strided<1> at) {
  mask_count(mask, significant, counts, each, at);
}

// One block. counts[blocks] is the sum of the others.
GPU_KERNEL void mask_offsets(Index* counts, Index blocks) {
  await_earlier();
  const Index total = scan_in_block(counts, blocks);
  if (thread_index() == 0) counts[blocks] = total;
}

// The grid of mask_count. Row-major positions of what counts, in order.
template <class T>
GPU_INLINE void mask_positions(const T* mask, T significant, const Index* starts, Index* positions,
                               Index each, const Strided<1>& at) {
  await_earlier();
  const Index first = block_index() * each;
  const Index last = first + each < at.count ? first + each : at.count;
  Index next = starts[block_index()];
  GPU_ROLLED
  for (Index tile = first; tile < last; tile += kBlockThreads) {
    const Index i = tile + thread_index();
    const bool counts = i < last && (mask[offset(at, i)] & significant) != 0;
    unsigned total = 0;
    const unsigned before = block_sum_before(counts ? 1u : 0u, &total);
    if (counts) positions[next + before] = i;
    next += total;
  }
}

GPU_KERNEL void mask_positions_1(const Bits8* mask, Bits8 significant, const Index* starts,
                                 Index* positions, Index each, Strided<1> at) {
  mask_positions(mask, significant, starts, positions, each, at);
}
GPU_KERNEL void mask_positions_2(const Bits16* mask, Bits16 significant, const Index* starts,
                                 Index* positions, Index each, Strided<1> at) {
  mask_positions(mask, significant, starts, positions, each, at);
}
GPU_KERNEL void mask_positions_4(const Bits32* mask, Bits32 significant, const Index* starts,
                                 Index* positions, Index each, Strided<1> at) {
  mask_positions(mask, significant, starts, positions, each, at);
}
GPU_KERNEL void mask_positions_8(const Bits64* mask, Bits64 significant, const Index* starts,
                                 Index* positions, Index each, Strided<1> at) {
  mask_positions(mask, significant, starts, positions, each, at);
}

// One column of the result of nonzero, (count, rank): the walk over the shape has stride 1 along
// that dimension and 0 along the others, so its offset of a position is the coordinate.
GPU_KERNEL void unravel(const Index* positions, Index* out, Index count, Index rank,
                        Strided<1> at) {
  await_earlier();
  grid_stride(count, [&](Index i) { out[i * rank] = offset(at, positions[i]); });
}
