// What becomes of products of queries and keys, for attention and for its gradient: compiled once
// per instruction set (Highway's foreach_target).
//
// A file that uses it is included again for every target; this header goes along.
#if defined(TL_OPS_CPU_ATTENTION_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TL_OPS_CPU_ATTENTION_SCORES_INL_H_
#undef TL_OPS_CPU_ATTENTION_SCORES_INL_H_
#else
#define TL_OPS_CPU_ATTENTION_SCORES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/attention.h"
#include "ops/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tl::cpu::HWY_NAMESPACE {

// Rows of kTile products at a time: of one query with the keys from `key` on.
template <class T>
class Scores {
 public:
  using W = Wide<T>;

  Scores(const ops::AttentionArguments& arguments, const Stream& stream)
      : a_(arguments),
        slopes_(a_.slopes == nullptr ? nullptr : a_.slopes->read<T>(stream)),
        mask_(a_.mask == nullptr ? nullptr : a_.mask->read(stream)) {}

  // The keys that query i may see: [first, last).
  std::int64_t first_key(std::int64_t i) const {
    return a_.window < 0 ? 0 : std::max<std::int64_t>(0, own_key(i) - a_.window);
  }
  std::int64_t last_key(std::int64_t i) const {
    return a_.causal ? std::min(a_.keys(), own_key(i) + 1) : a_.keys();
  }

  // Scales them and, with a cap, bends them.
  void bend(W* products) const {
    const W scale = static_cast<W>(a_.scale), cap = static_cast<W>(a_.softcap);
    for (std::int64_t j = 0; j < kTile; ++j) products[j] *= scale;
    if (cap != W(0)) {
      for (std::int64_t j = 0; j < kTile; ++j) products[j] = cap * std::tanh(products[j] / cap);
    }
  }
  // Adds what slopes and the mask have for query i of head h; what it does not see becomes -inf.
  void add(W* products, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t key) const {
    constexpr W kNever = -std::numeric_limits<W>::infinity();
    const std::int64_t first = first_key(i), last = last_key(i);
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

 private:
  std::int64_t own_key(std::int64_t i) const { return i + a_.keys() - a_.queries(); }

  const ops::AttentionArguments& a_;
  const T* slopes_;
  const std::byte* mask_;
};

}  // namespace tl::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard that opens again for every target
