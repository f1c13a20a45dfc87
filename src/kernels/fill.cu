// Module FILL: setting memory to a value and moving it unchanged. Kernels go by element size, not
// by dtype, since a copy of four bytes is the same copy whatever they mean. Launched with 256
// threads per block and any grid.
#include "gpu.h"

// Sixteen bytes as one element: what the vector paths move.
struct alignas(16) Chunk {
  Bits64 half[2];
};

template <class T>
GPU_INLINE void fill(T* out, T value, Index count) {
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
// Wide enough for the row where that fits a block, and more for few and long rows.
template <class T>
GPU_INLINE void copy_rows(const T* src, T* dst, Index rows, Index cols, Index src_stride,
                          Index dst_stride) {
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
  grid_stride(at.count, [&](Index i) { out[at.contiguous ? i : offset(at, i)] = value; });
}

// Gathers the elements that `at` visits into a contiguous output.
template <class T>
GPU_INLINE void copy_strided(const T* in, T* out, const Strided<1>& at) {
  grid_stride(at.count, [&](Index i) { out[i] = in[at.contiguous ? i : offset(at, i)]; });
}

// Copies between two layouts.
template <class T>
GPU_INLINE void copy_between(const T* in, T* out, const Strided<2>& at) {
  grid_stride(at.count, [&](Index i) {
    const Offsets<2> here = offsets(at, i);
    out[here.at[1]] = in[here.at[0]];
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
