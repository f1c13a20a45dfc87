// Module QUANT_MATRIX: products of quantised matrices with many vectors ("tokens"), on matrix
// units.
//
// Tokens have become f16 (module QUANT_VECTOR), each row divided by a power of two. Weights become
// f16 in the registers of the lanes that need them and are never stored: a lane takes 32 neighbours
// of a row, as a format packs them, and the tokens are read in the order that fits. Sums are f32,
// in a fixed order. Rows past the end repeat the last one, tokens past the end are whatever lies
// there; neither is stored.
#define GPU_LEAST_BLOCKS 1  // all registers there are: with fewer the tiles spill
#include "gpu.h"
#include "gpu_mma.h"
#include "gpu_quant.h"
#include "quant_blocks.h"
#include "quant_halves.h"
#include "quant_words.h"

namespace blocks = tl::quant_blocks;
using tl::kernels::kQuantDeep;
using tl::kernels::kQuantMatrixWarps;
using tl::kernels::kQuantNarrow;
using tl::kernels::kQuantWide;
using tl::kernels::QuantProduct;
using tl::kernels::QuantTile;

// ---- products

// Tokens in shared memory: a stage has 64 elements of each, those of a lane next to each other. The
// eight pieces of 16 bytes change places with the number of the token, so that lanes read different
// banks. While one stage is worked on the next ones are under way.
constexpr int kStage = 64;
GPU_INLINE int piece_at(int line, int piece) { return (piece ^ (line & 7)) * 8; }

// Of a chunk a lane takes kGroups whole groups of 32; a chunk is kStages stages.
constexpr int kChunk = 32 * MatrixUnit::kDeep < kStage ? kStage : 32 * MatrixUnit::kDeep;
constexpr int kStages = kChunk / kStage;
constexpr int kLaneStage = kStage / MatrixUnit::kDeep;  // elements of a lane in a stage
constexpr int kGroups = kStages * kLaneStage / 32;

// kRowTiles tiles of rows and kTokens tokens for each warp. With kDeepWarps = 1 the warps have rows
// of their own; else they have the same rows, and take turns with the chunks of k.
template <class Format, int kRowTiles, int kTokens, int kDeepWarps, class Mma>
GPU_INLINE void multiply(const Bits8* w, const Half* x, const float* scales, void* y,
                         const QuantProduct& p, Index block_row, Index first_token) {
  using W = words::Words<Format>;
  constexpr int kTiles = kTokens / Mma::kColumns;
  constexpr int kTilesTogether = Mma::kSums == 8 ? 1 : kTiles < 4 ? kTiles : 4;
  constexpr int kThreads = kQuantMatrixWarps * static_cast<int>(kWarp);
  constexpr int kStageTokens = kTokens * kDeepWarps;
  constexpr int kStagesHeld = kDeepWarps == 1 ? 3 : 5;
  alignas(128) GPU_SHARED Half staged[kStagesHeld][kStageTokens][kStage];

  const Index first_row =
      block_row + (kDeepWarps == 1 ? warp_index() * Mma::kRows * kRowTiles : 0u);
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

  const int stages = rounds * kStages;
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
      const Half* from =
          x + token * p.x_row + static_cast<Index>(round * kDeepWarps + deep) * kChunk +
          at / kLaneStage * (kStages * kLaneStage) + part * kLaneStage + at % kLaneStage;
      // Nobody asks for the sums of tokens that are not there, whatever lies in their place.
      copy_aside(&staged[stage % kStagesHeld][line][piece_at(line, at / 8)], from,
                 token < p.m && stage < stages);
    }
  };

  // The weights of a round, loaded while those of the round before it are worked on where there
  // are registers for both.
  constexpr bool kLoadAhead = sizeof(typename W::Raw) * kRowTiles * Mma::kLaneRows <= 170;
  typename W::Raw raw[kGroups][kRowTiles][Mma::kLaneRows];
  const auto group_of = [&](int round, int u) {
    return ((round * kDeepWarps + deep_warp) * Mma::kDeep + Mma::deep()) * kGroups + u;
  };
  const auto load = [&](int round) {
    GPU_UNROLLED
    for (int u = 0; u < kGroups; ++u) {
      const int group = group_of(round, u);
      GPU_UNROLLED
      for (int t = 0; t < kRowTiles; ++t) {
        GPU_UNROLLED
        for (int i = 0; i < Mma::kLaneRows; ++i) {
          raw[u][t][i].load(rows[t][i], group < groups ? group : groups - 1);
        }
      }
    }
  };

  if constexpr (kLoadAhead) load(0);
  GPU_UNROLLED
  for (int stage = 0; stage + 1 < kStagesHeld; ++stage) {
    fetch(stage);
    copies_close();
  }
  GPU_ROLLED
  for (int round = 0; round < rounds; ++round) {
    if constexpr (!kLoadAhead) load(round);
    W held[kGroups][kRowTiles][Mma::kLaneRows];
    Factors<W> factors[kGroups][kRowTiles][Mma::kLaneRows];
    GPU_UNROLLED
    for (int u = 0; u < kGroups; ++u) {
      const bool there = group_of(round, u) < groups;
      GPU_UNROLLED
      for (int t = 0; t < kRowTiles; ++t) {
        GPU_UNROLLED
        for (int i = 0; i < Mma::kLaneRows; ++i) {
          held[u][t][i].open(raw[u][t][i]);
          factors[u][t][i].open(held[u][t][i], there);
        }
      }
    }
    if constexpr (kLoadAhead) load(round + 1);  // past the end: the last group once more
    GPU_UNROLLED
    for (int part = 0; part < kStages; ++part) {
      const int stage = round * kStages + part;
      copies_wait<kStagesHeld - 2>();
      barrier();
      fetch(stage + kStagesHeld - 1);
      copies_close();
      const Half* tokens = staged[stage % kStagesHeld][deep_warp * kTokens + Mma::column()];
      const int first_piece = Mma::deep() * (kLaneStage / 8);
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
            GPU_UNROLLED
            for (int step = 0; step < kTogether / Mma::kRun; ++step) {
              GPU_UNROLLED
              for (int four = 0; four < Mma::kRun / 4; ++four) {
                factors[u][t][i].weights(held[u][t][i], j + step * (Mma::kRun / 4) + four,
                                         &left[step][t][i * (Mma::kRun / 2) + 2 * four]);
              }
            }
          }
        }
        // A few tiles at a time: a unit takes long enough to want other sums in between.
        GPU_UNROLLED
        for (int first = 0; first < kTiles; first += kTilesTogether) {
          Bits32 right[kTilesTogether][kTogether / 2];
          GPU_UNROLLED
          for (int tile = 0; tile < kTilesTogether; ++tile) {
            GPU_UNROLLED
            for (int eight = 0; eight < kTogether / 8; ++eight) {
              const auto vec = load_vec<8>(tokens + (first + tile) * Mma::kColumns * kStage +
                                           piece_at(Mma::column(), first_piece + e / 8 + eight));
              GPU_UNROLLED
              for (int word = 0; word < 4; ++word)
                right[tile][4 * eight + word] = vec.words.at[word];
            }
          }
          GPU_UNROLLED
          for (int step = 0; step < kTogether / Mma::kRun; ++step) {
            GPU_UNROLLED
            for (int tile = 0; tile < kTilesTogether; ++tile) {
              Bits32 run[Mma::kRun / 2];
              GPU_UNROLLED
              for (int word = 0; word < Mma::kRun / 2; ++word) {
                run[word] = right[tile][step * (Mma::kRun / 2) + word];
              }
              GPU_UNROLLED
              for (int t = 0; t < kRowTiles; ++t) {
                Mma::add(sums[t][first + tile], left[step][t], run);
              }
            }
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
    copies_wait<0>();  // those past the end are under way too
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
        if (row < p.n) words::store(y, p.y_type, token * p.n + row, sums[t][tile][i] * scale);
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
      const Half* with = x + token * p.x_row + 32 * group;
      sum = add_group_of_halves<W>(sum, w + row * p.row_bytes, group,
                                   [&](int e) { return to_float(with[e]); });
    }
    words::store(y, p.y_type, token * p.n + row, sum * scales[token]);
  }
}

// The tile of a block: tokens first, so that blocks side by side share rows of w.
struct Tile {
  Index row, token;
  GPU_INLINE Tile(QuantTile size, Index m) {
    const auto across = static_cast<unsigned>((m + size.tokens - 1) / size.tokens);
    row = static_cast<Index>(block_index() / across) * size.rows;
    token = static_cast<Index>(block_index() % across) * size.tokens;
  }
};

template <class Format>
GPU_INLINE void wide(const Bits8* w, const Half* x, const float* s, void* y,
                     const QuantProduct& p) {
  await_earlier();
  if constexpr (MatrixUnit::kThere) {
    static_assert(kQuantWide.rows == MatrixUnit::kRows * 2 * kQuantMatrixWarps);
    const Tile tile(kQuantWide, p.m);
    // Where the weights take most registers (Q3_K) the tokens come in two parts.
    constexpr int kParts = sizeof(typename words::Words<Format>::Raw) > 92 ? 2 : 1;
    constexpr int kTokens = kQuantWide.tokens / kParts;
    GPU_ROLLED
    for (int part = 0; part < kParts; ++part) {
      if (part > 0) {
        copies_wait<0>();
        barrier();
      }
      multiply<Format, 2, kTokens, 1, MatrixUnit>(w, x, s, y, p, tile.row,
                                                  tile.token + part * kTokens);
    }
  } else {
    multiply_plainly<Format, kQuantWide.rows, kQuantWide.tokens>(w, x, s, y, p);
  }
}
template <class Format>
GPU_INLINE void narrow(const Bits8* w, const Half* x, const float* s, void* y,
                       const QuantProduct& p) {
  await_earlier();
  if constexpr (MatrixUnit::kThere) {
    static_assert(kQuantNarrow.rows == 2 * MatrixUnit::kRows);
    static_assert(kQuantDeep % (kQuantMatrixWarps * kChunk) == 0);
    const Tile tile(kQuantNarrow, p.m);
    multiply<Format, 2, kQuantNarrow.tokens, kQuantMatrixWarps, MatrixUnit>(w, x, s, y, p, tile.row,
                                                                            tile.token);
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
