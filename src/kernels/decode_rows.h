// Module DECODE: products of pieces of rows with an input that became bytes or halves.
#pragma once

#include "decode_clerk.h"
#include "decode_room.h"
#include "gpu_mma.h"
#include "gpu_quant.h"
#include "quant_blocks.h"
#include "quant_dot.h"
#include "quant_words.h"

namespace blocks = tl::quant_blocks;

// The input as bytes: 16 of each 32 in the first plane, 16 in the second, then the scales.
struct Planes {
  Chunk* low;
  Chunk* high;
  QuantScale* scales;
  GPU_INLINE Planes(const Room& room, int k)
      : low(room.vectors),
        high(low + k / 32),
        scales(reinterpret_cast<QuantScale*>(high + k / 32)) {}
};

// The input as halves, each eight of them multiplied by a power of two; then what undoes that.
struct Eights {
  Half* numbers;
  float* scales;
  GPU_INLINE Eights(const Room& room, int k)
      : numbers(reinterpret_cast<Half*>(room.vectors)),
        scales(reinterpret_cast<float*>(numbers + k)) {}
};

// Lanes have `all` things in turn. Where a lane has none it takes the first, which does not count.
struct Turns {
  int own, all;
  GPU_INLINE explicit Turns(int count) : own(static_cast<int>(forgotten(lane()))), all(count) {}
  GPU_INLINE bool begun(int turn) const { return turn * static_cast<int>(kWarp) < all; }
  GPU_INLINE bool counts(int turn) const { return own + turn * static_cast<int>(kWarp) < all; }
  GPU_INLINE int at(int turn) const {
    return counts(turn) ? own + turn * static_cast<int>(kWarp) : 0;
  }
};

constexpr int kGroups = decode_groups(kWarp, kDelivers);
constexpr int kEights = decode_eights(kWarp);

// Whether rows of f16 are for the matrix unit. It multiplies 16 rows of 16 with 8 columns: here its
// rows are two pieces, each cut into eight parts, and its columns are the input, cut likewise. Each
// part meets all columns, but only its own is looked at: four lanes have it, and the places that a
// lane has are the same on both sides.
constexpr bool kByMatrix = kDelivers && MatrixUnit::kThere && kPieces == 2;

// What a lane needs of the input for one of the pieces of a row, in registers: bytes and scales of
// kGroups groups, or kEights times eight numbers, or as many halves that are to be multiplied by
// what all four lanes of a part have.
struct Input {
  static constexpr int kGroup = 11;
  static constexpr int kWords = kGroup * kGroups > 8 * kEights ? kGroup* kGroups : 8 * kEights;
  Bits32 at[kWords];
  float undo;

  GPU_INLINE void load(const DecodeLinear& p, const Room& room, int format, int first_group,
                       int groups) {
    if (kByMatrix && format == kDecodeF16) return load_halves(p, room, first_group, groups);
    if (p.halves != 0) {
      const Eights x(room, p.k);
      const Turns turns(4 * groups);
      GPU_UNROLLED
      for (int t = 0; t < kEights; ++t) {
        const int eight = 4 * first_group + turns.at(t);
        const auto numbers = load_vec<8>(x.numbers + 8 * eight);
        const float scale = x.scales[eight];
        GPU_UNROLLED
        for (int i = 0; i < 8; ++i) at[8 * t + i] = bits::bits_of(scale * to_float(numbers.get(i)));
      }
      return;
    }
    const Planes x(room, p.k);
    const Turns turns(groups);
    GPU_UNROLLED
    for (int t = 0; t < kGroups; ++t) {
      const int group = first_group + turns.at(t);
      const Chunk low = x.low[group], high = x.high[group];
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) {
        at[kGroup * t + j] = low.at[j];
        at[kGroup * t + 4 + j] = high.at[j];
      }
      const QuantScale scale = x.scales[group];
      at[kGroup * t + 8] = bits::bits_of(scale.d);
      at[kGroup * t + 9] = bits::bits_of(scale.sum[0]);
      at[kGroup * t + 10] = bits::bits_of(scale.sum[1]);
    }
  }
  GPU_INLINE float number(int i) const { return bits::float_of(at[i]); }

 private:
  GPU_INLINE void load_halves(const DecodeLinear& p, const Room& room, int first_group,
                              int groups) {
    const Eights x(room, p.k);
    const Turns turns(4 * groups);
    undo = 0.0f;
    GPU_UNROLLED
    for (int t = 0; t < kEights; ++t) {
      undo = math::max(undo, x.scales[4 * first_group + turns.at(t)]);
    }
    undo = math::max(undo, shuffle_xor(undo, 1u));
    undo = math::max(undo, shuffle_xor(undo, 2u));
    const float inverse = inverse_power(undo);
    GPU_UNROLLED
    for (int t = 0; t < kEights; ++t) {
      const int eight = 4 * first_group + turns.at(t);
      const auto words = load_vec<4>(reinterpret_cast<const Bits32*>(x.numbers + 8 * eight));
      const Bits32 by = float_to_f16(x.scales[eight] * inverse);
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) {
        at[4 * t + j] = turns.counts(t) ? pair_fma(words.get(j), by << 16 | by, 0u) : 0u;
      }
    }
  }
};

template <class Format>
GPU_INLINE void quant_pieces(const Bits8* const (&from)[kPieces], int groups, const Input& x,
                             float (&sum)[kPieces]) {
  using W = words::Words<Format>;
  constexpr int kTogether = kDelivers || sizeof(typename W::Raw) <= 40 ? kPieces : 1;
  const Turns turns(groups);
  GPU_UNROLLED
  for (int t = 0; t < kGroups; ++t) {
    if (!turns.begun(t)) break;
    const bool counts = turns.counts(t);
    Bits32 bytes[8];
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) bytes[j] = x.at[Input::kGroup * t + j];
    const float low = x.number(Input::kGroup * t + 9), high = x.number(Input::kGroup * t + 10);
    const QuantScale scale = {x.number(Input::kGroup * t + 8), {low, high}, low + high};
    GPU_UNROLLED
    for (int first = 0; first < kPieces; first += kTogether) {
      typename W::Raw raw[kTogether];
      GPU_UNROLLED
      for (int u = 0; u < kTogether; ++u) raw[u].load(from[first + u], turns.at(t));
      GPU_UNROLLED
      for (int u = 0; u < kTogether; ++u) {
        W w;
        w.open(raw[u]);
        const float more = add_group(sum[first + u], w, bytes, scale);
        if (counts) sum[first + u] = more;
      }
      keep_order();
    }
  }
}

// Rows of f16 or bf16.
template <class T>
GPU_INLINE void half_pieces(const Bits8* const (&from)[kPieces], int groups, const Input& x,
                            float (&sum)[kPieces]) {
  Vec<T, 8> w[kEights][kPieces];
  const Turns turns(4 * groups);
  GPU_UNROLLED
  for (int t = 0; t < kEights; ++t) {
    if (!turns.begun(t)) break;
    GPU_UNROLLED
    for (int u = 0; u < kPieces; ++u) {
      w[t][u] = load_vec<8>(reinterpret_cast<const T*>(from[u]) + 8 * turns.at(t));
    }
  }
  GPU_UNROLLED
  for (int t = 0; t < kEights; ++t) {
    if (!turns.begun(t)) break;
    GPU_UNROLLED
    for (int u = 0; u < kPieces; ++u) {
      float part = 0.0f;
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) {
        part = math::fma(to_float(w[t][u].get(i)), x.number(8 * t + i), part);
      }
      if (turns.counts(t)) sum[u] += part;
    }
  }
}

// Rows of f16, and an input of halves.
template <class Unit>
GPU_INLINE void matrix_pieces(const Bits8* const (&from)[kPieces], int groups, const Input& x,
                              float (&sum)[kPieces]) {
  const Turns turns(4 * groups);
  // All loads at once, and two sums by turns: the unit takes its time. What does not count is zero
  // in the input.
  Vec<Bits32, 4> w[kEights][2];
  GPU_UNROLLED
  for (int t = 0; t < kEights; ++t) {
    GPU_UNROLLED
    for (int u = 0; u < 2; ++u) {
      w[t][u] = load_vec<4>(reinterpret_cast<const Bits32*>(from[u]) + 4 * turns.at(t));
    }
  }
  float sums[2][Unit::kSums] = {};
  GPU_UNROLLED
  for (int t = 0; t < kEights; ++t) {
    GPU_UNROLLED
    for (int j = 0; j < 2; ++j) {
      const Bits32 left[] = {w[t][0].get(2 * j), w[t][0].get(2 * j + 1), w[t][1].get(2 * j),
                             w[t][1].get(2 * j + 1)};
      const Bits32 right[] = {x.at[4 * t + 2 * j], x.at[4 * t + 2 * j + 1]};
      Unit::add(sums[j], left, right);
    }
  }
  GPU_UNROLLED
  for (int i = 0; i < Unit::kSums; ++i) {
    const int row = Unit::sum_row(i), column = Unit::sum_column(i);
    const float both = (sums[0][i] + sums[1][i]) * x.undo;
    if (row == column) sum[0] = both;
    if (row == column + 8) sum[1] = both;
  }
}

GPU_INLINE void pieces_of(int format, const Bits8* const (&from)[kPieces], int groups,
                          const Input& x, float (&sum)[kPieces]) {
  if constexpr (kByMatrix) {
    if (format == kDecodeF16) return matrix_pieces<MatrixUnit>(from, groups, x, sum);
  }
  switch (format) {
    case 0:
      return quant_pieces<blocks::Q4_0>(from, groups, x, sum);
    case 1:
      return quant_pieces<blocks::Q4_1>(from, groups, x, sum);
    case 2:
      return quant_pieces<blocks::Q5_0>(from, groups, x, sum);
    case 3:
      return quant_pieces<blocks::Q5_1>(from, groups, x, sum);
    case 4:
      return quant_pieces<blocks::Q8_0>(from, groups, x, sum);
    case 5:
      return quant_pieces<blocks::Q2_K>(from, groups, x, sum);
    case 6:
      return quant_pieces<blocks::Q3_K>(from, groups, x, sum);
    case 7:
      return quant_pieces<blocks::Q4_K>(from, groups, x, sum);
    case 8:
      return quant_pieces<blocks::Q5_K>(from, groups, x, sum);
    case 9:
      return quant_pieces<blocks::Q6_K>(from, groups, x, sum);
    case 10:
      return quant_pieces<blocks::IQ4_NL>(from, groups, x, sum);
    case 11:
      return quant_pieces<blocks::IQ4_XS>(from, groups, x, sum);
    case 12:
      return quant_pieces<blocks::MXFP4>(from, groups, x, sum);
    case kDecodeF16:
      return half_pieces<Half>(from, groups, x, sum);
    default:
      return half_pieces<BFloat16>(from, groups, x, sum);
  }
}

// What all lanes add up to, for as many pieces as there are. Half of the lanes go on with one
// piece, half with the other.
GPU_INLINE void leave_sums(const float (&sum)[kPieces], float* to, int count) {
  static_assert(kPieces == 2);
  const bool upper = lane() >= kWarp / 2;
  const float first = sum[0], second = sum[1];
  float total = upper ? second : first;
  total += shuffle_xor(upper ? first : second, kWarp / 2);
  GPU_UNROLLED
  for (unsigned mask = kWarp / 4; mask > 0; mask /= 2) total += shuffle_xor(total, mask);
  const int piece = upper ? 1 : 0;
  if (lane() % (kWarp / 2) == 0 && piece < count) to[piece] = total;
}

// The sums of this warp's pieces, each to its place in room.sums: pieces that are brought,
GPU_INLINE void brought_pieces(const DecodeLinear& p, const Room& room, Slots& slots) {
  Input x = {};     // so that registers are its own only from here on
  int loaded = -1;  // format and first group
  bool last = false;
  GPU_ROLLED
  while (!last) {
    slots.wait_until_filled();
    const Label label = slots.label();
    if (label.count > 0) {
      const int wanted = label.format << 16 | label.first_group;
      if (wanted != loaded) x.load(p, room, label.format, label.first_group, label.groups);
      loaded = wanted;
      const Bits8* from[kPieces];
      GPU_UNROLLED
      for (int u = 0; u < kPieces; ++u) {
        from[u] = u < label.count ? slots.piece(u) + label.past[u] : slots.piece(0) + label.past[0];
      }
      float sum[kPieces] = {};
      pieces_of(label.format, from, label.groups, x, sum);
      leave_sums(sum, room.sums + label.sum, label.count);
    }
    last = label.last != 0;
    warp_meet();  // all lanes have read what they read
    if (lane() == 0) slots.emptied().arrive();
    slots.next();
  }
}

// and pieces that are read where they are.
GPU_INLINE void distant_pieces(const DecodeLinear& p, const Rows& rows, const Room& room) {
  Lot lot = Lot::of(p, rows, warp_index(), static_cast<unsigned>(room.warps));
  GPU_ROLLED
  while (lot.left > 0) {
    // Pieces of one share and one matrix.
    const Piece first(p, rows, lot.share, lot.row);
    const int count = lot.alike(rows);
    const DecodeRows& part = p.part[first.matrix];
    const int format = part.format;
    const auto row_bytes = static_cast<int>(part.row_bytes);
    const Range units = units_of(p, lot.share);
    const int groups = units.count() * p.unit_groups;
    float* sums = room.sums + lot.share * rows.all() + lot.row;
    Input x = {};
    x.load(p, room, format, units.first * p.unit_groups, groups);
    const Bits8* at = first.at;
    GPU_ROLLED
    for (int i = 0; i < count; i += kPieces, at += kPieces * row_bytes) {
      const Bits8* from[kPieces];
      GPU_UNROLLED
      for (int u = 0; u < kPieces; ++u) from[u] = i + u < count ? at + u * row_bytes : at;
      float sum[kPieces] = {};
      pieces_of(format, from, groups, x, sum);
      leave_sums(sum, sums + i, count - i);
    }
    lot.take(count, rows);
  }
}
