// Module DECODE: a product with up to three matrices, from its input to what is made of the sums.
#pragma once

#include "decode_room.h"
#include "decode_rows.h"
#include "elementary.h"
#include "functors.h"
#include "quant_dot.h"

// ---- the input of a product

// Over all threads of the block; `turn`, 0 or 1 by turns, says where warps leave their parts, so
// that one barrier is enough.
template <class Op>
GPU_INLINE float over_block(float value, Op op, int turn) {
  GPU_SHARED float left[2][kWarps];
  value = warp_reduce(value, op);
  if (lane() == 0) left[turn][warp_index()] = value;
  barrier();
  return warp_reduce(left[turn][lane() % kWarps], op, kWarps);
}

// What a thread holds of a vector: four neighbours of every 4 * kDecodeThreads elements.
constexpr int kHeld = 4, kHeldStep = 4 * kDecodeThreads;
constexpr int kHeldMost = kHeld * kHeldStep;  // of a vector that a block can hold
static_assert(kHeldMost == kDecodeWidth);

struct Held {
  Vec<float, 4> at[kHeld];
  // Elements from `first` on; what is past the end is zero.
  GPU_INLINE void load(const float* from, int first, int k) {
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      const int i = first + h * kHeldStep;
      at[h] = {};
      if (i < k) at[h] = load_vec<4>(from + i);
    }
  }
  // 1 / rms of a vector that is held whole.
  GPU_INLINE float inverse_rms(int k, float eps, int turn) const {
    float squares = 0.0f;
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) squares = math::fma(at[h].get(j), at[h].get(j), squares);
    }
    return 1.0f / math::sqrt(over_block(squares, Sum{}, turn) / static_cast<float>(k) + eps);
  }
};

// Fills the room's vectors; returns what sums are to be multiplied by. A vector that is normed is
// held whole; others may be longer.
GPU_INLINE float prepare(const DecodeLinear& p, const Room& room) {
  const int own = 4 * static_cast<int>(thread_index());
  const bool normed = p.norm != nullptr;
  float scale = 1.0f, factor = 1.0f;
  Held x, w;
  x.load(p.x, own, p.k);
  if (normed) {
    if (p.added != nullptr) {
      Held y;
      y.load(p.added, own, p.k);
      const float added_scale = y.inverse_rms(p.k, p.eps, 0);
      GPU_UNROLLED
      for (int h = 0; h < kHeld; ++h) {
        const int i = own + h * kHeldStep;
        if (i >= p.k) continue;
        const Vec<float, 4> with = load_vec<4>(p.added_norm + i);
        Vec<float, 4> sum;
        GPU_UNROLLED
        for (int j = 0; j < 4; ++j) {
          sum.set(j, x.at[h].get(j) + y.at[h].get(j) * added_scale * with.get(j));
        }
        x.at[h] = sum;
        if (block_index() == 0) store_vec(p.kept + i, sum);
      }
    }
    w.load(p.norm, own, p.k);
    scale = x.inverse_rms(p.k, p.eps, 1);
  }
  const auto value = [&](int h, float(&to)[4]) {
    GPU_UNROLLED
    for (int j = 0; j < 4; ++j) {
      to[j] = normed ? x.at[h].get(j) * scale * w.at[h].get(j) : x.at[h].get(j);
    }
  };
  if (p.halves != 0) {
    float largest = 0.0f;
    GPU_ROLLED
    for (int first = own; first < p.k; first += kHeldMost) {
      if (first != own) x.load(p.x, first, p.k);
      GPU_UNROLLED
      for (int h = 0; h < kHeld; ++h) {
        float four[4];
        value(h, four);
        GPU_UNROLLED
        for (int j = 0; j < 4; ++j) largest = math::max(largest, math::abs(four[j]));
      }
    }
    factor = half_factor(over_block(largest, Max{}, 0));
    if (p.k > kHeldMost) x.load(p.x, own, p.k);
  }
  const Planes planes(room, p.k);
  auto* halves = reinterpret_cast<Half*>(room.vectors);
  GPU_ROLLED
  for (int first = own; first - own < p.k; first += kHeldMost) {
    if (first != own) x.load(p.x, first, p.k);
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      // Whole warps leave: eight lanes make 32 elements, and k is a multiple of 32.
      const int i = first + h * kHeldStep;
      if (i - 4 * static_cast<int>(lane()) >= p.k) break;
      float four[4];
      value(h, four);
      if (p.halves != 0) {
        Vec<Half, 4> small;
        GPU_UNROLLED
        for (int j = 0; j < 4; ++j) small.set(j, from_float<Half>(four[j] * factor));
        if (i < p.k) store_vec(halves + i, small);
        continue;
      }
      const PackedFour packed = pack_four(four);
      if (i >= p.k) continue;
      const int group = i / 32, within = i % 32;
      Chunk* plane = within < 16 ? planes.low : planes.high;
      plane[group].at[within % 16 / 4] = packed.word;
      if (within == 0) planes.scales[group] = packed.scale;
    }
  }
  return 1.0f / factor;
}

// ---- a product

// `turns` has a bit for each slot: which turn its next delivery is.
GPU_INLINE void all_rows(const DecodeLinear& p, const Room& room, Bits32& turns) {
  const int all = p.tiles, slots = slots_of(p), slot_bytes = p.slot_bytes;
  const Shared shared{p.k, p.warps, p.warps == 4 ? 2 : p.warps - 1};
  int tile = 0, slot = 0;
  GPU_ROLLED
  for (int run = 0; run < p.runs; ++run) {
    const DecodeRun of = p.run[run];
    const DecodeRows& part = p.part[of.first];
    const int format = part.format, end = tile + of.tiles;
    Rows rows;
    rows.bytes = static_cast<int>(part.row_bytes);
    GPU_ROLLED
    for (; tile < end; ++tile) {
      rows.tile = room.tiles + tile;
      if (slots == 0) {
        GPU_UNROLLED
        for (int w = 0; w < kDecodeWeights; ++w) {
          rows.at[w] = p.part[w].weight + rows.tile->from[w];
        }
      } else {
        rows.at[0] = rows.at[1] = rows.at[2] = room.ring + slot * slot_bytes;
        room.deliveries[slot].wait(turns >> slot & 1u);
        turns ^= 1u << slot;
      }
      rows_of(format, rows, shared, room);
      if (slots == 0) continue;
      if (tile + slots < all) {
        barrier();
        if (thread_index() == 0) {
          int other = 0, other_end = p.run[0].tiles;
          while (tile + slots >= other_end) other_end += p.run[++other].tiles;
          send_for(p, other, room.tiles[tile + slots], slot, room);
        }
      }
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
  }
}

GPU_INLINE float total(const DecodeLinear& p, const Room& room, int at) {
  const int shift = p.warps == 4 ? 2 : p.warps - 1;
  float sum = room.sums[at];
  for (int w = 1; w < p.warps; ++w) sum += room.sums[w * (kDecodeSums >> shift) + at];
  return sum;
}

// begin() was called for the first chunk.
GPU_INLINE void linear(const DecodeLinear& p, const DecodeStep& step, const Room& room,
                       Bits32& turns) {
  // What is added to is called for early.
  const auto thread = static_cast<int>(thread_index());
  const bool adds = p.output == DecodeOutput::Add;
  const Range first_rows = own_rows(p.part[0]).part(0, p.chunks);
  float before = 0.0f;
  if (adds && thread < first_rows.last - first_rows.first) {
    before = p.part[0].out[first_rows.first + thread];
  }
  const float scale = prepare(p, room);
  barrier();
  const bool gated = p.output == DecodeOutput::Gated;
  GPU_ROLLED
  for (int chunk = 0; chunk < p.chunks; ++chunk) {
    if (chunk > 0) {
      begin(p, chunk, 0, room);
      barrier();
    }
    all_rows(p, room, turns);
    barrier();
    GPU_ROLLED
    for (int w = 0; w < (gated ? 1 : p.parts); ++w) {
      const DecodeRows& part = p.part[w];
      const Range now = own_rows(part).part(chunk, p.chunks);
      float* out = part.out != nullptr ? part.out : step.logits;
      GPU_ROLLED
      for (int i = thread; i < now.last - now.first; i += kDecodeThreads) {
        const int row = now.first + i;
        float y = total(p, room, w * p.sums_each + i) * scale;
        if (part.bias != nullptr) y += part.bias[row];
        if (gated) {
          float through = total(p, room, p.sums_each + i) * scale;
          if (p.part[1].bias != nullptr) through += p.part[1].bias[row];
          y = (p.is_gelu != 0 ? tl::functors::gelu(y) : tl::functors::times_sigmoid(y, y, 0.0f)) *
              through;
        } else if (adds) {
          y += chunk == 0 && i == thread ? before : out[row];
        } else if (p.softcap != 0.0f) {
          y = p.softcap * tl::elementary::tanh(y / p.softcap);
        }
        out[row] = y;
      }
    }
    if (chunk + 1 < p.chunks) barrier();
  }
}
