// Module ATTENTION_GRAD: gradients of queries, keys and values of an attention, without the matrix
// in between: the weights of 64 queries for 64 keys are computed again from the logarithms that the
// attention kept. With s the scores, p = exp(s - log) and g the gradient of the result:
//
//   dp = g v^T        dv = p^T g        ds = p (dp - delta), delta = sum of g * result
//   dq = ds k scale   dk = ds^T q scale
//
// attention_grad_queries has a block for 64 queries of a head, which goes over the keys they see,
// and leaves their delta; attention_grad_keys, which runs after it, has one for 64 keys, which goes
// over the queries that see them, of all the heads that share them. So each sum is made by one
// block in a fixed order, and two of the seven products are made twice. Everything is computed in
// f32. 256 threads per block.
#include "attention_scores.h"

struct AttentionGrad {
  Attention a;    // `out` are the strides of the result, `logs` what was kept
  Index g[4];     // strides of the gradient of the result
  float* deltas;  // as the logs
};

constexpr unsigned kTile = 64;   // queries, or keys
constexpr unsigned kPiece = 32;  // elements of their rows at a time
constexpr unsigned kPiecePitch = kPiece + 4;
constexpr unsigned kTilePitch = kTile + 4;
constexpr unsigned kRoom = 2 * kTile * kPiecePitch;

// Threads form 16 x 16; those of a warp are 8 x 4 or 8 x 8 of them, so that few different rows are
// read from shared memory at a time.
struct Place {
  unsigned x, y;
};
GPU_INLINE Place place_of(unsigned thread) {
  return {(thread & 7) | (thread >> 5 & 1) << 3, (thread >> 3 & 3) | thread >> 6 << 2};
}

// One of the tensors at one head: rows of positions.
template <class T>
struct Rows {
  const T* at;
  Index row, step;   // strides
  Index rows, size;  // beyond which there are zeros
};
template <class T>
GPU_INLINE Rows<T> rows_at(const T* x, const Index (&strides)[4], Index b, Index h, Index rows,
                           Index size) {
  return {x + b * strides[0] + h * strides[1], strides[2], strides[3], rows, size};
}

// kCount rows from `first` on, of each kSize elements from `element` on.
template <unsigned kCount, unsigned kSize, unsigned kPitch, class T>
GPU_INLINE void stage(float* to, const Rows<T>& x, Index first, Index element, unsigned thread) {
  constexpr unsigned kAcross = kSize / 4;
  static_assert(kCount * kAcross % kBlockThreads == 0);
  GPU_UNROLLED
  for (unsigned n = 0; n < kCount * kAcross; n += kBlockThreads) {
    // Places would else stay in registers from one tile to the next: some targets have not as many.
    const unsigned at = n + forgotten(thread), row = at / kAcross, segment = at % kAcross * 4;
    Float4 piece;
    load_piece(piece.at, x.at + (first + row) * x.row, x.step, element + segment,
               first + row < x.rows ? x.size : 0);
    set_float4(to + row * kPitch + segment, piece);
  }
}

// products[i][j] += the product of row y + 16 i of one with row x + 16 j of the other.
GPU_INLINE void add_dots(float (&products)[4][4], const float* left, const float* right,
                         const Place& place) {
  for (unsigned e = 0; e < kPiece; e += 4) {
    Float4 rows[4];
    GPU_UNROLLED
    for (unsigned i = 0; i < 4; ++i) {
      rows[i] = float4_at(left + (place.y + 16 * i) * kPiecePitch + e);
    }
    GPU_UNROLLED
    for (unsigned j = 0; j < 4; ++j) {
      const Float4 other = float4_at(right + (place.x + 16 * j) * kPiecePitch + e);
      GPU_UNROLLED
      for (int k = 0; k < 4; ++k) {
        GPU_UNROLLED
        for (int i = 0; i < 4; ++i) {
          products[i][j] = math::fma(rows[i].at[k], other.at[k], products[i][j]);
        }
      }
    }
  }
}

// The products of 64 rows of one with 64 of the other, over all their elements.
template <class T>
GPU_INLINE void multiply(float (&products)[4][4], const Rows<T>& left, Index first_left,
                         const Rows<T>& right, Index first_right, float* room, unsigned thread) {
  GPU_ROLLED
  for (Index e = 0; e < left.size; e += kPiece) {
    stage<kTile, kPiece, kPiecePitch>(room, left, first_left, e, thread);
    stage<kTile, kPiece, kPiecePitch>(room + kRoom / 2, right, first_right, e, thread);
    barrier();
    add_dots(products, room, room + kRoom / 2, place_of(thread));
    barrier();
  }
}

// The columns of a row that a thread has: kWide of 16 kWide.
template <int kWide>
GPU_INLINE unsigned column_of(unsigned x, int j) {
  if constexpr (kWide == 2) return x * 2 + static_cast<unsigned>(j);
  return static_cast<unsigned>(j / 4) * 64 + x * 4 + static_cast<unsigned>(j % 4);
}
struct alignas(8) Float2 {
  float at[2];
};
template <int kWide>
GPU_INLINE void columns_at(float (&to)[kWide], const float* row, unsigned x) {
  if constexpr (kWide == 2) {
    const Float2 pair = *reinterpret_cast<const Float2*>(row + x * 2);
    to[0] = pair.at[0];
    to[1] = pair.at[1];
  } else {
    GPU_UNROLLED
    for (int j = 0; j < kWide; j += 4) {
      const Float4 four = float4_at(row + column_of<kWide>(x, j));
      GPU_UNROLLED
      for (int k = 0; k < 4; ++k) to[j + k] = four.at[k];
    }
  }
}

// How many rows of so many columns there is room for: all 64, or half of them.
template <int kWide>
constexpr unsigned kRowsTogether = kWide == 8 ? 32 : 64;

// result[i] += the sum over r of tile[r][4 y + i] * row r of x, from `first` on.
template <int kWide, class T>
GPU_INLINE void add_by_columns(float (&result)[4][kWide], const float* tile, const Rows<T>& x,
                               Index first, float* room, unsigned thread) {
  constexpr unsigned kCount = kRowsTogether<kWide>, kSize = kWide * 16;
  const Place place = place_of(thread);
  GPU_ROLLED
  for (unsigned from = 0; from < kTile; from += kCount) {
    stage<kCount, kSize, kSize>(room, x, first + from, 0, thread);
    barrier();
    for (unsigned r = 0; r < kCount; ++r) {
      const Float4 weights = float4_at(tile + (from + r) * kTilePitch + place.y * 4);
      float row[kWide];
      columns_at(row, room + r * kSize, place.x);
      GPU_UNROLLED
      for (int i = 0; i < 4; ++i) {
        GPU_UNROLLED
        for (int j = 0; j < kWide; ++j) {
          result[i][j] = math::fma(weights.at[i], row[j], result[i][j]);
        }
      }
    }
    barrier();
  }
}

// result[i] += the sum over r of tile[y + 16 i][r] * row r of x, from `first` on.
template <int kWide, class T>
GPU_INLINE void add_by_rows(float (&result)[4][kWide], const float* tile, const Rows<T>& x,
                            Index first, float* room, unsigned thread) {
  constexpr unsigned kCount = kRowsTogether<kWide>, kSize = kWide * 16;
  const Place place = place_of(thread);
  GPU_ROLLED
  for (unsigned from = 0; from < kTile; from += kCount) {
    stage<kCount, kSize, kSize>(room, x, first + from, 0, thread);
    barrier();
    for (unsigned r = 0; r < kCount; r += 4) {
      Float4 weights[4];
      GPU_UNROLLED
      for (unsigned i = 0; i < 4; ++i) {
        weights[i] = float4_at(tile + (place.y + 16 * i) * kTilePitch + from + r);
      }
      GPU_UNROLLED
      for (unsigned k = 0; k < 4; ++k) {
        float row[kWide];
        columns_at(row, room + (r + k) * kSize, place.x);
        GPU_UNROLLED
        for (int i = 0; i < 4; ++i) {
          GPU_UNROLLED
          for (int j = 0; j < kWide; ++j) {
            result[i][j] = math::fma(weights[i].at[k], row[j], result[i][j]);
          }
        }
      }
    }
    barrier();
  }
}

GPU_INLINE void set_tile(float* tile, const float (&values)[4][4], const Place& place) {
  GPU_UNROLLED
  for (unsigned i = 0; i < 4; ++i) {
    GPU_UNROLLED
    for (unsigned j = 0; j < 4; ++j) {
      tile[(place.y + 16 * i) * kTilePitch + place.x + 16 * j] = values[i][j];
    }
  }
}

// Do 64 queries see 64 keys, all of them and as they are?
GPU_INLINE bool is_plain(const Attention& a, Index first_query, Index first_key) {
  return a.mask_kind == kNoMask && a.slopes == nullptr && a.softcap == 0 &&
         first_query + kTile <= a.queries && first_key + kTile <= a.keys &&
         sight_of(a, first_query).last >= first_key + kTile &&
         sight_of(a, first_query + kTile - 1).first <= first_key;
}

// Products of queries and keys become weights, and those of gradients and values the gradients of
// the former products, over the scale.
template <class T>
GPU_INLINE void weigh(const AttentionGrad& arguments, float (&scores)[4][4], float (&slopes)[4][4],
                      Index b, Index h, Index first_query, Index first_key, unsigned thread) {
  const Attention& a = arguments.a;
  const Place place = place_of(thread);
  const Index row = (b * a.heads + h) * a.queries + first_query;
  if (is_plain(a, first_query, first_key)) {
    const float scale = static_cast<float>(a.scale);
    GPU_UNROLLED
    for (unsigned i = 0; i < 4; ++i) {
      const float log = a.logs[row + place.y + 16 * i];
      const float delta = arguments.deltas[row + place.y + 16 * i];
      GPU_UNROLLED
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = math::exp(math::fma(scores[i][j], scale, -log));
        slopes[i][j] = scores[i][j] * (slopes[i][j] - delta);
      }
    }
    return;
  }
  GPU_UNROLLED
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned within = forgotten(place.y) + 16 * i;
    const Index query = first_query + within;
    const bool exists = query < a.queries;
    const Sight sight = sight_of(a, query);
    const float log = exists ? a.logs[row + within] : 0.0f;
    const float delta = exists ? arguments.deltas[row + within] : 0.0f;
    GPU_UNROLLED
    for (unsigned j = 0; j < 4; ++j) {
      const Index key = first_key + place.x + 16 * j;
      float weight = 0.0f, slope = 0.0f;
      if (exists && key >= sight.first && key < sight.last) {
        const float x = bent(a, scores[i][j]);
        weight = math::exp(biased<T>(a, x, b, h, query, key) - log);
        slope = weight * (slopes[i][j] - delta);
        if (a.softcap != 0) {
          const float part = x / static_cast<float>(a.softcap);
          slope *= 1.0f - part * part;
        }
      }
      scores[i][j] = weight;
      slopes[i][j] = slope;
    }
  }
}

template <int kWide, class T>
GPU_INLINE void write_row(T* to, const float (&values)[kWide], unsigned x, Index size,
                          float scale) {
  GPU_UNROLLED
  for (int j = 0; j < kWide; ++j) {
    const unsigned column = column_of<kWide>(x, j);
    if (column < size) to[column] = narrow<T>(values[j] * scale);
  }
}

// Four threads to a query, neighbours in a warp.
template <class T>
GPU_INLINE void set_deltas(const AttentionGrad& arguments, const Rows<T>& out, const Rows<T>& g,
                           Index row, Index first_query, unsigned thread) {
  const Index query = first_query + thread / 4;
  float delta = 0.0f;
  if (query < out.rows) {
    GPU_ROLLED
    for (Index e = thread % 4 * 4; e < out.size; e += 16) {
      float left[4], right[4];
      load_piece(left, out.at + query * out.row, out.step, e, out.size);
      load_piece(right, g.at + query * g.row, g.step, e, g.size);
      GPU_UNROLLED
      for (int k = 0; k < 4; ++k) delta = math::fma(left[k], right[k], delta);
    }
  }
  delta += shuffle_xor(delta, 1);
  delta += shuffle_xor(delta, 2);
  if (query < out.rows && thread % 4 == 0) arguments.deltas[row + query] = delta;
}

// Results are contiguous: (batch, heads, queries, depth).
template <class T, int kWide>
GPU_INLINE void queries_grad(const T* q, const T* k, const T* v, const T* out, const T* g, T* dq,
                             const AttentionGrad& arguments) {
  await_earlier();
  GPU_SHARED Float4 staging[kRoom / 4];
  GPU_SHARED Float4 tiling[kTile * kTilePitch / 4];
  float* const room = staging[0].at;
  float* const tile = tiling[0].at;

  const Attention& a = arguments.a;
  const unsigned thread = thread_index();
  const Index tiles = (a.queries + kTile - 1) / kTile;
  const Index first_query = (tiles - 1 - block_index() % tiles) * kTile;  // most keys first
  const Index h = block_index() / tiles % a.heads, b = block_index() / tiles / a.heads;
  const Index kv = h / a.group;
  const Rows<T> queries = rows_at(q, a.q, b, h, a.queries, a.depth);
  const Rows<T> keys = rows_at(k, a.k, b, kv, a.keys, a.depth);
  const Rows<T> values = rows_at(v, a.v, b, kv, a.keys, a.value_depth);
  const Rows<T> gradients = rows_at(g, arguments.g, b, h, a.queries, a.value_depth);
  set_deltas(arguments, rows_at(out, a.out, b, h, a.queries, a.value_depth), gradients,
             (b * a.heads + h) * a.queries, first_query, thread);
  barrier();

  const Index last = first_query + kTile < a.queries ? first_query + kTile - 1 : a.queries - 1;
  const Index begin = sight_of(a, first_query).first / kTile * kTile;
  const Index end = sight_of(a, last).last;
  float result[4][kWide] = {};
  GPU_ROLLED
  for (Index first_key = begin; first_key < end; first_key += kTile) {
    float scores[4][4] = {}, slopes[4][4] = {};
    multiply(scores, queries, first_query, keys, first_key, room, thread);
    multiply(slopes, gradients, first_query, values, first_key, room, thread);
    weigh<T>(arguments, scores, slopes, b, h, first_query, first_key, thread);
    set_tile(tile, slopes, place_of(thread));
    add_by_rows(result, tile, keys, first_key, room, thread);
  }

  const Place place = place_of(thread);
  GPU_UNROLLED
  for (unsigned i = 0; i < 4; ++i) {
    const Index query = first_query + place.y + 16 * i;
    if (query >= a.queries) continue;
    write_row(dq + ((b * a.heads + h) * a.queries + query) * a.depth, result[i], place.x, a.depth,
              static_cast<float>(a.scale));
  }
}

// Results are contiguous: (batch, kv heads, keys, depth).
template <class T, int kWide>
GPU_INLINE void keys_grad(const T* q, const T* k, const T* v, const T* g, T* dk, T* dv,
                          const AttentionGrad& arguments) {
  await_earlier();
  GPU_SHARED Float4 staging[kRoom / 4];
  GPU_SHARED Float4 tiling[kTile * kTilePitch / 4];
  float* const room = staging[0].at;
  float* const tile = tiling[0].at;

  const Attention& a = arguments.a;
  const unsigned thread = thread_index();
  const Index tiles = (a.keys + kTile - 1) / kTile;
  const Index first_key = block_index() % tiles * kTile;  // when causal, most queries first
  const Index kv = block_index() / tiles % a.kv_heads, b = block_index() / tiles / a.kv_heads;
  const Rows<T> keys = rows_at(k, a.k, b, kv, a.keys, a.depth);
  const Rows<T> values = rows_at(v, a.v, b, kv, a.keys, a.value_depth);

  // The queries that see any of the keys.
  const Index ahead = a.keys - a.queries;
  Index begin = a.causal ? first_key - ahead : 0, end = a.queries;
  begin = begin < 0 ? 0 : begin / kTile * kTile;
  if (a.window >= 0 && first_key + kTile - ahead + a.window < end) {
    end = first_key + kTile - ahead + a.window;
  }

  float key_sums[4][kWide] = {}, value_sums[4][kWide] = {};
  GPU_ROLLED
  for (Index h = kv * a.group; h < (kv + 1) * a.group; ++h) {
    const Rows<T> queries = rows_at(q, a.q, b, h, a.queries, a.depth);
    const Rows<T> gradients = rows_at(g, arguments.g, b, h, a.queries, a.value_depth);
    GPU_ROLLED
    for (Index first_query = begin; first_query < end; first_query += kTile) {
      float scores[4][4] = {}, slopes[4][4] = {};
      multiply(scores, queries, first_query, keys, first_key, room, thread);
      multiply(slopes, gradients, first_query, values, first_key, room, thread);
      weigh<T>(arguments, scores, slopes, b, h, first_query, first_key, thread);
      set_tile(tile, scores, place_of(thread));
      add_by_columns(value_sums, tile, gradients, first_query, room, thread);
      set_tile(tile, slopes, place_of(thread));
      add_by_columns(key_sums, tile, queries, first_query, room, thread);
    }
  }

  const Place place = place_of(thread);
  GPU_UNROLLED
  for (unsigned i = 0; i < 4; ++i) {
    const Index key = first_key + place.y * 4 + i;
    if (key >= a.keys) continue;
    const Index row = (b * a.kv_heads + kv) * a.keys + key;
    write_row(dk + row * a.depth, key_sums[i], place.x, a.depth, static_cast<float>(a.scale));
    write_row(dv + row * a.value_depth, value_sums[i], place.x, a.value_depth, 1.0f);
  }
}

// ---- the kernels

GPU_KERNEL void attention_grad_queries32_f32(const float* q, const float* k, const float* v,
                                             const float* out, const float* g, float* dq,
                                             AttentionGrad arguments) {
  queries_grad<float, 2>(q, k, v, out, g, dq, arguments);
}
GPU_KERNEL void attention_grad_keys32_f32(const float* q, const float* k, const float* v,
                                          const float* g, float* dk, float* dv,
                                          AttentionGrad arguments) {
  keys_grad<float, 2>(q, k, v, g, dk, dv, arguments);
}
GPU_KERNEL void attention_grad_queries64_f32(const float* q, const float* k, const float* v,
                                             const float* out, const float* g, float* dq,
                                             AttentionGrad arguments) {
  queries_grad<float, 4>(q, k, v, out, g, dq, arguments);
}
GPU_KERNEL void attention_grad_keys64_f32(const float* q, const float* k, const float* v,
                                          const float* g, float* dk, float* dv,
                                          AttentionGrad arguments) {
  keys_grad<float, 4>(q, k, v, g, dk, dv, arguments);
}
GPU_KERNEL void attention_grad_queries128_f32(const float* q, const float* k, const float* v,
                                              const float* out, const float* g, float* dq,
                                              AttentionGrad arguments) {
  queries_grad<float, 8>(q, k, v, out, g, dq, arguments);
}
GPU_KERNEL void attention_grad_keys128_f32(const float* q, const float* k, const float* v,
                                           const float* g, float* dk, float* dv,
                                           AttentionGrad arguments) {
  keys_grad<float, 8>(q, k, v, g, dk, dv, arguments);
}
