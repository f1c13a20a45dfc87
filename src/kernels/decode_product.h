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

// Fills the room's vectors, and its scale. A vector that is normed is
// held whole; others may be longer.
GPU_INLINE void prepare(const DecodeLinear& p, const Room& room) {
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
  if (thread_index() == 0) *room.scale = 1.0f / factor;
}

// ---- a product

// The sum of a row.
GPU_INLINE float total(const DecodeLinear& p, const Rows& rows, const Room& room, int row) {
  float sum = room.sums[row];
  for (int s = 1; s < 1 << p.share_bits; ++s) sum += room.sums[s * rows.all() + row];
  return sum;
}

GPU_INLINE void linear(const DecodeLinear& p, const DecodeStep& step, const Room& room,
                       Slots& slots) {
  const Rows rows(p);
  // What is added to is called for early.
  const auto thread = static_cast<int>(thread_index());
  const bool adds = p.output == DecodeOutput::Add, gated = p.output == DecodeOutput::Gated;
  float before = 0.0f;
  if (adds && thread < rows.end[0]) {
    before = p.part[0].out[p.part[0].out_at + own_rows(p.part[0]).first + thread];
  }
  if (p.again == 0) {
    prepare(p, room);
    barrier();
  }
  all_pieces(p, rows, room, slots);
  barrier();
  const float scale = *room.scale;
  GPU_ROLLED
  for (int w = 0; w < (gated ? 1 : p.parts); ++w) {
    const DecodeRows& part = p.part[w];
    const Range own = own_rows(part);
    float* out = (part.out != nullptr ? part.out : step.logits) + part.out_at;
    GPU_ROLLED
    for (int i = thread; i < own.count(); i += kDecodeThreads) {
      const int row = own.first + i;
      float y = total(p, rows, room, rows.begin(w) + i) * scale;
      if (part.bias != nullptr) y += part.bias[row];
      if (gated) {
        float through = total(p, rows, room, rows.begin(1) + i) * scale;
        if (p.part[1].bias != nullptr) through += p.part[1].bias[row];
        y = (p.is_gelu != 0 ? tl::functors::gelu(y) : tl::functors::times_sigmoid(y, y, 0.0f)) *
            through;
      } else if (adds) {
        y += i == thread ? before : out[row];
      } else if (p.softcap != 0.0f) {
        y = p.softcap * tl::elementary::tanh(y / p.softcap);
      }
      out[row] = y;
    }
  }
}
