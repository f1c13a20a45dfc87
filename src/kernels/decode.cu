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

// Rows that a block takes at a time, of up to three matrices with rows of one length. Row i of all
// lies at from[w] + i * row_bytes and its sum goes to sum[w] + i, where w is 0 for rows below
// end[0], 1 for those below end[1], and else 2. from[] counts from the tile's place in shared
// memory, or from the matrix.
struct Tile {
  Index from[kDecodeWeights];
  int sum[kDecodeWeights];
  int end[kDecodeWeights];
};

// What a block's phases keep in shared memory.
struct Room {
  Chunk* vectors;        // kDecodeRoom bytes
  float* sums;           // kDecodeSums of them
  Tile* tiles;           // kDecodeTiles
  Delivery* deliveries;  // kDecodeSlots
  Bits8* ring;           // the slots
};

// ---- which rows a block takes

// An image for older devices may run on one that could do more than it knows.
GPU_INLINE int slots_of(const DecodeLinear& p) { return kDelivers ? p.slots : 0; }

struct Range {
  int first, last;
  // Part `at` of `parts`.
  GPU_INLINE Range part(int at, int parts) const {
    if (parts == 1) return *this;
    const auto all = static_cast<unsigned>(last - first), n = static_cast<unsigned>(parts);
    const auto i = static_cast<unsigned>(at);
    return {first + static_cast<int>(all * i / n), first + static_cast<int>(all * (i + 1) / n)};
  }
};

// This block's rows of a matrix.
GPU_INLINE Range own_rows(const DecodeRows& part) {
  const auto block = static_cast<int>(block_index());
  const int first = block * part.each + (block < part.more ? block : part.more);
  return {first, first + part.each + (block < part.more ? 1 : 0)};
}

// Sends for a tile's rows.
GPU_INLINE void send_for(const DecodeLinear& p, int run, const Tile& tile, int slot,
                         const Room& room) {
  Delivery& delivery = room.deliveries[slot];
  const auto bytes = static_cast<unsigned>(p.part[p.run[run].first].row_bytes);
  Bits8* to = room.ring + slot * p.slot_bytes;
  const int count[kDecodeWeights] = {tile.end[0], tile.end[1] - tile.end[0],
                                     tile.end[2] - tile.end[1]};
  const int before[kDecodeWeights] = {0, tile.end[0], tile.end[1]};
  delivery.expect(static_cast<unsigned>(tile.end[2]) * bytes);
  GPU_UNROLLED
  for (int w = 0; w < kDecodeWeights; ++w) {
    if (count[w] == 0) continue;
    delivery.bring(to + before[w] * static_cast<int>(bytes),
                   p.part[w].weight + tile.from[w] + before[w] * static_cast<Index>(bytes),
                   static_cast<unsigned>(count[w]) * bytes);
  }
}

// Fills room.tiles for a chunk and sends for what there is room for: a thread for each tile, the
// first being number `first_thread` of the block.
GPU_INLINE void begin(const DecodeLinear& p, int chunk, int first_thread, const Room& room) {
  const int number = static_cast<int>(thread_index()) - first_thread;
  if (number < 0 || number >= p.tiles) return;
  Tile tile = {};
  int run = 0, at = number;
  while (at >= p.run[run].tiles) at -= p.run[run++].tiles;
  int rows = 0;
  GPU_UNROLLED
  for (int w = 0; w < kDecodeWeights; ++w) {
    if (w >= p.run[run].first && w < p.run[run].last) {
      const Range now = own_rows(p.part[w]).part(chunk, p.chunks);
      const Range some = now.part(at, p.run[run].tiles);
      tile.from[w] = (some.first - rows) * p.part[w].row_bytes;
      tile.sum[w] = w * p.sums_each + some.first - now.first - rows;
      rows += some.last - some.first;
    }
    tile.end[w] = rows;
  }
  room.tiles[number] = tile;
  if (number < slots_of(p)) send_for(p, run, tile, number, room);
}

// ---- meetings

// All blocks have come here `times` times. Meanwhile the block sends for the weights of `next`,
// where there is such a product.
GPU_INLINE void meet(const DecodeStep& step, int times, const DecodeLinear* next,
                     const Room& room) {
  barrier();
  if (next != nullptr) {
    begin(*next, 0, static_cast<int>(kWarp), room);
    // A norm's weights are read once for each token, and by then are far away. Each block calls for
    // some: all of them for all would be in each other's way.
    constexpr unsigned kLine = 32;  // floats
    if (next->norm != nullptr && thread_index() == kBlockThreads / 2) {
      GPU_ROLLED
      for (unsigned at = block_index() * kLine; at < static_cast<unsigned>(next->k);
           at += block_count() * kLine) {
        call_line(next->norm + at);
      }
    }
  }
  if (thread_index() == 0) {
    const Bits32 all = step.met_before + static_cast<Bits32>(times) * block_count();
    announce(step.met);
    while (static_cast<int>(observe(step.met) - all) < 0) {
    }
  }
  barrier();
}

// ---- rows of a product

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
  // Rows in shared memory are there at once, and short code is quicker to fetch; from elsewhere as
  // many loads are under way as there is room for in registers.
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

// ---- attention

// x / n for the small numbers that attention divides, where `by` is 2^20 / n, rounded up.
GPU_INLINE int quotient(int x, unsigned by) {
  return static_cast<int>(static_cast<unsigned>(x) * by >> 20);
}

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
  const int group = a.group;
  // Warps of a head each take some of the keys, and keep what they found for themselves.
  const int members = a.members, member = quotient(warp, a.by_group), head = warp - member * group;
  auto* queries = reinterpret_cast<float*>(room.vectors);  // [group][key_size]
  float* fresh = queries + group * a.key_size;             // [key_size]: the new key, normed
  float* found = fresh + a.key_size;                       // [members][group][value_size]
  float* most = found + members * group * a.value_size;    // [members][group]
  float* sum = most + members * group;                     // [members][group]
  float* flag = sum + members * group;

  const float* cosines = a.cosines + step.position * (a.rope_size / 2);
  const float* sines = a.sines + step.position * (a.rope_size / 2);
  const bool halves = a.rope_halves != 0;
  // The last part writes the new key and value; its own threads then read them.
  const bool writes = sight.split + 1 == sight.splits;
  // What is needed soon and does not depend on what others do is called for first.
  const Index first_tile = sight.begin / static_cast<Index>(kWarp) * static_cast<Index>(kWarp) +
                           member * static_cast<Index>(kWarp);
  const bool works = member < members && first_tile < sight.end;
  const auto block_of = [&](Index position) {
    return step.blocks[position / kv::kBlock] + a.layer_at;
  };
  const Bits8* block = works ? block_of(first_tile) : nullptr;
  const int half = a.rope_size / 2, pair = thread - quotient(thread, a.by_half) * half;
  const bool turns_one = thread < group * half;
  const float cosine = turns_one ? cosines[pair] : 0.0f, sine = turns_one ? sines[pair] : 0.0f;
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
  barrier();
  // Pairs turn in place: the thread of the first element does both.
  GPU_ROLLED
  for (int at = thread; at < group * half; at += kDecodeThreads) {
    const int which = quotient(at, a.by_half), number = at - which * half;
    float* turning = queries + which * a.key_size;
    float& x = turning[halves ? number : 2 * number];
    float& y = turning[halves ? number + half : 2 * number + 1];
    const float c = at == thread ? cosine : cosines[number];
    const float s = at == thread ? sine : sines[number], left = x, right = y;
    x = left * c - right * s;
    y = left * s + right * c;
  }
  if (writes) {
    Bits8* last = step.blocks[step.position / kv::kBlock] + a.layer_at;
    Bits8* key = last + sight.head * a.key_head_bytes;
    Bits8* value = last + a.values_at + sight.head * a.value_head_bytes;
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

  float largest = -math::kInfinity, added = 0.0f;
  constexpr int kPairs = 4;  // columns 2 lane, 2 lane + 1, and so on: up to 8 to a lane of 32
  float result[kPairs][2] = {};
  const auto own = static_cast<int>(lane());
  const float* query = queries + head * a.key_size;
  GPU_ROLLED
  for (Index first = first_tile; works && first < sight.end;
       first += members * static_cast<Index>(kWarp)) {
    // Keys of one block of the cache: a lane has one. Where it has none it takes a neighbour's and
    // gives it no weight.
    const Index position = first + own;
    const bool live = position >= sight.begin && position < sight.end;
    const int start = static_cast<int>(first % kv::kBlock);
    const int end =
        static_cast<int>(sight.end - first < static_cast<Index>(kWarp) ? sight.end - first
                                                                       : static_cast<Index>(kWarp));
    const Bits8* keys = block + sight.head * a.key_head_bytes;
    const Bits8* values = block + a.values_at + sight.head * a.value_head_bytes;
    const Index after = first + members * static_cast<Index>(kWarp);
    if (after < sight.end) block = block_of(after);
    const int within = start + (own < end ? own : 0);
    float score = 0.0f;
    constexpr int kDepth = kDelivers && sizeof(T) != 4 ? 64 : 32;  // elements of a key under way
    GPU_ROLLED
    for (int e = 0; e < a.key_size; e += kDepth) {
      kv::Eight key[kDepth / 8];
      GPU_UNROLLED
      for (int i = 0; i < kDepth / 8; ++i) {
        key[i] = KvRows::load(keys, a.key_size, within, e + 8 * i < a.key_size ? e + 8 * i : e);
      }
      GPU_UNROLLED
      for (int i = 0; i < kDepth / 8; ++i) {
        if (e + 8 * i >= a.key_size) break;
        const auto low = load_vec<4>(query + e + 8 * i), high = load_vec<4>(query + e + 8 * i + 4);
        GPU_UNROLLED
        for (int j = 0; j < 4; ++j) {
          score = math::fma(low.get(j), key[i].at[j], score);
          score = math::fma(high.get(j), key[i].at[4 + j], score);
        }
      }
    }
    score *= a.scale;
    if (a.softcap != 0.0f) score = a.softcap * tl::elementary::tanh(score / a.softcap);
    if (!live) score = -math::kInfinity;
    const float next = math::max(largest, warp_max(score));
    const float weight = math::exp(score - next), scale = math::exp(largest - next);
    added = added * scale + warp_sum(weight);
    largest = next;
    // Now a lane has columns.
    GPU_UNROLLED
    for (int i = 0; i < kPairs; ++i) {
      result[i][0] *= scale;
      result[i][1] *= scale;
      if (2 * i * static_cast<int>(kWarp) >= a.value_size) break;
      const int column = 2 * (own + i * static_cast<int>(kWarp));
      const int there = column < a.value_size ? column : 0;
      constexpr int kRows = kDelivers && sizeof(T) == 2 ? 16 : 8;  // under way
      GPU_ROLLED
      for (int j = 0; j < end; j += kRows) {
        typename KvRows::Pair two[kRows];
        GPU_UNROLLED
        for (int u = 0; u < kRows; ++u) {
          two[u].load(values, a.value_size, start + (j + u < end ? j + u : j), there);
        }
        GPU_UNROLLED
        for (int u = 0; u < kRows; ++u) {
          const float taken = shuffle(weight, static_cast<unsigned>(j + u) % kWarp);
          const float by = j + u < end ? taken : 0.0f;
          result[i][0] = math::fma(by, two[u].get(0), result[i][0]);
          result[i][1] = math::fma(by, two[u].get(1), result[i][1]);
        }
      }
    }
  }
  if (member < members) {
    float* to = found + (member * group + head) * a.value_size;
    GPU_UNROLLED
    for (int i = 0; i < kPairs; ++i) {
      const int column = 2 * (own + i * static_cast<int>(kWarp));
      if (column < a.value_size) {
        to[column] = result[i][0];
        to[column + 1] = result[i][1];
      }
    }
    if (own == 0) {
      most[member * group + head] = largest;
      sum[member * group + head] = added;
    }
  }
  barrier();

  // What the warps of a head found, together: in the place of the first.
  const int outputs = group * a.value_size, pitch = outputs + 2 * group;
  const auto combine = [&](int parts, int step_values, int step_numbers, const float* values,
                           const float* tops, const float* totals, int at, float& top, float& all) {
    const int g = quotient(at, a.by_value);
    top = tops[g];
    for (int m = 1; m < parts; ++m) top = math::max(top, tops[m * step_numbers + g]);
    float result_all = 0.0f;
    all = 0.0f;
    GPU_ROLLED
    for (int m = 0; m < parts; ++m) {
      const float by = math::exp(tops[m * step_numbers + g] - top);
      all = math::fma(totals[m * step_numbers + g], by, all);
      result_all = math::fma(values[m * step_values + at], by, result_all);
    }
    return result_all;
  };
  float* out = a.out + sight.head * outputs;
  float* head_parts = a.partial + static_cast<Index>(sight.head) * sight.splits * pitch;
  float* left = head_parts + sight.split * pitch;
  GPU_ROLLED
  for (int at = thread; at < outputs; at += kDecodeThreads) {
    float top, all;
    const float value = combine(members, outputs, group, found, most, sum, at, top, all);
    if (sight.splits == 1) {
      out[at] = value / all;
      continue;
    }
    // Each part leaves its results; the last one to come adds all of them, in order.
    left[at] = value;
    const int g = quotient(at, a.by_value);
    if (at == g * a.value_size) {
      left[outputs + g] = top;
      left[outputs + group + g] = all;
    }
  }
  if (sight.splits == 1) return;
  barrier();
  if (thread == 0) {
    const bool last = take_turn(a.arrived + sight.head) + 1 == static_cast<Bits32>(sight.splits);
    if (last) a.arrived[sight.head] = 0;
    *flag = last ? 1.0f : 0.0f;
  }
  barrier();
  if (*flag == 0.0f) return;
  GPU_ROLLED
  for (int at = thread; at < outputs; at += kDecodeThreads) {
    float top, all;
    const float value = combine(sight.splits, pitch, pitch, head_parts, head_parts + outputs,
                                head_parts + outputs + group, at, top, all);
    out[at] = value / all;
  }
}

GPU_INLINE void attention(const DecodeAttention& a, const DecodeStep& step, const Room& room) {
  const DecodeSight seen = a.window != 0 ? step.seen_near : step.seen;
  GPU_ROLLED
  for (int item = static_cast<int>(block_index()); item < seen.splits * a.kv_heads;
       item += static_cast<int>(block_count())) {
    Sight sight;
    sight.split = item / a.kv_heads;
    sight.head = item - sight.split * a.kv_heads;
    sight.splits = seen.splits;
    sight.begin = seen.begin + sight.split * seen.each;
    sight.end =
        sight.begin + seen.each <= step.position ? sight.begin + seen.each : step.position + 1;
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

GPU_INLINE void all_phases(const DecodeStep& step) {
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
      if (begun != i) {
        begin(phase.linear, 0, 0, room);
        barrier();
      }
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
    const bool known = begun != next && next < step.last;
    if (known) begun = next;
    meet(step, i + 1 - step.first, known ? &place(next)->linear : nullptr, room);
  }
}

// Where it would be all memory and no registers there is nothing here, and the host does not ask.
GPU_KERNEL void decode_step(DecodeStep step) {
  if constexpr (kManyRegisters) all_phases(step);
}
