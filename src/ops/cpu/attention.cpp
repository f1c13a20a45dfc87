#include "ops/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/cpu/aligned.h"
#include "tl/base/thread_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h.
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

template <class T>
class Block {
 public:
  using W = Wide<T>;

  Block(const ops::AttentionArguments& arguments, Tensor& out, const Stream& stream)
      : a_(arguments),
        q_(a_.q->read<T>(stream)),
        k_(a_.k->read<T>(stream)),
        v_(a_.v->read<T>(stream)),
        out_(out.write<T>(stream)),
        out_strides_(out.strides()),
        slopes_(a_.slopes == nullptr ? nullptr : a_.slopes->read<T>(stream)),
        mask_(a_.mask == nullptr ? nullptr : a_.mask->read(stream)),
        group_(a_.heads() / a_.kv_heads()),
        pitch_((a_.value_depth() + 15) / 16 * 16) {}

  std::int64_t row_blocks() const { return (group_ * a_.queries() + kRows - 1) / kRows; }
  std::int64_t blocks() const { return a_.batch() * a_.kv_heads() * row_blocks(); }

  // Blocks [first, last) on one thread.
  void run(std::int64_t first, std::int64_t last) const {
    const auto depth = static_cast<std::size_t>(a_.depth());
    const auto pitch = static_cast<std::size_t>(pitch_);
    Room room{aligned<W>(kRows * depth + 1), aligned<W>(kTile * depth + 1),
              aligned<W>(kTile * depth + 1), aligned<W>(kTile * pitch),
              aligned<W>(kRows * kTile),     aligned<W>(kRows * pitch)};
    for (std::int64_t block = first; block < last; ++block) run_one(block, room);
  }

 private:
  using Memory = Aligned<W>;
  struct Room {
    Memory q, k, keys, v, scores, result;  // keys: k with its dimensions exchanged
  };

  std::int64_t own_key(std::int64_t i) const { return i + a_.keys() - a_.queries(); }
  std::int64_t first_key(std::int64_t i) const {
    return a_.window < 0 ? 0 : std::max<std::int64_t>(0, own_key(i) - a_.window);
  }
  std::int64_t last_key(std::int64_t i) const {
    return a_.causal ? std::min(a_.keys(), own_key(i) + 1) : a_.keys();
  }

  // What becomes of the products of query i with keys [key, key + kTile).
  void score(W* products, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t key) const {
    constexpr W kNever = -std::numeric_limits<W>::infinity();
    const std::int64_t first = first_key(i), last = last_key(i);
    const W scale = static_cast<W>(a_.scale), cap = static_cast<W>(a_.softcap);
    for (std::int64_t j = 0; j < kTile; ++j) products[j] *= scale;
    if (cap != W(0)) {
      for (std::int64_t j = 0; j < kTile; ++j) products[j] = cap * std::tanh(products[j] / cap);
    }
    if (slopes_ != nullptr) {
      const W slope = convert<W>(slopes_[h]);
      for (std::int64_t j = 0; j < kTile; ++j) {
        products[j] += slope * static_cast<W>(key + j - own_key(i));
      }
    }
    if (mask_ != nullptr) {
      const Dims& at = a_.mask->strides();
      const std::int64_t start = b * at[0] + h * at[1] + i * at[2] + key * at[3];
      const std::int64_t count = std::min(kTile, a_.keys() - key);
      if (is_float(a_.mask->dtype())) {
        const T* mask = reinterpret_cast<const T*>(mask_) + start;
        for (std::int64_t j = 0; j < count; ++j) products[j] += convert<W>(mask[j * at[3]]);
      } else {
        const std::byte* mask = mask_ + start;
        for (std::int64_t j = 0; j < count; ++j) {
          if (mask[j * at[3]] == std::byte{0}) products[j] = kNever;
        }
      }
    }
    for (std::int64_t j = 0; j < std::min(kTile, first - key); ++j) products[j] = kNever;
    for (std::int64_t j = std::max<std::int64_t>(0, last - key); j < kTile; ++j) {
      products[j] = kNever;
    }
  }

  void run_one(std::int64_t block, Room& room) const {
    const std::int64_t row0 = block % row_blocks() * kRows;
    const std::int64_t kv = block / row_blocks() % a_.kv_heads();
    const std::int64_t b = block / row_blocks() / a_.kv_heads();
    const std::int64_t rows = std::min(kRows, group_ * a_.queries() - row0);
    const std::int64_t depth = a_.depth(), dv = a_.value_depth();
    const Dims &qs = a_.q->strides(), &ks = a_.k->strides(), &vs = a_.v->strides();
    const auto head = [&](std::int64_t r) { return kv * group_ + (row0 + r) / a_.queries(); };
    const auto query = [&](std::int64_t r) { return (row0 + r) % a_.queries(); };

    std::int64_t begin = a_.keys(), end = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      widen_row(q_ + b * qs[0] + head(r) * qs[1] + query(r) * qs[2], qs[3], depth,
                room.q.get() + r * depth);
      begin = std::min(begin, first_key(query(r)));
      end = std::max(end, last_key(query(r)));
    }
    W most[kRows], sum[kRows], scale[kRows];
    std::fill_n(most, kRows, -std::numeric_limits<W>::infinity());
    std::fill_n(sum, kRows, W(0));
    std::fill_n(room.result.get(), rows * pitch_, W(0));

    for (std::int64_t key = begin; key < end; key += kTile) {
      const std::int64_t count = std::min(kTile, end - key);
      for (std::int64_t j = 0; j < count; ++j) {
        widen_row(k_ + b * ks[0] + kv * ks[1] + (key + j) * ks[2], ks[3], depth,
                  room.k.get() + j * depth);
        W* v = room.v.get() + j * pitch_;
        widen_row(v_ + b * vs[0] + kv * vs[1] + (key + j) * vs[2], vs[3], dv, v);
        std::fill(v + dv, v + pitch_, W(0));
      }
      if (rows < 4) {  // not worth exchanging the dimensions of the keys
        for (std::int64_t r = 0; r < rows; ++r) {
          W* scores = room.scores.get() + r * kTile;
          for (std::int64_t j = 0; j < count; ++j) {
            scores[j] = dot(room.q.get() + r * depth, room.k.get() + j * depth, depth);
          }
          std::fill(scores + count, scores + kTile, W(0));
        }
      } else {
        std::fill_n(room.keys.get(), count < kTile ? kTile * depth : 0, W(0));
        for (std::int64_t j = 0; j < count; ++j) {
          const W* from = room.k.get() + j * depth;
          for (std::int64_t i = 0; i < depth; ++i) room.keys[i * kTile + j] = from[i];
        }
        multiply_keys(room.q.get(), rows, depth, room.keys.get(), room.scores.get());
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        W* scores = room.scores.get() + r * kTile;
        score(scores, b, head(r), query(r), key);
        std::fill(scores + count, scores + kTile, -std::numeric_limits<W>::infinity());
        scale[r] = weigh(scores, most[r], sum[r]);
      }
      std::int64_t r = 0;
      for (; r + 2 <= rows; r += 2) {
        add_values<2>(room.result.get() + r * pitch_, pitch_, scale + r,
                      room.scores.get() + r * kTile, count, room.v.get());
      }
      if (r < rows) {
        add_values<1>(room.result.get() + r * pitch_, pitch_, scale + r,
                      room.scores.get() + r * kTile, count, room.v.get());
      }
    }

    for (std::int64_t r = 0; r < rows; ++r) {
      W* result = room.result.get() + r * pitch_;
      const W by = sum[r] == W(0) ? W(0) : W(1) / sum[r];
      for (std::int64_t c = 0; c < dv; ++c) result[c] *= by;
      narrow_row(
          result, dv,
          out_ + b * out_strides_[0] + head(r) * out_strides_[1] + query(r) * out_strides_[2],
          out_strides_[3]);
    }
  }

  const ops::AttentionArguments& a_;
  const T* q_;
  const T* k_;
  const T* v_;
  T* out_;
  Dims out_strides_;
  const T* slopes_;
  const std::byte* mask_;
  std::int64_t group_;
  std::int64_t pitch_;  // elements of a row of values or results, in whole vectors
};

void attention_blocks(const ops::AttentionArguments& arguments, Tensor& out) {
  const Stream stream = out.device().stream();
  visit_float("attention", out.dtype(), [&]<class T> {
    const Block<T> block(arguments, out, stream);
    // A block is thousands of products with each key, unless there is little of everything.
    const std::int64_t work = kRows * arguments.keys() * (arguments.depth() + 16);
    const std::int64_t grain = std::max<std::int64_t>(1, 65536 / work);
    ThreadPool::shared().parallel_for(
        0, block.blocks(), grain,
        [&](std::int64_t first, std::int64_t last) { block.run(first, last); });
  });
}

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tl::cpu {

HWY_EXPORT(attention_blocks);

void attention(const ops::AttentionArguments& arguments, Tensor& out) {
  HWY_DYNAMIC_DISPATCH(attention_blocks)(arguments, out);
}

}  // namespace tl::cpu
#endif
