// What quantised products are told by value. Both sides include this file.
#pragma once

#include "gpu_args.h"

namespace tl::kernels {

// y = x * transpose(w): w has n rows of k elements, k a multiple of 32, x has m rows.
struct QuantProduct {
  Index n, k, m;
  Index row_bytes;  // of w
  // Elements from one row of x to the next, as the kernels have it. In QUANT_ROW: the rows of w of
  // each block, beside one more for the first `parts` blocks.
  Index x_row;
  int y_type;  // 0: f32, 1: f16, 2: bf16
  // In QUANT_VECTOR: in how many a row's sum is cut. In QUANT_GROUP: 0 when a block has no shared
  // memory.
  int parts;
};

// Vector kernels. Rows of x become bytes, 32 of them with one scale, in groups of 1024: first the
// former halves of all 32 parts, then the latter, so that a warp reads them without gaps. What does
// not fill a group is zero.
inline constexpr Index kQuantRowStep = 1024;
struct QuantScale {
  float d;       // an element is d times its byte
  float sum[2];  // d times the sum of the bytes of each half
  float both;    // d times the sum of all
};
inline constexpr int kQuantVectorThreads = 128;
inline constexpr int kQuantVectorMost = 8;  // rows of x
// Rows of w that a warp takes together.
template <int kVectors>
inline constexpr int kQuantVectorRows = kVectors == 1 ? 1 : 2;

// Kernels of QUANT_ROW keep the bytes and scales of x, of so many groups of 32, in shared memory.
inline constexpr int kQuantRowThreads = 512;
inline constexpr int kQuantRowBlocks = 2;  // on a multiprocessor
TL_FN int row_vector_bytes(int groups) {
  return groups * (32 + static_cast<int>(sizeof(QuantScale)));
}

// Those that are named piece_*: a lane has 64 columns, so what a warp has of a row is a slice of
// whole blocks of 256. A warp takes some rows at a time. Where a lane's part of a block lies in few
// words that can be loaded at once, it goes to registers; else slices come to shared memory, some
// while as many are multiplied. They begin anywhere in sixteen bytes.
inline constexpr int kQuantPieceRows = 2, kQuantPieceTurns = 2;
TL_FN bool comes_aside(int block_bytes) { return block_bytes % 16 != 0 || block_bytes > 144; }
TL_FN int piece_room(int warp, int block_bytes) {
  return (warp / 4 * block_bytes + 15 + 15) / 16 * 16;
}
// Shared memory of a warp for them.
TL_FN int slice_bytes(int warp, int block_bytes) {
  return comes_aside(block_bytes)
             ? kQuantPieceRows * kQuantPieceTurns * piece_room(warp, block_bytes)
             : 0;
}
// Warps that have a row of k columns together.
TL_FN int piece_warps(Index k, int warp) {
  return static_cast<int>((k + 64 * warp - 1) / (64 * warp));
}

// Matrix kernels. Rows of x become f16, divided by a power of two that brings the largest to
// between 2^8 and 2^9, padded with zeros to a multiple of kQuantDeep.
inline constexpr Index kQuantDeep = 512;
inline constexpr int kQuantMatrixWarps = 4;
struct QuantTile {
  int rows, tokens;  // of w and of x, in one block
};
inline constexpr QuantTile kQuantWide{128, 64};
inline constexpr QuantTile kQuantNarrow{32, 16};

// Kernels of GroupUnit (gpu_mma.h). Tokens are cut into tiles, and each tile into stages of 64
// columns, one after the other as they will lie in shared memory. Of 128 columns, which are two
// stages, the unit's steps take what a lane with 32 neighbours of a row has at hand: four elements
// of each lane's 32 to a step.
inline constexpr QuantTile kQuantGroup{128, 128};
inline constexpr int kQuantGroupThreads = 384;  // two groups of four warps, and one that brings
inline constexpr Index kQuantGroupChunk = 256;  // columns that are brought at a time
inline constexpr int kQuantGroupStage = 64;
// Where element `column` of a token is, counted in halves. `columns` is a multiple of the chunk.
TL_FN Index group_place(Index token, Index column, Index columns) {
  const Index tile = token / kQuantGroup.tokens, line = token % kQuantGroup.tokens;
  const Index lane = column % 128 / 32, run = column % 32 / 4, at = column % 4;
  const Index place = column / 128 * 128 + 16 * run + 2 * lane + at % 2 + 8 * (at / 2);
  const Index piece = place % kQuantGroupStage / 8 ^ (line & 7);
  return (tile * columns + place / kQuantGroupStage * kQuantGroupStage) * kQuantGroup.tokens +
         line * kQuantGroupStage + 8 * piece + place % 8;
}
// Bytes from one row of a chunk in shared memory to the next: room for what lies in the same 16
// bytes, and an odd number of these, so that rows lie in different banks.
TL_FN int group_stride(int chunk_bytes) { return ((chunk_bytes + 15 + 15) / 16 | 1) * 16; }
// Shared memory of a block: two chunks of rows and tokens, what counts them, and room to begin at a
// multiple of 1024.
TL_FN int group_shared_bytes(int chunk_bytes) {
  return 1024 +
         2 * (kQuantGroup.tokens * static_cast<int>(kQuantGroupChunk) * 2 +
              kQuantGroup.rows * group_stride(chunk_bytes)) +
         256;
}

}  // namespace tl::kernels
