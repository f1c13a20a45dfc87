// Module DECODE: products of pieces of rows with an input that became bytes or halves.
#pragma once

#include "decode_room.h"
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

constexpr int kGroups = decode_groups(kWarp), kEights = decode_eights(kWarp);

// What a lane needs of the input for one of the pieces of a row, in registers: bytes and scales of
// kGroups groups, or kEights times eight numbers.
struct Input {
  static constexpr int kGroup = 11;
  Bits32 at[kGroup * kGroups];
  static_assert(8 * kEights <= kGroup * kGroups);

  GPU_INLINE void load(const DecodeLinear& p, const Room& room, int first_group, int groups) {
    if (p.halves != 0) {
      const auto* x = reinterpret_cast<const Half*>(room.vectors) + 32 * first_group;
      const Turns turns(4 * groups);
      GPU_UNROLLED
      for (int t = 0; t < kEights; ++t) {
        const auto numbers = load_vec<8>(x + 8 * turns.at(t));
        GPU_UNROLLED
        for (int i = 0; i < 8; ++i) at[8 * t + i] = bits::bits_of(to_float(numbers.get(i)));
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
};

// Pieces that a warp takes at a time. Those in shared memory are soon there; from elsewhere as many
// loads are under way as there is room for in registers.
constexpr int kPieces = kDelivers ? 1 : 2;

template <class Format>
GPU_INLINE void quant_pieces(const Bits8* const (&from)[kPieces], int groups, const Input& x,
                             float (&sum)[kPieces]) {
  using W = words::Words<Format>;
  constexpr int kTogether = sizeof(typename W::Raw) <= 40 ? kPieces : 1;
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

GPU_INLINE void pieces_of(int format, const Bits8* const (&from)[kPieces], int groups,
                          const Input& x, float (&sum)[kPieces]) {
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

// The sums of this warp's pieces, each to its place in room.sums.
GPU_INLINE void all_pieces(const DecodeLinear& p, const Rows& rows, const Room& room,
                           Slots& slots) {
  Lot lot = Lot::of(p, rows);
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
    Input x;
    x.load(p, room, units.first * p.unit_groups, groups);
    const Bits8* at = first.at;
    GPU_ROLLED
    for (int i = 0; i < count; i += kPieces, at += kPieces * row_bytes) {
      const Bits8* from[kPieces];
      if constexpr (kDelivers) {
        from[0] = slots.wait(at);
      } else {
        GPU_UNROLLED
        for (int u = 0; u < kPieces; ++u) from[u] = i + u < count ? at + u * row_bytes : at;
      }
      float sum[kPieces] = {};
      pieces_of(format, from, groups, x, sum);
      GPU_UNROLLED
      for (int u = 0; u < kPieces; ++u) {
        const float total = warp_sum(sum[u]);
        if (lane() == 0 && i + u < count) sums[i + u] = total;
      }
      if constexpr (kDelivers) slots.release();
    }
    lot.take(count, rows);
  }
}
