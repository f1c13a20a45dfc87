// Module DECODE: how the pieces of a product's rows come to shared memory, where the device brings
// memory by itself.
//
// Every warp of the phases has slots of its own, and a warp more of the block, the clerk, fills
// them all: lane w those of warp w, in the order in which that warp will need what they hold. It
// goes through all products of a launch by itself, over the ends of phases, while blocks meet,
// while inputs are made. So memory is read all the time, no warp waits for another's rows, and each
// piece comes with a label that says what to do with it.
#pragma once

#include "decode_room.h"
#include "gpu.h"
#include "gpu_decode.h"
#include "gpu_together.h"

constexpr unsigned kServed = kDecodeServed / kWarp;  // warps

// What is at the start of a slot, which holds a few pieces of one share of one matrix's rows.
struct alignas(16) Label {
  int sum;                             // place of the first piece's sum, before the others'
  unsigned short first_group, groups;  // of 32 columns, of each piece
  Bits8 format, count;                 // count 0: there is no piece
  Bits8 last;                          // of this warp in the phase
  Bits8 past[kPieces];                 // bytes before each piece, in its part of the slot
};
static_assert(sizeof(Label) == kDecodeLabel);

// One warp's slots, as one sees them who takes them in order. Where they are is worked out each
// time: registers are scarce.
class Slots {
 public:
  // `turn` is 0 for the warp, and 1 for the clerk, to whom all slots are empty at first.
  GPU_INLINE Slots(const DecodeStep& step, const Room& room, unsigned warp, unsigned turn)
      : step_(step), room_(room), warp_(static_cast<int>(warp)), turn_(turn) {}

  GPU_INLINE Label& label() const { return *reinterpret_cast<Label*>(memory()); }
  GPU_INLINE Bits8* piece(int which) const {
    return memory() + kDecodeLabel + which * step_.piece_bytes;
  }
  GPU_INLINE Delivery& filled() const { return room_.filled[warp_ * kDecodeSlots + current_]; }
  GPU_INLINE Delivery& emptied() const { return room_.emptied[warp_ * kDecodeSlots + current_]; }
  GPU_INLINE void wait_until_filled() const { filled().wait(turn_); }
  GPU_INLINE bool is_empty() const { return emptied().there(turn_); }
  GPU_INLINE void next() {
    if (++current_ < step_.slots) return;
    current_ = 0;
    turn_ ^= 1u;
  }

 private:
  GPU_INLINE Bits8* memory() const {
    const int slot_bytes = kDecodeLabel + kPieces * step_.piece_bytes;
    return static_cast<Bits8*>(dynamic_shared()) + (warp_ * step_.slots + current_) * slot_bytes;
  }

  const DecodeStep& step_;
  const Room& room_;
  const int warp_;
  int current_ = 0;
  unsigned turn_;
};

// What is brought for a piece. Memory is brought in units of 16 bytes. What is beside a piece
// belongs to the same chunk of the pool, which begins and ends at multiples of more.
struct Parcel {
  unsigned past;
  const Bits8* from;
  unsigned size;
  Parcel() = default;
  GPU_INLINE Parcel(const Bits8* at, int bytes)
      : past(static_cast<unsigned>(reinterpret_cast<Bits64>(at) & 15u)),
        from(at - past),
        size((past + static_cast<unsigned>(bytes) + 15u) & ~15u) {}
};

// Asks for a warp's first pieces to be brought nearer, before there are slots for them: for as many
// bytes as were found to be best on an H200.
GPU_INLINE void call_first(const DecodeLinear& p, const Rows& rows, const Lot& lot) {
  constexpr int kBytes = 10 << 10;
  if (lot.left == 0) return;
  const Piece piece(p, rows, lot.share, lot.row);
  const auto stride = static_cast<int>(p.part[piece.matrix].row_bytes);
  const int run = lot.alike(rows);
  const Bits8* at = piece.at;
  GPU_ROLLED
  for (int i = 0; i < run && (i + 1) * piece.bytes <= kBytes; ++i, at += stride) {
    const Parcel parcel(at, piece.bytes);
    call_bytes(parcel.from, parcel.size);
  }
}

// Fills slots with the pieces of one product, `slots` being those of this lane's warp.
GPU_INLINE void deliver(const DecodeLinear& p, Slots& slots) {
  const Rows rows(p);
  const bool serves = lane() < kServed;
  Lot lot = serves ? Lot::of(p, rows, lane(), kServed) : Lot{0, 0, 0};
  call_first(p, rows, lot);
  // `count` pieces of one share and one matrix, `stride` bytes apart; then those of `lot`.
  const Bits8* at = nullptr;
  int count = 0, bytes = 0, stride = 0;
  Label label = {};
  bool done = !serves;
  GPU_ROLLED
  while (warp_ballot(!done) != 0) {
    if (!done && slots.is_empty()) {
      if (count == 0 && lot.left > 0) {
        const Piece piece(p, rows, lot.share, lot.row);
        const DecodeRows& part = p.part[piece.matrix];
        const Range units = units_of(p, lot.share);
        at = piece.at;
        bytes = piece.bytes;
        stride = static_cast<int>(part.row_bytes);
        label.format = static_cast<Bits8>(part.format);
        label.sum = lot.share * rows.all() + lot.row;
        label.first_group = static_cast<unsigned short>(units.first * p.unit_groups);
        label.groups = static_cast<unsigned short>(units.count() * p.unit_groups);
        count = lot.alike(rows);
        lot.take(count, rows);
      }
      const int taken = count < kPieces ? count : kPieces;
      Parcel parcels[kPieces];
      unsigned all = 0;
      GPU_UNROLLED
      for (int u = 0; u < kPieces; ++u, at += stride) {
        parcels[u] = Parcel(at, bytes);
        label.past[u] = static_cast<Bits8>(parcels[u].past);
        all += u < taken ? parcels[u].size : 0;
      }
      count -= taken;
      done = count + lot.left == 0;
      label.count = static_cast<Bits8>(taken);
      label.last = done ? 1 : 0;
      slots.label() = label;
      if (taken > 0) {
        slots.filled().expect(all);
        GPU_UNROLLED
        for (int u = 0; u < kPieces; ++u) {
          if (u < taken) slots.filled().bring(slots.piece(u), parcels[u].from, parcels[u].size);
        }
      } else {
        slots.filled().arrive();
      }
      slots.next();
      label.sum += kPieces;
    }
    pause();
  }
}

// What the clerk does in a launch. Products are called for, one ahead, and kept in room.order.
GPU_INLINE void clerk(const DecodeStep& step, const Room& room) {
  Slots slots(step, room, lane() < kServed ? lane() : 0, 1);
  int i = step.first_linear;
  Ticket<(sizeof(DecodePhase) / 8 + kWarp - 1) / kWarp> ticket = {};
  ticket.load(step.phases + i, i < step.last, lane(), kWarp);
  GPU_ROLLED
  while (i < step.last) {
    ticket.store(*room.order, lane(), kWarp);
    warp_meet();
    i = room.order->next_linear;
    ticket.load(step.phases + i, i < step.last, lane(), kWarp);
    deliver(room.order->linear, slots);
    warp_meet();  // no lane needs it any more
  }
}
