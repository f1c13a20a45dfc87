// Module DECODE: attention of one token, which first writes its own key and value to the cache.
#pragma once

#include "decode_room.h"
#include "elementary.h"
#include "gpu_kv.h"

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
