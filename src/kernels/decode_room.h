// Module DECODE: what a block keeps in shared memory, which rows of a product it takes, and how it
// sends for them.
#pragma once

#include "gpu.h"
#include "gpu_decode.h"
#include "gpu_together.h"

using namespace tl::kernels;  // NOLINT: gpu_decode.h

static_assert(kBlockThreads == kDecodeThreads);
constexpr int kWarps = static_cast<int>(kBlockThreads / kWarp);

struct GPU_MAY_ALIAS alignas(16) Chunk {
  Bits32 at[4];
};

// Rows that a block takes at a time, of up to three matrices with rows of one length. Row i of all
// lies at from[w] + i * row_bytes and its sum goes to sum[w] + i, where w is 0 for rows below
// end[0], 1 for those below end[1], and else 2. from[] counts from the tile's place in shared
// memory, or from the matrix.
struct Tile {
  Index from[kDecodeWeights];
  int sum[kDecodeWeights];
  int end[kDecodeWeights];
};

// What a block's phases keep in shared memory.
struct Room {
  Chunk* vectors;        // kDecodeRoom bytes
  float* sums;           // kDecodeSums of them
  Tile* tiles;           // kDecodeTiles
  Delivery* deliveries;  // kDecodeSlots
  Bits8* ring;           // the slots
};

// ---- which rows a block takes

// An image for older devices may run on one that could do more than it knows.
GPU_INLINE int slots_of(const DecodeLinear& p) { return kDelivers ? p.slots : 0; }

struct Range {
  int first, last;
  // Part `at` of `parts`.
  GPU_INLINE Range part(int at, int parts) const {
    if (parts == 1) return *this;
    const auto all = static_cast<unsigned>(last - first), n = static_cast<unsigned>(parts);
    const auto i = static_cast<unsigned>(at);
    return {first + static_cast<int>(all * i / n), first + static_cast<int>(all * (i + 1) / n)};
  }
};

// This block's rows of a matrix.
GPU_INLINE Range own_rows(const DecodeRows& part) {
  const auto block = static_cast<int>(block_index());
  const int first = block * part.each + (block < part.more ? block : part.more);
  return {first, first + part.each + (block < part.more ? 1 : 0)};
}

// Sends for a tile's rows.
GPU_INLINE void send_for(const DecodeLinear& p, int run, const Tile& tile, int slot,
                         const Room& room) {
  Delivery& delivery = room.deliveries[slot];
  const auto bytes = static_cast<unsigned>(p.part[p.run[run].first].row_bytes);
  Bits8* to = room.ring + slot * p.slot_bytes;
  const int count[kDecodeWeights] = {tile.end[0], tile.end[1] - tile.end[0],
                                     tile.end[2] - tile.end[1]};
  const int before[kDecodeWeights] = {0, tile.end[0], tile.end[1]};
  delivery.expect(static_cast<unsigned>(tile.end[2]) * bytes);
  GPU_UNROLLED
  for (int w = 0; w < kDecodeWeights; ++w) {
    if (count[w] == 0) continue;
    delivery.bring(to + before[w] * static_cast<int>(bytes),
                   p.part[w].weight + tile.from[w] + before[w] * static_cast<Index>(bytes),
                   static_cast<unsigned>(count[w]) * bytes);
  }
}

// Fills room.tiles for a chunk and sends for what there is room for: a thread for each tile, the
// first being number `first_thread` of the block.
GPU_INLINE void begin(const DecodeLinear& p, int chunk, int first_thread, const Room& room) {
  const int number = static_cast<int>(thread_index()) - first_thread;
  if (number < 0 || number >= p.tiles) return;
  Tile tile = {};
  int run = 0, at = number;
  while (at >= p.run[run].tiles) at -= p.run[run++].tiles;
  int rows = 0;
  GPU_UNROLLED
  for (int w = 0; w < kDecodeWeights; ++w) {
    if (w >= p.run[run].first && w < p.run[run].last) {
      const Range now = own_rows(p.part[w]).part(chunk, p.chunks);
      const Range some = now.part(at, p.run[run].tiles);
      tile.from[w] = (some.first - rows) * p.part[w].row_bytes;
      tile.sum[w] = w * p.sums_each + some.first - now.first - rows;
      rows += some.last - some.first;
    }
    tile.end[w] = rows;
  }
  room.tiles[number] = tile;
  if (number < slots_of(p)) send_for(p, run, tile, number, room);
}
