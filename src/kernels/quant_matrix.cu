// Module QUANT_MATRIX: products of quantised matrices with many vectors ("tokens"), on matrix
// units.
//
// Tokens become f16 (halve_*), each row divided by a power of two. Weights become f16 in the
// registers of the lanes that need them and are never stored: a lane takes 32 neighbours of a row,
// as a format packs them, and the tokens are read in the order that fits. Sums are f32, in a fixed
// order. Rows and tokens past the end repeat the last one and come to nothing.
#include "gpu.h"
#include "gpu_mma.h"
#include "gpu_quant.h"
#include "quant_blocks.h"
#include "quant_words.h"

namespace blocks = tl::quant_blocks;
using tl::kernels::kQuantDeep;
using tl::kernels::kQuantMatrixWarps;
using tl::kernels::kQuantNarrow;
using tl::kernels::kQuantWide;
using tl::kernels::QuantProduct;
using tl::kernels::QuantTile;

// ---- tokens as f16

// A block makes a row.
template <class T>
GPU_INLINE void halve(const T* x, Half* to, float* scales, const QuantProduct& p) {
  const Index row = block_index();
  const T* from = x + row * p.k;
  float largest = 0.0f;
  GPU_ROLLED
  for (Index i = thread_index(); i < p.k; i += kBlockThreads) {
    largest = math::max(largest, math::abs(to_float(from[i])));
  }
  largest = block_max(largest);
  // 2^(8 - e) for a largest of 2^e up to 2^(e+1); nothing to do for zero, infinity and NaN.
  const auto exponent = static_cast<int>(bits::bits_of(largest) >> 23 & 255u);
  const bool usual = exponent > 8 && exponent < 255;
  const float factor =
      usual ? bits::float_of(static_cast<Bits32>(exponent > 261 ? 1 : 262 - exponent) << 23) : 1.0f;
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

// ---- weights as f16

// What 32 weights need besides their codes.
template <class W>
struct Factors {
  Bits32 scale[W::kScales], minimum[W::kScales];
  // `there` is false for a group past the end of the row: all its weights are zero.
  GPU_INLINE Factors(const W& w, bool there) {
    GPU_UNROLLED
    for (int i = 0; i < W::kScales; ++i) {
      scale[i] = there ? pair_both(w.scale(i)) : 0u;
      minimum[i] = there && W::kHasMinimum ? pair_both(-w.minimum(i)) : 0u;
    }
  }
  // Elements 4 j to 4 j + 3. A byte behind 0x64 is 1024 and the byte, as a half.
  GPU_INLINE void weights(const W& w, int j, Bits32* to) const {
    const Bits32 codes = W::kSigned ? w.codes(j) ^ 0x80808080u : w.codes(j);
    const Bits32 offset = pair_both(-1024.0f - (W::kSigned ? 128.0f : W::kBias));
    const int which = W::kScales == 1 ? 0 : j / 4;
    const Bits32 low = pick_bytes<0, 4, 1, 4>(codes, 0x64646464u);
    const Bits32 high = pick_bytes<2, 4, 3, 4>(codes, 0x64646464u);
    to[0] = pair_fma(pair_add(low, offset), scale[which], minimum[which]);
    to[1] = pair_fma(pair_add(high, offset), scale[which], minimum[which]);
  }
};

// ---- products

GPU_INLINE void store(void* y, int type, Index at, float value) {
  if (type == 0) {
    static_cast<float*>(y)[at] = value;
  } else if (type == 1) {
    static_cast<Half*>(y)[at] = from_float<Half>(value);
  } else {
    static_cast<BFloat16*>(y)[at] = from_float<BFloat16>(value);
  }
}

// Tokens in shared memory: a stage has 64 elements of each, those of a lane next to each other, and
// eight more so that lanes read different banks.
constexpr int kStage = 64, kStageRow = kStage + 8;
constexpr int kStageTokens = 128;

// Of a chunk a lane takes kGroups whole groups of 32; a chunk is kStages stages.
constexpr int kChunk = 32 * MatrixUnit::kDeep < kStage ? kStage : 32 * MatrixUnit::kDeep;
constexpr int kStages = kChunk / kStage;
constexpr int kLaneStage = kStage / MatrixUnit::kDeep;  // elements of a lane in a stage
constexpr int kGroups = kStages * kLaneStage / 32;

// kRowTiles tiles of rows and kTokens tokens for each warp. With kDeepWarps = 1 the warps have rows
// of their own; else they have the same rows, and take turns with the chunks of k.
template <class Format, int kRowTiles, int kTokens, int kDeepWarps, class Mma>
GPU_INLINE void multiply(const Bits8* w, const Half* x, const float* scales, void* y,
                         const QuantProduct& p) {
  using W = words::Words<Format>;
  constexpr int kTiles = kTokens / Mma::kColumns;
  constexpr int kThreads = kQuantMatrixWarps * static_cast<int>(kWarp);
  constexpr int kBlockRows = Mma::kRows * kRowTiles * (kQuantMatrixWarps / kDeepWarps);
  static_assert(kTokens * kDeepWarps == kStageTokens);
  alignas(16) GPU_SHARED Half staged[2][kStageTokens][kStageRow];

  const unsigned token_tiles = static_cast<unsigned>((p.m + kTokens - 1) / kTokens);
  const Index first_token = static_cast<Index>(block_index() % token_tiles) * kTokens;
  const Index first_row = static_cast<Index>(block_index() / token_tiles) * kBlockRows +
                          (kDeepWarps == 1 ? warp_index() * Mma::kRows * kRowTiles : 0u);
  const int deep_warp = kDeepWarps == 1 ? 0 : static_cast<int>(warp_index());
  const int groups = static_cast<int>(p.k / 32);
  const int rounds = static_cast<int>((p.k + kChunk * kDeepWarps - 1) / (kChunk * kDeepWarps));

  const Bits8* rows[kRowTiles][Mma::kLaneRows];
  GPU_UNROLLED
  for (int t = 0; t < kRowTiles; ++t) {
    GPU_UNROLLED
    for (int i = 0; i < Mma::kLaneRows; ++i) {
      const Index row = first_row + t * Mma::kRows + Mma::row(i);
      rows[t][i] = w + (row < p.n ? row : p.n - 1) * p.row_bytes;
    }
  }
  float sums[kRowTiles][kTiles][Mma::kSums] = {};

  // Sixteen bytes at a time. Of each lane's range in a chunk a stage has one part.
  const auto fetch = [&](int stage) {
    constexpr int kPieces = kStage / 8;
    const int round = stage / kStages, part = stage % kStages;
    const int thread = static_cast<int>(forgotten(thread_index()));  // addresses are not kept
    GPU_UNROLLED
    for (int i = 0; i < kStageTokens * kPieces / kThreads; ++i) {
      const int piece = thread + i * kThreads;
      const int line = piece / kPieces, at = piece % kPieces * 8;
      const int deep = kDeepWarps == 1 ? 0 : line / kTokens;
      const Index token = first_token + line % kTokens;
      const Half* from = x + (token < p.m ? token : p.m - 1) * p.x_row +
                         static_cast<Index>(round * kDeepWarps + deep) * kChunk +
                         at / kLaneStage * (kStages * kLaneStage) + part * kLaneStage +
                         at % kLaneStage;
      copy_aside(&staged[stage % 2][line][at], from);
    }
    copies_close();
  };

  fetch(0);
  GPU_ROLLED
  for (int round = 0; round < rounds; ++round) {
    const int chunk = round * kDeepWarps + deep_warp;
    W from[kGroups][kRowTiles][Mma::kLaneRows];
    bool there[kGroups];
    GPU_UNROLLED
    for (int u = 0; u < kGroups; ++u) {
      const int group = (chunk * Mma::kDeep + Mma::deep()) * kGroups + u;
      there[u] = group < groups;
      GPU_UNROLLED
      for (int t = 0; t < kRowTiles; ++t) {
        GPU_UNROLLED
        for (int i = 0; i < Mma::kLaneRows; ++i) {
          from[u][t][i].load(rows[t][i], there[u] ? group : groups - 1);
        }
      }
    }
    GPU_UNROLLED
    for (int part = 0; part < kStages; ++part) {
      const int stage = round * kStages + part;
      copies_wait<0>();
      barrier();
      if (stage + 1 < rounds * kStages) fetch(stage + 1);
      const Half* tokens = &staged[stage % 2][deep_warp * (kDeepWarps == 1 ? 0 : kTokens) +
                                              Mma::column()][Mma::deep() * kLaneStage];
      // Eight elements of a lane, sixteen bytes of a token, at a time: one or more steps.
      constexpr int kTogether = Mma::kRun < 8 ? 8 : Mma::kRun;
      GPU_UNROLLED
      for (int e = 0; e < kLaneStage; e += kTogether) {
        const int place = part * kLaneStage + e, u = place / 32, j = place % 32 / 4;
        Bits32 left[kTogether / Mma::kRun][kRowTiles][Mma::kLaneWords];
        GPU_UNROLLED
        for (int t = 0; t < kRowTiles; ++t) {
          GPU_UNROLLED
          for (int i = 0; i < Mma::kLaneRows; ++i) {
            const Factors<W> factors(from[u][t][i], there[u]);
            GPU_UNROLLED
            for (int step = 0; step < kTogether / Mma::kRun; ++step) {
              GPU_UNROLLED
              for (int four = 0; four < Mma::kRun / 4; ++four) {
                factors.weights(from[u][t][i], j + step * (Mma::kRun / 4) + four,
                                &left[step][t][i * (Mma::kRun / 2) + 2 * four]);
              }
            }
          }
        }
        GPU_UNROLLED
        for (int tile = 0; tile < kTiles; ++tile) {
          Bits32 right[kTogether / 2];
          GPU_UNROLLED
          for (int eight = 0; eight < kTogether / 8; ++eight) {
            const auto vec = load_vec<8>(tokens + tile * Mma::kColumns * kStageRow + e + 8 * eight);
            GPU_UNROLLED
            for (int word = 0; word < 4; ++word) right[4 * eight + word] = vec.words.at[word];
          }
          GPU_UNROLLED
          for (int step = 0; step < kTogether / Mma::kRun; ++step) {
            Bits32 run[Mma::kRun / 2];
            GPU_UNROLLED
            for (int word = 0; word < Mma::kRun / 2; ++word) {
              run[word] = right[step * (Mma::kRun / 2) + word];
            }
            GPU_UNROLLED
            for (int t = 0; t < kRowTiles; ++t) Mma::add(sums[t][tile], left[step][t], run);
          }
        }
      }
    }
  }

  if constexpr (kDeepWarps > 1) {
    // The warps' sums are added in their order, through the stages' memory.
    constexpr int kEach = kRowTiles * kTiles * Mma::kSums;
    static_assert(kDeepWarps * kEach * kWarp * sizeof(float) <= sizeof staged);
    auto* all = reinterpret_cast<float*>(&staged[0][0][0]);
    barrier();
    GPU_UNROLLED
    for (int i = 0; i < kEach; ++i) {
      all[(deep_warp * kEach + i) * static_cast<int>(kWarp) + static_cast<int>(lane())] =
          sums[i / (kTiles * Mma::kSums)][i / Mma::kSums % kTiles][i % Mma::kSums];
    }
    barrier();
    if (deep_warp != 0) return;
    GPU_UNROLLED
    for (int i = 0; i < kEach; ++i) {
      float& sum = sums[i / (kTiles * Mma::kSums)][i / Mma::kSums % kTiles][i % Mma::kSums];
      GPU_UNROLLED
      for (int other = 1; other < kDeepWarps; ++other) {
        sum += all[(other * kEach + i) * static_cast<int>(kWarp) + static_cast<int>(lane())];
      }
    }
  }
  GPU_UNROLLED
  for (int tile = 0; tile < kTiles; ++tile) {
    GPU_UNROLLED
    for (int i = 0; i < Mma::kSums; ++i) {
      const Index token = first_token + tile * Mma::kColumns + Mma::sum_column(i);
      if (token >= p.m) continue;
      const float scale = scales[token];
      GPU_UNROLLED
      for (int t = 0; t < kRowTiles; ++t) {
        const Index row = first_row + t * Mma::kRows + Mma::sum_row(i);
        if (row < p.n) store(y, p.y_type, token * p.n + row, sums[t][tile][i] * scale);
      }
    }
  }
}

// For targets without matrix units, whose host does not choose these kernels: a thread makes one
// element at a time.
template <class Format, int kRows, int kTokens>
GPU_INLINE void multiply_plainly(const Bits8* w, const Half* x, const float* scales, void* y,
                                 const QuantProduct& p) {
  using W = words::Words<Format>;
  const unsigned token_tiles = static_cast<unsigned>((p.m + kTokens - 1) / kTokens);
  const Index first_token = static_cast<Index>(block_index() % token_tiles) * kTokens;
  const Index first_row = static_cast<Index>(block_index() / token_tiles) * kRows;
  GPU_ROLLED
  for (int i = static_cast<int>(thread_index()); i < kRows * kTokens;
       i += static_cast<int>(block_threads())) {
    const Index row = first_row + i % kRows, token = first_token + i / kRows;
    if (row >= p.n || token >= p.m) continue;
    float sum = 0.0f;
    GPU_ROLLED
    for (Index group = 0; group < p.k / 32; ++group) {
      W from;
      from.load(w + row * p.row_bytes, group);
      const Factors<W> factors(from, true);
      GPU_UNROLLED
      for (int j = 0; j < 8; ++j) {
        Bits32 left[2];
        factors.weights(from, j, left);
        const auto right = load_vec<4>(x + token * p.x_row + 32 * group + 4 * j);
        GPU_UNROLLED
        for (int e = 0; e < 4; ++e) {
          const auto half = static_cast<Bits16>(left[e / 2] >> 16 * (e % 2));
          sum = math::fma(f16_to_float(half), to_float(right.get(e)), sum);
        }
      }
    }
    store(y, p.y_type, token * p.n + row, sum * scales[token]);
  }
}

template <class Format>
GPU_INLINE void wide(const Bits8* w, const Half* x, const float* s, void* y,
                     const QuantProduct& p) {
  if constexpr (MatrixUnit::kThere) {
    static_assert(kQuantWide.rows == MatrixUnit::kRows * 2 * kQuantMatrixWarps);
    multiply<Format, 2, kQuantWide.tokens, 1, MatrixUnit>(w, x, s, y, p);
  } else {
    multiply_plainly<Format, kQuantWide.rows, kQuantWide.tokens>(w, x, s, y, p);
  }
}
template <class Format>
GPU_INLINE void narrow(const Bits8* w, const Half* x, const float* s, void* y,
                       const QuantProduct& p) {
  if constexpr (MatrixUnit::kThere) {
    static_assert(kQuantNarrow.rows == MatrixUnit::kRows);
    static_assert(kQuantDeep % (kQuantMatrixWarps * kChunk) == 0);
    multiply<Format, 1, kQuantNarrow.tokens, kQuantMatrixWarps, MatrixUnit>(w, x, s, y, p);
  } else {
    multiply_plainly<Format, kQuantNarrow.rows, kQuantNarrow.tokens>(w, x, s, y, p);
  }
}

GPU_KERNEL void wide_q4_0(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q4_0>(w, x, s, y, p);
}
GPU_KERNEL void wide_q4_1(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q4_1>(w, x, s, y, p);
}
GPU_KERNEL void wide_q5_0(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q5_0>(w, x, s, y, p);
}
GPU_KERNEL void wide_q5_1(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q5_1>(w, x, s, y, p);
}
GPU_KERNEL void wide_q8_0(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q8_0>(w, x, s, y, p);
}
GPU_KERNEL void wide_q2_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q2_K>(w, x, s, y, p);
}
GPU_KERNEL void wide_q3_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q3_K>(w, x, s, y, p);
}
GPU_KERNEL void wide_q4_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q4_K>(w, x, s, y, p);
}
GPU_KERNEL void wide_q5_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q5_K>(w, x, s, y, p);
}
GPU_KERNEL void wide_q6_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::Q6_K>(w, x, s, y, p);
}
GPU_KERNEL void wide_iq4_nl(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  wide<blocks::IQ4_NL>(w, x, s, y, p);
}
GPU_KERNEL void wide_iq4_xs(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  wide<blocks::IQ4_XS>(w, x, s, y, p);
}
GPU_KERNEL void wide_mxfp4(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  wide<blocks::MXFP4>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q4_0(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q4_0>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q4_1(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q4_1>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q5_0(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q5_0>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q5_1(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q5_1>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q8_0(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q8_0>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q2_k(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q2_K>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q3_k(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q3_K>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q4_k(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q4_K>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q5_k(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q5_K>(w, x, s, y, p);
}
GPU_KERNEL void narrow_q6_k(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  narrow<blocks::Q6_K>(w, x, s, y, p);
}
GPU_KERNEL void narrow_iq4_nl(const Bits8* w, const Half* x, const float* s, void* y,
                              QuantProduct p) {
  narrow<blocks::IQ4_NL>(w, x, s, y, p);
}
GPU_KERNEL void narrow_iq4_xs(const Bits8* w, const Half* x, const float* s, void* y,
                              QuantProduct p) {
  narrow<blocks::IQ4_XS>(w, x, s, y, p);
}
GPU_KERNEL void narrow_mxfp4(const Bits8* w, const Half* x, const float* s, void* y,
                             QuantProduct p) {
  narrow<blocks::MXFP4>(w, x, s, y, p);
}
