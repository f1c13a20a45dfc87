// Module DECODE: products of the rows of a tile with an input that became bytes or halves.
#pragma once

#include "decode_room.h"
#include "gpu_quant.h"
#include "quant_blocks.h"
#include "quant_dot.h"
#include "quant_words.h"

namespace blocks = tl::quant_blocks;

// The rows of a tile, wherever they are now.
struct Rows {
  const Bits8* at[kDecodeWeights];
  const Tile* tile;
  int bytes;  // of a row
  GPU_INLINE int all() const { return tile->end[2]; }
  GPU_INLINE const Bits8* address(int row) const {
    const Bits8* from = row < tile->end[0] ? at[0] : row < tile->end[1] ? at[1] : at[2];
    return from + row * static_cast<Index>(bytes);
  }
  GPU_INLINE int sum_at(int row) const {
    return row + tile->sum[row < tile->end[0] ? 0 : row < tile->end[1] ? 1 : 2];
  }
};

// What all rows of a phase have in common.
struct Shared {
  int k;      // columns
  int warps;  // that share a row: 1, 2 or 4
  int shift;  // their logarithm
};

// Rows go to teams of warps in turn, up to kRows to a team at a time: dot() adds this warp's share
// of their sums. Shares of a sum lie kDecodeSums / warps apart.
template <int kRows, class Dot>
GPU_INLINE void each_rows(const Rows& rows, const Shared& p, const Room& room, Dot dot) {
  const int warp = static_cast<int>(warp_index()), all = rows.all(), shift = p.shift;
  const int share = warp & (p.warps - 1), team = warp >> shift, teams = kWarps >> shift;
  float* sums = room.sums + share * (kDecodeSums >> shift);
  GPU_ROLLED
  for (int row = team; row < all; row += kRows * teams) {
    float sum[kRows] = {};
    const Bits8* from[kRows];
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      from[u] = rows.address(row + u * teams < all ? row + u * teams : row);
    }
    dot(from, share, sum);
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      const float total = warp_sum(sum[u]);
      if (lane() == 0 && row + u * teams < all) sums[rows.sum_at(row + u * teams)] = total;
    }
  }
}

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

template <class Format>
GPU_INLINE void quant_rows(const Rows& rows, const Shared& p, const Room& room) {
  using W = words::Words<Format>;
  // Of rows in shared memory one at a time was measured quickest (docs/measurements/0006); from
  // elsewhere as many loads are under way as there is room for in registers.
  constexpr int kRows = kDelivers ? 1 : sizeof(typename W::Raw) <= 40 ? 2 : 1;
  constexpr int kMost = kDelivers ? 1 : 2;
  const Planes x(room, p.k);
  const int groups = p.k / 32, step = p.warps * static_cast<int>(kWarp);
  each_rows<kRows>(rows, p, room,
                   [&](const Bits8* const(&from)[kRows], int share, float(&sum)[kRows]) {
                     const auto take = [&](auto ahead, int group) {
                       constexpr int kAhead = decltype(ahead)::kCount;
                       typename W::Raw raw[kAhead][kRows];
                       GPU_UNROLLED
                       for (int a = 0; a < kAhead; ++a) {
                         GPU_UNROLLED
                         for (int u = 0; u < kRows; ++u) raw[a][u].load(from[u], group + a * step);
                       }
                       GPU_UNROLLED
                       for (int a = 0; a < kAhead; ++a) {
                         const Chunk low = x.low[group + a * step], high = x.high[group + a * step];
                         const QuantScale scale = x.scales[group + a * step];
                         Bits32 bytes[8];
                         GPU_UNROLLED
                         for (int j = 0; j < 4; ++j) {
                           bytes[j] = low.at[j];
                           bytes[4 + j] = high.at[j];
                         }
                         GPU_UNROLLED
                         for (int u = 0; u < kRows; ++u) {
                           W w;
                           w.open(raw[a][u]);
                           sum[u] = add_group(sum[u], w, bytes, scale);
                         }
                       }
                     };
                     int group = share * static_cast<int>(kWarp) + static_cast<int>(lane());
                     GPU_ROLLED
                     for (; group + (kMost - 1) * step < groups; group += kMost * step) {
                       take(Ahead<kMost>{}, group);
                     }
                     if constexpr (kMost > 1) {
                       if (group < groups) take(Ahead<1>{}, group);
                     }
                   });
}

// Rows of f16 or bf16; the input is f16.
template <class T>
GPU_INLINE void half_rows(const Rows& rows, const Shared& p, const Room& room) {
  constexpr int kRows = kDelivers ? 1 : 2, kMost = 4;
  const auto* x = reinterpret_cast<const Half*>(room.vectors);
  const int step = p.warps * static_cast<int>(kWarp) * 8;
  each_rows<kRows>(
      rows, p, room, [&](const Bits8* const(&from)[kRows], int share, float(&sum)[kRows]) {
        const auto take = [&](auto ahead, int column) {
          constexpr int kAhead = decltype(ahead)::kCount;
          Vec<T, 8> w[kAhead][kRows];
          GPU_UNROLLED
          for (int a = 0; a < kAhead; ++a) {
            GPU_UNROLLED
            for (int u = 0; u < kRows; ++u) {
              w[a][u] = load_vec<8>(reinterpret_cast<const T*>(from[u]) + column + a * step);
            }
          }
          GPU_UNROLLED
          for (int a = 0; a < kAhead; ++a) {
            const auto with = load_vec<8>(x + column + a * step);
            GPU_UNROLLED
            for (int i = 0; i < 8; ++i) {
              const float right = to_float(with.get(i));
              GPU_UNROLLED
              for (int u = 0; u < kRows; ++u) {
                sum[u] = math::fma(to_float(w[a][u].get(i)), right, sum[u]);
              }
            }
          }
        };
        int column = (share * static_cast<int>(kWarp) + static_cast<int>(lane())) * 8;
        GPU_ROLLED
        for (; column + (kMost - 1) * step < p.k; column += kMost * step) {
          take(Ahead<kMost>{}, column);
        }
        GPU_ROLLED
        for (; column < p.k; column += step) take(Ahead<1>{}, column);
      });
}

GPU_INLINE void rows_of(int format, const Rows& rows, const Shared& p, const Room& room) {
  switch (format) {
    case 0:
      return quant_rows<blocks::Q4_0>(rows, p, room);
    case 1:
      return quant_rows<blocks::Q4_1>(rows, p, room);
    case 2:
      return quant_rows<blocks::Q5_0>(rows, p, room);
    case 3:
      return quant_rows<blocks::Q5_1>(rows, p, room);
    case 4:
      return quant_rows<blocks::Q8_0>(rows, p, room);
    case 5:
      return quant_rows<blocks::Q2_K>(rows, p, room);
    case 6:
      return quant_rows<blocks::Q3_K>(rows, p, room);
    case 7:
      return quant_rows<blocks::Q4_K>(rows, p, room);
    case 8:
      return quant_rows<blocks::Q5_K>(rows, p, room);
    case 9:
      return quant_rows<blocks::Q6_K>(rows, p, room);
    case 10:
      return quant_rows<blocks::IQ4_NL>(rows, p, room);
    case 11:
      return quant_rows<blocks::IQ4_XS>(rows, p, room);
    case 12:
      return quant_rows<blocks::MXFP4>(rows, p, room);
    case kDecodeF16:
      return half_rows<Half>(rows, p, room);
    default:
      return half_rows<BFloat16>(rows, p, room);
  }
}
