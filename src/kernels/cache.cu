// Module CACHE: attention of many new tokens over the blocks of their sequences' caches.
//
//   keep_*     turns queries and keys, and keeps keys and values; a block per row
//   attend*_*  what queries find, with 64 or 128 columns of the values per block
//
// A block that attends has 64 (token, head) pairs of one sequence that share a key head, 16 for
// each of its four warps. Keys pass by in tiles of 64, which is a block of the cache; the largest
// score, the sum and the weighted values of each pair are kept and corrected when a larger score
// turns up. Products are of f16 on matrix units, sums are f32, in a fixed order.
//
// A lane has whole runs of its queries' scores, so that weights go from one product to the next in
// registers. Where a lane's sums are of one column (kSwapped) the products are therefore computed
// transposed: keys times queries, and values times weights.
#define GPU_LEAST_BLOCKS 1  // all registers there are: what is kept of a pair fills many
#include "gpu.h"
#include "gpu_cache.h"
#include "gpu_kv.h"
#include "gpu_mma.h"

using tl::kernels::CacheAttention;
using tl::kernels::CacheRow;
using tl::kernels::CacheSequence;
using tl::kernels::CacheWork;
using tl::kernels::kCachePairs;
using tl::kernels::kCacheThreads;
using tl::kernels::kCacheUnit;
using tl::kernels::kCacheWarps;

constexpr int kTile = kv::kBlock;  // keys that pass by together

// f16 ends at 65504. What a cache of a wider type holds beyond that becomes the end and not
// infinity.
GPU_INLINE float within_half(float x) {
  return x > 65504.0f ? 65504.0f : x < -65504.0f ? -65504.0f : x;
}

// ---- keeping

template <class T>
GPU_INLINE void keep(const float* q, const float* k, const float* v, Half* queries,
                     const CacheAttention& a) {
  await_earlier();
  const Index row = block_index();
  const CacheRow at = a.rows[row];
  const int thread = static_cast<int>(thread_index()), first_lane = static_cast<int>(lane());
  const float* cosines = a.cosines + at.position * (a.rope_size / 2);
  const float* sines = a.sines + at.position * (a.rope_size / 2);
  const bool halves = a.rope_halves != 0;
  const auto turned = [&](const float* head, int element) {
    return kv::turned([&](int e) { return head[e]; }, element, a.rope_size, halves, cosines, sines);
  };

  q += row * a.heads * a.key_size;
  queries += row * a.heads * a.query_size;
  GPU_ROLLED
  for (int i = thread; i < a.heads * a.query_size; i += kCacheThreads) {
    const int head = i / a.query_size, element = i % a.query_size;
    float x = 0.0f;
    if (element < a.key_size) x = turned(q + head * a.key_size, element) * a.query_scale;
    queries[i] = from_float<Half>(within_half(x));
  }

  // All lanes of a warp go through put() together.
  const int position = static_cast<int>(at.position % kTile);
  Bits8* keys = at.block + a.layer_at;
  k += row * a.kv_heads * a.key_size;
  GPU_ROLLED
  for (int i = thread; i - first_lane < a.kv_heads * a.key_size; i += kCacheThreads) {
    const bool live = i < a.kv_heads * a.key_size;
    const int head = live ? i / a.key_size : 0, element = i - head * a.key_size;
    const float x = live ? turned(k + head * a.key_size, element) : 0.0f;
    kv::Rows<T>::put(keys + head * a.key_head_bytes, a.key_size, position, element, x, live);
  }
  Bits8* values = keys + a.values_at;
  v += row * a.kv_heads * a.value_size;
  GPU_ROLLED
  for (int i = thread; i - first_lane < a.kv_heads * a.value_size; i += kCacheThreads) {
    const bool live = i < a.kv_heads * a.value_size;
    const int head = live ? i / a.value_size : 0, element = i - head * a.value_size;
    const float x = live ? v[i] : 0.0f;
    kv::Rows<T>::put(values + head * a.value_head_bytes, a.value_size, position, element, x, live);
  }
}

// ---- attending

// What a block of threads does.
struct Task {
  CacheSequence sequence;
  int pairs;           // of the sequence
  int first_pair;      // of the block
  int group;           // heads that share keys
  int kv;              // key head
  int column;          // first of the values
  int columns;         // of them
  int first_position;  // of the block's tokens
  int last_position;
  int begin, end;  // tiles

  template <int kColumns>
  GPU_INLINE static Task of(const CacheAttention& a) {
    const unsigned cuts = static_cast<unsigned>((a.value_size + kColumns - 1) / kColumns);
    const unsigned kv_heads = static_cast<unsigned>(a.kv_heads);
    const CacheWork work = a.work[block_index() / (cuts * kv_heads)];
    const unsigned rest = block_index() % (cuts * kv_heads);
    Task t;
    t.sequence = a.sequences[work.sequence];
    t.group = a.heads / a.kv_heads;
    t.pairs = t.sequence.rows * t.group;
    t.first_pair = work.first_pair;
    t.kv = static_cast<int>(rest % kv_heads);
    t.column = static_cast<int>(rest / kv_heads) * kColumns;
    t.columns = a.value_size - t.column < kColumns ? a.value_size - t.column : kColumns;
    const int last =
        t.first_pair + kCachePairs < t.pairs ? t.first_pair + kCachePairs - 1 : t.pairs - 1;
    t.first_position = t.sequence.position + t.first_pair / t.group;
    t.last_position = t.sequence.position + last / t.group;
    const int seen = first_seen(a, t.first_position);
    t.begin = seen / kTile;
    t.end = t.last_position / kTile + 1;
    return t;
  }
  GPU_INLINE static int first_seen(const CacheAttention& a, int position) {
    return a.window == 0 || position < a.window ? 0 : position - a.window + 1;
  }
  // A pair's place among all (row, head) of the batch.
  GPU_INLINE Index place(const CacheAttention& a, int pair) const {
    const int row = sequence.first_row + pair / group;
    return static_cast<Index>(row) * a.heads + kv * group + pair % group;
  }
  // Where a tile's keys, or values, of the key head lie.
  GPU_INLINE const Bits8* keys(const CacheAttention& a, int tile) const {
    return a.blocks[sequence.first_block + tile] + a.layer_at + kv * a.key_head_bytes;
  }
  GPU_INLINE const Bits8* values(const CacheAttention& a, int tile) const {
    return a.blocks[sequence.first_block + tile] + a.layer_at + a.values_at +
           kv * a.value_head_bytes;
  }
};

GPU_INLINE float larger(float a, float b) { return a > b ? a : b; }

// The score that a product stands for.
GPU_INLINE float capped(float product, float cap) {
  return cap == 0.0f ? product : cap - 2.0f * cap / (1.0f + math::exp2(product));
}
// What is subtracted from scores. Nothing seen yet: anything but infinity.
GPU_INLINE float reference(float most) { return most == -math::kInfinity ? 0.0f : most; }

// Pieces of eight halves in the lines of a tile change places with the number of the line, so that
// lanes read different banks: any eight lines in a row with one piece, or two with four.
GPU_INLINE int piece_at(int line, int piece) { return (piece ^ ((line & 6) ^ (line & 1) * 5)) * 8; }

// Eight elements of a head as halves, to shared memory.
template <class T>
GPU_INLINE void stage_eight(Half* to, const Bits8* head, int size, int position, int element) {
  if constexpr (bits::kSame<T, Half>) {
    copy_aside(to, reinterpret_cast<const Half*>(head) + position * size + element, true);
  } else {
    const kv::Eight eight = kv::eight_of<kv::Rows<T>>(head, size, position, element);
    Vec<Half, 8> halves;
    GPU_UNROLLED
    for (int i = 0; i < 4; ++i) {
      halves.words.at[i] =
          pair_from(within_half(eight.at[2 * i]), within_half(eight.at[2 * i + 1]));
    }
    store_vec(to, halves);
  }
}

template <class T, int kColumns, class Mma>
GPU_INLINE void attend(const Half* queries, float* out, const CacheAttention& a) {
  constexpr bool kSwapped = Mma::kLaneRows == 1;
  constexpr int kHeld = Mma::kLaneRows;     // pairs whose scores a lane has
  constexpr int kWidth = Mma::kColumns;     // keys, or columns of the values, of a product
  constexpr int kRunWords = Mma::kRun / 2;  // of a lane and line in a step of 16
  constexpr int kTogether = Mma::kRun < 8 ? 8 : Mma::kRun;  // elements that a lane reads at a time
  constexpr int kSteps = kTogether / Mma::kRun;
  constexpr int kUnit = kTogether * Mma::kDeep;  // elements, or keys, of such a time
  constexpr int kDepth = kColumns, kUnits = kDepth / kUnit;
  constexpr int kKeyTiles = kTile / kWidth, kResultTiles = kColumns / kWidth;
  constexpr int kThreads = kCacheWarps * static_cast<int>(kWarp);
  static_assert(kCachePairs == kCacheWarps * Mma::kRows && kCacheUnit % kUnit == 0);
  // Some elements of all keys, and the values: by position, or by column where no unit turns them.
  alignas(128) GPU_SHARED Half staged_keys[kTile * kDepth];
  alignas(128) GPU_SHARED Half staged_values[kTile * kColumns];

  const Task task = Task::of<kColumns>(a);
  const int warp_pair = task.first_pair + static_cast<int>(warp_index()) * Mma::kRows;
  const bool live = warp_pair < task.pairs;  // a warp without pairs only helps to stage
  const int chunks = (a.query_size + kDepth - 1) / kDepth;

  // Pairs past the end repeat the last one and are not stored.
  int position[kHeld];
  const Half* query[kHeld];
  GPU_UNROLLED
  for (int h = 0; h < kHeld; ++h) {
    int pair = warp_pair + Mma::row(h);
    if (pair >= task.pairs) pair = task.pairs - 1;
    position[h] = task.sequence.position + pair / task.group;
    query[h] = queries + task.place(a, pair) * a.query_size + Mma::deep() * kTogether;
  }

  // Queries stay in registers where there is room for them and they are not longer than a tile.
  constexpr bool kHold = kUnits * kSteps * Mma::kLaneWords <= 32;
  Bits32 left[kHold ? kUnits : 1][kSteps][Mma::kLaneWords];
  const auto load_unit = [&](int element, Bits32(&to)[kSteps][Mma::kLaneWords]) {
    if (element >= a.query_size) return;
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      GPU_UNROLLED
      for (int eight = 0; eight < kTogether / 8; ++eight) {
        const auto vec = load_vec<8>(query[h] + element + 8 * eight);
        GPU_UNROLLED
        for (int word = 0; word < 4; ++word) {
          const int at = 4 * eight + word;
          to[at / kRunWords][h * kRunWords + at % kRunWords] = vec.words.at[word];
        }
      }
    }
  };
  const auto load_queries = [&](int chunk) {
    if constexpr (kHold) {
      GPU_UNROLLED
      for (int u = 0; u < kUnits; ++u) load_unit(chunk * kDepth + u * kUnit, left[u]);
    }
  };
  // Positions that are not written yet may hold anything, which times nothing may be no number:
  // the last one that is stands for them.
  const auto written = [&](int tile, int line) {
    const int last = task.last_position - tile * kTile;
    return line < last ? line : last;
  };
  // A thread has the same piece of several lines.
  static_assert(kThreads % (kDepth / 8) == 0);
  constexpr int kPieces = kDepth / 8, kLines = kThreads / kPieces;
  const auto stage_keys = [&](int tile, int chunk) {
    const int from = static_cast<int>(forgotten(thread_index()));
    const int piece = from % kPieces, element = chunk * kDepth + piece * 8;
    const Bits8* head = task.keys(a, tile);
    if (element < a.key_size) {
      GPU_UNROLLED
      for (int line = from / kPieces, i = 0; i < kTile / kLines; ++i, line += kLines) {
        stage_eight<T>(staged_keys + line * kDepth + piece_at(line, piece), head, a.key_size,
                       written(tile, line), element);
      }
    } else if (element < a.query_size) {
      GPU_UNROLLED
      for (int line = from / kPieces, i = 0; i < kTile / kLines; ++i, line += kLines) {
        store_vec(staged_keys + line * kDepth + piece_at(line, piece), Vec<Half, 8>{});
      }
    }
  };
  const auto stage_values = [&](int tile) {
    const Bits8* head = task.values(a, tile);
    const int from = static_cast<int>(forgotten(thread_index()));
    if constexpr (Mma::kTurnsColumns) {
      const int piece = from % kPieces;
      if (piece * 8 >= task.columns) return;
      GPU_UNROLLED
      for (int line = from / kPieces, i = 0; i < kTile / kLines; ++i, line += kLines) {
        stage_eight<T>(staged_values + line * kColumns + piece_at(line, piece), head, a.value_size,
                       written(tile, line), task.column + piece * 8);
      }
    } else {
      // Two keys that are neighbours in a run, and eight columns.
      GPU_ROLLED
      for (int at = from; at < kTile / 2 * kPieces; at += kThreads) {
        const int slot = at / kPieces * 2, column = at % kPieces * 8;
        if (column >= task.columns) continue;
        kv::Eight two[2];
        GPU_UNROLLED
        for (int j = 0; j < 2; ++j) {
          // One run of all 16 has those of one half of the warp before those of the other.
          const int key =
              Mma::kDeep == 1 ? slot / 16 * 16 + (slot + j) % 8 * 2 + slot % 16 / 8 : slot + j;
          two[j] = kv::eight_of<kv::Rows<T>>(head, a.value_size, written(tile, key),
                                             task.column + column);
        }
        // Where several steps are read at a time, a lane's runs of them lie side by side.
        const int step = slot % kUnit / 16, deep = slot % 16 / Mma::kRun;
        const int place =
            slot / kUnit * kUnit + deep * kTogether + step * Mma::kRun + slot % Mma::kRun;
        GPU_UNROLLED
        for (int c = 0; c < 8; ++c) {
          Vec<Half, 2> both;
          both.words.at[0] = pair_from(within_half(two[0].at[c]), within_half(two[1].at[c]));
          store_vec(
              staged_values + (column + c) * kTile + piece_at(column + c, place / 8) + place % 8,
              both);
        }
      }
    }
  };
  // Queries (or weights) times keys (or values).
  const auto multiply = [](float(&sums)[Mma::kSums], const Bits32(&of_pairs)[Mma::kLaneWords],
                           const Bits32(&others)[kRunWords]) {
    if constexpr (kSwapped) {
      Mma::add(sums, others, of_pairs);
    } else {
      Mma::add(sums, of_pairs, others);
    }
  };
  // Of a product: which key (or column) the lane's sum i belongs to, and which of its pairs.
  const auto across = [](int i) { return kSwapped ? Mma::sum_row(i) : Mma::sum_column(i); };
  const auto held = [](int i) { return kSwapped ? 0 : i / 2; };
  // Lanes that have the same pairs.
  constexpr unsigned kFirstMask = kSwapped ? 16 : 1, kEndMask = kSwapped ? kWarp : 4;

  float result[kResultTiles][Mma::kSums] = {};
  float most[kHeld], sum[kHeld] = {};
  GPU_UNROLLED
  for (int h = 0; h < kHeld; ++h) most[h] = -math::kInfinity;

  if (chunks == 1) load_queries(0);
  stage_keys(task.begin, 0);
  copies_close();
  GPU_ROLLED
  for (int tile = task.begin; tile < task.end; ++tile) {
    float scores[kKeyTiles][Mma::kSums] = {};
    GPU_ROLLED
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (chunks > 1) load_queries(chunk);
      copies_wait<0>();
      barrier();
      if (chunk == 0) {
        stage_values(tile);
        copies_close();
      }
      if (live) {
        GPU_UNROLLED
        for (int u = 0; u < kUnits; ++u) {
          if (chunk * kDepth + u * kUnit >= a.query_size) continue;
          if constexpr (!kHold) load_unit(chunk * kDepth + u * kUnit, left[0]);
          GPU_UNROLLED
          for (int t = 0; t < kKeyTiles; ++t) {
            const int line = t * kWidth + Mma::column();
            Bits32 right[kSteps * kRunWords];
            GPU_UNROLLED
            for (int eight = 0; eight < kTogether / 8; ++eight) {
              const int piece = (u * kUnit + Mma::deep() * kTogether) / 8 + eight;
              const auto vec = load_vec<8>(staged_keys + line * kDepth + piece_at(line, piece));
              GPU_UNROLLED
              for (int word = 0; word < 4; ++word) right[4 * eight + word] = vec.words.at[word];
            }
            GPU_UNROLLED
            for (int step = 0; step < kSteps; ++step) {
              Bits32 run[kRunWords];
              GPU_UNROLLED
              for (int word = 0; word < kRunWords; ++word) {
                run[word] = right[step * kRunWords + word];
              }
              multiply(scores[t], left[kHold ? u : 0][step], run);
            }
          }
        }
      }
      if (chunk + 1 < chunks) {
        barrier();
        stage_keys(tile, chunk + 1);
        copies_close();
      }
    }
    copies_wait<0>();
    barrier();  // values are there, and nobody reads keys any more
    if (tile + 1 < task.end) {
      stage_keys(tile + 1, 0);
      copies_close();
    }
    if (!live) continue;

    if (a.cap != 0.0f) {
      GPU_UNROLLED
      for (int t = 0; t < kKeyTiles; ++t) {
        GPU_UNROLLED
        for (int i = 0; i < Mma::kSums; ++i) scores[t][i] = capped(scores[t][i], a.cap);
      }
    }
    const int first_key = tile * kTile;
    if (first_key + kTile - 1 > task.first_position ||
        first_key < Task::first_seen(a, task.last_position)) {
      GPU_UNROLLED
      for (int h = 0; h < kHeld; ++h) {
        // One comparison: what is before the first becomes larger than anything.
        const int from = Task::first_seen(a, position[h]);
        const auto seen = static_cast<unsigned>(position[h] - from);
        GPU_UNROLLED
        for (int t = 0; t < kKeyTiles; ++t) {
          GPU_UNROLLED
          for (int i = 0; i < Mma::kSums; ++i) {
            if (held(i) != h) continue;
            const int key = first_key + t * kWidth + across(i);
            if (static_cast<unsigned>(key - from) > seen) scores[t][i] = -math::kInfinity;
          }
        }
      }
    }
    float correction[kHeld], shift[kHeld];
    GPU_UNROLLED
    for (int h = 0; h < kHeld; ++h) {
      float largest = most[h];
      GPU_UNROLLED
      for (int t = 0; t < kKeyTiles; ++t) {
        GPU_UNROLLED
        for (int i = 0; i < Mma::kSums; ++i) {
          if (held(i) == h) largest = larger(largest, scores[t][i]);
        }
      }
      for (unsigned mask = kFirstMask; mask < kEndMask; mask *= 2) {
        largest = larger(largest, shuffle_xor(largest, mask));
      }
      shift[h] = reference(largest);
      correction[h] = math::exp2(most[h] - shift[h]);
      most[h] = largest;
      sum[h] *= correction[h];
    }
    GPU_UNROLLED
    for (int t = 0; t < kResultTiles; ++t) {
      GPU_UNROLLED
      for (int i = 0; i < Mma::kSums; ++i) result[t][i] *= correction[held(i)];
    }

    // Weights of 16 keys become the left side of the next product.
    constexpr int kTilesTogether = 16 / kWidth;
    GPU_UNROLLED
    for (int first = 0; first < kTile; first += kUnit) {
      Bits32 weights[kSteps][Mma::kLaneWords];
      GPU_UNROLLED
      for (int step = 0; step < kSteps; ++step) {
        Bits32 own[kTilesTogether * Mma::kSums / 2];
        GPU_UNROLLED
        for (int j = 0; j < kTilesTogether; ++j) {
          float(&from)[Mma::kSums] = scores[(first + step * 16) / kWidth + j];
          GPU_UNROLLED
          for (int i = 0; i < Mma::kSums; i += 2) {
            const int h = held(i);
            const float one = math::exp2(from[i] - shift[h]);
            const float two = math::exp2(from[i + 1] - shift[h]);
            sum[h] += one + two;
            own[kSwapped ? i / 2 : h * kRunWords + j] = pair_from(one, two);
          }
        }
        if constexpr (kSwapped && Mma::kDeep == 1) {
          // Half of a run is in the other half of the warp.
          GPU_UNROLLED
          for (int word = 0; word < kRunWords / 2; ++word) {
            const Bits32 other = shuffle_xor(own[word], 16);
            weights[step][word] = lane() < 16 ? own[word] : other;
            weights[step][kRunWords / 2 + word] = lane() < 16 ? other : own[word];
          }
        } else {
          GPU_UNROLLED
          for (int word = 0; word < Mma::kLaneWords; ++word) weights[step][word] = own[word];
        }
      }
      if constexpr (Mma::kTurnsColumns) {
        GPU_UNROLLED
        for (int step = 0; step < kSteps; ++step) {
          const int line = first + step * 16 + static_cast<int>(lane() % 16);
          GPU_UNROLLED
          for (int t = 0; t < kResultTiles; t += 2) {
            if (t * kWidth / 32 * 32 >= task.columns) continue;
            const int piece = t * kWidth / 8 + static_cast<int>(lane() / 16);
            Bits32 words[4];
            Mma::turn_columns(words, staged_values + line * kColumns + piece_at(line, piece));
            const Bits32 one[2] = {words[0], words[1]}, two[2] = {words[2], words[3]};
            multiply(result[t], weights[step], one);
            multiply(result[t + 1], weights[step], two);
          }
        }
      } else {
        GPU_UNROLLED
        for (int t = 0; t < kResultTiles; ++t) {
          if (t * kWidth / 32 * 32 >= task.columns) continue;
          const int line = t * kWidth + Mma::column();
          Bits32 right[kSteps * kRunWords];
          GPU_UNROLLED
          for (int eight = 0; eight < kTogether / 8; ++eight) {
            const int piece = (first + Mma::deep() * kTogether) / 8 + eight;
            const auto vec = load_vec<8>(staged_values + line * kTile + piece_at(line, piece));
            GPU_UNROLLED
            for (int word = 0; word < 4; ++word) right[4 * eight + word] = vec.words.at[word];
          }
          GPU_UNROLLED
          for (int step = 0; step < kSteps; ++step) {
            Bits32 run[kRunWords];
            GPU_UNROLLED
            for (int word = 0; word < kRunWords; ++word) {
              run[word] = right[step * kRunWords + word];
            }
            multiply(result[t], weights[step], run);
          }
        }
      }
    }
  }
  if (!live) return;

  GPU_UNROLLED
  for (int h = 0; h < kHeld; ++h) {
    for (unsigned mask = kFirstMask; mask < kEndMask; mask *= 2) {
      sum[h] += shuffle_xor(sum[h], mask);
    }
    const int pair = warp_pair + Mma::row(h);
    if (pair >= task.pairs) continue;
    float* to = out + task.place(a, pair) * a.value_size + task.column;
    const float by = 1.0f / sum[h];
    GPU_UNROLLED
    for (int t = 0; t < kResultTiles; ++t) {
      GPU_UNROLLED
      for (int i = 0; i < Mma::kSums; ++i) {
        const int column = t * kWidth + across(i);
        if (held(i) == h && column < task.columns) to[column] = result[t][i] * by;
      }
    }
  }
}

// For targets without matrix units: a warp takes one pair at a time, its lanes keys and then
// columns.
template <class T, int kColumns>
GPU_INLINE void attend_plainly(const Half* queries, float* out, const CacheAttention& a) {
  constexpr int kLanes = static_cast<int>(kWarp);
  constexpr int kKeys = kTile / kLanes, kHeld = kColumns / kLanes;
  const Task task = Task::of<kColumns>(a);
  const int lane_at = static_cast<int>(lane());
  GPU_ROLLED
  for (int pair = task.first_pair + static_cast<int>(warp_index());
       pair < task.first_pair + kCachePairs && pair < task.pairs; pair += kCacheWarps) {
    const int position = task.sequence.position + pair / task.group;
    const Half* query = queries + task.place(a, pair) * a.query_size;
    float result[kHeld] = {};
    float most = -math::kInfinity, sum = 0.0f;
    GPU_ROLLED
    for (int tile = Task::first_seen(a, position) / kTile; tile <= position / kTile; ++tile) {
      const Bits8* keys = task.keys(a, tile);
      const Bits8* values = task.values(a, tile);
      const int first_key = tile * kTile;
      float scores[kKeys];
      float largest = most;
      GPU_UNROLLED
      for (int n = 0; n < kKeys; ++n) {
        const int key = n * kLanes + lane_at;
        scores[n] = -math::kInfinity;
        if (first_key + key > position || first_key + key < Task::first_seen(a, position)) continue;
        float product = 0.0f;
        GPU_ROLLED
        for (int e = 0; e < a.key_size; e += 8) {
          const kv::Eight eight = kv::eight_of<kv::Rows<T>>(keys, a.key_size, key, e);
          const auto of_query = load_vec<8>(query + e);
          GPU_UNROLLED
          for (int i = 0; i < 8; ++i) {
            product = math::fma(to_float(of_query.get(i)), eight.at[i], product);
          }
        }
        scores[n] = capped(product, a.cap);
        largest = larger(largest, scores[n]);
      }
      largest = warp_max(largest);
      const float shift = reference(largest), correction = math::exp2(most - shift);
      most = largest;
      sum *= correction;
      GPU_UNROLLED
      for (int n = 0; n < kKeys; ++n) {
        scores[n] = math::exp2(scores[n] - shift);
        sum += scores[n];
      }
      GPU_UNROLLED
      for (int c = 0; c < kHeld; ++c) result[c] *= correction;
      GPU_UNROLLED
      for (int n = 0; n < kKeys; ++n) {
        GPU_ROLLED
        for (int j = 0; j < kLanes; ++j) {
          const float weight = shuffle(scores[n], static_cast<unsigned>(j));
          if (first_key + n * kLanes + j > position) break;  // not written yet
          GPU_UNROLLED
          for (int c = 0; c < kHeld; ++c) {
            const int column = c * kLanes + lane_at;
            if (column >= task.columns) continue;
            result[c] = math::fma(
                weight,
                kv::Rows<T>::get(values, a.value_size, n * kLanes + j, task.column + column),
                result[c]);
          }
        }
      }
    }
    const float by = 1.0f / warp_sum(sum);
    float* to = out + task.place(a, pair) * a.value_size + task.column;
    GPU_UNROLLED
    for (int c = 0; c < kHeld; ++c) {
      const int column = c * kLanes + lane_at;
      if (column < task.columns) to[column] = result[c] * by;
    }
  }
}

template <class T, int kColumns>
GPU_INLINE void attend_by_target(const Half* queries, float* out, const CacheAttention& a) {
  await_earlier();
  if constexpr (MatrixUnit::kThere) {
    attend<T, kColumns, MatrixUnit>(queries, out, a);
  } else {
    attend_plainly<T, kColumns>(queries, out, a);
  }
}

// ---- the kernels

GPU_KERNEL void keep_f16(const float* q, const float* k, const float* v, Half* queries,
                         CacheAttention a) {
  keep<Half>(q, k, v, queries, a);
}
GPU_KERNEL void keep_bf16(const float* q, const float* k, const float* v, Half* queries,
                          CacheAttention a) {
  keep<BFloat16>(q, k, v, queries, a);
}
GPU_KERNEL void keep_q8(const float* q, const float* k, const float* v, Half* queries,
                        CacheAttention a) {
  keep<kv::Scaled>(q, k, v, queries, a);
}
GPU_KERNEL void keep_f32(const float* q, const float* k, const float* v, Half* queries,
                         CacheAttention a) {
  keep<float>(q, k, v, queries, a);
}
GPU_KERNEL void attend64_f16(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<Half, 64>(queries, out, a);
}
GPU_KERNEL void attend64_bf16(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<BFloat16, 64>(queries, out, a);
}
GPU_KERNEL void attend64_q8(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<kv::Scaled, 64>(queries, out, a);
}
GPU_KERNEL void attend64_f32(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<float, 64>(queries, out, a);
}
GPU_KERNEL void attend128_f16(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<Half, 128>(queries, out, a);
}
GPU_KERNEL void attend128_bf16(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<BFloat16, 128>(queries, out, a);
}
GPU_KERNEL void attend128_q8(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<kv::Scaled, 128>(queries, out, a);
}
GPU_KERNEL void attend128_f32(const Half* queries, float* out, CacheAttention a) {
  attend_by_target<float, 128>(queries, out, a);
}
