// Module DECODE: attention of one token, which also writes its own key and value to the cache.
#pragma once

#include "decode_room.h"
#include "elementary.h"
#include "gpu_kv.h"

constexpr int kWarpBits = kWarp == 64 ? 6 : 5;

// x / n for the small numbers that attention divides, where `by` is 2^20 / n, rounded up.
GPU_INLINE int quotient(int x, unsigned by) {
  return static_cast<int>(static_cast<unsigned>(x) * by >> 20);
}

// What a block does of it: the keys [begin, end) that some of the queries of one key head see.
struct Sight {
  int team;  // heads in the order of queries, `heads` to a team
  int head;  // of the key
  int split, splits;
  int heads, members;  // warps of a block that share a head
  int begin, end;
  bool newest;  // sees the token's own key too, which is not among those
  // Tiles of kTile keys that warps take.
  GPU_INLINE int tiles() const;
};

constexpr int kTile = static_cast<int>(kWarp);
GPU_INLINE int Sight::tiles() const {
  return end > begin ? (end - 1) / kTile - begin / kTile + 1 : 0;
}

// Where in room.vectors a block keeps what it works with.
struct Desk {
  float* queries;  // [heads][key_size]
  float* fresh;    // [key_size]: the new key, normed,
  float* key;      // [key_size]: and as it will be read
  float* value;    // [value_size]
  float* found;    // [members][heads][value_size]
  float* most;     // [members][heads]
  float* sum;      // [members][heads]
  GPU_INLINE Desk(const DecodeAttention& a, const Sight& sight, const Room& room)
      : queries(reinterpret_cast<float*>(room.vectors)),
        fresh(queries + sight.heads * a.key_size),
        key(fresh + a.key_size),
        value(key + a.key_size),
        found(value + a.value_size),
        most(found + sight.members * sight.heads * a.value_size),
        sum(most + sight.members * sight.heads) {}
};

// Warps of a head each take some of the keys, a tile at a time, and keep what they found for
// themselves.
struct Member {
  int number, head;
  int first;   // key of its first tile
  bool works;  // there is one
  GPU_INLINE Member(const Sight& sight, unsigned by_heads)
      : number(quotient(static_cast<int>(forgotten(warp_index())), by_heads)),
        head(static_cast<int>(warp_index()) - number * sight.heads),
        first((sight.begin / kTile + number) * kTile),
        works(number < sight.members && first < sight.end) {}
};

GPU_INLINE Bits8* block_of(const DecodeAttention& a, const DecodeStep& step, int position) {
  return step.blocks[position / kv::kBlock] + a.layer_at;
}

// The queries, the new key and the new value come to shared memory, normed.
GPU_INLINE void ready(const DecodeAttention& a, const Sight& sight, const Desk& desk,
                      const Room& room) {
  const auto own = static_cast<int>(lane());
  constexpr auto kStep = static_cast<int>(kWarp);
  GPU_ROLLED
  for (int g = static_cast<int>(warp_index()); g < sight.heads + (sight.newest ? 2 : 0);
       g += room.warps) {
    const int which = g - sight.heads;  // 0: the key, 1: the value
    const float* from = which < 0    ? a.q + (sight.team * sight.heads + g) * a.key_size
                        : which == 0 ? a.k + sight.head * a.key_size
                                     : a.v + sight.head * a.value_size;
    float* to = which < 0 ? desk.queries + g * a.key_size : which == 0 ? desk.fresh : desk.value;
    const float* weight = which < 0 ? a.q_norm : which == 0 ? a.k_norm : nullptr;
    const int size = which == 1 ? a.value_size : a.key_size;
    float scale = 1.0f;
    if (weight != nullptr) {
      float squares = 0.0f;
      GPU_ROLLED
      for (int i = own; i < size; i += kStep) squares = math::fma(from[i], from[i], squares);
      scale = 1.0f / math::sqrt(warp_sum(squares) / static_cast<float>(size) + a.eps);
    }
    GPU_ROLLED
    for (int i = own; i < size; i += kStep) {
      to[i] = weight != nullptr ? from[i] * scale * weight[i] : from[i];
    }
  }
}

// A thread's cosine and sine, called for before they are needed.
struct Turn {
  float cosine = 0.0f, sine = 0.0f;
  GPU_INLINE Turn(const DecodeAttention& a, const DecodeStep& step, const Sight& sight) {
    const int half = a.rope_size / 2;
    const auto thread = static_cast<int>(thread_index());
    if (thread >= sight.heads * half) return;
    const Index at = step.position * half + thread - quotient(thread, a.by_half) * half;
    cosine = a.cosines[at];
    sine = a.sines[at];
  }
};

// The queries turn in place: the thread of a pair's first element does both.
GPU_INLINE void turn_queries(const DecodeAttention& a, const DecodeStep& step, const Sight& sight,
                             const Desk& desk, const Room& room, const Turn& turn) {
  const auto thread = static_cast<int>(thread_index());
  const int half = a.rope_size / 2;
  const bool halves = a.rope_halves != 0;
  GPU_ROLLED
  for (int at = thread; at < sight.heads * half; at += room.threads) {
    const int which = quotient(at, a.by_half), number = at - which * half;
    float* turning = desk.queries + which * a.key_size;
    float& x = turning[halves ? number : 2 * number];
    float& y = turning[halves ? number + half : 2 * number + 1];
    const float c = at == thread ? turn.cosine : a.cosines[step.position * half + number];
    const float s = at == thread ? turn.sine : a.sines[step.position * half + number];
    const float left = x, right = y;
    x = left * c - right * s;
    y = left * s + right * c;
  }
}

// The new key and value as they will be read, and to the cache, which one block for each does.
template <class T>
GPU_INLINE void keep(const DecodeAttention& a, const DecodeStep& step, const Sight& sight,
                     const Desk& desk, const Room& room) {
  const float* cosines = a.cosines + step.position * (a.rope_size / 2);
  const float* sines = a.sines + step.position * (a.rope_size / 2);
  const bool writes = sight.team * sight.heads == sight.head * a.group;
  Bits8* block = writes ? block_of(a, step, static_cast<int>(step.position)) : nullptr;
  Bits8* key = writes ? block + sight.head * a.key_head_bytes : nullptr;
  Bits8* value = writes ? block + a.values_at + sight.head * a.value_head_bytes : nullptr;
  const int position = static_cast<int>(step.position % kv::kBlock);
  const int most_size = a.key_size > a.value_size ? a.key_size : a.value_size;
  GPU_ROLLED
  for (int i = static_cast<int>(thread_index()); i - static_cast<int>(lane()) < most_size;
       i += room.threads) {
    const bool of_key = i < a.key_size, of_value = i < a.value_size;
    const float k = of_key ? kv::turned([&](int e) { return desk.fresh[e]; }, i, a.rope_size,
                                        a.rope_halves != 0, cosines, sines)
                           : 0.0f;
    const float v = of_value ? desk.value[i] : 0.0f;
    const float key_kept = kv::Rows<T>::put(key, a.key_size, position, i, k, of_key);
    const float value_kept = kv::Rows<T>::put(value, a.value_size, position, i, v, of_value);
    if (of_key) desk.key[i] = key_kept;
    if (of_value) desk.value[i] = value_kept;
  }
}

// A warp's sums so far, with weights relative to the largest score.
struct Found {
  float largest = -math::kInfinity, added = 0.0f;
  float result[8] = {};  // of this lane's columns and rows
  // Before what has scores up to `most` is added; gives that, or the largest of all.
  GPU_INLINE float make_way(float most) {
    const float next = math::max(largest, most), scale = math::exp(largest - next);
    largest = next;
    added *= scale;
    GPU_UNROLLED
    for (int i = 0; i < 8; ++i) result[i] *= scale;
    return next;
  }
};

GPU_INLINE float final_score(const DecodeAttention& a, float score) {
  score *= a.scale;
  return a.softcap != 0.0f ? a.softcap * tl::elementary::tanh(score / a.softcap) : score;
}

// What the queries, the new key and all others come to: for each warp, in its place on the desk.
template <class T>
GPU_INLINE void look(const DecodeAttention& a, const DecodeStep& step, const Sight& sight,
                     unsigned by_heads, const Desk& desk, const Room& room) {
  using Packed = typename kv::Rows<T>::Packed;
  const Member member(sight, by_heads);
  auto own = static_cast<int>(lane());
  // So many lanes have eight elements each of a key, as many as 2^key_bits; in turn they have so
  // many keys. Values likewise.
  const auto key_lanes = [&] { return 1 << a.key_bits; };
  const auto value_lanes = [&] { return 1 << a.value_bits; };
  const auto keys_at_once = [&] { return static_cast<int>(kWarp) >> a.key_bits; };
  const auto element = [&] { return 8 * (own & (key_lanes() - 1)); };
  const auto column = [&] { return 8 * (own & (value_lanes() - 1)); };
  const auto key_element = [&] { return element() < a.key_size ? element() : 0; };
  const auto value_element = [&] { return column() < a.value_size ? column() : 0; };
  // A lane ends up with the score of this key of a tile, and `lane_of` is the other way round.
  const auto mine = [&] {
    return (own & (key_lanes() - 1)) * keys_at_once() + (own >> a.key_bits);
  };
  const auto lane_of = [&](int key) {
    const int turn = key >> (kWarpBits - a.key_bits), which = key & (keys_at_once() - 1);
    return static_cast<unsigned>(which << a.key_bits | turn);
  };
  // Rows of a lane at a time, and those of them that are under way.
  constexpr int kTurns = sizeof(T) == 4 ? 4 : 8, kUnderWay = kDelivers ? kTurns : 4;
  // Rows `turn` and on of the tile at `first`, which is in one block of the cache. Where there is
  // no such row a lane takes the first, and gives it no weight. (Zeros, so that registers are
  // theirs only from here on.)
  Packed keys[kUnderWay] = {}, values[kUnderWay] = {};
  const auto call = [&](Packed(&rows)[kUnderWay], const Bits8* head, int first, int size, int bits,
                        int there, int turn) {
    const int start = first % kv::kBlock;
    const int end = sight.end - first < kTile ? sight.end - first : kTile;
    GPU_UNROLLED
    for (int u = 0; u < kUnderWay; ++u) {
      const int row = ((turn + u) << (kWarpBits - bits)) + (own >> bits);
      rows[u].load(head, size, start + (row < end ? row : 0), there);
    }
  };
  const Bits8* key_head = nullptr;
  const Bits8* value_head = nullptr;
  const auto open_keys = [&](int first) {
    key_head = block_of(a, step, first) + sight.head * a.key_head_bytes;
    call(keys, key_head, first, a.key_size, a.key_bits, key_element(), 0);
  };
  const auto open_values = [&](int first) {
    value_head = block_of(a, step, first) + a.values_at + sight.head * a.value_head_bytes;
    call(values, value_head, first, a.value_size, a.value_bits, value_element(), 0);
  };
  // All that can be called for is called for first.
  if (member.works) {
    open_keys(member.first);
    open_values(member.first);
  }
  const Turn turn_of_queries(a, step, sight);
  ready(a, sight, desk, room);
  room.meet();
  turn_queries(a, step, sight, desk, room, turn_of_queries);
  if (sight.newest) keep<T>(a, step, sight, desk, room);
  room.meet();
  Found found;
  GPU_ROLLED
  for (int first = member.first; member.works && first < sight.end;
       first += sight.members * kTile) {
    own = static_cast<int>(forgotten(static_cast<unsigned>(own)));
    const int position = first + mine();
    const bool live = position >= sight.begin && position < sight.end;
    float score = 0.0f;
    GPU_ROLLED
    for (int turn = 0; turn < key_lanes(); turn += kTurns) {
      float part[kTurns] = {}, query[8];
      const auto from = forgotten(static_cast<unsigned>(member.head * a.key_size + key_element()));
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) query[i] = element() < a.key_size ? desk.queries[from + i] : 0.0f;
      GPU_UNROLLED
      for (int some = 0; some < kTurns; some += kUnderWay) {
        if (turn + some > 0) {
          call(keys, key_head, first, a.key_size, a.key_bits, key_element(), turn + some);
        }
        GPU_UNROLLED
        for (int u = 0; u < kUnderWay; ++u) {
          GPU_UNROLLED
          for (int i = 0; i < 8; ++i) {
            part[some + u] = math::fma(query[i], keys[u].get(i), part[some + u]);
          }
        }
        keep_order();
      }
      GPU_ROLLED
      for (unsigned mask = kTurns; mask < static_cast<unsigned>(key_lanes()); mask *= 2) {
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
      if ((own & (key_lanes() - 1)) / kTurns == turn / kTurns) score = part[0];
    }
    const int after = first + sight.members * kTile;
    if (after < sight.end) open_keys(after);
    score = live ? final_score(a, score) : -math::kInfinity;
    const float weight = math::exp(score - found.make_way(warp_max(score)));
    found.added += warp_sum(weight);
    GPU_ROLLED
    for (int turn = 0; turn < value_lanes(); turn += kUnderWay) {
      if (turn > 0) {
        call(values, value_head, first, a.value_size, a.value_bits, value_element(), turn);
      }
      GPU_UNROLLED
      for (int u = 0; u < kUnderWay; ++u) {
        const int row = ((turn + u) << (kWarpBits - a.value_bits)) + (own >> a.value_bits);
        const float by = shuffle(weight, lane_of(row));
        GPU_UNROLLED
        for (int i = 0; i < 8; ++i) {
          found.result[i] = math::fma(by, values[u].get(i), found.result[i]);
        }
      }
      keep_order();
    }
    if (after < sight.end) open_values(after);
  }
  if (member.number >= sight.members) return;
  // The new key is for a warp that has no tile, or the last.
  const int tiles = sight.tiles();
  if (sight.newest && member.number == (tiles < sight.members ? tiles : sight.members - 1)) {
    float score = 0.0f;
    GPU_ROLLED
    for (int i = own; i < a.key_size; i += static_cast<int>(kWarp)) {
      score = math::fma(desk.queries[member.head * a.key_size + i], desk.key[i], score);
    }
    score = final_score(a, warp_sum(score));
    const float weight = math::exp(score - found.make_way(score));
    found.added += weight;
    if (own < value_lanes() && column() < a.value_size) {
      GPU_UNROLLED
      for (int i = 0; i < 8; ++i) {
        found.result[i] = math::fma(weight, desk.value[column() + i], found.result[i]);
      }
    }
  }
  GPU_ROLLED
  for (unsigned mask = static_cast<unsigned>(value_lanes()); mask < kWarp; mask *= 2) {
    GPU_UNROLLED
    for (int i = 0; i < 8; ++i) found.result[i] += shuffle_xor(found.result[i], mask);
  }
  const int place = member.number * sight.heads + member.head;
  float* to = desk.found + place * a.value_size;
  if (own < value_lanes() && column() < a.value_size) {
    GPU_UNROLLED
    for (int i = 0; i < 8; ++i) to[column() + i] = found.result[i];
  }
  if (own == 0) {
    desk.most[place] = found.largest;
    desk.sum[place] = found.added;
  }
}

// What the warps of each head found, together: the result, or one of the parts of it.
GPU_INLINE void leave(const DecodeAttention& a, const Sight& sight, const Desk& desk,
                      const Room& room) {
  const int heads = sight.heads, outputs = heads * a.value_size, pitch = outputs + 2 * heads;
  const int all_tiles = sight.tiles() + (sight.newest ? 1 : 0);
  const int members = all_tiles < sight.members ? all_tiles : sight.members;  // that found anything
  float* out = a.out + sight.team * outputs;
  float* left = a.partial + (static_cast<Index>(sight.team) * sight.splits + sight.split) * pitch;
  GPU_ROLLED
  for (int at = static_cast<int>(thread_index()); at < outputs; at += room.threads) {
    const int g = quotient(at, a.by_value);
    float top = desk.most[g];
    GPU_ROLLED
    for (int m = 1; m < members; ++m) top = math::max(top, desk.most[m * heads + g]);
    float value = 0.0f, all = 0.0f;
    GPU_ROLLED
    for (int m = 0; m < members; ++m) {
      const float by = math::exp(desk.most[m * heads + g] - top);
      all = math::fma(desk.sum[m * heads + g], by, all);
      value = math::fma(desk.found[m * outputs + at], by, value);
    }
    if (sight.splits == 1) {
      out[at] = value / all;
      continue;
    }
    left[at] = value;
    if (at == g * a.value_size) {
      left[outputs + g] = top;
      left[outputs + heads + g] = all;
    }
  }
}

// Adds up what the parts of a head found, in order: the last block to come does.
GPU_INLINE void add_parts(const DecodeAttention& a, const Sight& sight, const Room& room) {
  const auto thread = static_cast<int>(thread_index()), own = static_cast<int>(lane());
  const int group = sight.heads, outputs = group * a.value_size, pitch = outputs + 2 * group;
  float* weights = room.sums;                               // [splits][group]
  float* totals = room.sums + kDecodeSums - kDecodeTotals;  // [group]
  float* flag = room.sums + kDecodeSums - 1;
  static_assert(kMostWarps < kDecodeTotals);
  room.meet();
  if (thread == 0) {
    const bool last = take_turn(a.arrived + sight.team) + 1 == static_cast<Bits32>(sight.splits);
    if (last) a.arrived[sight.team] = 0;
    *flag = last ? 1.0f : 0.0f;
  }
  room.meet();
  if (*flag == 0.0f) return;
  const float* values = a.partial + static_cast<Index>(sight.team) * sight.splits * pitch;
  const float* tops = values + outputs;
  // Parts m and on of element `at`, under way while weights are made.
  constexpr int kParts = kDelivers ? 16 : 8;
  float part[kParts];
  const auto call = [&](int at, int m) {
    GPU_UNROLLED
    for (int u = 0; u < kParts; ++u) {
      part[u] = at < outputs && m + u < sight.splits ? values[(m + u) * pitch + at] : 0.0f;
    }
  };
  call(thread, 0);
  GPU_ROLLED
  for (int g = static_cast<int>(warp_index()); g < group; g += room.warps) {
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
  room.meet();
  GPU_ROLLED
  for (int at = thread; at < outputs; at += room.threads) {
    const int g = quotient(at, a.by_value);
    float result = 0.0f;
    GPU_ROLLED
    for (int m = 0; m < sight.splits; m += kParts) {
      if (at != thread || m != 0) call(at, m);
      GPU_UNROLLED
      for (int u = 0; u < kParts; ++u) {
        if (m + u < sight.splits) {
          result = math::fma(part[u], weights[(m + u) * group + g], result);
        }
      }
    }
    a.out[sight.team * outputs + at] = result / totals[g];
  }
}

GPU_INLINE DecodeSight seen_by(const DecodeAttention& a, const DecodeStep& step) {
  return a.window != 0 ? step.seen_near : step.seen;
}

// What block `item`, and all that follow by the number of blocks, does of attention.
GPU_INLINE Sight sight_of(const DecodeAttention& a, const DecodeStep& step, const DecodeSight& seen,
                          int item) {
  Sight sight;
  sight.split = item / seen.teams;
  sight.team = item - sight.split * seen.teams;
  sight.head = sight.team * seen.heads / a.group;
  sight.splits = seen.splits;
  sight.heads = seen.heads;
  sight.members = seen.members;
  sight.begin = static_cast<int>(seen.begin) + sight.split * seen.each;
  const auto newest = static_cast<int>(step.position);
  sight.newest = sight.begin + seen.each > newest;
  sight.end = sight.newest ? newest : sight.begin + seen.each;
  return sight;
}

// Asks for this block's first keys and values to be brought nearer. The first warp does not: it has
// a meeting to wait for.
GPU_INLINE void call_keys(const DecodeAttention& a, const DecodeStep& step, const Room& room) {
  constexpr Index kLine = 128;  // bytes
  const auto thread = static_cast<Index>(thread_index()) - static_cast<Index>(kWarp);
  const DecodeSight seen = seen_by(a, step);
  if (thread < 0 || static_cast<int>(block_index()) >= seen.splits * seen.teams) return;
  const Sight sight = sight_of(a, step, seen, static_cast<int>(block_index()));
  const Index lines = (a.key_head_bytes + kLine - 1) / kLine;
  GPU_ROLLED
  for (int block = sight.begin / kv::kBlock; block * kv::kBlock < sight.end; ++block) {
    GPU_ROLLED
    for (Index line = thread; line < lines; line += room.threads - static_cast<int>(kWarp)) {
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
  const DecodeSight seen = seen_by(a, step);
  GPU_ROLLED
  for (int item = static_cast<int>(block_index()); item < seen.splits * seen.teams;
       item += static_cast<int>(block_count())) {
    const Sight sight = sight_of(a, step, seen, item);
    const Desk desk(a, sight, room);
    with_kept_type(a.kv_type, [&](auto kept) {
      look<decltype(kept)>(a, step, sight, seen.by_heads, desk, room);
    });
    room.meet();
    leave(a, sight, desk, room);
    if (sight.splits > 1) add_parts(a, sight, room);
    room.meet();
  }
}
