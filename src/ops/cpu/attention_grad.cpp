// The gradient of attention in tiles of 32 rows, which are the (head, query) pairs that share keys,
// and 64 keys. The weights p are computed again from the logarithms that the attention kept; with g
// the gradient of its result:
//
//   dp = g v^T        dv = p^T g        ds = p (dp - delta), delta = sum of g * result
//   dq = ds k scale   dk = ds^T q scale
#include "ops/cpu/attention_grad.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/cpu/aligned.h"
#include "tl/base/thread_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention_grad.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "ops/cpu/attention_scores-inl.h"
#include "ops/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

// A matrix whose element (i, k) is at[i * row + k * column].
template <class W>
struct Left {
  const W* at;
  std::int64_t row, column;
};

// kCount rows of c += a b, where rows of b and c consist of whole vectors.
template <int kCount, class W>
HWY_INLINE void add_rows(W* c, std::int64_t c_pitch, const Left<W>& a, const W* b,
                         std::int64_t b_pitch, std::int64_t n, std::int64_t depth) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const W* a0 = a.at;
  const W* a1 = a0 + (kCount > 1 ? a.row : 0);
  const W* a2 = a1 + (kCount > 2 ? a.row : 0);
  const W* a3 = a2 + (kCount > 3 ? a.row : 0);
  W* c1 = c + c_pitch;
  W* c2 = c1 + c_pitch;
  W* c3 = c2 + c_pitch;
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n && kCount == 4; j += 2 * lanes) {
    auto s00 = hn::Load(d, c + j), s01 = hn::Load(d, c + j + lanes);
    auto s10 = hn::Load(d, c1 + j), s11 = hn::Load(d, c1 + j + lanes);
    auto s20 = hn::Load(d, c2 + j), s21 = hn::Load(d, c2 + j + lanes);
    auto s30 = hn::Load(d, c3 + j), s31 = hn::Load(d, c3 + j + lanes);
    for (std::int64_t k = 0; k < depth; ++k) {
      const auto x = hn::Load(d, b + k * b_pitch + j), y = hn::Load(d, b + k * b_pitch + j + lanes);
      const auto w0 = hn::Set(d, a0[k * a.column]), w1 = hn::Set(d, a1[k * a.column]);
      const auto w2 = hn::Set(d, a2[k * a.column]), w3 = hn::Set(d, a3[k * a.column]);
      s00 = hn::MulAdd(w0, x, s00);
      s01 = hn::MulAdd(w0, y, s01);
      s10 = hn::MulAdd(w1, x, s10);
      s11 = hn::MulAdd(w1, y, s11);
      s20 = hn::MulAdd(w2, x, s20);
      s21 = hn::MulAdd(w2, y, s21);
      s30 = hn::MulAdd(w3, x, s30);
      s31 = hn::MulAdd(w3, y, s31);
    }
    hn::Store(s00, d, c + j);
    hn::Store(s01, d, c + j + lanes);
    hn::Store(s10, d, c1 + j);
    hn::Store(s11, d, c1 + j + lanes);
    hn::Store(s20, d, c2 + j);
    hn::Store(s21, d, c2 + j + lanes);
    hn::Store(s30, d, c3 + j);
    hn::Store(s31, d, c3 + j + lanes);
  }
  const auto one = [&](std::int64_t i) {
    auto sum = hn::Load(d, c + i * c_pitch + j);
    for (std::int64_t k = 0; k < depth; ++k) {
      sum = hn::MulAdd(hn::Set(d, a.at[i * a.row + k * a.column]), hn::Load(d, b + k * b_pitch + j),
                       sum);
    }
    hn::Store(sum, d, c + i * c_pitch + j);
  };
  if constexpr (kCount == 1) {
    for (; j < n; j += lanes) one(0);
  } else if (j < n) {  // a single vector is left
    for (std::int64_t i = 0; i < kCount; ++i) one(i);
  }
}

// c (m, n) += a (m, depth) b (depth, n): every element in the order of k, however rows are grouped.
// One copy for all dtypes that are computed in W.
template <class W>
HWY_NOINLINE void add_product(W* c, std::int64_t c_pitch, Left<W> a, const W* b,
                              std::int64_t b_pitch, std::int64_t m, std::int64_t n,
                              std::int64_t depth) {
  std::int64_t i = 0;
  for (; i + 4 <= m; i += 4, c += 4 * c_pitch, a.at += 4 * a.row) {
    add_rows<4>(c, c_pitch, a, b, b_pitch, n, depth);
  }
  for (; i < m; ++i, c += c_pitch, a.at += a.row) add_rows<1>(c, c_pitch, a, b, b_pitch, n, depth);
}

template <class T>
class GradientBlock {
 public:
  using W = Wide<T>;

  GradientBlock(const ops::AttentionGradientArguments& arguments, ops::AttentionGradients& found,
                const Stream& stream)
      : a_(arguments.forward),
        gs_(arguments.g->strides()),
        os_(arguments.out->strides()),
        q_(a_.q->read<T>(stream)),
        k_(a_.k->read<T>(stream)),
        v_(a_.v->read<T>(stream)),
        g_(arguments.g->read<T>(stream)),
        out_(arguments.out->read<T>(stream)),
        logs_(arguments.logs->read<W>(stream)),
        dq_(found.q.write<T>(stream)),
        dk_(found.k.write<T>(stream)),
        dv_(found.v.write<T>(stream)),
        scores_(a_, stream),
        group_(a_.heads() / a_.kv_heads()),
        pitch_(in_vectors(a_.depth())),
        value_pitch_(in_vectors(a_.value_depth())) {}

  std::int64_t pairs() const { return a_.batch() * a_.kv_heads(); }
  std::int64_t rows() const { return group_ * a_.queries(); }
  std::int64_t tiles() const { return (a_.keys() + kTile - 1) / kTile; }

  // What of a pair of a batch and a key head is done: some tiles of keys with some rows, from a
  // multiple of kRows on. Gradients of keys need all rows, those of queries all tiles.
  struct Part {
    std::int64_t pair, first_tile, last_tile, first_row, last_row;
    bool of_keys, of_queries;
  };

  void run(const Part& part) const {
    const std::int64_t rows = part.last_row - part.first_row;
    Room room(*this, rows);
    const std::int64_t b = part.pair / a_.kv_heads(), kv = part.pair % a_.kv_heads();
    for (std::int64_t r = 0; r < rows; ++r) {
      room.deltas[static_cast<std::size_t>(r)] = delta(b, kv, part.first_row + r, room);
    }
    if (part.of_queries) std::fill_n(room.dq.get(), rows * pitch_, W(0));
    for (std::int64_t tile = part.first_tile; tile < part.last_tile; ++tile) {
      read_keys(b, kv, tile * kTile, room);
      std::fill_n(room.dk.get(), kTile * pitch_, W(0));
      std::fill_n(room.dv.get(), kTile * value_pitch_, W(0));
      for (std::int64_t row = part.first_row; row < part.last_row; row += kRows) {
        const std::int64_t count = std::min(kRows, part.last_row - row);
        if (sees_any(row, count, tile * kTile))
          run_one(part, b, kv, tile * kTile, row, count, room);
      }
      if (part.of_keys) write_keys(part.pair, tile * kTile, room);
    }
    if (part.of_queries) write_queries(b, kv, part.first_row, rows, room);
  }

 private:
  using Memory = Aligned<W>;
  struct Room {
    Room(const GradientBlock& block, std::int64_t rows)
        : k(of(kTile * block.pitch_)),
          keys(of(kTile * block.a_.depth())),
          values(of(kTile * block.a_.value_depth())),
          line(of(std::max(block.pitch_, block.value_pitch_))),
          q(of(kRows * block.pitch_)),
          g(of(kRows * block.value_pitch_)),
          scores(of(kRows * kTile)),
          slopes(of(kRows * kTile)),
          bends(of(kTile)),
          dk(of(kTile * block.pitch_)),
          dv(of(kTile * block.value_pitch_)),
          dq(of(rows * block.pitch_)),
          deltas(of(rows)) {}
    static Memory of(std::int64_t count) { return aligned<W>(static_cast<std::size_t>(count)); }

    Memory k, keys, values;  // keys and values: dimensions exchanged, [element][key]
    Memory line, q, g, scores, slopes, bends, dk, dv, dq, deltas;
  };

  static std::int64_t in_vectors(std::int64_t n) { return (n + 15) / 16 * 16; }
  std::int64_t head(std::int64_t kv, std::int64_t row) const {
    return kv * group_ + row / a_.queries();
  }
  std::int64_t query(std::int64_t row) const { return row % a_.queries(); }

  static void read(const T* from, std::int64_t step, std::int64_t n, W* to, std::int64_t pitch) {
    widen_row(from, step, n, to);
    std::fill(to + n, to + pitch, W(0));
  }

  W delta(std::int64_t b, std::int64_t kv, std::int64_t row, Room& room) const {
    const std::int64_t h = head(kv, row), i = query(row), n = a_.value_depth();
    widen_row(g_ + b * gs_[0] + h * gs_[1] + i * gs_[2], gs_[3], n, room.g.get());
    widen_row(out_ + b * os_[0] + h * os_[1] + i * os_[2], os_[3], n, room.line.get());
    return dot(room.g.get(), room.line.get(), n);
  }

  // The keys and values of a tile; zeros where there are none.
  void read_keys(std::int64_t b, std::int64_t kv, std::int64_t key, Room& room) const {
    const std::int64_t count = std::min(kTile, a_.keys() - key);
    const Dims &ks = a_.k->strides(), &vs = a_.v->strides();
    std::fill_n(room.keys.get(), count < kTile ? kTile * a_.depth() : 0, W(0));
    std::fill_n(room.values.get(), count < kTile ? kTile * a_.value_depth() : 0, W(0));
    for (std::int64_t j = 0; j < count; ++j) {
      W* k = room.k.get() + j * pitch_;
      read(k_ + b * ks[0] + kv * ks[1] + (key + j) * ks[2], ks[3], a_.depth(), k, pitch_);
      for (std::int64_t e = 0; e < a_.depth(); ++e) room.keys[at(e * kTile + j)] = k[e];
      W* v = room.line.get();
      widen_row(v_ + b * vs[0] + kv * vs[1] + (key + j) * vs[2], vs[3], a_.value_depth(), v);
      for (std::int64_t e = 0; e < a_.value_depth(); ++e) room.values[at(e * kTile + j)] = v[e];
    }
  }

  bool sees_any(std::int64_t row, std::int64_t count, std::int64_t key) const {
    for (std::int64_t r = row; r < row + count; ++r) {
      const std::int64_t first = std::max(key, scores_.first_key(query(r)));
      if (first < std::min(key + kTile, scores_.last_key(query(r)))) return true;
    }
    return false;
  }

  // Products of a row become weights, and those of its gradient the gradients of the former ones
  // over the scale.
  void weigh(W* scores, W* slopes, W* bends, std::int64_t b, std::int64_t h, std::int64_t i,
             std::int64_t key, W delta) const {
    const hn::ScalableTag<W> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    scores_.bend(scores);
    const bool capped = a_.softcap != 0;
    if (capped) std::copy_n(scores, kTile, bends);
    scores_.add(scores, b, h, i, key);
    const auto log = hn::Set(d, logs_[(b * a_.heads() + h) * a_.queries() + i]);
    const auto shift = hn::Set(d, delta),
               by = hn::Set(d, capped ? static_cast<W>(1 / a_.softcap) : W(0));
    for (std::int64_t j = 0; j < kTile; j += lanes) {
      const auto p = exp(d, hn::Sub(hn::Load(d, scores + j), log));
      auto slope = hn::Mul(p, hn::Sub(hn::Load(d, slopes + j), shift));
      if (capped) {
        const auto part = hn::Mul(hn::Load(d, bends + j), by);
        slope = hn::NegMulAdd(hn::Mul(part, part), slope, slope);
      }
      hn::Store(p, d, scores + j);
      hn::Store(slope, d, slopes + j);
    }
  }

  void run_one(const Part& part, std::int64_t b, std::int64_t kv, std::int64_t key,
               std::int64_t row, std::int64_t count, Room& room) const {
    const Dims& qs = a_.q->strides();
    const std::int64_t keys = std::min(kTile, a_.keys() - key);
    W *q = room.q.get(), *g = room.g.get(), *scores = room.scores.get(),
      *slopes = room.slopes.get();
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t h = head(kv, row + r), i = query(row + r);
      read(q_ + b * qs[0] + h * qs[1] + i * qs[2], qs[3], a_.depth(), q + r * pitch_, pitch_);
      read(g_ + b * gs_[0] + h * gs_[1] + i * gs_[2], gs_[3], a_.value_depth(),
           g + r * value_pitch_, value_pitch_);
    }
    std::fill_n(scores, count * kTile, W(0));
    std::fill_n(slopes, count * kTile, W(0));
    add_product(scores, kTile, {q, pitch_, 1}, room.keys.get(), kTile, count, kTile, a_.depth());
    add_product(slopes, kTile, {g, value_pitch_, 1}, room.values.get(), kTile, count, kTile,
                a_.value_depth());
    for (std::int64_t r = 0; r < count; ++r) {
      weigh(scores + r * kTile, slopes + r * kTile, room.bends.get(), b, head(kv, row + r),
            query(row + r), key, room.deltas[at(row - part.first_row + r)]);
    }
    if (part.of_keys) {
      add_product(room.dv.get(), value_pitch_, {scores, 1, kTile}, g, value_pitch_, keys,
                  value_pitch_, count);
      add_product(room.dk.get(), pitch_, {slopes, 1, kTile}, q, pitch_, keys, pitch_, count);
    }
    if (part.of_queries) {
      add_product(room.dq.get() + (row - part.first_row) * pitch_, pitch_, {slopes, kTile, 1},
                  room.k.get(), pitch_, count, pitch_, keys);
    }
  }

  void scale(W* row) const {
    for (std::int64_t e = 0; e < a_.depth(); ++e) row[e] *= static_cast<W>(a_.scale);
  }
  void write_keys(std::int64_t pair, std::int64_t key, Room& room) const {
    for (std::int64_t j = 0; j < std::min(kTile, a_.keys() - key); ++j) {
      const std::int64_t row = pair * a_.keys() + key + j;
      scale(room.dk.get() + j * pitch_);
      narrow_row(room.dk.get() + j * pitch_, a_.depth(), dk_ + row * a_.depth(), 1);
      narrow_row(room.dv.get() + j * value_pitch_, a_.value_depth(), dv_ + row * a_.value_depth(),
                 1);
    }
  }
  void write_queries(std::int64_t b, std::int64_t kv, std::int64_t first, std::int64_t rows,
                     Room& room) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t row =
          (b * a_.heads() + head(kv, first + r)) * a_.queries() + query(first + r);
      scale(room.dq.get() + r * pitch_);
      narrow_row(room.dq.get() + r * pitch_, a_.depth(), dq_ + row * a_.depth(), 1);
    }
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  const ops::AttentionArguments& a_;
  Dims gs_, os_;
  const T* q_;
  const T* k_;
  const T* v_;
  const T* g_;
  const T* out_;
  const W* logs_;
  T* dq_;
  T* dk_;
  T* dv_;
  Scores<T> scores_;
  std::int64_t group_;
  std::int64_t pitch_, value_pitch_;  // of rows of keys and of values, in whole vectors
};

// A thread takes a pair of a batch and a key head: five products for each tile. With fewer pairs
// than threads, keys and queries are divided among them one after the other, for two products more.
// Sums are made in the same order either way.
template <class T>
void run_gradient_blocks(const GradientBlock<T>& block) {
  using Part = typename GradientBlock<T>::Part;
  ThreadPool& pool = ThreadPool::shared();
  const std::int64_t tiles = block.tiles(), rows = block.rows();
  const auto each = [&](std::int64_t count, const auto& part_of) {
    pool.parallel_for(0, count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) block.run(part_of(i));
    });
  };
  if (block.pairs() >= pool.threads()) {
    return each(block.pairs(),
                [&](std::int64_t i) { return Part{i, 0, tiles, 0, rows, true, true}; });
  }
  each(block.pairs() * tiles, [&](std::int64_t i) {
    return Part{i / tiles, i % tiles, i % tiles + 1, 0, rows, true, false};
  });
  constexpr std::int64_t kTogether = 4 * kRows;
  const std::int64_t parts = (rows + kTogether - 1) / kTogether;
  each(block.pairs() * parts, [&](std::int64_t i) {
    const std::int64_t first = i % parts * kTogether;
    return Part{i / parts, 0, tiles, first, std::min(rows, first + kTogether), false, true};
  });
}

void attention_gradient_blocks(const ops::AttentionGradientArguments& arguments,
                               ops::AttentionGradients& found) {
  const Stream stream = found.q.device().stream();
  visit_float("attention", found.q.dtype(),
              [&]<class T> { run_gradient_blocks(GradientBlock<T>(arguments, found, stream)); });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(attention_gradient_blocks);

void attention_gradient(const ops::AttentionGradientArguments& arguments,
                        ops::AttentionGradients& found) {
  HWY_DYNAMIC_DISPATCH(attention_gradient_blocks)(arguments, found);
}

}  // namespace tl::cpu
#endif
