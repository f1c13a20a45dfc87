// Module FILL: setting memory to a value and moving it unchanged. Kernels go by element size, not
// by dtype, since a copy of four bytes is the same copy whatever they mean. Launched with 256
// threads per block and any grid.
//
// Also what makes tensors from nothing: sequences, bands of matrices and random numbers.
#include "gpu.h"
#include "random_numbers.h"

// Sixteen bytes as one element: what the vector paths move.
struct alignas(16) Chunk {
  Bits64 half[2];
};

template <class T>
GPU_INLINE void fill(T* out, T value, Index count) {
  await_earlier();
  constexpr int kEach = 16 / sizeof(T);
  Vec<T, kEach> vec;
  for (int k = 0; k < kEach; ++k) vec.set(k, value);

  // [0, head) up to the first 16-byte boundary, then whole vectors, then [tail, count)
  const Index misplaced = static_cast<Index>((reinterpret_cast<Bits64>(out) & 15) / sizeof(T));
  const Index room = misplaced == 0 ? 0 : kEach - misplaced;
  const Index head = room < count ? room : count;
  const Index vectors = (count - head) / kEach;
  const Index tail = head + vectors * kEach;
  grid_stride(vectors, [&](Index i) { store_vec(out + head + i * kEach, vec); });
  grid_stride(head, [&](Index i) { out[i] = value; });
  grid_stride(count - tail, [&](Index i) { out[tail + i] = value; });
}

// Spreads a matrix over the grid without a division: each row gets `width` threads, a power of two.
// Wide enough for the row where that fits a block, and more for few and long rows. Finding it takes
// some steps, so a grid is meant to fill the device and no more, except for a single row.
template <class T>
GPU_INLINE void copy_rows(const T* src, T* dst, Index rows, Index cols, Index src_stride,
                          Index dst_stride) {
  if (rows == 1) {
    grid_stride(cols, [&](Index i) { dst[i] = src[i]; });
    return;
  }
  const Index threads = grid_threads();
  unsigned shift = 0;  // width is 1 << shift
  GPU_ROLLED
  while ((Index{1} << shift) < cols && (Index{2} << shift) <= threads &&
         ((1u << shift) < kBlockThreads || (threads >> shift) > rows)) {
    ++shift;
  }
  const Index width = Index{1} << shift;
  const Index first_row = global_thread() >> shift, step = threads >> shift;
  const Index first_col = global_thread() & (width - 1);
  if (first_row >= step) return;  // the grid need not be a multiple of the width
  GPU_ROLLED
  for (Index row = first_row; row < rows; row += step) {
    const T* from = src + row * src_stride;
    T* to = dst + row * dst_stride;
    GPU_ROLLED
    for (Index col = first_col; col < cols; col += width) to[col] = from[col];
  }
}

// src and dst are (rows, cols) with the given distance between rows, in elements.
template <class T>
GPU_INLINE void copy2d(const T* src, T* dst, Index rows, Index cols, Index src_stride,
                       Index dst_stride) {
  await_earlier();
  constexpr Index kEach = 16 / sizeof(T);
  const bool whole = ((cols | src_stride | dst_stride) & (kEach - 1)) == 0;
  if (whole && is_vec_aligned<kEach>(src) && is_vec_aligned<kEach>(dst)) {
    copy_rows(reinterpret_cast<const Chunk*>(src), reinterpret_cast<Chunk*>(dst), rows,
              cols / kEach, src_stride / kEach, dst_stride / kEach);
  } else {
    copy_rows(src, dst, rows, cols, src_stride, dst_stride);
  }
}

// Writes `value` to every element that `at` visits.
template <class T>
GPU_INLINE void const_set(T* out, T value, const Strided<1>& at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) { out[at.contiguous ? i : offset(at, i)] = value; });
}

// Gathers the elements that `at` visits into a contiguous output, four loads on their way at a
// time.
template <class T>
GPU_INLINE void copy_strided(const T* in, T* out, const Strided<1>& at) {
  await_earlier();
  constexpr int kFlight = 4;
  const Index tile = static_cast<Index>(kFlight) * block_threads();
  GPU_ROLLED
  for (Index start = block_index() * tile; start < at.count; start += block_count() * tile) {
    const Index first = start + thread_index();
    T x[kFlight] = {};
    GPU_UNROLLED
    for (int k = 0; k < kFlight; ++k) {
      const Index i = first + static_cast<Index>(k) * block_threads();
      if (i < at.count) x[k] = in[at.contiguous ? i : offset(at, i)];
    }
    GPU_UNROLLED
    for (int k = 0; k < kFlight; ++k) {
      const Index i = first + static_cast<Index>(k) * block_threads();
      if (i < at.count) out[i] = x[k];
    }
  }
}

// Copies between two layouts.
template <class T>
GPU_INLINE void copy_between(const T* in, T* out, const Strided<2>& at) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Offsets<2> here = offsets(at, i);
    out[here.at[1]] = in[here.at[0]];
  });
}

// Matrices whose rows lie along the other dimension in the input: in(r, c) is at r + c in_stride,
// out(r, c) at r out_stride + c. A tile goes through shared memory, so that both sides move whole
// cache lines. `batch` visits the first elements of all matrices in both.
template <class T>
GPU_INLINE void transpose(const T* in, T* out, Index rows, Index cols, Index in_stride,
                          Index out_stride, const Strided<2>& batch) {
  await_earlier();
  constexpr unsigned kTile = sizeof(T) == 8 ? 32 : 64;
  constexpr unsigned kStep = kBlockThreads / kTile;  // lines of a tile that a block moves at a time
  GPU_SHARED T tile[kTile][kTile + 1];
  const unsigned x = thread_index() % kTile, y = thread_index() / kTile;
  const Index down = (rows + kTile - 1) / kTile, across = (cols + kTile - 1) / kTile;
  const Index tiles = down * across * batch.count;
  GPU_ROLLED
  for (Index t = block_index(); t < tiles; t += block_count()) {
    // Neighbouring blocks take tiles below each other: together they read long stretches.
    const Index column = t / down % across, matrix = t / down / across;
    const Index row0 = t % down * kTile, col0 = column * kTile;
    const Offsets<2> first = offsets(batch, matrix);
    const T* from = in + first.at[0] + row0 + col0 * in_stride;
    T* to = out + first.at[1] + row0 * out_stride + col0;
    GPU_UNROLLED
    for (unsigned k = 0; k < kTile; k += kStep) {
      if (row0 + x < rows && col0 + y + k < cols) {
        tile[y + k][x] = from[x + static_cast<Index>(y + k) * in_stride];
      }
    }
    barrier();
    GPU_UNROLLED
    for (unsigned k = 0; k < kTile; k += kStep) {
      if (col0 + x < cols && row0 + y + k < rows) {
        to[static_cast<Index>(y + k) * out_stride + x] = tile[x][y + k];
      }
    }
    barrier();
  }
}

// The diagonals `low` to `high` (0 is the main one, above it positive) of (rows, cols) matrices, 0
// elsewhere. Without an input every element of them is `value`.
template <class T>
GPU_INLINE void band(const T* in, T* out, const Strided<1>& at, Index rows, Index cols, Index low,
                     Index high, T value) {
  await_earlier();
  grid_stride(at.count, [&](Index i) {
    const Index line = i / cols;
    const Index diagonal = (i - line * cols) - line % rows;
    const bool inside = diagonal >= low && diagonal <= high;
    T x = value;
    if (in != nullptr && inside) x = in[at.contiguous ? i : offset(at, i)];
    out[i] = inside ? x : T{0};
  });
}

template <class T>
GPU_INLINE void arange(T* out, Index start, Index step, Index count) {
  await_earlier();
  grid_stride(count, [&](Index i) {
    const auto value =
        static_cast<Bits64>(start) + static_cast<Bits64>(i) * static_cast<Bits64>(step);
    out[i] = static_cast<T>(value);
  });
}
template <class T>
GPU_INLINE void arange(T* out, double start, double step, Index count) {
  await_earlier();
  grid_stride(count, [&](Index i) { out[i] = convert<T>(tl::random::step_from(start, step, i)); });
}
template <class T>
GPU_INLINE void linspace(T* out, double start, double end, double step, Index count) {
  await_earlier();
  grid_stride(count, [&](Index i) {
    out[i] = convert<T>(tl::random::between(start, end, step, i, count));
  });
}

// The type random floats are made in.
template <class T>
struct Made {
  using Type = float;
};
template <>
struct Made<double> {
  using Type = double;
};
template <class T>
using MadeOf = typename Made<T>::Type;

// f(block, k) for every element: block is of the element's position, k its place there.
template <int kEach, class T, class F>
GPU_INLINE void fill_random(T* out, Index count, Bits64 seed, Bits64 offset, F f) {
  grid_stride((count + kEach - 1) / kEach, [&](Index p) {
    const tl::random::Block block = tl::random::philox(seed, offset + static_cast<Bits64>(p));
    GPU_UNROLLED
    for (int k = 0; k < kEach; ++k) {
      const Index i = p * kEach + k;
      if (i < count) out[i] = f(block, k);
    }
  });
}

// `last` is the largest number of the type below the upper end: rounding may go no further.
template <class T>
GPU_INLINE void rand_uniform(T* out, Index count, Bits64 seed, Bits64 offset, MadeOf<T> low,
                             MadeOf<T> width, MadeOf<T> last) {
  await_earlier();
  using C = MadeOf<T>;
  fill_random<tl::random::kPerBlock<C>>(
      out, count, seed, offset, [&](const tl::random::Block& block, int k) {
        const T x = convert<T>(tl::random::uniform(block, k, low, width));
        return convert<C>(x) > last ? convert<T>(last) : x;
      });
}
template <class T>
GPU_INLINE void rand_normal(T* out, Index count, Bits64 seed, Bits64 offset, MadeOf<T> mean,
                            MadeOf<T> deviation) {
  await_earlier();
  fill_random<tl::random::kPerBlock<MadeOf<T>>>(
      out, count, seed, offset, [&](const tl::random::Block& block, int k) {
        return convert<T>(tl::random::normal(block, k, mean, deviation));
      });
}
template <class T>
GPU_INLINE void randint(T* out, Index count, Bits64 seed, Bits64 offset, Index low, Bits64 range) {
  await_earlier();
  fill_random<2>(out, count, seed, offset, [&](const tl::random::Block& block, int k) {
    return static_cast<T>(tl::random::integer(block, k, low, range));
  });
}

GPU_KERNEL void fill_1(Bits8* out, Bits8 value, Index count) { fill(out, value, count); }
GPU_KERNEL void fill_2(Bits16* out, Bits16 value, Index count) { fill(out, value, count); }
GPU_KERNEL void fill_4(Bits32* out, Bits32 value, Index count) { fill(out, value, count); }
GPU_KERNEL void fill_8(Bits64* out, Bits64 value, Index count) { fill(out, value, count); }

GPU_KERNEL void copy2d_1(const Bits8* src, Bits8* dst, Index rows, Index cols, Index src_stride,
                         Index dst_stride) {
  copy2d(src, dst, rows, cols, src_stride, dst_stride);
}
GPU_KERNEL void copy2d_2(const Bits16* src, Bits16* dst, Index rows, Index cols, Index src_stride,
                         Index dst_stride) {
  copy2d(src, dst, rows, cols, src_stride, dst_stride);
}
GPU_KERNEL void copy2d_4(const Bits32* src, Bits32* dst, Index rows, Index cols, Index src_stride,
                         Index dst_stride) {
  copy2d(src, dst, rows, cols, src_stride, dst_stride);
}
GPU_KERNEL void copy2d_8(const Bits64* src, Bits64* dst, Index rows, Index cols, Index src_stride,
                         Index dst_stride) {
  copy2d(src, dst, rows, cols, src_stride, dst_stride);
}

GPU_KERNEL void const_set_1(Bits8* out, Bits8 value, Strided<1> at) { const_set(out, value, at); }
GPU_KERNEL void const_set_2(Bits16* out, Bits16 value, Strided<1> at) { const_set(out, value, at); }
GPU_KERNEL void const_set_4(Bits32* out, Bits32 value, Strided<1> at) { const_set(out, value, at); }
GPU_KERNEL void const_set_8(Bits64* out, Bits64 value, Strided<1> at) { const_set(out, value, at); }

GPU_KERNEL void copy_strided_1(const Bits8* in, Bits8* out, Strided<1> at) {
  copy_strided(in, out, at);
}
GPU_KERNEL void copy_strided_2(const Bits16* in, Bits16* out, Strided<1> at) {
  copy_strided(in, out, at);
}
GPU_KERNEL void copy_strided_4(const Bits32* in, Bits32* out, Strided<1> at) {
  copy_strided(in, out, at);
}
GPU_KERNEL void copy_strided_8(const Bits64* in, Bits64* out, Strided<1> at) {
  copy_strided(in, out, at);
}

GPU_KERNEL void copy_between_1(const Bits8* in, Bits8* out, Strided<2> at) {
  copy_between(in, out, at);
}
GPU_KERNEL void copy_between_2(const Bits16* in, Bits16* out, Strided<2> at) {
  copy_between(in, out, at);
}
GPU_KERNEL void copy_between_4(const Bits32* in, Bits32* out, Strided<2> at) {
  copy_between(in, out, at);
}
GPU_KERNEL void copy_between_8(const Bits64* in, Bits64* out, Strided<2> at) {
  copy_between(in, out, at);
}

GPU_KERNEL void transpose_1(const Bits8* in, Bits8* out, Index rows, Index cols, Index in_stride,
                            Index out_stride, Strided<2> batch) {
  transpose(in, out, rows, cols, in_stride, out_stride, batch);
}
GPU_KERNEL void transpose_2(const Bits16* in, Bits16* out, Index rows, Index cols, Index in_stride,
                            Index out_stride, Strided<2> batch) {
  transpose(in, out, rows, cols, in_stride, out_stride, batch);
}
GPU_KERNEL void transpose_4(const Bits32* in, Bits32* out, Index rows, Index cols, Index in_stride,
                            Index out_stride, Strided<2> batch) {
  transpose(in, out, rows, cols, in_stride, out_stride, batch);
}
GPU_KERNEL void transpose_8(const Bits64* in, Bits64* out, Index rows, Index cols, Index in_stride,
                            Index out_stride, Strided<2> batch) {
  transpose(in, out, rows, cols, in_stride, out_stride, batch);
}

GPU_KERNEL void band_1(const Bits8* in, Bits8* out, Strided<1> at, Index rows, Index cols,
                       Index low, Index high, Bits8 value) {
  band(in, out, at, rows, cols, low, high, value);
}
GPU_KERNEL void band_2(const Bits16* in, Bits16* out, Strided<1> at, Index rows, Index cols,
                       Index low, Index high, Bits16 value) {
  band(in, out, at, rows, cols, low, high, value);
}
GPU_KERNEL void band_4(const Bits32* in, Bits32* out, Strided<1> at, Index rows, Index cols,
                       Index low, Index high, Bits32 value) {
  band(in, out, at, rows, cols, low, high, value);
}
GPU_KERNEL void band_8(const Bits64* in, Bits64* out, Strided<1> at, Index rows, Index cols,
                       Index low, Index high, Bits64 value) {
  band(in, out, at, rows, cols, low, high, value);
}

GPU_KERNEL void arange_u8(Bits8* out, Index start, Index step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_u32(Bits32* out, Index start, Index step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_i16(short* out, Index start, Index step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_i32(int* out, Index start, Index step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_i64(Index* out, Index start, Index step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_f8e4m3(Float8* out, double start, double step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_f16(Half* out, double start, double step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_bf16(BFloat16* out, double start, double step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_f32(float* out, double start, double step, Index count) {
  arange(out, start, step, count);
}
GPU_KERNEL void arange_f64(double* out, double start, double step, Index count) {
  arange(out, start, step, count);
}

GPU_KERNEL void linspace_f8e4m3(Float8* out, double start, double end, double step, Index count) {
  linspace(out, start, end, step, count);
}
GPU_KERNEL void linspace_f16(Half* out, double start, double end, double step, Index count) {
  linspace(out, start, end, step, count);
}
GPU_KERNEL void linspace_bf16(BFloat16* out, double start, double end, double step, Index count) {
  linspace(out, start, end, step, count);
}
GPU_KERNEL void linspace_f32(float* out, double start, double end, double step, Index count) {
  linspace(out, start, end, step, count);
}
GPU_KERNEL void linspace_f64(double* out, double start, double end, double step, Index count) {
  linspace(out, start, end, step, count);
}

GPU_KERNEL void rand_uniform_f8e4m3(Float8* out, Index count, Bits64 seed, Bits64 offset, float low,
                                    float width, float last) {
  rand_uniform(out, count, seed, offset, low, width, last);
}
GPU_KERNEL void rand_uniform_f16(Half* out, Index count, Bits64 seed, Bits64 offset, float low,
                                 float width, float last) {
  rand_uniform(out, count, seed, offset, low, width, last);
}
GPU_KERNEL void rand_uniform_bf16(BFloat16* out, Index count, Bits64 seed, Bits64 offset, float low,
                                  float width, float last) {
  rand_uniform(out, count, seed, offset, low, width, last);
}
GPU_KERNEL void rand_uniform_f32(float* out, Index count, Bits64 seed, Bits64 offset, float low,
                                 float width, float last) {
  rand_uniform(out, count, seed, offset, low, width, last);
}
GPU_KERNEL void rand_uniform_f64(double* out, Index count, Bits64 seed, Bits64 offset, double low,
                                 double width, double last) {
  rand_uniform(out, count, seed, offset, low, width, last);
}

GPU_KERNEL void rand_normal_f8e4m3(Float8* out, Index count, Bits64 seed, Bits64 offset, float mean,
                                   float deviation) {
  rand_normal(out, count, seed, offset, mean, deviation);
}
GPU_KERNEL void rand_normal_f16(Half* out, Index count, Bits64 seed, Bits64 offset, float mean,
                                float deviation) {
  rand_normal(out, count, seed, offset, mean, deviation);
}
GPU_KERNEL void rand_normal_bf16(BFloat16* out, Index count, Bits64 seed, Bits64 offset, float mean,
                                 float deviation) {
  rand_normal(out, count, seed, offset, mean, deviation);
}
GPU_KERNEL void rand_normal_f32(float* out, Index count, Bits64 seed, Bits64 offset, float mean,
                                float deviation) {
  rand_normal(out, count, seed, offset, mean, deviation);
}
GPU_KERNEL void rand_normal_f64(double* out, Index count, Bits64 seed, Bits64 offset, double mean,
                                double deviation) {
  rand_normal(out, count, seed, offset, mean, deviation);
}

GPU_KERNEL void randint_u8(Bits8* out, Index count, Bits64 seed, Bits64 offset, Index low,
                           Bits64 range) {
  randint(out, count, seed, offset, low, range);
}
GPU_KERNEL void randint_u32(Bits32* out, Index count, Bits64 seed, Bits64 offset, Index low,
                            Bits64 range) {
  randint(out, count, seed, offset, low, range);
}
GPU_KERNEL void randint_i16(short* out, Index count, Bits64 seed, Bits64 offset, Index low,
                            Bits64 range) {
  randint(out, count, seed, offset, low, range);
}
GPU_KERNEL void randint_i32(int* out, Index count, Bits64 seed, Bits64 offset, Index low,
                            Bits64 range) {
  randint(out, count, seed, offset, low, range);
}
GPU_KERNEL void randint_i64(Index* out, Index count, Bits64 seed, Bits64 offset, Index low,
                            Bits64 range) {
  randint(out, count, seed, offset, low, range);
}
