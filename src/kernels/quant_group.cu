// Module QUANT_GROUP: products of quantised matrices with very many vectors ("tokens"), by the
// matrix unit that takes four warps and reads one side from shared memory.
//
// Tokens have become f16 (module QUANT_VECTOR), each row divided by a power of two, in the order
// and the places in which the unit wants them: a stage of a tile is brought by the device in one
// piece. Warps of their own bring it, and the bytes of the rows of the matrix, while eight others
// make halves of earlier bytes and multiply. Weights become f16 in the registers of the lanes that
// need them and are never stored. Sums are f32, in a fixed order. Rows past the end repeat the last
// one, tokens past the end are whatever lies there; neither is stored.
#define GPU_THREADS 384
#define GPU_LEAST_BLOCKS 1  // all registers there are
#include "gpu.h"
#include "gpu_mma.h"
#include "gpu_quant.h"
#include "gpu_together.h"
#include "quant_blocks.h"
#include "quant_halves.h"
#include "quant_words.h"

namespace blocks = tl::quant_blocks;
using tl::kernels::group_place;
using tl::kernels::group_stride;
using tl::kernels::kQuantGroup;
using tl::kernels::kQuantGroupChunk;
using tl::kernels::kQuantGroupStage;
using tl::kernels::QuantProduct;

static_assert(kBlockThreads == tl::kernels::kQuantGroupThreads);

// Only Hopper's kernels use them.
[[maybe_unused]] constexpr int kStages = kQuantGroupChunk / kQuantGroupStage;  // of a chunk
[[maybe_unused]] constexpr int kStageHalves = kQuantGroup.tokens * kQuantGroupStage;
[[maybe_unused]] constexpr int kGroups = kQuantGroupChunk / 32;
constexpr unsigned kWorkers = 8;      // warps
constexpr int kBringers = 4 * kWarp;  // threads
static_assert(kBringers == kQuantGroup.rows || !GroupUnit::kThere);

// Two chunks of rows and of tokens in shared memory, and who may go on.
template <class Format>
struct Chunks {
  static constexpr int kBytes = Format::kBytes * static_cast<int>(kQuantGroupChunk) /
                                Format::kElements;  // of a row in a chunk
  static constexpr int kStride = group_stride(kBytes);
  Half* tokens;                                                   // [2][kStages][kStageHalves]
  Bits8* rows;                                                    // [2][kQuantGroup.rows][kStride]
  Delivery *rows_there, *rows_done, *tokens_there, *tokens_done;  // [2], [2][kStages] for tokens

  GPU_INLINE Chunks() {
    auto* base = static_cast<Bits8*>(dynamic_shared());
    base += (0u - static_cast<unsigned>(shared_place(base))) % 1024u;
    tokens = reinterpret_cast<Half*>(base);
    rows = base + 2 * kStages * kStageHalves * sizeof(Half);
    rows_there = reinterpret_cast<Delivery*>(rows + 2 * kQuantGroup.rows * kStride);
    rows_done = rows_there + 2;
    tokens_there = rows_done + 2;
    tokens_done = tokens_there + 2 * kStages;
  }
  GPU_INLINE Half* stage(int slot, int s) const {
    return tokens + (slot * kStages + s) * kStageHalves;
  }
  GPU_INLINE Bits8* row(int slot, int row) const {
    return rows + (slot * kQuantGroup.rows + row) * kStride;
  }
  GPU_INLINE void open() const {
    for (int i = 0; i < 2; ++i) {
      rows_there[i].open(kBringers);
      rows_done[i].open(kWorkers);
    }
    for (int i = 0; i < 2 * kStages; ++i) {
      tokens_there[i].open();
      tokens_done[i].open(kWorkers);
    }
  }
};

// The tile of a block: tokens first, so that blocks side by side share rows of w.
struct Tile {
  Index row, token, token_tile;
  GPU_INLINE explicit Tile(Index m) {
    const auto across = static_cast<unsigned>((m + kQuantGroup.tokens - 1) / kQuantGroup.tokens);
    row = static_cast<Index>(block_index() / across) * kQuantGroup.rows;
    token_tile = static_cast<Index>(block_index() % across);
    token = token_tile * kQuantGroup.tokens;
  }
};

// What four warps do: they bring all chunks, each as soon as there is room. Rows come by copies of
// 16 bytes, which are too short for the device to be asked for each row.
template <class Format>
GPU_INLINE void bring(const Chunks<Format>& in, const Bits8* w, const Half* x,
                      const QuantProduct& p, const Tile& tile, int chunks) {
  using In = Chunks<Format>;
  constexpr int kPieces = In::kStride / 16;
  const Bits8* end = w + p.n * p.row_bytes;  // nothing from here on is read
  const Half* from = x + tile.token_tile * p.x_row * kQuantGroup.tokens;
  const auto own = static_cast<int>(thread_index() - kWorkers * kWarp);
  GPU_ROLLED
  for (int c = 0; c < chunks; ++c) {
    const int slot = c & 1;
    const unsigned turn = (static_cast<unsigned>(c) >> 1 & 1u) ^ 1u;  // free from the start
    in.rows_done[slot].wait(turn);
    const Bits8* first = w + static_cast<Index>(c) * In::kBytes;
    GPU_UNROLLED
    for (int i = 0; i < kPieces; ++i) {
      const int at = own + i * kBringers;
      const int r = at / kPieces, piece = at % kPieces;
      const Index row = tile.row + r < p.n ? tile.row + r : p.n - 1;
      const Bits8* begin = first + row * p.row_bytes;
      const Bits8* source = begin - (reinterpret_cast<Bits64>(begin) & 15u) + 16 * piece;
      copy_aside(in.row(slot, r) + 16 * piece, source, source < end);
    }
    in.rows_there[slot].arrive_when_copied();
    if (own == 0) {
      GPU_ROLLED
      for (int s = 0; s < kStages; ++s) {
        in.tokens_done[slot * kStages + s].wait(turn);
        Delivery& there = in.tokens_there[slot * kStages + s];
        constexpr unsigned kBytes = kStageHalves * sizeof(Half);
        there.expect(kBytes);
        there.bring(in.stage(slot, s), from + (static_cast<Index>(c) * kStages + s) * kStageHalves,
                    kBytes);
      }
    }
    warp_meet();
  }
}

// What the others do: 64 rows to a group of four, all tokens. While the unit multiplies a stage the
// codes of the next become numbers. They are scaled after it, since it wants none of its words made
// while it works.
template <class Format, class Unit>
GPU_INLINE void work(const Chunks<Format>& in, const Bits8* w, const float* scales, void* y,
                     const QuantProduct& p, const Tile& tile, int chunks) {
  using In = Chunks<Format>;
  using W = words::Words<Format>;
  const auto own = static_cast<int>(lane());
  const int line = static_cast<int>(warp_index()) * 16 + own / 4, deep = own % 4;
  const int groups = static_cast<int>(p.k / 32);
  int past[2];  // where in its 16 bytes a row's chunk begins
  GPU_UNROLLED
  for (int i = 0; i < 2; ++i) {
    const Index row = tile.row + line + 8 * i < p.n ? tile.row + line + 8 * i : p.n - 1;
    past[i] = static_cast<int>(reinterpret_cast<Bits64>(w + row * p.row_bytes) & 15u);
  }
  // This lane's groups of both rows, in one half of a chunk.
  W held[2];
  Factors<W> factors[2];
  const auto open = [&](int c, int half) {
    GPU_UNROLLED
    for (int i = 0; i < 2; ++i) {
      typename W::Raw raw;
      const int skip = (past[i] + c * In::kBytes) & 15;
      raw.load(in.row(c & 1, line + 8 * i) + skip, 4 * half + deep);
      held[i].open(raw);
      factors[i].open(held[i], c * kGroups + 4 * half + deep < groups);
    }
  };
  Bits32 numbers[4][4];  // of a stage's four steps
  const auto count = [&](int part) {
    GPU_UNROLLED
    for (int i = 0; i < 8; ++i) {
      Factors<W>::numbers(held[i % 2], 4 * part + i / 2, &numbers[i / 2][2 * (i % 2)]);
    }
  };

  in.rows_there[0].wait(0);
  open(0, 0);
  count(0);
  float sums[Unit::kColumns / 2] = {};
  GPU_ROLLED
  for (int c = 0; c < chunks; ++c) {
    const int slot = c & 1;
    const unsigned turn = static_cast<unsigned>(c) >> 1 & 1u;
    GPU_UNROLLED
    for (int s = 0; s < kStages; ++s) {
      Unit::template wait<0>();
      if (own == 0 && (c > 0 || s > 0)) {
        in.tokens_done[s > 0 ? slot * kStages + s - 1 : (slot ^ 1) * kStages + kStages - 1]
            .arrive();
      }
      Bits32 left[4][4];
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) {
        factors[i % 2].scaled(&numbers[i / 2][2 * (i % 2)], 4 * (s % 2) + i / 2,
                              &left[i / 2][2 * (i % 2)]);
      }
      in.tokens_there[slot * kStages + s].wait(turn);
      Unit::begin(left);
      GPU_UNROLLED
      for (int step = 0; step < 4; ++step) {
        Unit::add(sums, left[step], in.stage(slot, s), step);
      }
      Unit::close();
      if (s == 1) {
        open(c, 1);
        warp_meet();
        if (own == 0) in.rows_done[slot].arrive();  // its bytes are in registers
      } else if (s == kStages - 1) {
        if (c + 1 == chunks) break;
        in.rows_there[slot ^ 1].wait(static_cast<unsigned>(c + 1) >> 1 & 1u);
        open(c + 1, 0);
      }
      count((s + 1) % 2);
      Unit::keep(numbers);
    }
  }
  Unit::template wait<0>();
  GPU_UNROLLED
  for (int i = 0; i < Unit::kColumns / 2; ++i) {
    const Index token = tile.token + 8 * (i / 4) + 2 * deep + i % 2;
    const Index row = tile.row + line + 8 * (i / 2 % 2);
    if (token < p.m && row < p.n) {
      words::store(y, p.y_type, token * p.n + row, sums[i] * scales[token]);
    }
  }
}

// For targets without such a unit, and blocks without the memory for it; the host does not choose
// these kernels then. A thread makes one element at a time.
template <class Format>
GPU_INLINE void work_plainly(const Bits8* w, const Half* x, const float* scales, void* y,
                             const QuantProduct& p, const Tile& tile) {
  using W = words::Words<Format>;
  GPU_ROLLED
  for (int i = static_cast<int>(thread_index()); i < kQuantGroup.rows * kQuantGroup.tokens;
       i += static_cast<int>(block_threads())) {
    const Index row = tile.row + i % kQuantGroup.rows, token = tile.token + i / kQuantGroup.rows;
    if (row >= p.n || token >= p.m) continue;
    float sum = 0.0f;
    GPU_ROLLED
    for (Index group = 0; group < p.k / 32; ++group) {
      sum = add_group_of_halves<W>(sum, w + row * p.row_bytes, group, [&](int e) {
        return to_float(x[group_place(token, 32 * group + e, p.x_row)]);
      });
    }
    words::store(y, p.y_type, token * p.n + row, sum * scales[token]);
  }
}

template <class Format>
GPU_INLINE void group(const Bits8* w, const Half* x, const float* scales, void* y,
                      const QuantProduct& p) {
  await_earlier();
  const Tile tile(p.m);
  if constexpr (GroupUnit::kThere) {
    if (p.parts != 0) {
      const Chunks<Format> in;
      if (thread_index() == 0) in.open();
      barrier();
      const auto chunks = static_cast<int>(p.x_row / kQuantGroupChunk);
      if (warp_index() >= kWorkers) {
        bring(in, w, x, p, tile, chunks);
      } else {
        work<Format, GroupUnit>(in, w, scales, y, p, tile, chunks);
      }
      return;
    }
  }
  work_plainly<Format>(w, x, scales, y, p, tile);
}

GPU_KERNEL void group_q4_0(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q4_0>(w, x, s, y, p);
}
GPU_KERNEL void group_q4_1(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q4_1>(w, x, s, y, p);
}
GPU_KERNEL void group_q5_0(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q5_0>(w, x, s, y, p);
}
GPU_KERNEL void group_q5_1(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q5_1>(w, x, s, y, p);
}
GPU_KERNEL void group_q8_0(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q8_0>(w, x, s, y, p);
}
GPU_KERNEL void group_q2_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q2_K>(w, x, s, y, p);
}
GPU_KERNEL void group_q3_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q3_K>(w, x, s, y, p);
}
GPU_KERNEL void group_q4_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q4_K>(w, x, s, y, p);
}
GPU_KERNEL void group_q5_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q5_K>(w, x, s, y, p);
}
GPU_KERNEL void group_q6_k(const Bits8* w, const Half* x, const float* s, void* y, QuantProduct p) {
  group<blocks::Q6_K>(w, x, s, y, p);
}
GPU_KERNEL void group_iq4_nl(const Bits8* w, const Half* x, const float* s, void* y,
                             QuantProduct p) {
  group<blocks::IQ4_NL>(w, x, s, y, p);
}
GPU_KERNEL void group_iq4_xs(const Bits8* w, const Half* x, const float* s, void* y,
                             QuantProduct p) {
  group<blocks::IQ4_XS>(w, x, s, y, p);
}
GPU_KERNEL void group_mxfp4(const Bits8* w, const Half* x, const float* s, void* y,
                            QuantProduct p) {
  group<blocks::MXFP4>(w, x, s, y, p);
}
