// Attention in tiles, what is the same wherever keys and values come from: compiled once per
// instruction set (Highway's foreach_target).
//
// A file that uses it is included again for every target; this header goes along.
#if defined(TL_OPS_CPU_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TL_OPS_CPU_ATTENTION_TILE_INL_H_
#undef TL_OPS_CPU_ATTENTION_TILE_INL_H_
#else
#define TL_OPS_CPU_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

// A block is up to kRows of the (head, query) pairs that share keys, which pass by in tiles of
// kTile. For each row the largest score, the sum and the weighted values are kept, and corrected
// when a larger score turns up.
inline constexpr std::int64_t kRows = 32, kTile = 64;

// scores[row][key] = sum over d of q[row][d] * keys[d][key], four rows at a time.
template <class W>
HWY_INLINE void multiply_keys(const W* q, std::int64_t rows, std::int64_t depth, const W* keys,
                              W* scores) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    for (std::int64_t j = 0; j < kTile; j += 2 * lanes) {
      auto a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, e0 = a0, e1 = a0;
      for (std::int64_t i = 0; i < depth; ++i) {
        const auto k0 = hn::Load(d, keys + i * kTile + j);
        const auto k1 = hn::Load(d, keys + i * kTile + j + lanes);
        const auto qa = hn::Set(d, q[(r + 0) * depth + i]);
        const auto qb = hn::Set(d, q[(r + 1) * depth + i]);
        const auto qc = hn::Set(d, q[(r + 2) * depth + i]);
        const auto qe = hn::Set(d, q[(r + 3) * depth + i]);
        a0 = hn::MulAdd(qa, k0, a0);
        a1 = hn::MulAdd(qa, k1, a1);
        b0 = hn::MulAdd(qb, k0, b0);
        b1 = hn::MulAdd(qb, k1, b1);
        c0 = hn::MulAdd(qc, k0, c0);
        c1 = hn::MulAdd(qc, k1, c1);
        e0 = hn::MulAdd(qe, k0, e0);
        e1 = hn::MulAdd(qe, k1, e1);
      }
      hn::Store(a0, d, scores + (r + 0) * kTile + j);
      hn::Store(a1, d, scores + (r + 0) * kTile + j + lanes);
      hn::Store(b0, d, scores + (r + 1) * kTile + j);
      hn::Store(b1, d, scores + (r + 1) * kTile + j + lanes);
      hn::Store(c0, d, scores + (r + 2) * kTile + j);
      hn::Store(c1, d, scores + (r + 2) * kTile + j + lanes);
      hn::Store(e0, d, scores + (r + 3) * kTile + j);
      hn::Store(e1, d, scores + (r + 3) * kTile + j + lanes);
    }
  }
  for (; r < rows; ++r) {
    for (std::int64_t j = 0; j < kTile; j += lanes) {
      auto a = hn::Zero(d);
      for (std::int64_t i = 0; i < depth; ++i) {
        a = hn::MulAdd(hn::Set(d, q[r * depth + i]), hn::Load(d, keys + i * kTile + j), a);
      }
      hn::Store(a, d, scores + r * kTile + j);
    }
  }
}

template <class W>
HWY_INLINE W dot(const W* x, const W* y, std::int64_t n) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), a);
    b = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, y + i + lanes), b);
  }
  for (; i < n; i += lanes) {
    a = hn::MulAdd(load_some(d, x + i, n - i, W(0)), load_some(d, y + i, n - i, W(0)), a);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

// Turns the scores of a tile into weights; returns what the earlier results are multiplied by.
template <class W>
HWY_INLINE W weigh(W* scores, W& most, W& sum) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr W kLeast = -std::numeric_limits<W>::infinity();
  auto largest = hn::Set(d, most);
  for (std::int64_t j = 0; j < kTile; j += lanes) {
    largest = hn::Max(largest, hn::Load(d, scores + j));
  }
  const W next = hn::GetLane(hn::MaxOfLanes(d, largest));
  const W reference = next == kLeast ? W(0) : next;  // nothing seen yet
  const auto shift = hn::Set(d, reference);
  auto added = hn::Zero(d);
  for (std::int64_t j = 0; j < kTile; j += lanes) {
    const auto e = exp(d, hn::Sub(hn::Load(d, scores + j), shift));
    added = hn::Add(added, e);
    hn::Store(e, d, scores + j);
  }
  const W scale = std::exp(most - reference);
  sum = sum * scale + hn::GetLane(hn::SumOfLanes(d, added));
  most = next;
  return scale;
}

// result = result * scale + sum of weights[j] * v[j], for one row or for two at a time
template <int kCount, class W>
HWY_INLINE void add_values(W* result, std::int64_t pitch, const W* scale, const W* weights,
                           std::int64_t keys, const W* v) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < pitch; c += lanes) {
    auto a = hn::Mul(hn::Load(d, result + c), hn::Set(d, scale[0]));
    auto b = a;
    if constexpr (kCount == 2) b = hn::Mul(hn::Load(d, result + pitch + c), hn::Set(d, scale[1]));
    for (std::int64_t j = 0; j < keys; ++j) {
      const auto x = hn::Load(d, v + j * pitch + c);
      a = hn::MulAdd(hn::Set(d, weights[j]), x, a);
      if constexpr (kCount == 2) b = hn::MulAdd(hn::Set(d, weights[kTile + j]), x, b);
    }
    hn::Store(a, d, result + c);
    if constexpr (kCount == 2) hn::Store(b, d, result + pitch + c);
  }
}

// scores[row][key] for `count` keys of which each is a row of k; the rest of the tile is 0 (and
// what it is made of must be numbers). `keys` is room for k with its dimensions exchanged.
template <class W>
HWY_INLINE void tile_scores(const W* q, std::int64_t rows, std::int64_t depth, const W* k,
                            std::int64_t count, W* keys, W* scores) {
  if (rows < 4) {  // not worth exchanging the dimensions of the keys
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t j = 0; j < count; ++j) {
        scores[r * kTile + j] = dot(q + r * depth, k + j * depth, depth);
      }
      std::fill(scores + r * kTile + count, scores + (r + 1) * kTile, W(0));
    }
    return;
  }
  std::fill_n(keys, count < kTile ? kTile * depth : 0, W(0));
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t i = 0; i < depth; ++i) keys[i * kTile + j] = k[j * depth + i];
  }
  multiply_keys(q, rows, depth, keys, scores);
}

// result = result * scale + weights * v for all rows.
template <class W>
HWY_INLINE void tile_values(W* result, std::int64_t pitch, const W* scale, const W* weights,
                            std::int64_t rows, std::int64_t count, const W* v) {
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    add_values<2>(result + r * pitch, pitch, scale + r, weights + r * kTile, count, v);
  }
  if (r < rows) {
    add_values<1>(result + r * pitch, pitch, scale + r, weights + r * kTile, count, v);
  }
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
