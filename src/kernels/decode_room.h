// Module DECODE: what a block keeps in shared memory, and which pieces of a product's rows a warp
// takes.
#pragma once

#include "gpu.h"
#include "gpu_decode.h"
#include "gpu_together.h"

using namespace tl::kernels;  // NOLINT: gpu_decode.h

static_assert(kBlockThreads == (kMustDeliver ? kDecodeServed + kWarp : kDecodeThreads));

// Warps of a block that work, where those that are served are not the only kind.
constexpr int kMostWarps =
    (kMustDeliver ? kDecodeServed : kDecodeThreads) / static_cast<int>(kWarp);

// Pieces of rows that a warp takes at a time.
constexpr int kPieces = kDecodePieces;

struct GPU_MAY_ALIAS alignas(16) Chunk {
  Bits32 at[4];
};

// Phases are in shared memory ahead of their time: the one after that at hand, and room for
// another.
constexpr int kPlaces = 4;
struct Phases {
  Bits64 (*words)[sizeof(DecodePhase) / 8];
  GPU_INLINE DecodePhase& operator[](int i) const {
    return *reinterpret_cast<DecodePhase*>(words[i % kPlaces]);
  }
};

// What a block's phases keep in shared memory.
struct Room {
  int threads, warps;  // that work
  Chunk* vectors;      // kDecodeRoom bytes
  float* sums;         // kDecodeSums of them
  float* squares;      // of the input, each warp's part
  float* scale;        // what sums are to be multiplied by
  Delivery* filled;    // kDecodeSlots for each warp
  Delivery* emptied;   // likewise
  DecodePhase* order;  // the product that the clerk is at
  Phases phases;
  // All threads that work meet.
  GPU_INLINE void meet() const { barrier_of(static_cast<unsigned>(threads)); }
};

// A phase on its way to shared memory, by `threads` threads that take kWords words each at most.
template <int kWords>
struct Ticket {
  Bits64 words[kWords];
  GPU_INLINE void load(const DecodePhase* phase, bool there, unsigned thread, unsigned threads) {
    GPU_UNROLLED
    for (int w = 0; w < kWords; ++w) {
      const unsigned i = thread + static_cast<unsigned>(w) * threads;
      if (there && thread < threads && i < kAll)
        words[w] = reinterpret_cast<const Word*>(phase)[i].at;
    }
  }
  GPU_INLINE void store(DecodePhase& to, unsigned thread, unsigned threads) const {
    GPU_UNROLLED
    for (int w = 0; w < kWords; ++w) {
      const unsigned i = thread + static_cast<unsigned>(w) * threads;
      if (thread < threads && i < kAll) reinterpret_cast<Word*>(&to)[i].at = words[w];
    }
  }

 private:
  static_assert(sizeof(DecodePhase) % 8 == 0);
  static constexpr unsigned kAll = sizeof(DecodePhase) / 8;
  struct GPU_MAY_ALIAS Word {
    Bits64 at;
  };
};

// ---- which rows a block takes, and which pieces a warp

struct Range {
  int first, last;
  GPU_INLINE int count() const { return last - first; }
};

// This block's rows of a matrix.
GPU_INLINE Range own_rows(const DecodeRows& part) {
  const auto block = static_cast<int>(block_index());
  const int first = block * part.each + (block < part.more ? block : part.more);
  return {first, first + part.each + (block < part.more ? 1 : 0)};
}

// This block's rows of all matrices of a product: those of matrix w have the numbers from begin(w)
// to end[w] - 1.
struct Rows {
  int end[kDecodeWeights];
  GPU_INLINE explicit Rows(const DecodeLinear& p) {
    int all = 0;
    GPU_UNROLLED
    for (int w = 0; w < kDecodeWeights; ++w) {
      if (w < p.parts) all += own_rows(p.part[w]).count();
      end[w] = all;
    }
  }
  GPU_INLINE int all() const { return end[kDecodeWeights - 1]; }
  GPU_INLINE int matrix(int row) const { return row < end[0] ? 0 : row < end[1] ? 1 : 2; }
  GPU_INLINE int begin(int w) const {
    const int first = end[0], second = end[1];  // not places in an array: that would be memory
    return w == 0 ? 0 : w == 1 ? first : second;
  }
  GPU_INLINE int end_of(int w) const {
    const int first = end[0], second = end[1], third = end[2];
    return w == 0 ? first : w == 1 ? second : third;
  }
};

// Pieces that are still to be taken.
struct Lot {
  int share, row;  // of the next
  int left;
  // All of a warp's.
  GPU_INLINE static Lot of(const DecodeLinear& p, const Rows& rows, unsigned warp, unsigned warps) {
    const auto all = static_cast<unsigned>(rows.all()), pieces = all << p.share_bits;
    const unsigned first = pieces * warp / warps;
    const unsigned last = pieces * (warp + 1) / warps;
    if (first == last) return {0, 0, 0};
    const unsigned share = first / all;
    return {static_cast<int>(share), static_cast<int>(first - share * all),
            static_cast<int>(last - first)};
  }
  // How many of the next are pieces of one share and one matrix.
  GPU_INLINE int alike(const Rows& rows) const {
    const int there = rows.end_of(rows.matrix(row)) - row;
    return left < there ? left : there;
  }
  GPU_INLINE void take(int count, const Rows& rows) {
    left -= count;
    row += count;
    if (row == rows.all()) {
      row = 0;
      ++share;
    }
  }
};

// The units of a row that belong to its piece `share`.
GPU_INLINE Range units_of(const DecodeLinear& p, int share) {
  return {p.units * share >> p.share_bits, p.units * (share + 1) >> p.share_bits};
}

struct Piece {
  const Bits8* at;
  int bytes;
  int matrix;
  GPU_INLINE Piece(const DecodeLinear& p, const Rows& rows, int share, int row)
      : matrix(rows.matrix(row)) {
    const DecodeRows& part = p.part[matrix];
    const Range units = units_of(p, share);
    bytes = units.count() * part.unit_bytes;
    at = part.weight + (own_rows(part).first + row - rows.begin(matrix)) * part.row_bytes +
         units.first * part.unit_bytes;
  }
};
