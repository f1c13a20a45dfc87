// Module QUANT_VECTOR: products of quantised matrices with one to eight vectors.
//
// The vectors become bytes first (pack_*), and products are sums of integers, times two scales, for
// each 32 elements (dot_*). A warp takes a row of the matrix, or a part of it; a lane adds what it
// gets in order, lanes and parts are added in order. So a vector's result does not depend on how
// many come with it. The formats without integers are multiplied as f32 (decoded_*), one vector in
// each row of the grid.
#define GPU_THREADS 128
#define GPU_LEAST_BLOCKS 4
#include "gpu.h"
#include "gpu_quant.h"
#include "gpu_together.h"
#include "quant_blocks.h"
#include "quant_dot.h"
#include "quant_words.h"

namespace blocks = tl::quant_blocks;
using tl::kernels::group_place;
using tl::kernels::kQuantRowStep;
using tl::kernels::kQuantVectorRows;
using tl::kernels::QuantProduct;
using tl::kernels::QuantScale;

static_assert(kBlockThreads == tl::kernels::kQuantVectorThreads);

// ---- vectors as bytes

// Eight threads make 32 bytes, four each. A block of the grid's second dimension is a row.
template <class T>
GPU_INLINE void pack(const T* x, Bits8* bytes, QuantScale* scales, const QuantProduct& p) {
  await_earlier();
  const Index row = block_index<1>();
  const Index first = 4 * global_thread();  // of the row's elements
  if (first >= p.x_row) return;             // whole warps of any width: x_row is a multiple of 1024
  float value[4] = {};
  if (first < p.k) {
    GPU_UNROLLED
    for (int i = 0; i < 4; ++i) value[i] = to_float(x[row * p.k + first + i]);
  }
  const PackedBytes<4> packed = pack_bytes(value);
  const Index group = first / 32;
  const int within = static_cast<int>(first % 32);
  const Index half = within / 16;
  Bits8* to = bytes + row * p.x_row + group / 32 * kQuantRowStep + half * (kQuantRowStep / 2) +
              group % 32 * 16 + within % 16;
  store_vec(reinterpret_cast<Bits32*>(to), Vec<Bits32, 1>{{{packed.words[0]}}});
  if (within == 0) scales[row * (p.x_row / 32) + group] = packed.scale;
}

GPU_KERNEL void pack_f32(const float* x, Bits8* bytes, QuantScale* scales, QuantProduct p) {
  pack(x, bytes, scales, p);
}
GPU_KERNEL void pack_f16(const Half* x, Bits8* bytes, QuantScale* scales, QuantProduct p) {
  pack(x, bytes, scales, p);
}
GPU_KERNEL void pack_bf16(const BFloat16* x, Bits8* bytes, QuantScale* scales, QuantProduct p) {
  pack(x, bytes, scales, p);
}

// ---- vectors as f16, for module QUANT_MATRIX

// What a block multiplies a row by.
template <class T>
GPU_INLINE float factor_of_row(const T* row, Index k) {
  float largest = 0.0f;
  GPU_ROLLED
  for (Index i = thread_index(); i < k; i += kBlockThreads) {
    largest = math::max(largest, math::abs(to_float(row[i])));
  }
  return half_factor(block_max(largest));
}

// A block makes a row.
template <class T>
GPU_INLINE void halve(const T* x, Half* to, float* scales, const QuantProduct& p) {
  await_earlier();
  const Index row = block_index();
  const T* from = x + row * p.k;
  const float factor = factor_of_row(from, p.k);
  if (thread_index() == 0) scales[row] = 1.0f / factor;
  GPU_ROLLED
  for (Index i = thread_index(); i < p.x_row; i += kBlockThreads) {
    to[row * p.x_row + i] = from_float<Half>(i < p.k ? to_float(from[i]) * factor : 0.0f);
  }
}

GPU_KERNEL void halve_f32(const float* x, Half* to, float* scales, QuantProduct p) {
  halve(x, to, scales, p);
}
GPU_KERNEL void halve_f16(const Half* x, Half* to, float* scales, QuantProduct p) {
  halve(x, to, scales, p);
}
GPU_KERNEL void halve_bf16(const BFloat16* x, Half* to, float* scales, QuantProduct p) {
  halve(x, to, scales, p);
}

// The same for module QUANT_GROUP: the row's pieces of eight halves go where group_place() says.
// Its eight are two of each of four lanes.
template <class T>
GPU_INLINE void tile(const T* x, Half* to, float* scales, const QuantProduct& p) {
  await_earlier();
  const Index row = block_index();
  const T* from = x + row * p.k;
  const float factor = factor_of_row(from, p.k);
  if (thread_index() == 0) scales[row] = 1.0f / factor;
  GPU_ROLLED
  for (Index piece = thread_index(); piece < p.x_row / 8; piece += kBlockThreads) {
    const Index first = piece / 16 * 128 + piece % 16 * 2;
    Vec<Half, 8> eight;
    GPU_UNROLLED
    for (int i = 0; i < 8; ++i) {
      const Index column = first + i / 2 * 32 + i % 2;
      eight.set(i, from_float<Half>(column < p.k ? to_float(from[column]) * factor : 0.0f));
    }
    store_vec(to + group_place(row, first, p.x_row), eight);
  }
}

GPU_KERNEL void tile_f32(const float* x, Half* to, float* scales, QuantProduct p) {
  tile(x, to, scales, p);
}
GPU_KERNEL void tile_f16(const Half* x, Half* to, float* scales, QuantProduct p) {
  tile(x, to, scales, p);
}
GPU_KERNEL void tile_bf16(const BFloat16* x, Half* to, float* scales, QuantProduct p) {
  tile(x, to, scales, p);
}

// ---- products

// Rows of w that are taken at a time share what is read of x.
template <class Format, int kVectors>
GPU_INLINE void dot(const Bits8* w, const Bits8* x, const QuantScale* scales, void* y,
                    const QuantProduct& p) {
  using W = words::Words<Format>;
  constexpr int kRows = kQuantVectorRows<kVectors>;
  constexpr int kWarps = static_cast<int>(kBlockThreads / kWarp);
  GPU_SHARED float partial[kWarps][kRows][kVectors];
  const int warp = static_cast<int>(warp_index());
  const int part = warp % p.parts;
  const Index first_row =
      (static_cast<Index>(block_index()) * (kWarps / p.parts) + warp / p.parts) * kRows;
  const Index last_row = first_row + kRows < p.n ? first_row + kRows : p.n;
  // While x is still being packed.
  call_range<2 * kRows>(w + first_row * p.row_bytes + static_cast<Index>(part) * kRows * 8192,
                        w + last_row * p.row_bytes, w, lane(), kWarp);
  await_earlier();
  float sum[kRows][kVectors] = {};
  const Bits8* rows[kRows];
  GPU_UNROLLED
  for (int r = 0; r < kRows; ++r) {
    const Index row = first_row + r < p.n ? first_row + r : p.n - 1;  // those past the end: unused
    rows[r] = w + row * p.row_bytes;
  }
  const int groups = static_cast<int>(p.k / 32);
  const auto add = [&](const W(&from)[kRows], int v, const PackedGroup& with) {
    GPU_UNROLLED
    for (int r = 0; r < kRows; ++r) sum[r][v] = with.add(sum[r][v], from[r]);
  };
  const auto load = [&](PackedGroup& of, int v, int g) {
    const Bits8* at = x + v * p.x_row + g / 32 * kQuantRowStep + g % 32 * 16;
    of.load(at, at + kQuantRowStep / 2, scales + v * (p.x_row / 32) + g);
  };
  // kAhead groups: all of w first, so that a lane waits for memory once.
  const auto take = [&](auto ahead, int group, int step) {
    constexpr int kAhead = decltype(ahead)::kCount;
    typename W::Raw raw[kAhead][kRows];
    GPU_UNROLLED
    for (int u = 0; u < kAhead; ++u) {
      GPU_UNROLLED
      for (int r = 0; r < kRows; ++r) raw[u][r].load(rows[r], group + u * step);
    }
    GPU_UNROLLED
    for (int u = 0; u < kAhead; ++u) {
      PackedGroup first;
      load(first, 0, group + u * step);
      W from[kRows];
      GPU_UNROLLED
      for (int r = 0; r < kRows; ++r) from[r].open(raw[u][r]);
      add(from, 0, first);
      GPU_UNROLLED
      for (int v = 1; v < kVectors; ++v) {
        PackedGroup more;
        load(more, v, group + u * step);
        add(from, v, more);
      }
    }
  };
  constexpr int kMost = kVectors > 1 ? 1 : sizeof(typename W::Raw) <= 40 ? 4 : 2;
  const int step = p.parts * static_cast<int>(kWarp);
  int group = part * static_cast<int>(kWarp) + static_cast<int>(lane());
  GPU_ROLLED
  for (; group + (kMost - 1) * step < groups; group += kMost * step)
    take(Ahead<kMost>{}, group, step);
  if constexpr (kMost > 2) {
    if (group + step < groups) {
      take(Ahead<2>{}, group, step);
      group += 2 * step;
    }
  }
  if constexpr (kMost > 1) {
    if (group < groups) take(Ahead<1>{}, group, step);
  }
  GPU_UNROLLED
  for (int r = 0; r < kRows; ++r) {
    GPU_UNROLLED
    for (int v = 0; v < kVectors; ++v) {
      const float total = warp_sum(sum[r][v]);
      if (lane() == 0) partial[warp][r][v] = total;
    }
  }
  barrier();
  if (part != 0 || static_cast<int>(lane()) >= kRows * kVectors) return;
  const int r = static_cast<int>(lane()) / kVectors, v = static_cast<int>(lane()) % kVectors;
  if (first_row + r >= p.n || v >= p.m) return;
  float total = partial[warp][r][v];
  for (int other = 1; other < p.parts; ++other) total += partial[warp + other][r][v];
  words::store(y, p.y_type, v * p.n + first_row + r, total);
}

GPU_KERNEL void dot_q4_0_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_0, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_0_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_0, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_0_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_0, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_1_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_1, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_1_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_1, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_1_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_1, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_0_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_0, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_0_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_0, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_0_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_0, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_1_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_1, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_1_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_1, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_1_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_1, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q8_0_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q8_0, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q8_0_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q8_0, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q8_0_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q8_0, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q2_k_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q2_K, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q2_k_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q2_K, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q3_k_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q3_K, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q3_k_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q3_K, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_k_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_K, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_k_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_K, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_k_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_K, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_k_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_K, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_k_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_K, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_k_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_K, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q6_k_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q6_K, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_q6_k_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q6_K, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_q6_k_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q6_K, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_nl_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_NL, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_nl_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_NL, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_nl_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_NL, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_xs_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_XS, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_xs_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_XS, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_xs_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_XS, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_mxfp4_2(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                            QuantProduct p) {
  dot<blocks::MXFP4, 2>(w, x, s, y, p);
}
GPU_KERNEL void dot_mxfp4_4(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                            QuantProduct p) {
  dot<blocks::MXFP4, 4>(w, x, s, y, p);
}
GPU_KERNEL void dot_mxfp4_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                            QuantProduct p) {
  dot<blocks::MXFP4, 8>(w, x, s, y, p);
}

// Two that take more registers than the others.
#undef GPU_LEAST_BLOCKS
#define GPU_LEAST_BLOCKS 3
GPU_KERNEL void dot_q2_k_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q2_K, 8>(w, x, s, y, p);
}
GPU_KERNEL void dot_q3_k_8(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q3_K, 8>(w, x, s, y, p);
}

// A row's worth of reads at once, by as many warps as there can be: few registers each.
#undef GPU_LEAST_BLOCKS
#define GPU_LEAST_BLOCKS 8
GPU_KERNEL void dot_q4_0_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_0, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_1_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_1, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_0_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_0, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_1_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_1, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q8_0_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q8_0, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q2_k_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q2_K, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q3_k_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q3_K, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q4_k_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q4_K, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q5_k_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q5_K, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_q6_k_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                           QuantProduct p) {
  dot<blocks::Q6_K, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_nl_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_NL, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_iq4_xs_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                             QuantProduct p) {
  dot<blocks::IQ4_XS, 1>(w, x, s, y, p);
}
GPU_KERNEL void dot_mxfp4_1(const Bits8* w, const Bits8* x, const QuantScale* s, void* y,
                            QuantProduct p) {
  dot<blocks::MXFP4, 1>(w, x, s, y, p);
}

// ---- without integers

// A warp takes a row; a lane takes eight neighbours at a time.
template <class Format>
GPU_INLINE void decoded(const Bits8* w, const float* x, void* y, const QuantProduct& p) {
  await_earlier();
  constexpr int kInBlock = Format::kElements / 8;
  const Index row =
      static_cast<Index>(block_index()) * (static_cast<int>(kBlockThreads / kWarp)) + warp_index();
  if (row >= p.n) return;
  const Index vector = block_index<1>();
  const Bits8* from = w + row * p.row_bytes;
  const float* with = x + vector * p.k;
  const int eights = static_cast<int>(p.k / 8);
  float sum = 0.0f;
  GPU_ROLLED
  for (int i = static_cast<int>(lane()); i < eights; i += static_cast<int>(kWarp)) {
    float value[8];
    Format::decode8(from + static_cast<Index>(i / kInBlock) * Format::kBytes, i % kInBlock, value);
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) sum = math::fma(value[j], with[8 * i + j], sum);
  }
  sum = warp_sum(sum);
  if (lane() == 0) words::store(y, p.y_type, vector * p.n + row, sum);
}

GPU_KERNEL void decoded_q4_0(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q4_0>(w, x, y, p);
}
GPU_KERNEL void decoded_q4_1(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q4_1>(w, x, y, p);
}
GPU_KERNEL void decoded_q5_0(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q5_0>(w, x, y, p);
}
GPU_KERNEL void decoded_q5_1(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q5_1>(w, x, y, p);
}
GPU_KERNEL void decoded_q8_0(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q8_0>(w, x, y, p);
}
GPU_KERNEL void decoded_q8_1(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q8_1>(w, x, y, p);
}
GPU_KERNEL void decoded_q2_k(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q2_K>(w, x, y, p);
}
GPU_KERNEL void decoded_q3_k(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q3_K>(w, x, y, p);
}
GPU_KERNEL void decoded_q4_k(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q4_K>(w, x, y, p);
}
GPU_KERNEL void decoded_q5_k(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q5_K>(w, x, y, p);
}
GPU_KERNEL void decoded_q6_k(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q6_K>(w, x, y, p);
}
GPU_KERNEL void decoded_q8_k(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q8_K>(w, x, y, p);
}
GPU_KERNEL void decoded_iq2_xxs(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ2_XXS>(w, x, y, p);
}
GPU_KERNEL void decoded_iq2_xs(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ2_XS>(w, x, y, p);
}
GPU_KERNEL void decoded_iq3_xxs(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ3_XXS>(w, x, y, p);
}
GPU_KERNEL void decoded_iq1_s(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ1_S>(w, x, y, p);
}
GPU_KERNEL void decoded_iq4_nl(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ4_NL>(w, x, y, p);
}
GPU_KERNEL void decoded_iq3_s(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ3_S>(w, x, y, p);
}
GPU_KERNEL void decoded_iq2_s(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ2_S>(w, x, y, p);
}
GPU_KERNEL void decoded_iq4_xs(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ4_XS>(w, x, y, p);
}
GPU_KERNEL void decoded_iq1_m(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::IQ1_M>(w, x, y, p);
}
GPU_KERNEL void decoded_tq1_0(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::TQ1_0>(w, x, y, p);
}
GPU_KERNEL void decoded_tq2_0(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::TQ2_0>(w, x, y, p);
}
GPU_KERNEL void decoded_mxfp4(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::MXFP4>(w, x, y, p);
}
GPU_KERNEL void decoded_nvfp4(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::NVFP4>(w, x, y, p);
}
GPU_KERNEL void decoded_q1_0(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q1_0>(w, x, y, p);
}
GPU_KERNEL void decoded_q2_0(const Bits8* w, const float* x, void* y, QuantProduct p) {
  decoded<blocks::Q2_0>(w, x, y, p);
}
