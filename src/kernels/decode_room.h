// Module DECODE: what a block keeps in shared memory, which pieces of a product's rows a warp
// takes, and how it sends for them.
//
// Every warp has slots of its own and fills them by itself, in the order in which it will need what
// they hold: over the end of a phase into the next, while blocks meet and while inputs are made. So
// memory is read all the time, and no warp waits for another's rows.
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

// Phases are in shared memory ahead of their time: two after the one at hand, and room for another.
constexpr int kPlaces = 4;
struct Phases {
  Bits64 (*words)[sizeof(DecodePhase) / 8];
  GPU_INLINE DecodePhase& operator[](int i) const {
    return *reinterpret_cast<DecodePhase*>(words[i % kPlaces]);
  }
};

struct Sending;

// What a block's phases keep in shared memory.
struct Room {
  Chunk* vectors;        // kDecodeRoom bytes
  float* sums;           // kDecodeSums of them
  float* scale;          // what sums are to be multiplied by
  int* limit;            // phases before this one may be looked at
  Delivery* deliveries;  // kDecodeSlots for each warp
  Sending* sendings;     // for each warp
  Phases phases;
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
  GPU_INLINE int begin(int w) const { return w == 0 ? 0 : w == 1 ? end[0] : end[1]; }
  GPU_INLINE int end_of(int w) const { return w == 0 ? end[0] : w == 1 ? end[1] : end[2]; }
};

// Pieces that are still to be taken.
struct Lot {
  int share, row;  // of the next
  int left;
  // All of this warp's.
  GPU_INLINE static Lot of(const DecodeLinear& p, const Rows& rows) {
    const auto all = static_cast<unsigned>(rows.all()), pieces = all << p.share_bits;
    const unsigned warp = warp_index(), first = pieces * warp / kWarps;
    const unsigned last = pieces * (warp + 1) / kWarps;
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

// ---- pieces under way

// What a warp is sending for: its first lane's business, and kept in shared memory, because
// registers are scarce.
struct Sending {
  const Bits8* at;  // these `count` pieces of one share and one matrix, `stride` bytes apart,
  int count, bytes, stride;
  Lot lot;    // then these
  int phase;  // of it,
  int next;   // to this slot and those after it,
  int free;   // which are so many.

  // The next pieces of one share and one matrix.
  GPU_INLINE bool open(const Room& room) {
    GPU_ROLLED
    while (lot.left == 0) {
      if (phase + 1 >= *room.limit) return false;
      const DecodePhase& following = room.phases[++phase];
      if (following.kind == DecodeKind::Linear) {
        lot = Lot::of(following.linear, Rows(following.linear));
      }
    }
    const DecodeLinear& p = room.phases[phase].linear;
    const Rows rows(p);
    const Piece piece(p, rows, lot.share, lot.row);
    at = piece.at;
    bytes = piece.bytes;
    stride = static_cast<int>(p.part[piece.matrix].row_bytes);
    count = lot.alike(rows);
    lot.take(count, rows);
    return true;
  }
};

// A warp's slots.
class Slots {
 public:
  GPU_INLINE Slots(const DecodeStep& step, const Room& room) : step_(step), room_(room) {
    if (lane() == 0) {
      room.sendings[warp_index()] = {nullptr, 0, 0, 0, {0, 0, 0}, step.first - 1, 0, step.slots};
    }
  }

  // Sends for as many pieces as there are free slots, `more` than there were.
  GPU_INLINE void fill(int more) {
    if (lane() != 0) return;
    Sending& sending = room_.sendings[warp_index()];
    sending.free += more;
    GPU_ROLLED
    while (sending.free > 0) {
      if (sending.count == 0 && !sending.open(room_)) return;
      // Memory is brought in units of 16 bytes. What is beside the piece belongs to the same chunk
      // of the pool, which begins and ends at multiples of more.
      const auto past = static_cast<unsigned>(reinterpret_cast<Bits64>(sending.at) & 15u);
      const unsigned size = (past + static_cast<unsigned>(sending.bytes) + 15u) & ~15u;
      Delivery& delivery = delivery_of(sending.next);
      delivery.expect(size);
      delivery.bring(memory_of(sending.next), sending.at - past, size);
      sending.at += sending.stride;
      --sending.count;
      --sending.free;
      sending.next = after(sending.next);
    }
  }
  // Waits for the next piece, which is the one at `at`, and says where it is now.
  GPU_INLINE const Bits8* wait(const Bits8* at) {
    if (none()) return at;
    delivery_of(current_).wait(turns_ >> current_ & 1u);
    return memory_of(current_) + (reinterpret_cast<Bits64>(at) & 15u);
  }
  // That piece is no longer needed, and its slot is for another. All lanes have read what they
  // read.
  GPU_INLINE void release() {
    if (none()) return;
    turns_ ^= 1u << current_;
    current_ = after(current_);
    fill(1);
  }

 private:
  GPU_INLINE bool none() const { return !kMustDeliver && step_.slots == 0; }
  GPU_INLINE int after(int slot) const { return slot + 1 == step_.slots ? 0 : slot + 1; }
  GPU_INLINE Delivery& delivery_of(int slot) const {
    return room_.deliveries[static_cast<int>(warp_index()) * kDecodeSlots + slot];
  }
  GPU_INLINE Bits8* memory_of(int slot) const {
    const int number = static_cast<int>(warp_index()) * step_.slots + slot;
    return static_cast<Bits8*>(dynamic_shared()) + number * step_.slot_bytes;
  }

  const DecodeStep& step_;
  const Room& room_;
  int current_ = 0;   // the slot to be read
  Bits32 turns_ = 0;  // a bit for each slot: which turn its next delivery is
};
