// Module DECODE: a product with up to three matrices, from its input to what is made of the sums.
#pragma once

#include "decode_clerk.h"
#include "decode_room.h"
#include "decode_rows.h"
#include "elementary.h"
#include "functors.h"
#include "quant_dot.h"

// ---- the input of a product

// What a thread holds of a vector: eight neighbours of every 8 * room.threads elements, so many
// times.
constexpr int kHeld = kDelivers ? 3 : 2;

struct Held {
  float at[kHeld][8];
  // Elements from `first` on; what is past the end is zero.
  GPU_INLINE void load(const float* from, int first, int step, int k) {
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      const int i = first + h * step;
      Vec<float, 4> low = {}, high = {};
      if (i < k) {
        low = load_vec<4>(from + i);
        high = load_vec<4>(from + i + 4);
      }
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) {
        at[h][j] = low.get(j);
        at[h][4 + j] = high.get(j);
      }
    }
  }
  GPU_INLINE float squares() const {
    float sum = 0.0f;
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      GPU_UNROLLED
      for (int j = 0; j < 8; ++j) sum = math::fma(at[h][j], at[h][j], sum);
    }
    return sum;
  }
};

// A thread's part of a vector's squares, for inverse_rms() after a meeting.
GPU_INLINE void leave_squares(const Room& room, float squares) {
  squares = warp_sum(squares);
  if (lane() == 0) room.squares[warp_index()] = squares;
}

// 1 / rms of a vector of k.
GPU_INLINE float inverse_rms(const Room& room, int k, float eps) {
  const auto own = static_cast<int>(lane());
  const float sum = warp_sum(own < room.warps ? room.squares[own] : 0.0f);
  return 1.0f / math::sqrt(sum / static_cast<float>(k) + eps);
}

// The scale of what is to be added to x.
GPU_INLINE float scale_of_added(const DecodeLinear& p, const Room& room, int own, int step) {
  float squares = 0.0f;
  GPU_ROLLED
  for (int first = own; first < p.k; first += kHeld * step) {
    Held y;
    y.load(p.added, first, step, p.k);
    squares += y.squares();
  }
  leave_squares(room, squares);
  room.meet();
  const float scale = inverse_rms(room, p.k, p.eps);
  room.meet();  // before other squares take their place
  return scale;
}

// Adds it.
GPU_INLINE void increase(Held& x, const DecodeLinear& p, int first, int step, float scale) {
  GPU_UNROLLED
  for (int h = 0; h < kHeld; ++h) {
    GPU_UNROLLED
    for (int half = 0; half < 8; half += 4) {
      const int i = first + h * step + half;
      if (i >= p.k) break;
      const Vec<float, 4> more = load_vec<4>(p.added + i), with = load_vec<4>(p.added_norm + i);
      Vec<float, 4> sum;
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) {
        x.at[h][half + j] += more.get(j) * scale * with.get(j);
        sum.set(j, x.at[h][half + j]);
      }
      if (block_index() == 0) store_vec(p.kept + i, sum);
    }
  }
}

// Eight elements of the input, from i on, to the room's vectors. By whole warps: four lanes make 32
// elements, and k is a multiple of 32.
GPU_INLINE void pack(const DecodeLinear& p, const Room& room, int i, const float (&eight)[8]) {
  if (p.halves != 0) {
    const Eights eights(room, p.k);
    float largest = 0.0f;
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) largest = math::max(largest, math::abs(eight[j]));
    const float factor = half_factor(largest);
    Vec<Half, 8> small;
    GPU_UNROLLED
    for (int j = 0; j < 8; ++j) small.set(j, from_float<Half>(eight[j] * factor));
    if (i >= p.k) return;
    store_vec(eights.numbers + i, small);
    eights.scales[i / 8] = inverse_power(factor);
    return;
  }
  const Planes planes(room, p.k);
  const PackedBytes<8> packed = pack_bytes(eight);
  if (i >= p.k) return;
  const int group = i / 32, within = i % 32;
  Chunk* plane = within < 16 ? planes.low : planes.high;
  Bits32* to = plane[group].at + within % 16 / 4;
  to[0] = packed.words[0];
  to[1] = packed.words[1];
  if (within == 0) planes.scales[group] = packed.scale;
}

// Fills the room's vectors. The scale of a norm is not yet in them: sums are multiplied by it.
GPU_INLINE void prepare(const DecodeLinear& p, const Room& room) {
  const int own = 8 * static_cast<int>(forgotten(thread_index())), step = 8 * room.threads;
  const bool normed = p.norm != nullptr;
  const float added_scale = p.added != nullptr ? scale_of_added(p, room, own, step) : 0.0f;
  float squares = 0.0f;
  GPU_ROLLED
  for (int first = own; first - own < p.k; first += kHeld * step) {
    Held x, w = {};
    x.load(p.x, first, step, p.k);
    if (p.added != nullptr) increase(x, p, first, step, added_scale);
    if (normed) w.load(p.norm, first, step, p.k);
    if (normed) squares += x.squares();
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      const int i = first + h * step;
      if (i - 8 * static_cast<int>(lane()) >= p.k) break;
      if (normed) {
        GPU_UNROLLED
        for (int j = 0; j < 8; ++j) x.at[h][j] *= w.at[h][j];
      }
      pack(p, room, i, x.at[h]);
    }
  }
  if (normed) leave_squares(room, squares);
}

// ---- a product

// The sum of a row.
GPU_INLINE float total(const DecodeLinear& p, const Rows& rows, const Room& room, int row) {
  constexpr int kAtOnce = 4;
  const int all = rows.all(), shares = 1 << p.share_bits;
  float sum = 0.0f;
  GPU_ROLLED
  for (int s = 0; s < shares; s += kAtOnce) {
    float part[kAtOnce];
    GPU_UNROLLED
    for (int u = 0; u < kAtOnce; ++u) {
      part[u] = s + u < shares ? room.sums[(s + u) * all + row] : 0.0f;
    }
    GPU_UNROLLED
    for (int u = 0; u < kAtOnce; ++u) sum += part[u];
  }
  return sum;
}

// `slots` are this warp's, where pieces are brought.
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
    room.meet();
    if (warp_index() == 0) {
      const float scale = p.norm != nullptr ? inverse_rms(room, p.k, p.eps) : 1.0f;
      if (lane() == 0) *room.scale = scale;
    }
  }
  if (kMustDeliver || (kDelivers && step.slots != 0)) {
    brought_pieces(p, room, slots);
  } else {
    distant_pieces(p, rows, room);
  }
  room.meet();
  const float scale = *room.scale;
  const int outputs = gated ? rows.end[0] : rows.all();
  GPU_ROLLED
  for (int row = thread; row < outputs; row += room.threads) {
    const int w = rows.matrix(row);
    const DecodeRows& part = p.part[w];
    const int at = own_rows(part).first + row - rows.begin(w);
    float* out = (part.out != nullptr ? part.out : step.logits) + part.out_at + at;
    float y = total(p, rows, room, row) * scale;
    if (part.bias != nullptr) y += part.bias[at];
    if (gated) {
      float through = total(p, rows, room, rows.end[0] + row) * scale;
      if (p.part[1].bias != nullptr) through += p.part[1].bias[at];
      y = (p.is_gelu != 0 ? tl::functors::gelu(y) : tl::functors::times_sigmoid(y, y, 0.0f)) *
          through;
    } else if (adds) {
      y += row == thread ? before : *out;
    } else if (p.softcap != 0.0f) {
      y = p.softcap * tl::elementary::tanh(y / p.softcap);
    }
    *out = y;
  }
}
