// Module DECODE: attention of one token, which first writes its own key and value to the cache.
#pragma once

#include "decode_room.h"
#include "elementary.h"
#include "gpu_kv.h"

constexpr int kWarpBits = kWarp == 64 ? 6 : 5;

// x / n for the small numbers that attention divides, where `by` is 2^20 / n, rounded up.
GPU_INLINE int quotient(int x, unsigned by) {
  return static_cast<int>(static_cast<unsigned>(x) * by >> 20);
}

// What a block does of it: the keys [begin, end) that the queries of one key head see.
struct Sight {
  int head;
  int split, splits;
  int begin, end;
};

// Where in room.vectors a block keeps what it works with.
struct Desk {
  float* queries;  // [group][key_size]
  float* fresh;    // [key_size]: the new key, normed
  float* found;    // [members][group][value_size]
  float* most;     // [members][group]
  float* sum;      // [members][group]
  GPU_INLINE Desk(const DecodeAttention& a, const Room& room)
      : queries(reinterpret_cast<float*>(room.vectors)),
        fresh(queries + a.group * a.key_size),
        found(fresh + a.key_size),
        most(found + a.members * a.group * a.value_size),
        sum(most + a.members * a.group) {}
};

// Warps of a head each take some of the keys, a tile of kTile at a time, and keep what they found
// for themselves.
constexpr int kTile = static_cast<int>(kWarp);
struct Member {
  int number, head;
  int first;   // key of its first tile
  bool works;  // there is one
  GPU_INLINE Member(const DecodeAttention& a, const Sight& sight)
      : number(quotient(static_cast<int>(forgotten(warp_index())), a.by_group)),
        head(static_cast<int>(warp_index()) - number * a.group),
        first((sight.begin / kTile + number) * kTile),
        works(number < a.members && first < sight.end) {}
};

GPU_INLINE Bits8* block_of(const DecodeAttention& a, const DecodeStep& step, int position) {
  return step.blocks[position / kv::kBlock] + a.layer_at;
}

// The queries, normed and turned; and the new key, normed, where it is to be written.
GPU_INLINE void ready(const DecodeAttention& a, const DecodeStep& step, const Sight& sight,
                      bool writes, const Desk& desk) {
  const auto thread = static_cast<int>(thread_index());
  const int group = a.group, half = a.rope_size / 2;
  const float* cosines = a.cosines + step.position * half;
  const float* sines = a.sines + step.position * half;
  const bool halves = a.rope_halves != 0;
  // What is needed soon and does not depend on what others do is called for first.
  const int pair = thread - quotient(thread, a.by_half) * half;
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
  for (int g = static_cast<int>(warp_index()); g < group + (writes ? 1 : 0); g += kWarps) {
    if (g < group) {
      normed(a.q + (sight.head * group + g) * a.key_size, a.q_norm, desk.queries + g * a.key_size);
    } else {
      normed(a.k + sight.head * a.key_size, a.k_norm, desk.fresh);
    }
  }
  barrier();
  // Pairs turn in place: the thread of the first element does both.
  GPU_ROLLED
  for (int at = thread; at < group * half; at += kDecodeThreads) {
    const int which = quotient(at, a.by_half), number = at - which * half;
    float* turning = desk.queries + which * a.key_size;
    float& x = turning[halves ? number : 2 * number];
    float& y = turning[halves ? number + half : 2 * number + 1];
    const float c = at == thread ? cosine : cosines[number];
    const float s = at == thread ? sine : sines[number], left = x, right = y;
    x = left * c - right * s;
    y = left * s + right * c;
  }
}

// The new key and value, to the cache.
template <class T>
GPU_INLINE void keep(const DecodeAttention& a, const DecodeStep& step, const Sight& sight,
                     const Desk& desk) {
  const float* cosines = a.cosines + step.position * (a.rope_size / 2);
  const float* sines = a.sines + step.position * (a.rope_size / 2);
  Bits8* block = block_of(a, step, static_cast<int>(step.position));
  Bits8* key = block + sight.head * a.key_head_bytes;
  Bits8* value = block + a.values_at + sight.head * a.value_head_bytes;
  const int position = static_cast<int>(step.position % kv::kBlock);
  const int most_size = a.key_size > a.value_size ? a.key_size : a.value_size;
  GPU_ROLLED
  for (int i = static_cast<int>(thread_index()); i - static_cast<int>(lane()) < most_size;
       i += kDecodeThreads) {
    const float k = i < a.key_size ? kv::turned([&](int e) { return desk.fresh[e]; }, i,
                                                a.rope_size, a.rope_halves != 0, cosines, sines)
                                   : 0.0f;
    const float v = i < a.value_size ? a.v[sight.head * a.value_size + i] : 0.0f;
    kv::Rows<T>::put(key, a.key_size, position, i, k, i < a.key_size);
    kv::Rows<T>::put(value, a.value_size, position, i, v, i < a.value_size);
  }
}

// What a warp finds in its tiles, the first of which is in `block` of the cache.
template <class T>
GPU_INLINE void look(const DecodeAttention& a, const DecodeStep& step, const Sight& sight,
                     const Bits8* block, const Desk& desk) {
  using KvRows = kv::Rows<T>;
  const Member member(a, sight);
  float largest = -math::kInfinity, added = 0.0f;
  float result[8] = {};  // of this lane's columns and rows
  auto own = static_cast<int>(lane());
  // So many lanes have eight elements each of a key, as many as 2^key_bits; in turn they have so
  // many keys. Values likewise.
  const int key_lanes = 1 << a.key_bits, value_lanes = 1 << a.value_bits;
  const int keys_at_once = static_cast<int>(kWarp) >> a.key_bits;
  const int element = 8 * (own & (key_lanes - 1)), column = 8 * (own & (value_lanes - 1));
  const int key_element = element < a.key_size ? element : 0;
  const int value_element = column < a.value_size ? column : 0;
  // A lane ends up with the score of this key of a tile, and `lane_of` is the other way round.
  const int mine = (own & (key_lanes - 1)) * keys_at_once + (own >> a.key_bits);
  const auto lane_of = [&](int key) {
    const int turn = key >> (kWarpBits - a.key_bits), which = key & (keys_at_once - 1);
    return static_cast<unsigned>(which << a.key_bits | turn);
  };
  // Rows of a lane at a time, and those of them that are under way.
  constexpr int kTurns = sizeof(T) == 4 ? 4 : 8, kUnderWay = kWarp == 64 ? 4 : kTurns;
  GPU_ROLLED
  for (int first = member.first; member.works && first < sight.end; first += a.members * kTile) {
    own = static_cast<int>(forgotten(static_cast<unsigned>(own)));
    // Keys of one block of the cache. Where there is none a lane takes the first and gives it no
    // weight.
    const int position = first + mine;
    const bool live = position >= sight.begin && position < sight.end;
    const int start = first % kv::kBlock;
    const int end = sight.end - first < kTile ? sight.end - first : kTile;
    const Bits8* keys = block + sight.head * a.key_head_bytes;
    const Bits8* values = block + a.values_at + sight.head * a.value_head_bytes;
    const int after = first + a.members * kTile;
    if (after < sight.end) block = block_of(a, step, after);
    // Rows `turn` and on.
    typename KvRows::Packed rows[kUnderWay];
    const auto call = [&](const Bits8* head, int size, int bits, int there, int turn) {
      GPU_UNROLLED
      for (int u = 0; u < kUnderWay; ++u) {
        const int row = ((turn + u) << (kWarpBits - bits)) + (own >> bits);
        rows[u].load(head, size, start + (row < end ? row : 0), there);
      }
    };
    float score = 0.0f;
    GPU_ROLLED
    for (int turn = 0; turn < key_lanes; turn += kTurns) {
      float part[kTurns] = {}, query[8];
      const auto from = forgotten(static_cast<unsigned>(member.head * a.key_size + key_element));
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) query[i] = element < a.key_size ? desk.queries[from + i] : 0.0f;
      GPU_UNROLLED
      for (int some = 0; some < kTurns; some += kUnderWay) {
        call(keys, a.key_size, a.key_bits, key_element, turn + some);
        GPU_UNROLLED
        for (int u = 0; u < kUnderWay; ++u) {
          GPU_UNROLLED
          for (int i = 0; i < 8; ++i) {
            part[some + u] = math::fma(query[i], rows[u].get(i), part[some + u]);
          }
        }
        keep_order();
      }
      GPU_ROLLED
      for (unsigned mask = kTurns; mask < static_cast<unsigned>(key_lanes); mask *= 2) {
        GPU_UNROLLED
        for (int u = 0; u < kTurns; ++u) part[u] += shuffle_xor(part[u], mask);
      }
      // As many lanes have a part each of kTurns sums: each lane gets the whole of one.
      GPU_UNROLLED
      for (int some = kTurns / 2; some > 0; some /= 2) {
        const bool upper = (own & some) != 0;
        GPU_UNROLLED
        for (int u = 0; u < some; ++u) {
          const float given = upper ? part[u] : part[u + some];
          const float kept = upper ? part[u + some] : part[u];
          part[u] = kept + shuffle_xor(given, static_cast<unsigned>(some));
        }
      }
      if ((own & (key_lanes - 1)) / kTurns == turn / kTurns) score = part[0];
    }
    call(values, a.value_size, a.value_bits, value_element, 0);
    score *= a.scale;
    if (a.softcap != 0.0f) score = a.softcap * tl::elementary::tanh(score / a.softcap);
    if (!live) score = -math::kInfinity;
    const float next = math::max(largest, warp_max(score));
    const float weight = math::exp(score - next), scale = math::exp(largest - next);
    added = added * scale + warp_sum(weight);
    largest = next;
    GPU_UNROLLED
    for (int i = 0; i < 8; ++i) result[i] *= scale;
    GPU_ROLLED
    for (int turn = 0; turn < value_lanes; turn += kUnderWay) {
      if (turn > 0) call(values, a.value_size, a.value_bits, value_element, turn);
      GPU_UNROLLED
      for (int u = 0; u < kUnderWay; ++u) {
        const int row = ((turn + u) << (kWarpBits - a.value_bits)) + (own >> a.value_bits);
        const float by = shuffle(weight, lane_of(row));
        GPU_UNROLLED
        for (int i = 0; i < 8; ++i) result[i] = math::fma(by, rows[u].get(i), result[i]);
      }
      keep_order();
    }
  }
  if (member.number < a.members) {
    GPU_ROLLED
    for (unsigned mask = static_cast<unsigned>(value_lanes); mask < kWarp; mask *= 2) {
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) result[i] += shuffle_xor(result[i], mask);
    }
    const int place = member.number * a.group + member.head;
    float* to = desk.found + place * a.value_size;
    if (own < value_lanes && column < a.value_size) {
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) to[column + i] = result[i];
    }
    if (own == 0) {
      desk.most[place] = largest;
      desk.sum[place] = added;
    }
  }
}

// What the warps of each head found, together: the result, or one of the parts of it.
GPU_INLINE void leave(const DecodeAttention& a, const Sight& sight, const Desk& desk) {
  const int group = a.group, outputs = group * a.value_size, pitch = outputs + 2 * group;
  float* out = a.out + sight.head * outputs;
  float* left = a.partial + (static_cast<Index>(sight.head) * sight.splits + sight.split) * pitch;
  GPU_ROLLED
  for (int at = static_cast<int>(thread_index()); at < outputs; at += kDecodeThreads) {
    const int g = quotient(at, a.by_value);
    float top = desk.most[g];
    GPU_ROLLED
    for (int m = 1; m < a.members; ++m) top = math::max(top, desk.most[m * group + g]);
    float value = 0.0f, all = 0.0f;
    GPU_ROLLED
    for (int m = 0; m < a.members; ++m) {
      const float by = math::exp(desk.most[m * group + g] - top);
      all = math::fma(desk.sum[m * group + g], by, all);
      value = math::fma(desk.found[m * outputs + at], by, value);
    }
    if (sight.splits == 1) {
      out[at] = value / all;
      continue;
    }
    left[at] = value;
    if (at == g * a.value_size) {
      left[outputs + g] = top;
      left[outputs + group + g] = all;
    }
  }
}

// Adds up what the parts of a head found, in order: the last block to come does.
GPU_INLINE void add_parts(const DecodeAttention& a, const Sight& sight, const Room& room) {
  const auto thread = static_cast<int>(thread_index()), own = static_cast<int>(lane());
  const int group = a.group, outputs = group * a.value_size, pitch = outputs + 2 * group;
  float* weights = room.sums;                               // [splits][group]
  float* totals = room.sums + kDecodeSums - kDecodeTotals;  // [group]
  float* flag = room.sums + kDecodeSums - 1;
  static_assert(kWarps < kDecodeTotals);
  barrier();
  if (thread == 0) {
    const bool last = take_turn(a.arrived + sight.head) + 1 == static_cast<Bits32>(sight.splits);
    if (last) a.arrived[sight.head] = 0;
    *flag = last ? 1.0f : 0.0f;
  }
  barrier();
  if (*flag == 0.0f) return;
  const float* values = a.partial + static_cast<Index>(sight.head) * sight.splits * pitch;
  const float* tops = values + outputs;
  GPU_ROLLED
  for (int g = static_cast<int>(warp_index()); g < group; g += kWarps) {
    float top = -math::kInfinity, all = 0.0f;
    GPU_ROLLED
    for (int m = own; m < sight.splits; m += static_cast<int>(kWarp)) {
      top = math::max(top, tops[m * pitch + g]);
    }
    top = warp_max(top);
    GPU_ROLLED
    for (int m = own; m < sight.splits; m += static_cast<int>(kWarp)) {
      const float by = math::exp(tops[m * pitch + g] - top);
      all = math::fma(tops[m * pitch + group + g], by, all);
      weights[m * group + g] = by;
    }
    all = warp_sum(all);
    if (own == 0) totals[g] = all;
  }
  barrier();
  GPU_ROLLED
  for (int at = thread; at < outputs; at += kDecodeThreads) {
    const int g = quotient(at, a.by_value);
    constexpr int kParts = 8;  // under way
    float result = 0.0f;
    GPU_ROLLED
    for (int m = 0; m < sight.splits; m += kParts) {
      float part[kParts];
      GPU_UNROLLED
      for (int u = 0; u < kParts; ++u) {
        part[u] = m + u < sight.splits ? values[(m + u) * pitch + at] : 0.0f;
      }
      GPU_UNROLLED
      for (int u = 0; u < kParts; ++u) {
        if (m + u < sight.splits) {
          result = math::fma(part[u], weights[(m + u) * group + g], result);
        }
      }
    }
    a.out[sight.head * outputs + at] = result / totals[g];
  }
}

// What block `item`, and all that follow by the number of blocks, does of attention.
GPU_INLINE Sight sight_of(const DecodeAttention& a, const DecodeStep& step, int item) {
  const DecodeSight seen = a.window != 0 ? step.seen_near : step.seen;
  Sight sight;
  sight.split = item / a.kv_heads;
  sight.head = item - sight.split * a.kv_heads;
  sight.splits = seen.splits;
  sight.begin = static_cast<int>(seen.begin) + sight.split * seen.each;
  const int all = static_cast<int>(step.position) + 1;
  sight.end = sight.begin + seen.each < all ? sight.begin + seen.each : all;
  return sight;
}

// Asks for this block's first keys and values to be brought nearer. The first warp does not: it has
// a meeting to wait for.
GPU_INLINE void call_keys(const DecodeAttention& a, const DecodeStep& step) {
  constexpr Index kLine = 128;  // bytes
  const auto thread = static_cast<Index>(thread_index()) - static_cast<Index>(kWarp);
  const DecodeSight seen = a.window != 0 ? step.seen_near : step.seen;
  if (thread < 0 || static_cast<int>(block_index()) >= seen.splits * a.kv_heads) return;
  const Sight sight = sight_of(a, step, static_cast<int>(block_index()));
  const Index lines = (a.key_head_bytes + kLine - 1) / kLine;
  GPU_ROLLED
  for (int block = sight.begin / kv::kBlock; block * kv::kBlock < sight.end; ++block) {
    GPU_ROLLED
    for (Index line = thread; line < lines; line += kDecodeThreads - static_cast<Index>(kWarp)) {
      const Bits8* from = step.blocks[block] + a.layer_at + line * kLine;
      call_line(from + sight.head * a.key_head_bytes);
      call_line(from + a.values_at + sight.head * a.value_head_bytes);
    }
  }
}

// Calls f with the type of what the cache keeps.
template <class F>
GPU_INLINE void with_kept_type(int kv_type, F f) {
  switch (kv_type) {
    case kDecodeKvF16:
      return f(Half{});
    case kDecodeKvBF16:
      return f(BFloat16{});
    case kDecodeKvQ8:
      return f(kv::Scaled{});
    default:
      return f(float{});
  }
}

GPU_INLINE void attention(const DecodeAttention& a, const DecodeStep& step, const Room& room) {
  const DecodeSight seen = a.window != 0 ? step.seen_near : step.seen;
  const Desk desk(a, room);
  GPU_ROLLED
  for (int item = static_cast<int>(block_index()); item < seen.splits * a.kv_heads;
       item += static_cast<int>(block_count())) {
    const Sight sight = sight_of(a, step, item);
    const Member member(a, sight);
    const Bits8* block = member.works ? block_of(a, step, member.first) : nullptr;
    // The last part writes the new key and value; its own threads then read them.
    const bool writes = sight.split + 1 == sight.splits;
    ready(a, step, sight, writes, desk);
    if (writes) {
      with_kept_type(a.kv_type, [&](auto kept) { keep<decltype(kept)>(a, step, sight, desk); });
    }
    barrier();
    with_kept_type(a.kv_type,
                   [&](auto kept) { look<decltype(kept)>(a, step, sight, block, desk); });
    barrier();
    leave(a, sight, desk);
    if (sight.splits > 1) add_parts(a, sight, room);
    barrier();
  }
}
