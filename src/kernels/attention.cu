// Module ATTENTION: softmax(q k^T * scale + mask) v without the matrix in between. Keys pass
// through in tiles; the largest score, the sum and the weighted values of each query are kept and
// corrected when a larger score turns up. Everything is computed in f32 (f64 for f64), in a fixed
// order.
//
// attention_tile is for many queries: 64 of them against tiles of 64 keys. attention_split is for a
// few (decoding), where the keys themselves are divided among blocks; attention_merge then joins
// the parts. Strides travel by value, so views of any layout work without copies; heads that share
// keys (grouped queries) read the same ones. 256 threads per block.
#include "attention_scores.h"

// ---- many queries
//
// A block has 64 queries of one head and kValues columns of the result. Its threads form 16 x 16:
// thread (x, y) has scores of queries 4y ... 4y + 3 with keys 4x ... 4x + 3 and of the result the
// same queries with columns 4x + 64j ... 4x + 64j + 3. A query's 16 threads are neighbours in a
// warp.

template <class T, int kValues>
GPU_INLINE void attention_tile(const T* q, const T* k, const T* v, T* out, const Attention& a) {
  await_earlier();
  constexpr int kTile = 64, kDepth = 32, kPitch = kTile + 4, kWide = kValues / 64;
  static_assert(kDepth * kValues <= 2 * kDepth * kPitch);
  // Pieces of q and k, one after the other: [element][query or key]; later a piece of v:
  // [key][column].
  GPU_SHARED Float4 staging[2 * kDepth * kPitch / 4];
  GPU_SHARED Float4 weighing[kTile * kPitch / 4];
  float* const staged = staging[0].at;
  float* const weights = weighing[0].at;  // [key][query]
  float* const staged_k = staged + kDepth * kPitch;

  const unsigned thread = thread_index(), x = thread % 16, y = thread / 16;
  const Index tiles = (a.queries + kTile - 1) / kTile;
  Index rest = block_index();
  const Index tile = tiles - 1 - rest % tiles;  // those with the most keys first
  rest /= tiles;
  const Index h = rest % a.heads;
  rest /= a.heads;
  const Index b = rest % a.batch, column = rest / a.batch * kValues;
  const Index first_query = tile * kTile;
  q += b * a.q[0] + h * a.q[1];
  k += b * a.k[0] + h / a.group * a.k[1];
  v += b * a.v[0] + h / a.group * a.v[1];
  out += b * a.out[0] + h * a.out[1];

  const Index last_query =
      first_query + kTile < a.queries ? first_query + kTile - 1 : a.queries - 1;
  const Index begin = sight_of(a, first_query).first / kTile * kTile;
  const Index end = sight_of(a, last_query).last;

  float result[4][kWide][4] = {};
  float most[4], sum[4] = {};
  GPU_UNROLLED
  for (int i = 0; i < 4; ++i) most[i] = -math::kInfinity;

  GPU_ROLLED
  for (Index first_key = begin; first_key < end; first_key += kTile) {
    float products[4][4] = {};
    GPU_ROLLED
    for (Index e = 0; e < a.depth; e += kDepth) {
      const unsigned row = thread % kTile, segment = thread / kTile * 8;
      float piece[8];
      const Index query = first_query + row, key = first_key + row;
      load_piece(piece, q + query * a.q[2], a.q[3], e + segment, query < a.queries ? a.depth : 0);
      GPU_UNROLLED
      for (unsigned j = 0; j < 8; ++j) staged[(segment + j) * kPitch + row] = piece[j];
      load_piece(piece, k + key * a.k[2], a.k[3], e + segment, key < a.keys ? a.depth : 0);
      GPU_UNROLLED
      for (unsigned j = 0; j < 8; ++j) staged_k[(segment + j) * kPitch + row] = piece[j];
      barrier();
      for (unsigned d = 0; d < kDepth; ++d) {
        const Float4 left = float4_at(staged + d * kPitch + y * 4);
        const Float4 right = float4_at(staged_k + d * kPitch + x * 4);
        GPU_UNROLLED
        for (int i = 0; i < 4; ++i) {
          GPU_UNROLLED
          for (int j = 0; j < 4; ++j) {
            products[i][j] = math::fma(left.at[i], right.at[j], products[i][j]);
          }
        }
      }
      barrier();
    }

    float correction[4];
    GPU_UNROLLED
    for (unsigned i = 0; i < 4; ++i) {
      // What a query sees would else be kept for each from one tile of keys to the next.
      const Index query = first_query + forgotten(y) * 4 + i;
      float largest = most[i];
      GPU_UNROLLED
      for (unsigned j = 0; j < 4; ++j) {
        const Index key = first_key + x * 4 + j;
        products[i][j] = query < a.queries && key < a.keys
                             ? score<T>(a, products[i][j], b, h, query, key)
                             : -math::kInfinity;
        largest = math::max(largest, products[i][j]);
      }
      for (unsigned mask = 8; mask > 0; mask /= 2) {
        largest = math::max(largest, shuffle_xor(largest, mask));
      }
      const float shift = SoftSum<float>::reference(largest);
      correction[i] = math::exp(most[i] - shift);
      most[i] = largest;
      sum[i] *= correction[i];
      GPU_UNROLLED
      for (unsigned j = 0; j < 4; ++j) {
        products[i][j] = math::exp(products[i][j] - shift);
        sum[i] += products[i][j];
      }
    }
    GPU_UNROLLED
    for (unsigned j = 0; j < 4; ++j) {
      set_float4(weights + (x * 4 + j) * kPitch + y * 4,
                 {{products[0][j], products[1][j], products[2][j], products[3][j]}});
    }
    GPU_UNROLLED
    for (int i = 0; i < 4; ++i) {
      GPU_UNROLLED
      for (int w = 0; w < kWide; ++w) {
        GPU_UNROLLED
        for (int j = 0; j < 4; ++j) result[i][w][j] *= correction[i];
      }
    }
    GPU_ROLLED
    for (unsigned first = 0; first < kTile; first += kDepth) {
      constexpr unsigned kSegments = kValues / 8;
      for (unsigned at = thread; at < kDepth * kSegments; at += kBlockThreads) {
        const unsigned row = at / kSegments, segment = at % kSegments * 8;
        const Index key = first_key + first + row;
        float piece[8];
        load_piece(piece, v + key * a.v[2], a.v[3], column + segment,
                   key < a.keys ? a.value_depth : 0);
        set_float4(staged + row * kValues + segment, {{piece[0], piece[1], piece[2], piece[3]}});
        set_float4(staged + row * kValues + segment + 4,
                   {{piece[4], piece[5], piece[6], piece[7]}});
      }
      barrier();
      for (unsigned d = 0; d < kDepth; ++d) {
        const Float4 left = float4_at(weights + (first + d) * kPitch + y * 4);
        GPU_UNROLLED
        for (unsigned w = 0; w < kWide; ++w) {
          const Float4 right = float4_at(staged + d * kValues + w * 64 + x * 4);
          GPU_UNROLLED
          for (int i = 0; i < 4; ++i) {
            GPU_UNROLLED
            for (int j = 0; j < 4; ++j) {
              result[i][w][j] = math::fma(left.at[i], right.at[j], result[i][w][j]);
            }
          }
        }
      }
      barrier();
    }
  }

  GPU_UNROLLED
  for (unsigned i = 0; i < 4; ++i) {
    for (unsigned mask = 8; mask > 0; mask /= 2) sum[i] += shuffle_xor(sum[i], mask);
    const Index query = first_query + y * 4 + i;
    if (query >= a.queries) continue;
    const float scale = sum[i] == 0.0f ? 0.0f : 1.0f / sum[i];  // nothing seen: zeros
    if (a.logs != nullptr && column == 0 && x == 0) {
      a.logs[(b * a.heads + h) * a.queries + query] =
          sum[i] == 0.0f ? math::kInfinity : most[i] + math::log(sum[i]);
    }
    GPU_UNROLLED
    for (unsigned w = 0; w < kWide; ++w) {
      GPU_UNROLLED
      for (unsigned j = 0; j < 4; ++j) {
        const Index at = column + w * 64 + x * 4 + j;
        if (at < a.value_depth) {
          out[query * a.out[2] + at * a.out[3]] = narrow<T>(result[i][w][j] * scale);
        }
      }
    }
  }
}

// ---- few queries
//
// The rows of a block are up to 4 of the (head, query) pairs that share keys; its keys are one part
// of all. Scores: 16 threads to a key, neighbours in a warp. Values: `columns` threads side by side
// in a row of v, and as many rows at a time as there are threads.

constexpr unsigned kSplitRows = 4, kSplitTile = 64;

struct Split {
  Index splits;         // parts of the keys
  Index keys_per_part;  // a multiple of kSplitTile
  Index columns;        // threads side by side in a row of v: a power of two, at most a block
};

// Where part p of row r of all rows (batch, kv head, head in the group, query) keeps its largest
// score and sum; the weighted values lie at the same place times value_depth.
template <class A>
struct Parts {
  A* values;
  A* most;
  A* sum;
};

template <class T, class A = Accumulator<T>>
GPU_INLINE void attention_split(const T* q, const T* k, const T* v, T* out, const Attention& a,
                                const Split& split, const Parts<A>& parts) {
  await_earlier();
  constexpr int kEach = sizeof(T) == 8 ? 2 : 4;
  constexpr unsigned kTeam = 16, kTeams = kBlockThreads / kTeam;
  constexpr unsigned kBatch = sizeof(A) == 8 ? 2 : 4;  // keys of a team at a time, for registers
  static_assert(kSplitTile % (kTeams * kBatch) == 0);
  constexpr unsigned kDepth = 128;  // elements of q staged at a time
  GPU_SHARED A staged_q[kSplitRows][kDepth];
  GPU_SHARED A scores[kSplitRows][kSplitTile];
  GPU_SHARED A correction[kSplitRows];
  GPU_SHARED Index head_of[kSplitRows], query_of[kSplitRows];
  GPU_SHARED A exchange[kBlockThreads][kEach];

  const unsigned thread = thread_index();
  const Index rows_all = a.group * a.queries;
  const Index row_blocks = (rows_all + kSplitRows - 1) / kSplitRows;
  Index rest = block_index();
  const Index part = rest % split.splits;
  rest /= split.splits;
  const Index first_row = rest % row_blocks * kSplitRows;
  rest /= row_blocks;
  const Index kv = rest % a.kv_heads;
  rest /= a.kv_heads;
  const Index b = rest % a.batch, column_block = rest / a.batch;
  const unsigned rows =
      static_cast<unsigned>(rows_all - first_row < kSplitRows ? rows_all - first_row : kSplitRows);
  k += b * a.k[0] + kv * a.k[1];
  v += b * a.v[0] + kv * a.v[1];
  // Divided once and kept here: divisions of 64 bits in every place, or their results in registers
  // through the whole kernel, are more than there is room for.
  if (thread < rows) {
    head_of[thread] = kv * a.group + (first_row + thread) / a.queries;
    query_of[thread] = (first_row + thread) % a.queries;
  }
  barrier();

  // What any of the rows sees, within this part.
  Index begin = a.keys, end = 0;
  GPU_ROLLED
  for (unsigned r = 0; r < rows; ++r) {
    const Sight sight = sight_of(a, query_of[r]);
    if (sight.first < begin) begin = sight.first;
    if (sight.last > end) end = sight.last;
  }
  const Index part_first = part * split.keys_per_part;
  const Index part_end = part_first + split.keys_per_part;
  begin = begin / kSplitTile * kSplitTile;
  if (begin < part_first) begin = part_first;
  if (end > part_end) end = part_end;

  const unsigned columns = static_cast<unsigned>(split.columns);
  const unsigned slot = thread / columns, slots = kBlockThreads / columns;
  const Index column = column_block * split.columns * kEach + thread % columns * kEach;
  A result[kSplitRows][kEach] = {};
  // Row thread / 32 is looked after by 32 threads, which all know these.
  const unsigned own = thread / 32;
  A most = -math::infinity<A>(), sum = A(0);

  GPU_ROLLED
  for (Index first_key = begin; first_key < end; first_key += kSplitTile) {
    GPU_ROLLED
    for (Index e = 0; e < a.depth; e += kDepth) {
      // The places of all elements would else be kept from one tile of keys to the next, and with
      // the results there is no room for them.
      const unsigned now = forgotten(thread), team = now / kTeam, member = now % kTeam;
      if (first_key == begin || a.depth > kDepth) {
        GPU_ROLLED
        for (unsigned at = thread; at < kSplitRows * kDepth; at += kBlockThreads) {
          const unsigned r = at / kDepth;
          const Index element = e + at % kDepth;
          staged_q[r][at % kDepth] = r < rows && element < a.depth
                                         ? widen(q[b * a.q[0] + head_of[r] * a.q[1] +
                                                   query_of[r] * a.q[2] + element * a.q[3]])
                                         : A(0);
        }
        barrier();
      }
      GPU_ROLLED
      for (unsigned from = team; from < kSplitTile; from += kTeams * kBatch) {
        A products[kBatch][kSplitRows] = {};
        GPU_ROLLED
        for (unsigned d = member * kEach; d < kDepth; d += kTeam * kEach) {
          if (e + d >= a.depth) break;
          A piece[kBatch][kEach];
          GPU_UNROLLED
          for (unsigned n = 0; n < kBatch; ++n) {
            const Index key = first_key + from + n * kTeams;
            load_piece(piece[n], k + key * a.k[2], a.k[3], e + d, key < a.keys ? a.depth : 0);
          }
          GPU_UNROLLED
          for (unsigned r = 0; r < kSplitRows; ++r) {
            if (r >= rows) continue;
            GPU_UNROLLED
            for (int j = 0; j < kEach; ++j) {
              const A left = staged_q[r][d + static_cast<unsigned>(j)];
              GPU_UNROLLED
              for (unsigned n = 0; n < kBatch; ++n) {
                products[n][r] = math::fma(left, piece[n][j], products[n][r]);
              }
            }
          }
        }
        GPU_UNROLLED
        for (unsigned r = 0; r < kSplitRows; ++r) {
          if (r >= rows) continue;
          GPU_UNROLLED
          for (unsigned n = 0; n < kBatch; ++n) {
            A total = products[n][r];
            for (unsigned mask = kTeam / 2; mask > 0; mask /= 2) total += shuffle_xor(total, mask);
            if (member == 0) {
              A& to = scores[r][from + n * kTeams];
              to = e == 0 ? total : to + total;
            }
          }
        }
      }
      if (a.depth > kDepth) barrier();  // staged_q is written again
    }
    barrier();

    // All threads go through this: a warp of 64 looks after two rows, of which one may not be
    // there.
    A values[2];
    A largest = most;
    GPU_UNROLLED
    for (unsigned n = 0; n < 2; ++n) {
      const unsigned at = forgotten(thread) % 32 + n * 32;
      const Index key = first_key + at;
      values[n] = own < rows && key < end
                      ? score<T>(a, scores[own][at], b, head_of[own], query_of[own], key)
                      : -math::infinity<A>();
      largest = math::max(largest, values[n]);
    }
    for (unsigned mask = 16; mask > 0; mask /= 2) {
      largest = math::max(largest, shuffle_xor(largest, mask));
    }
    const A shift = SoftSum<A>::reference(largest);
    A added = A(0);
    GPU_UNROLLED
    for (unsigned n = 0; n < 2; ++n) {
      values[n] = math::exp(values[n] - shift);
      added += values[n];
      if (own < rows) scores[own][thread % 32 + n * 32] = values[n];
    }
    for (unsigned mask = 16; mask > 0; mask /= 2) added += shuffle_xor(added, mask);
    const A scale = math::exp(most - shift);
    sum = sum * scale + added;
    most = largest;
    if (own < rows && thread % 32 == 0) correction[own] = scale;
    barrier();

    GPU_UNROLLED
    for (unsigned r = 0; r < kSplitRows; ++r) {
      if (r >= rows) continue;
      GPU_UNROLLED
      for (int j = 0; j < kEach; ++j) result[r][j] *= correction[r];
    }
    constexpr unsigned kAhead = 4;  // loads under way
    GPU_ROLLED
    for (unsigned at = slot; at < kSplitTile; at += slots * kAhead) {
      A piece[kAhead][kEach];
      GPU_UNROLLED
      for (unsigned n = 0; n < kAhead; ++n) {
        const unsigned row = at + n * slots;
        const Index key = first_key + row;
        load_piece(piece[n], v + key * a.v[2], a.v[3], column,
                   row < kSplitTile && key < end ? a.value_depth : 0);
      }
      GPU_UNROLLED
      for (unsigned r = 0; r < kSplitRows; ++r) {
        if (r >= rows) continue;
        GPU_UNROLLED
        for (unsigned n = 0; n < kAhead; ++n) {
          const unsigned row = at + n * slots;
          const A weight = row < kSplitTile ? scores[r][row] : A(0);
          GPU_UNROLLED
          for (int j = 0; j < kEach; ++j) {
            result[r][j] = math::fma(weight, piece[n][j], result[r][j]);
          }
        }
      }
    }
    barrier();
  }

  // The slots' results are added in order, and each row's first thread of 32 says what divides
  // them.
  GPU_UNROLLED
  for (unsigned r = 0; r < kSplitRows; ++r) {
    if (r >= rows) continue;
    GPU_UNROLLED
    for (int j = 0; j < kEach; ++j) exchange[thread][j] = result[r][j];
    if (own == r && thread % 32 == 0) correction[r] = sum;
    barrier();
    if (slot == 0) {
      const Index row = first_row + r;
      const A all = correction[r];
      GPU_UNROLLED
      for (int j = 0; j < kEach; ++j) {
        if (column + j >= a.value_depth) continue;
        A total = exchange[thread][j];
        GPU_ROLLED
        for (unsigned s = 1; s < slots; ++s) total += exchange[thread + s * columns][j];
        if (split.splits == 1) {
          out[b * a.out[0] + head_of[r] * a.out[1] + query_of[r] * a.out[2] +
              (column + j) * a.out[3]] = narrow<T>(all == A(0) ? A(0) : total / all);
        } else {
          const Index at = ((b * a.kv_heads + kv) * rows_all + row) * split.splits + part;
          parts.values[at * a.value_depth + column + j] = total;
        }
      }
    }
    barrier();
  }
  if (split.splits > 1 && column_block == 0 && own < rows && thread % 32 == 0) {
    const Index at = ((b * a.kv_heads + kv) * rows_all + first_row + own) * split.splits + part;
    parts.most[at] = most;
    parts.sum[at] = sum;
  }
}

// A thread for each element of the result.
template <class T, class A = Accumulator<T>>
GPU_INLINE void attention_merge(T* out, const Attention& a, const Split& split,
                                const Parts<A>& parts) {
  await_earlier();
  const Index rows_all = a.group * a.queries;
  grid_stride(a.batch * a.kv_heads * rows_all * a.value_depth, [&](Index i) {
    const Index row = i / a.value_depth, column = i % a.value_depth;
    const Index first = row * split.splits;
    A most = parts.most[first];
    for (Index p = 1; p < split.splits; ++p) most = math::max(most, parts.most[first + p]);
    A sum = A(0), total = A(0);
    for (Index p = 0; p < split.splits; ++p) {
      const A scale = math::exp(parts.most[first + p] - SoftSum<A>::reference(most));
      sum += parts.sum[first + p] * scale;
      total += parts.values[(first + p) * a.value_depth + column] * scale;
    }
    const Index within = row % rows_all, pair = row / rows_all;
    const Index h = pair % a.kv_heads * a.group + within / a.queries, b = pair / a.kv_heads;
    out[b * a.out[0] + h * a.out[1] + within % a.queries * a.out[2] + column * a.out[3]] =
        narrow<T>(sum == A(0) ? A(0) : total / sum);
  });
}

// ---- the kernels

GPU_KERNEL void attention_tile64_f8e4m3(const Float8* q, const Float8* k, const Float8* v,
                                        Float8* out, Attention a) {
  attention_tile<Float8, 64>(q, k, v, out, a);
}
GPU_KERNEL void attention_tile128_f8e4m3(const Float8* q, const Float8* k, const Float8* v,
                                         Float8* out, Attention a) {
  attention_tile<Float8, 128>(q, k, v, out, a);
}
GPU_KERNEL void attention_split_f8e4m3(const Float8* q, const Float8* k, const Float8* v,
                                       Float8* out, Attention a, Split split, Parts<float> parts) {
  attention_split(q, k, v, out, a, split, parts);
}
GPU_KERNEL void attention_merge_f8e4m3(Float8* out, Attention a, Split split, Parts<float> parts) {
  attention_merge(out, a, split, parts);
}

GPU_KERNEL void attention_tile64_f16(const Half* q, const Half* k, const Half* v, Half* out,
                                     Attention a) {
  attention_tile<Half, 64>(q, k, v, out, a);
}
GPU_KERNEL void attention_tile128_f16(const Half* q, const Half* k, const Half* v, Half* out,
                                      Attention a) {
  attention_tile<Half, 128>(q, k, v, out, a);
}
GPU_KERNEL void attention_split_f16(const Half* q, const Half* k, const Half* v, Half* out,
                                    Attention a, Split split, Parts<float> parts) {
  attention_split(q, k, v, out, a, split, parts);
}
GPU_KERNEL void attention_merge_f16(Half* out, Attention a, Split split, Parts<float> parts) {
  attention_merge(out, a, split, parts);
}

GPU_KERNEL void attention_tile64_bf16(const BFloat16* q, const BFloat16* k, const BFloat16* v,
                                      BFloat16* out, Attention a) {
  attention_tile<BFloat16, 64>(q, k, v, out, a);
}
GPU_KERNEL void attention_tile128_bf16(const BFloat16* q, const BFloat16* k, const BFloat16* v,
                                       BFloat16* out, Attention a) {
  attention_tile<BFloat16, 128>(q, k, v, out, a);
}
GPU_KERNEL void attention_split_bf16(const BFloat16* q, const BFloat16* k, const BFloat16* v,
                                     BFloat16* out, Attention a, Split split, Parts<float> parts) {
  attention_split(q, k, v, out, a, split, parts);
}
GPU_KERNEL void attention_merge_bf16(BFloat16* out, Attention a, Split split, Parts<float> parts) {
  attention_merge(out, a, split, parts);
}

GPU_KERNEL void attention_tile64_f32(const float* q, const float* k, const float* v, float* out,
                                     Attention a) {
  attention_tile<float, 64>(q, k, v, out, a);
}
GPU_KERNEL void attention_tile128_f32(const float* q, const float* k, const float* v, float* out,
                                      Attention a) {
  attention_tile<float, 128>(q, k, v, out, a);
}
GPU_KERNEL void attention_split_f32(const float* q, const float* k, const float* v, float* out,
                                    Attention a, Split split, Parts<float> parts) {
  attention_split(q, k, v, out, a, split, parts);
}
GPU_KERNEL void attention_merge_f32(float* out, Attention a, Split split, Parts<float> parts) {
  attention_merge(out, a, split, parts);
}

GPU_KERNEL void attention_split_f64(const double* q, const double* k, const double* v, double* out,
                                    Attention a, Split split, Parts<double> parts) {
  attention_split(q, k, v, out, a, split, parts);
}
GPU_KERNEL void attention_merge_f64(double* out, Attention a, Split split, Parts<double> parts) {
  attention_merge(out, a, split, parts);
}
