// Module DECODE: one token through a whole decoder, in phases.
//
// A phase is a product with up to three matrices, attention, or the look-up of the embedding
// (gpu_decode.h). A launch does one phase or many; between two phases of a launch all its blocks
// meet, so they must all be resident. What a phase computes does not depend on how launches are
// cut, nor on how many blocks there are.
//
// A product's input is normed and made into bytes (or halves) by every block for itself: that takes
// less than a meeting would. Where the device can bring memory by itself, the weights of the next
// product are on their way to shared memory while blocks meet.
#define GPU_THREADS 512
#define GPU_LEAST_BLOCKS 1
#include "gpu.h"
// After gpu.h.
#include "functors.h"
#include "gpu_decode.h"
#include "gpu_kv.h"
#include "gpu_together.h"
#include "quant_dot.h"

namespace blocks = tl::quant_blocks;
using namespace tl::kernels;  // NOLINT: gpu_decode.h

static_assert(kBlockThreads == kDecodeThreads);
constexpr int kWarps = static_cast<int>(kBlockThreads / kWarp);

struct GPU_MAY_ALIAS alignas(16) Chunk {
  Bits32 at[4];
};

template <int kNumber>
struct Ahead {
  static constexpr int kCount = kNumber;
};

// Rows of each matrix that a block takes at a time.
struct Tile {
  int first[kDecodeWeights], count[kDecodeWeights];
  int sum[kDecodeWeights];  // where the sum of the first row goes
};

// What a block's phases keep in shared memory.
struct Room {
  Chunk* vectors;        // kDecodeRoom bytes
  float* sums;           // kDecodeSums of them
  Tile* tiles;           // kDecodeTiles
  Delivery* deliveries;  // kDecodeSlots
  Bits8* ring;           // the slots
};

// ---- meetings

GPU_INLINE void meet(const DecodeStep& step, int times) {
  barrier();
  if (thread_index() == 0) {
    const Bits32 all = step.met_before + static_cast<Bits32>(times) * block_count();
    announce(step.met);
    while (static_cast<int>(observe(step.met) - all) < 0) {
    }
  }
  barrier();
}

// ---- which rows a block takes

// Part `at` of `parts` of [first, last).
struct Range {
  int first, last;
  GPU_INLINE Range(int from, int to, unsigned at, unsigned parts) {
    const auto all = static_cast<unsigned>(to - from);
    first = from + static_cast<int>(static_cast<Bits64>(all) * at / parts);
    last = from + static_cast<int>(static_cast<Bits64>(all) * (at + 1) / parts);
  }
};

// An image for older devices may run on one that could do more than it knows.
GPU_INLINE int slots_of(const DecodeLinear& p) { return kDelivers ? p.slots : 0; }

GPU_INLINE int tiles_of(const DecodeLinear& p) {
  int all = 0;
  for (int r = 0; r < p.runs; ++r) all += p.run[r].tiles;
  return all;
}

// Fills room.tiles for one chunk, a thread for each tile.
GPU_INLINE void plan(const DecodeLinear& p, int chunk, const Room& room) {
  int at = static_cast<int>(thread_index());
  if (at >= tiles_of(p)) return;
  Tile tile = {};
  int run = 0;
  while (at >= p.run[run].tiles) at -= p.run[run++].tiles;
  const int each = kDecodeSums / (p.warps * p.parts);
  GPU_ROLLED
  for (int w = p.run[run].first; w < p.run[run].last; ++w) {
    const Range own(0, p.part[w].rows, block_index(), block_count());
    const Range now(own.first, own.last, static_cast<unsigned>(chunk),
                    static_cast<unsigned>(p.chunks));
    const Range rows(now.first, now.last, static_cast<unsigned>(at),
                     static_cast<unsigned>(p.run[run].tiles));
    tile.first[w] = rows.first;
    tile.count[w] = rows.last - rows.first;
    tile.sum[w] = w * each + rows.first - now.first;
  }
  room.tiles[thread_index()] = tile;
}

// Sends for a tile's rows; by one thread.
GPU_INLINE void send_for(const DecodeLinear& p, int tile, const Room& room) {
  const Tile& rows = room.tiles[tile];
  const int slot = tile % p.slots;
  Delivery& delivery = room.deliveries[slot];
  unsigned bytes = 0;
  for (int w = 0; w < p.parts; ++w) {
    bytes += static_cast<unsigned>(rows.count[w] * p.part[w].row_bytes);
  }
  delivery.expect(bytes);
  Bits8* to = room.ring + slot * p.slot_bytes;
  for (int w = 0; w < p.parts; ++w) {
    const auto size = static_cast<unsigned>(rows.count[w] * p.part[w].row_bytes);
    if (size == 0) continue;
    delivery.bring(to, p.part[w].weight + rows.first[w] * p.part[w].row_bytes, size);
    to += size;
  }
}

// Plans a chunk and sends for what there is room for. Whole blocks.
GPU_INLINE void begin(const DecodeLinear& p, int chunk, const Room& room) {
  plan(p, chunk, room);
  barrier();
  const int all = tiles_of(p), slots = slots_of(p);
  if (slots == 0 || thread_index() != 0) return;
  GPU_ROLLED
  for (int tile = 0; tile < all && tile < slots; ++tile) send_for(p, tile, room);
}

// ---- rows of a product

// The rows of a tile, wherever they are now.
struct Rows {
  const Bits8* at[kDecodeWeights];
  Index bytes[kDecodeWeights];  // of a row
  int count[kDecodeWeights];
  int sum[kDecodeWeights];
  int all;
  GPU_INLINE int part(int row) const {
    return row < count[0] ? 0 : row < count[0] + count[1] ? 1 : 2;
  }
  GPU_INLINE int within(int row, int part) const {
    return part == 0 ? row : part == 1 ? row - count[0] : row - count[0] - count[1];
  }
  GPU_INLINE const Bits8* address(int row) const {
    const int w = part(row);
    const int i = within(row, w);
    return w == 0 ? at[0] + i * bytes[0] : w == 1 ? at[1] + i * bytes[1] : at[2] + i * bytes[2];
  }
  GPU_INLINE int sum_at(int row) const {
    const int w = part(row);
    return within(row, w) + (w == 0 ? sum[0] : w == 1 ? sum[1] : sum[2]);
  }
};

// Rows go to teams of `sharing` warps in turn, up to kRows to a team at a time: dot() adds this
// warp's share of their sums. Shares of a sum lie kDecodeSums / sharing apart.
template <int kRows, class Dot>
GPU_INLINE void each_rows(const Rows& rows, int sharing, const Room& room, Dot dot) {
  const int warp = static_cast<int>(warp_index());
  const int share = warp % sharing, team = warp / sharing, teams = kWarps / sharing;
  GPU_ROLLED
  for (int row = team; row < rows.all; row += kRows * teams) {
    float sum[kRows] = {};
    const Bits8* from[kRows];
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      from[u] = rows.address(row + u * teams < rows.all ? row + u * teams : row);
    }
    dot(from, share, sum);
    GPU_UNROLLED
    for (int u = 0; u < kRows; ++u) {
      const float total = warp_sum(sum[u]);
      if (lane() == 0 && row + u * teams < rows.all) {
        room.sums[share * (kDecodeSums / sharing) + rows.sum_at(row + u * teams)] = total;
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
  constexpr int kRows = kDelivers ? 2 : sizeof(typename W::Raw) <= 40 ? 4 : 2;
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
  constexpr int kRows = kDelivers ? 2 : 4, kMost = 4;
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

GPU_INLINE void rows_of(int format, const Rows& rows, const DecodeLinear& p, const Room& room) {
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

// `turns` has a bit for each slot: which turn its next delivery is.
GPU_INLINE void all_rows(const DecodeLinear& p, const Room& room, Bits32& turns) {
  const int all = tiles_of(p), slots = slots_of(p);
  int run = 0, run_end = p.run[0].tiles;
  GPU_ROLLED
  for (int i = 0; i < all; ++i) {
    while (i >= run_end) run_end += p.run[++run].tiles;
    const Tile& tile = room.tiles[i];
    const int slot = slots == 0 ? 0 : i % slots;
    Rows rows = {};
    const Bits8* staged = room.ring + slot * p.slot_bytes;
    GPU_UNROLLED
    for (int w = 0; w < kDecodeWeights; ++w) {
      rows.bytes[w] = p.part[w].row_bytes;
      rows.count[w] = tile.count[w];
      rows.sum[w] = tile.sum[w];
      rows.all += tile.count[w];
      rows.at[w] = slots != 0 ? staged : p.part[w].weight + tile.first[w] * rows.bytes[w];
      staged += tile.count[w] * rows.bytes[w];
    }
    if (slots != 0) {
      room.deliveries[slot].wait(turns >> slot & 1u);
      turns ^= 1u << slot;
    }
    rows_of(p.part[p.run[run].first].format, rows, p, room);
    if (slots != 0 && i + slots < all) {
      barrier();
      if (thread_index() == 0) send_for(p, i + slots, room);
    }
  }
}

GPU_INLINE float total(const DecodeLinear& p, const Room& room, int at) {
  float sum = room.sums[at];
  for (int w = 1; w < p.warps; ++w) sum += room.sums[w * (kDecodeSums / p.warps) + at];
  return sum;
}

// begin() was called for the first chunk.
GPU_INLINE void linear(const DecodeLinear& p, const DecodeStep& step, const Room& room,
                       Bits32& turns) {
  const float scale = prepare(p, room);
  barrier();
  const bool gated = p.output == DecodeOutput::Gated;
  const int each = kDecodeSums / (p.warps * p.parts);
  GPU_ROLLED
  for (int chunk = 0; chunk < p.chunks; ++chunk) {
    if (chunk > 0) begin(p, chunk, room);
    all_rows(p, room, turns);
    barrier();
    GPU_ROLLED
    for (int w = 0; w < (gated ? 1 : p.parts); ++w) {
      const DecodeRows& part = p.part[w];
      float* out = part.out != nullptr ? part.out : step.logits;
      const Range own(0, part.rows, block_index(), block_count());
      const Range now(own.first, own.last, static_cast<unsigned>(chunk),
                      static_cast<unsigned>(p.chunks));
      GPU_ROLLED
      for (int row = now.first + static_cast<int>(thread_index()); row < now.last;
           row += kDecodeThreads) {
        float y = total(p, room, w * each + row - now.first) * scale;
        if (part.bias != nullptr) y += part.bias[row];
        if (gated) {
          float through = total(p, room, each + row - now.first) * scale;
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
    }
    barrier();
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
  using KvRows = kv::Rows<T>;
  const int thread = static_cast<int>(thread_index()), warp = static_cast<int>(warp_index());
  const int group = a.heads / a.kv_heads;
  auto* queries = reinterpret_cast<float*>(room.vectors);  // [group][key_size]
  float* scores = queries + group * a.key_size;            // [4][kv::kBlock]
  float* result = scores + 4 * kv::kBlock;                 // [group][value_size]
  float* most = result + group * a.value_size;             // [group]
  float* sum = most + group;
  float* correction = sum + group;
  float* fresh = correction + group;     // [key_size]: the new key, normed
  float* gathered = fresh + a.key_size;  // [kWarps][value_size]

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
      KvRows::put(key, a.key_size, position, i, k, i < a.key_size);
      KvRows::put(value, a.value_size, position, i, v, i < a.value_size);
    }
  }
  barrier();

  // Scores: eight elements of a key to a thread, as many threads as a key needs (in one warp), and
  // as many keys at a time as there are threads. Values: eight columns to a thread, and as many
  // positions at a time. Query heads by fours.
  constexpr int kEach = 4;
  int team_size = 1;
  while (team_size * 8 < a.key_size && team_size < 32) team_size *= 2;
  const int team = thread / team_size, member = thread % team_size;
  const int teams = kDecodeThreads / team_size;
  int columns = 1;  // threads side by side, a power of two
  while (columns * 8 < a.value_size) columns *= 2;
  const int column = thread % columns * 8, slot = thread / columns;
  const int slots = kDecodeThreads / columns;
  GPU_ROLLED
  for (int g0 = 0; g0 < group; g0 += kEach) {
    const int heads = group - g0 < kEach ? group - g0 : kEach;
    float sums[kEach][8] = {};
    GPU_ROLLED
    for (Index tile = sight.begin / kv::kBlock * kv::kBlock; tile < sight.end; tile += kv::kBlock) {
      const Bits8* block = step.blocks[tile / kv::kBlock] + a.layer_at;
      const Bits8* keys = block + sight.head * a.key_head_bytes;
      const Bits8* values = block + a.values_at + sight.head * a.value_head_bytes;
      const int from = static_cast<int>(sight.begin > tile ? sight.begin - tile : 0);
      const int to =
          static_cast<int>(sight.end - tile < kv::kBlock ? sight.end - tile : kv::kBlock);
      GPU_ROLLED
      for (int first = from; first < to; first += teams) {
        const int position = first + team;
        float products[kEach] = {};
        GPU_ROLLED
        for (int e = member * 8; e < a.key_size && position < to; e += team_size * 8) {
          const kv::Eight key = KvRows::load(keys, a.key_size, position, e);
          GPU_UNROLLED
          for (int g = 0; g < kEach; ++g) {
            if (g >= heads) break;
            const float* query = queries + (g0 + g) * a.key_size + e;
            const auto low = load_vec<4>(query), high = load_vec<4>(query + 4);
            GPU_UNROLLED
            for (int i = 0; i < 4; ++i) {
              products[g] = math::fma(low.get(i), key.at[i], products[g]);
              products[g] = math::fma(high.get(i), key.at[4 + i], products[g]);
            }
          }
        }
        GPU_UNROLLED
        for (int g = 0; g < kEach; ++g) {
          if (g >= heads) break;
          float all = products[g];
          for (unsigned mask = static_cast<unsigned>(team_size) / 2; mask > 0; mask /= 2) {
            all += shuffle_xor(all, mask);
          }
          if (member == 0 && position < to) {
            all *= a.scale;
            if (a.softcap != 0.0f) all = a.softcap * tl::elementary::tanh(all / a.softcap);
            scores[g * kv::kBlock + position] = all;
          }
        }
      }
      barrier();
      GPU_ROLLED
      for (int g = warp; g < heads; g += kWarps) {
        float* row = scores + g * kv::kBlock;
        float largest = most[g0 + g];
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
          const float scale = math::exp(most[g0 + g] - largest);
          correction[g] = scale;
          sum[g0 + g] = sum[g0 + g] * scale + added;
          most[g0 + g] = largest;
        }
      }
      barrier();
      GPU_UNROLLED
      for (int g = 0; g < kEach; ++g) {
        const float by = g < heads ? correction[g] : 0.0f;
        GPU_UNROLLED
        for (int i = 0; i < 8; ++i) sums[g][i] *= by;
      }
      GPU_ROLLED
      for (int position = from + slot; position < to && column < a.value_size; position += slots) {
        const kv::Eight value = KvRows::load(values, a.value_size, position, column);
        GPU_UNROLLED
        for (int g = 0; g < kEach; ++g) {
          if (g >= heads) break;
          const float weight = scores[g * kv::kBlock + position];
          GPU_UNROLLED
          for (int i = 0; i < 8; ++i) sums[g][i] = math::fma(weight, value.at[i], sums[g][i]);
        }
      }
      barrier();
    }
    // The slots' sums: those in a warp by shuffles, then warp after warp.
    GPU_UNROLLED
    for (int g = 0; g < kEach; ++g) {
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) {
        for (unsigned mask = kWarp / 2; mask >= static_cast<unsigned>(columns); mask /= 2) {
          sums[g][i] += shuffle_xor(sums[g][i], mask);
        }
      }
    }
    GPU_ROLLED
    for (int g = 0; g < heads; ++g) {
      // Registers have no places by number: the row is picked out.
      float row[8];
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) {
        row[i] = sums[0][i];
        GPU_UNROLLED
        for (int other = 1; other < kEach; ++other) row[i] = g == other ? sums[other][i] : row[i];
      }
      if (static_cast<int>(lane()) < columns && column < a.value_size) {
        GPU_UNROLLED
        for (int i = 0; i < 8; ++i) gathered[warp * a.value_size + column + i] = row[i];
      }
      barrier();
      for (int at = thread; at < a.value_size; at += kDecodeThreads) {
        float all = 0.0f;
        // A row wider than a warp takes several warps; those of one column are added.
        const int wide = columns > static_cast<int>(kWarp) ? columns / static_cast<int>(kWarp) : 1;
        for (int w = at / 8 / static_cast<int>(kWarp) % wide; w < kWarps; w += wide) {
          all += gathered[w * a.value_size + at];
        }
        result[(g0 + g) * a.value_size + at] = all;
      }
      barrier();
    }
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
    const bool last = announce(a.arrived + sight.head) + 1 == static_cast<Bits32>(sight.splits);
    if (last) a.arrived[sight.head] = 0;
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

// Phases are read into shared memory ahead of their time: two after the one at hand.
struct Ticket {
  Bits64 word;
  GPU_INLINE void load(const DecodePhase* phase, bool there) {
    static_assert(sizeof(DecodePhase) % 8 == 0 && sizeof(DecodePhase) / 8 <= kDecodeThreads);
    const unsigned i = thread_index();
    if (there && i < sizeof(DecodePhase) / 8) word = reinterpret_cast<const Word*>(phase)[i].at;
  }
  GPU_INLINE void store(DecodePhase* to) const {
    const unsigned i = thread_index();
    if (i < sizeof(DecodePhase) / 8) reinterpret_cast<Word*>(to)[i].at = word;
  }

 private:
  struct GPU_MAY_ALIAS Word {
    Bits64 at;
  };
};

GPU_KERNEL void decode_step(DecodeStep step) {
  GPU_SHARED Chunk vectors[kDecodeRoom / sizeof(Chunk)];
  GPU_SHARED float sums[kDecodeSums];
  GPU_SHARED Tile tiles[kDecodeTiles];
  GPU_SHARED Delivery deliveries[kDecodeSlots];
  GPU_SHARED Bits64 phases[4][sizeof(DecodePhase) / 8];
  const auto place = [&](int i) { return reinterpret_cast<DecodePhase*>(phases[i % 4]); };
  const Room room{vectors, sums, tiles, deliveries, static_cast<Bits8*>(dynamic_shared())};
  Ticket ticket = {};
  for (int i = step.first; i < step.first + 2 && i < step.last; ++i) {
    ticket.load(step.phases + i, true);
    ticket.store(place(i));
  }
  if (thread_index() < kDecodeSlots) deliveries[thread_index()].open();
  barrier();
  Bits32 turns = 0;
  int begun = -1;  // the product whose weights are on their way
  GPU_ROLLED
  for (int i = step.first; i < step.last; ++i) {
    const DecodePhase& phase = *place(i);
    ticket.load(step.phases + i + 2, i + 2 < step.last);
    if (phase.kind == DecodeKind::Linear) {
      if (begun != i) begin(phase.linear, 0, room);
      linear(phase.linear, step, room, turns);
    } else if (phase.kind == DecodeKind::Attention) {
      attention(phase.attention, step, room);
    } else {
      embed(phase.embed, step);
    }
    if (i + 1 == step.last) break;
    ticket.store(place(i + 2));
    barrier();
    // The next product comes now, or after what is next.
    const int next = place(i + 1)->kind == DecodeKind::Linear ? i + 1 : i + 2;
    if (begun != next && next < step.last && place(next)->kind == DecodeKind::Linear) {
      begin(place(next)->linear, 0, room);
      begun = next;
    }
    meet(step, i + 1 - step.first);
  }
}
