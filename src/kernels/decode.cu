// Module DECODE: one token through a whole decoder, in phases.
//
// A phase is a product with up to three matrices, attention, or the look-up of the embedding
// (gpu_decode.h). A launch does one phase or many; between two phases of a launch all its blocks
// meet, so they must all be resident. What a phase computes does not depend on how launches are
// cut, nor on how many blocks there are.
//
// A product's input is normed and made into bytes (or halves) by every block for itself: that takes
// less than a meeting would. The weights of the next phase are called for before each meeting.
#define GPU_THREADS 512
#define GPU_LEAST_BLOCKS 1
#include "gpu.h"
// After gpu.h.
#include "functors.h"
#include "gpu_decode.h"
#include "gpu_kv.h"
#include "quant_dot.h"

namespace blocks = tl::quant_blocks;
using namespace tl::kernels;  // NOLINT: gpu_decode.h

static_assert(kBlockThreads == kDecodeThreads);
constexpr int kWarps = static_cast<int>(kBlockThreads / kWarp);

struct GPU_MAY_ALIAS alignas(16) Chunk {
  Bits32 at[4];
};

// What a block's phases keep in shared memory.
struct Room {
  Chunk* vectors;  // kDecodeRoom bytes
  float (*sums)[kDecodeRows];
  int sums_from = 0;
};

template <int kNumber>
struct Ahead {
  static constexpr int kCount = kNumber;
};

// ---- meetings

GPU_INLINE void meet(const DecodeStep& step, int times) {
  barrier();
  if (thread_index() == 0) {
    const Bits32 all = step.met_before + static_cast<Bits32>(times) * block_count();
    publish();
    atomic_add(step.met, 1u);
    while (static_cast<int>(peek(step.met) - all) < 0) {
    }
    notice();
  }
  barrier();
}

// ---- rows of a product

// Rows [first, last) are this block's share of `rows`.
struct Share {
  int first, last;
  GPU_INLINE explicit Share(int rows)
      : first(static_cast<int>(static_cast<Index>(rows) * block_index() / block_count())),
        last(static_cast<int>(static_cast<Index>(rows) * (block_index() + 1) / block_count())) {}
};

// Some rows of one matrix, or the same rows of two that have one format.
struct Rows {
  const DecodeRows* part;
  int first, count;  // of each matrix
  int sides;
  int pitch;  // between the sums of the sides
  GPU_INLINE int all() const { return sides * count; }
  GPU_INLINE const Bits8* at(int row) const {
    const int side = row >= count ? 1 : 0;
    const DecodeRows& from = part[side];
    return from.weight + (first + row - side * count) * from.row_bytes;
  }
  GPU_INLINE int sum_at(int row) const { return row >= count ? pitch + row - count : row; }
};

// Rows go to teams of `sharing` warps in turn, up to kRows to a team at a time: dot() adds this
// warp's share of their sums.
template <int kRows, class Dot>
GPU_INLINE void each_rows(const Rows& rows, int sharing, const Room& room, Dot dot) {
  const int warp = static_cast<int>(warp_index());
  const int share = warp % sharing, team = warp / sharing, teams = kWarps / sharing;
  const int all = rows.all();
  GPU_ROLLED
  for (int row = team; row < all; row += kRows * teams) {
    float sum[kRows] = {};
    const Bits8* from[kRows];
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      from[u] = rows.at(row + u * teams < all ? row + u * teams : row);
    }
    dot(from, share, sum);
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      const float total = warp_sum(sum[u]);
      if (lane() == 0 && row + u * teams < all) {
        room.sums[share][room.sums_from + rows.sum_at(row + u * teams)] = total;
      }
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
GPU_INLINE void quant_rows(const Rows& rows, const DecodeLinear& p, const Room& room) {
  using W = words::Words<Format>;
  // As many loads under way as there is room for in registers.
  constexpr int kRows = sizeof(typename W::Raw) <= 40 ? 4 : 2;
  constexpr int kMost = sizeof(typename W::Raw) * kRows <= 112 ? 2 : 1;
  const Planes x(room, p.k);
  const int groups = p.k / 32, step = p.warps * static_cast<int>(kWarp);
  each_rows<kRows>(rows, p.warps, room,
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
GPU_INLINE void half_rows(const Rows& rows, const DecodeLinear& p, const Room& room) {
  constexpr int kRows = 4, kMost = 4;
  const auto* x = reinterpret_cast<const Half*>(room.vectors);
  const int step = p.warps * static_cast<int>(kWarp) * 8;
  each_rows<kRows>(
      rows, p.warps, room, [&](const Bits8* const(&from)[kRows], int share, float(&sum)[kRows]) {
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

GPU_INLINE void rows_of(const Rows& rows, const DecodeLinear& p, const Room& room) {
  switch (rows.part->format) {
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

// ---- the input of a product

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
  GPU_INLINE float inverse_rms(int k, float eps) const {
    float squares = 0.0f;
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) squares = math::fma(at[h].get(j), at[h].get(j), squares);
    }
    return 1.0f / math::sqrt(block_sum(squares) / static_cast<float>(k) + eps);
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
    w.load(p.norm, own, p.k);
    if (p.added != nullptr) {
      Held y, with;
      y.load(p.added, own, p.k);
      with.load(p.added_norm, own, p.k);
      const float added_scale = y.inverse_rms(p.k, p.eps);
      GPU_UNROLLED
      for (int h = 0; h < kHeld; ++h) {
        Vec<float, 4> sum;
        GPU_UNROLLED
        for (int j = 0; j < 4; ++j) {
          sum.set(j, x.at[h].get(j) + y.at[h].get(j) * added_scale * with.at[h].get(j));
        }
        x.at[h] = sum;
        const int i = own + h * kHeldStep;
        if (block_index() == 0 && i < p.k) store_vec(p.kept + i, sum);
      }
    }
    scale = x.inverse_rms(p.k, p.eps);
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
    factor = half_factor(block_max(largest));
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

GPU_INLINE float total(const DecodeLinear& p, const Room& room, int at, float scale) {
  float sum = room.sums[0][at];
  for (int w = 1; w < p.warps; ++w) sum += room.sums[w][at];
  return sum * scale;
}

GPU_INLINE void linear(const DecodeLinear& p, const DecodeStep& step, const Room& room) {
  const float scale = prepare(p, room);
  barrier();
  const bool gated = p.output == DecodeOutput::Gated;
  GPU_ROLLED
  for (int w = 0; w < (gated ? 1 : p.parts); ++w) {
    const DecodeRows& part = p.part[w];
    float* out = part.out != nullptr ? part.out : step.logits;
    const Share share(part.rows);
    const int most = gated ? kDecodeRows / 2 : kDecodeRows;
    GPU_ROLLED
    for (int first = share.first; first < share.last; first += most) {
      const int last = first + most < share.last ? first + most : share.last;
      const bool alike = gated && p.part[0].format == p.part[1].format;
      Rows rows{p.part + w, first, last - first, alike ? 2 : 1, most};
      rows_of(rows, p, room);
      if (gated && !alike) {
        const Room other{room.vectors, room.sums, most};
        rows.part = p.part + 1;
        rows_of(rows, p, other);
      }
      barrier();
      GPU_ROLLED
      for (int i = static_cast<int>(thread_index()); i < last - first; i += kDecodeThreads) {
        const int row = first + i;
        float y = total(p, room, i, scale);
        if (part.bias != nullptr) y += part.bias[row];
        if (gated) {
          float through = total(p, room, most + i, scale);
          if (p.part[1].bias != nullptr) through += p.part[1].bias[row];
          y = (p.is_gelu != 0 ? tl::functors::gelu(y) : tl::functors::times_sigmoid(y, y, 0.0f)) *
              through;
        } else if (p.output == DecodeOutput::Add) {
          y += out[row];
        } else if (p.softcap != 0.0f) {
          y = p.softcap * tl::elementary::tanh(y / p.softcap);
        }
        out[row] = y;
      }
      barrier();
    }
  }
}

// Calls for this block's weights of a phase to come, as far as the cache can be expected to keep
// them.
GPU_INLINE void call_for(const DecodePhase& phase) {
  constexpr Index kMost = 96 << 10, kLine = 128;
  if (phase.kind != DecodeKind::Linear) return;
  Index left = kMost;
  GPU_ROLLED
  for (int w = 0; w < phase.linear.parts; ++w) {
    const DecodeRows& part = phase.linear.part[w];
    const Share share(part.rows);
    const Bits8* from = part.weight + share.first * part.row_bytes;
    Index bytes = (share.last - share.first) * part.row_bytes;
    if (bytes > left) bytes = left;
    GPU_ROLLED
    for (Index at = static_cast<Index>(thread_index()) * kLine; at < bytes;
         at += kLine * kDecodeThreads) {
      call_line(from + at);
    }
    left -= bytes;
  }
}

// ---- attention

// What a block does of it: the keys [begin, end) that the queries of one key head see.
struct Sight {
  int head;
  int split, splits;
  Index begin, end;
};

template <class T>
GPU_INLINE void attend(const DecodeAttention& a, const DecodeStep& step, const Sight& sight,
                       const Room& room) {
  using Rows = kv::Rows<T>;
  const int thread = static_cast<int>(thread_index()), warp = static_cast<int>(warp_index());
  const int group = a.heads / a.kv_heads;
  auto* queries = reinterpret_cast<float*>(room.vectors);  // [group][key_size]
  float* scores = queries + group * a.key_size;            // [group][kv::kBlock]
  float* result = scores + group * kv::kBlock;             // [group][value_size]
  float* most = result + group * a.value_size;             // [group]
  float* sum = most + group;
  float* correction = sum + group;
  float* fresh = correction + group;  // [key_size]: the new key, normed

  const float* cosines = a.cosines + step.position * (a.rope_size / 2);
  const float* sines = a.sines + step.position * (a.rope_size / 2);
  const bool halves = a.rope_halves != 0;
  // The last part writes the new key and value; its own threads then read them.
  const bool writes = sight.split + 1 == sight.splits;
  const auto normed = [&](const float* from, const float* weight, float* to) {  // by a warp
    float scale = 1.0f;
    if (weight != nullptr) {
      float squares = 0.0f;
      for (int i = static_cast<int>(lane()); i < a.key_size; i += static_cast<int>(kWarp)) {
        squares = math::fma(from[i], from[i], squares);
      }
      scale = 1.0f / math::sqrt(warp_sum(squares) / static_cast<float>(a.key_size) + a.eps);
    }
    for (int i = static_cast<int>(lane()); i < a.key_size; i += static_cast<int>(kWarp)) {
      to[i] = weight != nullptr ? from[i] * scale * weight[i] : from[i];
    }
  };
  GPU_ROLLED
  for (int g = warp; g < group + (writes ? 1 : 0); g += kWarps) {
    if (g < group) {
      normed(a.q + (sight.head * group + g) * a.key_size, a.q_norm, queries + g * a.key_size);
    } else {
      normed(a.k + sight.head * a.key_size, a.k_norm, fresh);
    }
  }
  GPU_ROLLED
  for (int i = thread; i < group * a.value_size; i += kDecodeThreads) result[i] = 0.0f;
  if (thread < group) {
    most[thread] = -math::kInfinity;
    sum[thread] = 0.0f;
  }
  barrier();
  // Pairs turn in place: the thread of the first element does both.
  GPU_ROLLED
  for (int at = thread; at < group * (a.rope_size / 2); at += kDecodeThreads) {
    const int pair = at % (a.rope_size / 2);
    float* head = queries + at / (a.rope_size / 2) * a.key_size;
    float& x = head[halves ? pair : 2 * pair];
    float& y = head[halves ? pair + a.rope_size / 2 : 2 * pair + 1];
    const float c = cosines[pair], s = sines[pair], left = x, right = y;
    x = left * c - right * s;
    y = left * s + right * c;
  }
  if (writes) {
    Bits8* block = step.blocks[step.position / kv::kBlock] + a.layer_at;
    Bits8* key = block + sight.head * a.key_head_bytes;
    Bits8* value = block + a.values_at + sight.head * a.value_head_bytes;
    const int position = static_cast<int>(step.position % kv::kBlock);
    const int most_size = a.key_size > a.value_size ? a.key_size : a.value_size;
    GPU_ROLLED
    for (int i = thread; i - static_cast<int>(lane()) < most_size; i += kDecodeThreads) {
      const float k = i < a.key_size ? kv::turned([&](int e) { return fresh[e]; }, i, a.rope_size,
                                                  halves, cosines, sines)
                                     : 0.0f;
      const float v = i < a.value_size ? a.v[sight.head * a.value_size + i] : 0.0f;
      Rows::put(key, a.key_size, position, i, k, i < a.key_size);
      Rows::put(value, a.value_size, position, i, v, i < a.value_size);
    }
  }
  barrier();

  // Threads of a team have eight elements of a key each; teams do not cross warps.
  int team_size = 1;
  while (team_size * 8 < a.key_size && team_size < 32) team_size *= 2;
  const int team = thread / team_size, member = thread % team_size;
  const int teams = kDecodeThreads / team_size;
  GPU_ROLLED
  for (Index tile = sight.begin / kv::kBlock * kv::kBlock; tile < sight.end; tile += kv::kBlock) {
    const Bits8* block = step.blocks[tile / kv::kBlock] + a.layer_at;
    const Bits8* keys = block + sight.head * a.key_head_bytes;
    const Bits8* values = block + a.values_at + sight.head * a.value_head_bytes;
    const int from = static_cast<int>(sight.begin > tile ? sight.begin - tile : 0);
    const int to = static_cast<int>(sight.end - tile < kv::kBlock ? sight.end - tile : kv::kBlock);
    GPU_ROLLED
    for (int first = from; first < to; first += teams) {
      const int position = first + team;
      GPU_ROLLED
      for (int g0 = 0; g0 < group; g0 += 4) {
        float products[4] = {};
        GPU_ROLLED
        for (int e = member * 8; e < a.key_size; e += team_size * 8) {
          if (position >= to) break;
          const kv::Eight key = Rows::load(keys, a.key_size, position, e);
          GPU_UNROLLED
          for (int g = 0; g < 4; ++g) {
            if (g0 + g >= group) break;
            const float* query = queries + (g0 + g) * a.key_size + e;
            GPU_UNROLLED
            for (int i = 0; i < 8; ++i) products[g] = math::fma(query[i], key.at[i], products[g]);
          }
        }
        GPU_UNROLLED
        for (int g = 0; g < 4; ++g) {
          float all = products[g];
          for (unsigned mask = static_cast<unsigned>(team_size) / 2; mask > 0; mask /= 2) {
            all += shuffle_xor(all, mask);
          }
          if (member == 0 && position < to && g0 + g < group) {
            all *= a.scale;
            if (a.softcap != 0.0f) all = a.softcap * tl::elementary::tanh(all / a.softcap);
            scores[(g0 + g) * kv::kBlock + position] = all;
          }
        }
      }
    }
    barrier();
    GPU_ROLLED
    for (int g = warp; g < group; g += kWarps) {
      float* row = scores + g * kv::kBlock;
      float largest = most[g];
      for (int i = from + static_cast<int>(lane()); i < to; i += static_cast<int>(kWarp)) {
        largest = math::max(largest, row[i]);
      }
      largest = warp_max(largest);
      float added = 0.0f;
      for (int i = from + static_cast<int>(lane()); i < to; i += static_cast<int>(kWarp)) {
        row[i] = math::exp(row[i] - largest);
        added += row[i];
      }
      added = warp_sum(added);
      if (lane() == 0) {
        const float scale = math::exp(most[g] - largest);
        correction[g] = scale;
        sum[g] = sum[g] * scale + added;
        most[g] = largest;
      }
    }
    barrier();
    GPU_ROLLED
    for (int at = thread; at < group * a.value_size; at += kDecodeThreads) {
      const int g = at / a.value_size, column = at % a.value_size;
      const float* row = scores + g * kv::kBlock;
      float total = result[at] * correction[g];
      int i = from;
      constexpr int kAhead = 8;
      GPU_ROLLED
      for (; i + kAhead <= to; i += kAhead) {
        float value[kAhead];
        GPU_UNROLLED
        for (int j = 0; j < kAhead; ++j) {
          value[j] = Rows::get(values, a.value_size, i + j, column);
        }
        GPU_UNROLLED
        for (int j = 0; j < kAhead; ++j) total = math::fma(row[i + j], value[j], total);
      }
      GPU_ROLLED
      for (; i < to; ++i) {
        total = math::fma(row[i], Rows::get(values, a.value_size, i, column), total);
      }
      result[at] = total;
    }
    barrier();
  }

  const int outputs = group * a.value_size, pitch = outputs + 2 * group;
  float* out = a.out + sight.head * outputs;
  if (sight.splits == 1) {
    for (int at = thread; at < outputs; at += kDecodeThreads) {
      out[at] = result[at] / sum[at / a.value_size];
    }
    return;
  }
  // Each part leaves its results; the last one to come adds all of them, in order.
  float* head_parts = a.partial + static_cast<Index>(sight.head) * sight.splits * pitch;
  float* own = head_parts + sight.split * pitch;
  for (int at = thread; at < outputs; at += kDecodeThreads) own[at] = result[at];
  if (thread < group) {
    own[outputs + thread] = most[thread];
    own[outputs + group + thread] = sum[thread];
  }
  barrier();
  if (thread == 0) {
    publish();
    const Bits32 before = atomic_add(a.arrived + sight.head, 1u);
    const bool last = before + 1 == static_cast<Bits32>(sight.splits);
    if (last) {
      notice();
      a.arrived[sight.head] = 0;
    }
    correction[0] = last ? 1.0f : 0.0f;
  }
  barrier();
  if (correction[0] == 0.0f) return;
  barrier();
  if (thread < group) {
    float largest = -math::kInfinity;
    for (int s = 0; s < sight.splits; ++s) {
      largest = math::max(largest, head_parts[s * pitch + outputs + thread]);
    }
    float all = 0.0f;
    for (int s = 0; s < sight.splits; ++s) {
      const float* part = head_parts + s * pitch + outputs;
      all += part[group + thread] * math::exp(part[thread] - largest);
    }
    most[thread] = largest;
    sum[thread] = all;
  }
  barrier();
  for (int at = thread; at < outputs; at += kDecodeThreads) {
    const int g = at / a.value_size;
    float total = 0.0f;
    GPU_ROLLED
    for (int s = 0; s < sight.splits; ++s) {
      const float* part = head_parts + s * pitch;
      total = math::fma(part[at], math::exp(part[outputs + g] - most[g]), total);
    }
    out[at] = total / sum[g];
  }
}

GPU_INLINE void attention(const DecodeAttention& a, const DecodeStep& step, const Room& room) {
  constexpr Index kGrain = 32;  // keys worth a block
  const Index end = step.position + 1;
  const Index begin = a.window != 0 && end > a.window ? end - a.window : 0;
  const Index grains = (end - begin + kGrain - 1) / kGrain;
  Index splits = block_count() / static_cast<unsigned>(a.kv_heads);
  if (splits > grains) splits = grains;
  if (splits < 1) splits = 1;
  const Index each = (grains + splits - 1) / splits;
  splits = (grains + each - 1) / each;
  GPU_ROLLED
  for (Index item = block_index(); item < splits * a.kv_heads; item += block_count()) {
    Sight sight;
    sight.head = static_cast<int>(item / splits);
    sight.split = static_cast<int>(item % splits);
    sight.splits = static_cast<int>(splits);
    sight.begin = begin + sight.split * each * kGrain;
    const Index last = sight.begin + each * kGrain;
    sight.end = last < end ? last : end;
    switch (a.kv_type) {
      case kDecodeKvF16:
        attend<Half>(a, step, sight, room);
        break;
      case kDecodeKvBF16:
        attend<BFloat16>(a, step, sight, room);
        break;
      case kDecodeKvQ8:
        attend<kv::Scaled>(a, step, sight, room);
        break;
      default:
        attend<float>(a, step, sight, room);
    }
    barrier();
  }
}

// ---- the embedding

template <class Format>
GPU_INLINE void embed_group(const Bits8* row, int group, float scale, float* to) {
  typename words::Words<Format>::Raw raw;
  raw.load(row, group);
  words::Words<Format> w;
  w.open(raw);
  using W = words::Words<Format>;
  GPU_UNROLLED
  for (int j = 0; j < 8; ++j) {
    const Bits32 codes = w.codes(j);
    Vec<float, 4> four;
    GPU_UNROLLED
    for (int i = 0; i < 4; ++i) {
      const Bits32 byte = codes >> 8 * i & 255u;
      const int code =
          W::kSigned ? static_cast<int>(static_cast<signed char>(byte)) : static_cast<int>(byte);
      four.set(i,
               scale * (w.scale(j / 4) * static_cast<float>(code - W::kBias) - w.minimum(j / 4)));
    }
    store_vec(to + 4 * j, four);
  }
}

template <class T>
GPU_INLINE void embed_plain(const Bits8* row, int group, float scale, float* to) {
  const T* from = reinterpret_cast<const T*>(row) + 32 * group;
  for (int i = 0; i < 32; ++i) to[i] = scale * to_float(from[i]);
}

GPU_INLINE void embed(const DecodeEmbed& p, const DecodeStep& step) {
  Index token = *step.token;
  if (token >= p.rows) {
    if (global_thread() == 0) report_bad_index(step.fault, step.fault_tag, token, p.rows);
    token = 0;
  }
  const Bits8* row = p.table + token * p.row_bytes;
  grid_stride(p.width / 32, [&](Index at) {
    const int group = static_cast<int>(at);
    float* to = p.x + 32 * at;
    switch (p.format) {
      case 0:
        return embed_group<blocks::Q4_0>(row, group, p.scale, to);
      case 1:
        return embed_group<blocks::Q4_1>(row, group, p.scale, to);
      case 2:
        return embed_group<blocks::Q5_0>(row, group, p.scale, to);
      case 3:
        return embed_group<blocks::Q5_1>(row, group, p.scale, to);
      case 4:
        return embed_group<blocks::Q8_0>(row, group, p.scale, to);
      case 5:
        return embed_group<blocks::Q2_K>(row, group, p.scale, to);
      case 6:
        return embed_group<blocks::Q3_K>(row, group, p.scale, to);
      case 7:
        return embed_group<blocks::Q4_K>(row, group, p.scale, to);
      case 8:
        return embed_group<blocks::Q5_K>(row, group, p.scale, to);
      case 9:
        return embed_group<blocks::Q6_K>(row, group, p.scale, to);
      case 10:
        return embed_group<blocks::IQ4_NL>(row, group, p.scale, to);
      case 11:
        return embed_group<blocks::IQ4_XS>(row, group, p.scale, to);
      case 12:
        return embed_group<blocks::MXFP4>(row, group, p.scale, to);
      case kDecodeF16:
        return embed_plain<Half>(row, group, p.scale, to);
      default:
        return embed_plain<BFloat16>(row, group, p.scale, to);
    }
  });
}

// ---- the kernel

// Phases are read into shared memory, by turns into two places: the next one before the meeting.
GPU_INLINE void fetch(const DecodePhase* phase, DecodePhase* to) {
  static_assert(sizeof(DecodePhase) % 8 == 0 && sizeof(DecodePhase) / 8 <= kDecodeThreads);
  struct GPU_MAY_ALIAS Word {
    Bits64 at;
  };
  const unsigned i = thread_index();
  if (i < sizeof(DecodePhase) / 8) {
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(phase)[i];
  }
  barrier();
}

GPU_KERNEL void decode_step(DecodeStep step) {
  GPU_SHARED Chunk vectors[kDecodeRoom / sizeof(Chunk)];
  GPU_SHARED float sums[kDecodeParts][kDecodeRows];
  GPU_SHARED Bits64 phases[2][sizeof(DecodePhase) / 8];
  const auto place = [&](int i) { return reinterpret_cast<DecodePhase*>(phases[i % 2]); };
  const Room room{vectors, sums};
  fetch(step.phases + step.first, place(step.first));
  GPU_ROLLED
  for (int i = step.first; i < step.last; ++i) {
    const DecodePhase& phase = *place(i);
    if (phase.kind == DecodeKind::Linear) {
      linear(phase.linear, step, room);
    } else if (phase.kind == DecodeKind::Attention) {
      attention(phase.attention, step, room);
    } else {
      embed(phase.embed, step);
    }
    if (i + 1 == step.last) break;
    fetch(step.phases + i + 1, place(i + 1));
    call_for(*place(i + 1));
    meet(step, i + 1 - step.first);
  }
}
