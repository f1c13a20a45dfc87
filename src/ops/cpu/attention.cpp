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
#include "ops/cpu/attention_scores-inl.h"
#include "ops/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

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
        logs_(a_.logs == nullptr ? nullptr : a_.logs->write<W>(stream)),
        scores_(a_, stream),
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
      if (depth > 0) {
        widen_row(q_ + b * qs[0] + head(r) * qs[1] + query(r) * qs[2], qs[3], depth,
                  room.q.get() + r * depth);
      }
      begin = std::min(begin, scores_.first_key(query(r)));
      end = std::max(end, scores_.last_key(query(r)));
    }
    W most[kRows], sum[kRows], scale[kRows];
    std::fill_n(most, kRows, -std::numeric_limits<W>::infinity());
    std::fill_n(sum, kRows, W(0));
    std::fill_n(room.result.get(), rows * pitch_, W(0));

    for (std::int64_t key = begin; key < end; key += kTile) {
      const std::int64_t count = std::min(kTile, end - key);
      for (std::int64_t j = 0; j < count; ++j) {
        if (depth > 0) {  // else the keys are no memory at all, in which nothing has a place
          widen_row(k_ + b * ks[0] + kv * ks[1] + (key + j) * ks[2], ks[3], depth,
                    room.k.get() + j * depth);
        }
        W* v = room.v.get() + j * pitch_;
        widen_row(v_ + b * vs[0] + kv * vs[1] + (key + j) * vs[2], vs[3], dv, v);
        std::fill(v + dv, v + pitch_, W(0));
      }
      tile_scores(room.q.get(), rows, depth, room.k.get(), count, room.keys.get(),
                  room.scores.get());
      for (std::int64_t r = 0; r < rows; ++r) {
        W* scores = room.scores.get() + r * kTile;
        scores_.bend(scores);
        scores_.add(scores, b, head(r), query(r), key);
        std::fill(scores + count, scores + kTile, -std::numeric_limits<W>::infinity());
        scale[r] = weigh(scores, most[r], sum[r]);
      }
      tile_values(room.result.get(), pitch_, scale, room.scores.get(), rows, count, room.v.get());
    }

    for (std::int64_t r = 0; r < rows; ++r) {
      W* result = room.result.get() + r * pitch_;
      const W by = sum[r] == W(0) ? W(0) : W(1) / sum[r];
      for (std::int64_t c = 0; c < dv; ++c) result[c] *= by;
      if (logs_ != nullptr) {
        logs_[(b * a_.heads() + head(r)) * a_.queries() + query(r)] =
            sum[r] == W(0) ? std::numeric_limits<W>::infinity() : most[r] + std::log(sum[r]);
      }
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
  W* logs_;  // may be null
  Scores<T> scores_;
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
