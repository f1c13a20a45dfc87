// Module MATMUL: matrix products of every dtype, for operands of any size and in any layout.
//
// f8, f16 and bf16 become f32 on their way in and are summed in f32; f32 and f64 are summed in
// themselves, integers in unsigned words, which wrap as the dtype does. Every sum has a fixed
// order. Launched with 256 threads per block, a grid over tiles (x) and the batch (y).
// No loops around them: their invariants would take every scalar register an AMD GPU has.
#include "gpu.h"
#include "gpu_matmul.h"

using tl::kernels::Gemm;
using tl::kernels::kGemmTile;
using tl::kernels::kGemmWideTile;
using tl::kernels::kGemvRows;
using tl::kernels::kGevmColumns;

// ---- in what type products of T are summed

template <class T>
struct Summed {
  using Type = float;
  GPU_INLINE static float load(T x) { return to_float(x); }
  GPU_INLINE static T store(float x) { return from_float<T>(x); }
};
template <>
struct Summed<BFloat16> {
  using Type = float;
  // Arithmetic makes a NaN quiet: a shift is all there is to do.
  GPU_INLINE static float load(BFloat16 x) {
    return bits::float_of(static_cast<Bits32>(x.raw) << 16);
  }
  GPU_INLINE static BFloat16 store(float x) { return from_float<BFloat16>(x); }
};
template <>
struct Summed<double> {
  using Type = double;
  GPU_INLINE static double load(double x) { return x; }
  GPU_INLINE static double store(double x) { return x; }
};
template <class T, class Word>
struct SummedInteger {
  using Type = Word;
  GPU_INLINE static Word load(T x) { return static_cast<Word>(x); }
  GPU_INLINE static T store(Word x) { return static_cast<T>(x); }
};
template <>
struct Summed<Bits8> : SummedInteger<Bits8, Bits32> {};
template <>
struct Summed<short> : SummedInteger<short, Bits32> {};
template <>
struct Summed<int> : SummedInteger<int, Bits32> {};
template <>
struct Summed<Bits32> : SummedInteger<Bits32, Bits32> {};
template <>
struct Summed<long long> : SummedInteger<long long, Bits64> {};

GPU_INLINE float multiply_add(float a, float b, float c) { return math::fma(a, b, c); }
GPU_INLINE double multiply_add(double a, double b, double c) { return math::fma(a, b, c); }
GPU_INLINE Bits32 multiply_add(Bits32 a, Bits32 b, Bits32 c) { return a * b + c; }
GPU_INLINE Bits64 multiply_add(Bits64 a, Bits64 b, Bits64 c) { return a * b + c; }

// The sum with the bias added, rounded once.
template <class T>
GPU_INLINE void finish(typename Summed<T>::Type sum, const T* bias, T* c, const Gemm& g, Index row,
                       Index col) {
  if (bias != nullptr) sum += Summed<T>::load(bias[row * g.bias_row + col * g.bias_col]);
  c[row * g.c_row + col * g.c_col] = Summed<T>::store(sum);
}

// ---- tiles

constexpr int kDepth = 16;  // of k at a time

// One operand's tile on its way to shared memory: kTile rows (or columns) by kDepth of k, held in
// registers while the tile before it is worked on. `along` is the stride over the kTile lines,
// `deep` over k. Neighbouring threads take neighbouring elements in memory, whichever way they lie.
template <class T, int kTile>
struct Stage {
  static constexpr int kEach = kTile * kDepth / static_cast<int>(kBlockThreads);
  using Wide = typename Summed<T>::Type;
  T held[kEach];

  GPU_INLINE static void place(int i, bool deep_first, int* line, int* depth) {
    const int e = static_cast<int>(thread_index()) + i * static_cast<int>(kBlockThreads);
    *line = deep_first ? e / kDepth : e % kTile;
    *depth = deep_first ? e % kDepth : e / kTile;
  }
  // Lines past the end repeat the last one: what comes of them is never stored. Depths past the end
  // count, so they are zero.
  GPU_INLINE void load(const T* from, Index along, Index deep, Index lines, Index depths) {
    const bool deep_first = deep == 1;
    const int last_line = lines < kTile ? static_cast<int>(lines) - 1 : kTile - 1;
    const int last_depth = depths < kDepth ? static_cast<int>(depths) - 1 : kDepth - 1;
    GPU_UNROLLED
    for (int i = 0; i < kEach; ++i) {
      int line, depth;
      place(i, deep_first, &line, &depth);
      const T x = from[(line < last_line ? line : last_line) * along +
                       (depth < last_depth ? depth : last_depth) * deep];
      held[i] = depth <= last_depth ? x : T{};
    }
  }
  GPU_INLINE void store(Wide (&to)[kDepth][kTile + 4], Index deep) const {
    const bool deep_first = deep == 1;
    GPU_UNROLLED
    for (int i = 0; i < kEach; ++i) {
      int line, depth;
      place(i, deep_first, &line, &depth);
      to[depth][line] = Summed<T>::load(held[i]);
    }
  }
};

// Each thread sums kEach by kEach elements of a tile, in quarters that lie apart so that the shared
// memory is read without conflicts.
template <int kTile, int kEach, class T>
GPU_INLINE void gemm_tile(const T* a, const T* b, const T* bias, T* c, const Gemm& g, Index row0,
                          Index col0) {
  using Wide = typename Summed<T>::Type;
  constexpr int kAcross = kTile / kEach;  // threads along a side
  constexpr int kRun = 4;                 // elements next to each other
  constexpr int kApart = kTile / (kEach / kRun);
  static_assert(kAcross * kAcross == static_cast<int>(kBlockThreads));
  GPU_SHARED Wide shared_a[kDepth][kTile + 4];
  GPU_SHARED Wide shared_b[kDepth][kTile + 4];

  const int row = static_cast<int>(thread_index()) / kAcross * kRun;
  const int col = static_cast<int>(thread_index()) % kAcross * kRun;
  Wide sum[kEach][kEach] = {};

  Stage<T, kTile> next_a, next_b;
  next_a.load(a + row0 * g.a_row, g.a_row, g.a_col, g.m - row0, g.k);
  next_b.load(b + col0 * g.b_col, g.b_col, g.b_row, g.n - col0, g.k);
  GPU_ROLLED
  for (Index k0 = 0; k0 < g.k; k0 += kDepth) {
    next_a.store(shared_a, g.a_col);
    next_b.store(shared_b, g.b_row);
    barrier();
    const Index k1 = k0 + kDepth;
    if (k1 < g.k) {
      next_a.load(a + row0 * g.a_row + k1 * g.a_col, g.a_row, g.a_col, g.m - row0, g.k - k1);
      next_b.load(b + col0 * g.b_col + k1 * g.b_row, g.b_col, g.b_row, g.n - col0, g.k - k1);
    }
    GPU_ROLLED  // more of it at a time would take registers, not time
        for (int first = 0; first < kDepth; first += 2) {
      GPU_UNROLLED
      for (int depth = first; depth < first + 2; ++depth) {
        Wide x[kEach], y[kEach];
        GPU_UNROLLED
        for (int i = 0; i < kEach; ++i) {
          const int at = i / kRun * kApart + i % kRun;
          x[i] = shared_a[depth][row + at];
          y[i] = shared_b[depth][col + at];
        }
        GPU_UNROLLED
        for (int i = 0; i < kEach; ++i) {
          GPU_UNROLLED
          for (int j = 0; j < kEach; ++j) sum[i][j] = multiply_add(x[i], y[j], sum[i][j]);
        }
      }
    }
    barrier();
  }

  GPU_UNROLLED
  for (int i = 0; i < kEach; ++i) {
    GPU_UNROLLED
    for (int j = 0; j < kEach; ++j) {
      const Index at_row = row0 + row + i / kRun * kApart + i % kRun;
      const Index at_col = col0 + col + j / kRun * kApart + j % kRun;
      if (at_row < g.m && at_col < g.n) finish(sum[i][j], bias, c, g, at_row, at_col);
    }
  }
}

template <int kTile, int kEach, class T>
GPU_INLINE void gemm_tiles(const T* a, const T* b, const T* bias, T* c, const Gemm& g) {
  await_earlier();
  const unsigned across = static_cast<unsigned>((g.n + kTile - 1) / kTile);
  const unsigned down = static_cast<unsigned>((g.m + kTile - 1) / kTile);
  // Tiles are taken in bands of eight rows of tiles, down first: blocks that run together share
  // more of A and B in the cache.
  constexpr unsigned kBand = 8;
  const Index item = g.first_item + block_index<1>();
  const Offsets<2> at = offsets(g.batch, item);
  const Index tile = g.first + block_index();
  const Index band = tile / (kBand * across);
  const Index first = band * kBand;
  const unsigned height = down - first < kBand ? static_cast<unsigned>(down - first) : kBand;
  const unsigned within = static_cast<unsigned>(tile - first * across);
  gemm_tile<kTile, kEach>(a + at.at[0], b + at.at[1], bias, c + item * g.c_batch, g,
                          (first + within % height) * kTile, Index{within / height} * kTile);
}

// ---- few rows

// Where row r of A starts; rows past the end repeat the last one and come to nothing.
template <class T>
GPU_INLINE const T* row_of(const T* a, const Gemm& g, int r) {
  return a + (r < g.m ? r : g.m - 1) * g.a_row;
}

// One warp for each column of C, reading a contiguous column of B once for all rows of A.
template <int kRows, class T>
GPU_INLINE void gemv_column(const T* a, const T* b, const T* bias, T* c, const Gemm& g, Index col) {
  using Wide = typename Summed<T>::Type;
  constexpr int kEach = sizeof(T) == 1 ? 8 : 16 / static_cast<int>(sizeof(T));
  constexpr int kStep = static_cast<int>(kWarp) * kEach;
  constexpr int kAhead = kRows == 1 ? 4 : 1;  // loads under way at a time
  Wide sum[kRows] = {};
  const auto add = [&](Index k, const Vec<T, kEach>& y) {
    GPU_UNROLLED
    for (int r = 0; r < kRows; ++r) {
      const auto x = load_vec<kEach>(row_of(a, g, r) + k);
      GPU_UNROLLED
      for (int e = 0; e < kEach; ++e) {
        sum[r] = multiply_add(Summed<T>::load(x.get(e)), Summed<T>::load(y.get(e)), sum[r]);
      }
    }
  };
  Index k = 0;
  if (g.vector) {
    const Index mine = static_cast<Index>(lane()) * kEach;
    if constexpr (kAhead > 1) {
      GPU_ROLLED
      for (; k + kAhead * kStep <= g.k; k += kAhead * kStep) {
        Vec<T, kEach> ahead[kAhead];
        GPU_UNROLLED
        for (int u = 0; u < kAhead; ++u) ahead[u] = load_vec<kEach>(b + k + mine + u * kStep);
        GPU_UNROLLED
        for (int u = 0; u < kAhead; ++u) add(k + mine + u * kStep, ahead[u]);
      }
    }
    GPU_ROLLED
    for (; k + kStep <= g.k; k += kStep) add(k + mine, load_vec<kEach>(b + k + mine));
  }
  GPU_ROLLED
  for (k += lane(); k < g.k; k += kWarp) {
    const Wide y = Summed<T>::load(b[k * g.b_row]);
    GPU_UNROLLED
    for (int r = 0; r < kRows; ++r) {
      sum[r] = multiply_add(Summed<T>::load(row_of(a, g, r)[k * g.a_col]), y, sum[r]);
    }
  }
  GPU_UNROLLED
  for (int r = 0; r < kRows; ++r) {
    const Wide total = warp_sum(sum[r]);
    if (lane() == 0 && r < g.m) finish(total, bias, c, g, r, col);
  }
}

template <class T>
GPU_INLINE void gemv(const T* a, const T* b, const T* bias, T* c, const Gemm& g) {
  await_earlier();
  constexpr Index kWarps = kBlockThreads / kWarp;
  const Index item = g.first_item + block_index<1>();
  const Offsets<2> at = offsets(g.batch, item);
  const Index col = (g.first + block_index()) * kWarps + warp_index();
  if (col >= g.n) return;
  const T* column = b + at.at[1] + col * g.b_col;
  T* to = c + item * g.c_batch;
  if (g.m == 1) {
    gemv_column<1>(a + at.at[0], column, bias, to, g, col);
  } else {
    gemv_column<static_cast<int>(kGemvRows)>(a + at.at[0], column, bias, to, g, col);
  }
}

// Threads side by side along a row of B; the k of a column is shared out among the slices of a
// block, whose sums are added in their order.
template <class T>
GPU_INLINE void gevm(const T* a, const T* b, const T* bias, T* c, const Gemm& g) {
  await_earlier();
  using Wide = typename Summed<T>::Type;
  constexpr int kRows = static_cast<int>(kGemvRows);
  constexpr int kColumns = static_cast<int>(kGevmColumns);
  constexpr int kSlices = static_cast<int>(kBlockThreads) / kColumns;
  GPU_SHARED Wide partial[kSlices][kRows][kColumns];
  const int column = static_cast<int>(thread_index()) % kColumns;
  const int slice = static_cast<int>(thread_index()) / kColumns;
  const Index item = g.first_item + block_index<1>();
  const Offsets<2> at = offsets(g.batch, item);
  const Index col = (g.first + block_index()) * kColumns + column;
  const T* from_a = a + at.at[0];
  const T* from_b = b + at.at[1] + (col < g.n ? col : g.n - 1) * g.b_col;
  Wide sum[kRows] = {};
  const auto add = [&](Index k, T from) {
    const Wide y = Summed<T>::load(from);
    GPU_UNROLLED
    for (int r = 0; r < kRows; ++r) {
      sum[r] = multiply_add(Summed<T>::load(row_of(from_a, g, r)[k * g.a_col]), y, sum[r]);
    }
  };
  constexpr int kAhead = sizeof(T) == 8 ? 2 : 4;
  Index k = slice;
  GPU_ROLLED
  for (; k + (kAhead - 1) * kSlices < g.k; k += kAhead * kSlices) {
    T ahead[kAhead];
    GPU_UNROLLED
    for (int u = 0; u < kAhead; ++u) ahead[u] = from_b[(k + u * kSlices) * g.b_row];
    GPU_UNROLLED
    for (int u = 0; u < kAhead; ++u) add(k + u * kSlices, ahead[u]);
  }
  GPU_ROLLED
  for (; k < g.k; k += kSlices) add(k, from_b[k * g.b_row]);
  GPU_UNROLLED
  for (int r = 0; r < kRows; ++r) partial[slice][r][column] = sum[r];
  barrier();
  if (slice < g.m && col < g.n) {  // slice r finishes row r
    Wide total = partial[0][slice][column];
    GPU_UNROLLED
    for (int s = 1; s < kSlices; ++s) total += partial[s][slice][column];
    finish(total, bias, c + item * g.c_batch, g, slice, col);
  }
}

GPU_KERNEL void gemm_u8(const Bits8* a, const Bits8* b, const Bits8* bias, Bits8* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_u32(const Bits32* a, const Bits32* b, const Bits32* bias, Bits32* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_i16(const short* a, const short* b, const short* bias, short* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_i32(const int* a, const int* b, const int* bias, int* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_i64(const long long* a, const long long* b, const long long* bias,
                         long long* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_f8e4m3(const Float8* a, const Float8* b, const Float8* bias, Float8* c,
                            Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_f16(const Half* a, const Half* b, const Half* bias, Half* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_bf16(const BFloat16* a, const BFloat16* b, const BFloat16* bias, BFloat16* c,
                          Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_f32(const float* a, const float* b, const float* bias, float* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_f64(const double* a, const double* b, const double* bias, double* c, Gemm g) {
  gemm_tiles<kGemmTile, 4>(a, b, bias, c, g);
}

GPU_KERNEL void gemv_u8(const Bits8* a, const Bits8* b, const Bits8* bias, Bits8* c, Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_u32(const Bits32* a, const Bits32* b, const Bits32* bias, Bits32* c, Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_i16(const short* a, const short* b, const short* bias, short* c, Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_i32(const int* a, const int* b, const int* bias, int* c, Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_i64(const long long* a, const long long* b, const long long* bias,
                         long long* c, Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_f8e4m3(const Float8* a, const Float8* b, const Float8* bias, Float8* c,
                            Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_f16(const Half* a, const Half* b, const Half* bias, Half* c, Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_bf16(const BFloat16* a, const BFloat16* b, const BFloat16* bias, BFloat16* c,
                          Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_f32(const float* a, const float* b, const float* bias, float* c, Gemm g) {
  gemv(a, b, bias, c, g);
}
GPU_KERNEL void gemv_f64(const double* a, const double* b, const double* bias, double* c, Gemm g) {
  gemv(a, b, bias, c, g);
}

GPU_KERNEL void gevm_u8(const Bits8* a, const Bits8* b, const Bits8* bias, Bits8* c, Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_u32(const Bits32* a, const Bits32* b, const Bits32* bias, Bits32* c, Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_i16(const short* a, const short* b, const short* bias, short* c, Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_i32(const int* a, const int* b, const int* bias, int* c, Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_i64(const long long* a, const long long* b, const long long* bias,
                         long long* c, Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_f8e4m3(const Float8* a, const Float8* b, const Float8* bias, Float8* c,
                            Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_f16(const Half* a, const Half* b, const Half* bias, Half* c, Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_bf16(const BFloat16* a, const BFloat16* b, const BFloat16* bias, BFloat16* c,
                          Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_f32(const float* a, const float* b, const float* bias, float* c, Gemm g) {
  gevm(a, b, bias, c, g);
}
GPU_KERNEL void gevm_f64(const double* a, const double* b, const double* bias, double* c, Gemm g) {
  gevm(a, b, bias, c, g);
}

GPU_KERNEL void gemm_wide_f8e4m3(const Float8* a, const Float8* b, const Float8* bias, Float8* c,
                                 Gemm g) {
  gemm_tiles<kGemmWideTile, 8>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_wide_f16(const Half* a, const Half* b, const Half* bias, Half* c, Gemm g) {
  gemm_tiles<kGemmWideTile, 8>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_wide_bf16(const BFloat16* a, const BFloat16* b, const BFloat16* bias,
                               BFloat16* c, Gemm g) {
  gemm_tiles<kGemmWideTile, 8>(a, b, bias, c, g);
}
GPU_KERNEL void gemm_wide_f32(const float* a, const float* b, const float* bias, float* c, Gemm g) {
  gemm_tiles<kGemmWideTile, 8>(a, b, bias, c, g);
}
