// Sorting on the CPU: elements become unsigned keys (kernels/gpu_order.h) that travel with their
// indices. No two pairs of key and index are equal, so any sort of pairs is a stable sort of
// elements. Long rows are sorted by radix, 11 bits at a time, with the counts of all digits taken
// in one go; where there are fewer rows than threads, threads sort pieces of a row and merge them.
#include "ops/cpu/sort.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "ops/cpu/walk.h"
#include "ops/order.h"

namespace tl::cpu {

namespace {

using kernels::Order;

// Keys of up to four bytes share a word with their index: pairs compare as one number.
struct Packed {
  std::uint64_t word;
  std::uint64_t key() const { return word >> 32; }
  std::uint32_t index() const { return static_cast<std::uint32_t>(word); }
  static Packed make(std::uint64_t key, std::uint32_t index) { return {key << 32 | index}; }
  friend bool operator<(Packed a, Packed b) { return a.word < b.word; }
};
struct Wide {
  std::uint64_t word;
  std::uint32_t at;
  std::uint64_t key() const { return word; }
  std::uint32_t index() const { return at; }
  static Wide make(std::uint64_t key, std::uint32_t index) { return {key, index}; }
  friend bool operator<(const Wide& a, const Wide& b) {
    return a.word != b.word ? a.word < b.word : a.at < b.at;
  }
};

// Shorter rows are sorted by comparison.
constexpr std::int64_t kShortRow = 512;
// A row this long is worth several threads.
constexpr std::int64_t kLongRow = 1 << 16;

// Sorts pairs[0, n); `other` has as much room. Gives the one of the two that has the result.
template <int kKeyBits, class Pair>
Pair* radix_sort(Pair* pairs, Pair* other, std::int64_t n) {
  constexpr int kBits = kKeyBits < 11 ? kKeyBits : kKeyBits == 16 ? 8 : 11;
  constexpr int kPasses = (kKeyBits + kBits - 1) / kBits;
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
  std::vector<std::array<std::uint32_t, kMask + 1>> counts(kPasses);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t key = pairs[i].key();
    for (std::size_t p = 0; p < kPasses; ++p) ++counts[p][key >> (p * kBits) & kMask];
  }
  for (std::size_t p = 0; p < kPasses; ++p) {
    auto& count = counts[p];
    const auto shift = p * kBits;
    if (count[pairs[0].key() >> shift & kMask] == static_cast<std::uint64_t>(n)) continue;
    std::uint32_t start = 0;
    for (std::uint32_t& c : count) start += std::exchange(c, start);
    for (std::int64_t i = 0; i < n; ++i) {
      other[count[pairs[i].key() >> shift & kMask]++] = pairs[i];
    }
    std::swap(pairs, other);
  }
  return pairs;
}

template <int kKeyBits, class Pair>
Pair* sort_pairs(Pair* pairs, Pair* other, std::int64_t n) {
  if (n > kShortRow) return radix_sort<kKeyBits>(pairs, other, n);
  std::sort(pairs, pairs + n);
  return pairs;
}

// How many of the first `count` pairs of the merged sequence come from `a`.
template <class Pair>
std::int64_t merge_split(const Pair* a, std::int64_t a_count, const Pair* b, std::int64_t b_count,
                         std::int64_t count) {
  std::int64_t low = std::max<std::int64_t>(0, count - b_count), high = std::min(count, a_count);
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (a[middle] < b[count - middle - 1]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class Pair>
void merge_part(const Pair* a, std::int64_t a_count, const Pair* b, std::int64_t b_count,
                std::int64_t first, std::int64_t last, Pair* out) {
  std::int64_t i = merge_split(a, a_count, b, b_count, first), j = first - i;
  for (std::int64_t k = first; k < last; ++k) {
    const bool from_b = j < b_count && (i >= a_count || b[j] < a[i]);
    out[k] = from_b ? b[j] : a[i];
    j += from_b ? 1 : 0;
    i += from_b ? 0 : 1;
  }
}

// One row by all threads.
template <int kKeyBits, class Pair>
Pair* sort_together(Pair* pairs, Pair* other, std::int64_t n) {
  ThreadPool& pool = ThreadPool::shared();
  std::int64_t pieces = 1;
  while (pieces * 2 <= pool.threads() && n / (pieces * 2) >= kLongRow / 4) pieces *= 2;
  const auto start = [&](std::int64_t piece) { return n * piece / pieces; };
  pool.parallel_for(0, pieces, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first; p < last; ++p) {
      const std::int64_t from = start(p), count = start(p + 1) - from;
      const Pair* result = sort_pairs<kKeyBits>(pairs + from, other + from, count);
      if (result != pairs + from) std::copy(result, result + count, pairs + from);
    }
  });
  for (std::int64_t width = 1; width < pieces; width *= 2) {
    const std::int64_t merges = pieces / (2 * width), parts = pieces / merges;
    pool.parallel_for(0, pieces, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t unit = first; unit < last; ++unit) {
        const std::int64_t merge = unit / parts, part = unit % parts;
        const std::int64_t a = start(2 * width * merge), b = start(2 * width * merge + width);
        const std::int64_t end = start(2 * width * (merge + 1));
        const std::int64_t count = end - a;
        merge_part(pairs + a, b - a, pairs + b, end - b, count * part / parts,
                   count * (part + 1) / parts, other + a);
      }
    });
    std::swap(pairs, other);
  }
  return pairs;
}

template <class Word>
class RowSorter {
 public:
  using Pair = std::conditional_t<sizeof(Word) == 8, Wide, Packed>;
  static constexpr int kKeyBits = 8 * sizeof(Word);

  RowSorter(const Order& order, std::int64_t cols)
      : order_(order),
        cols_(cols),
        pairs_(std::make_unique_for_overwrite<Pair[]>(static_cast<std::size_t>(cols))),
        other_(std::make_unique_for_overwrite<Pair[]>(static_cast<std::size_t>(cols))) {}

  void sort(const Word* x, std::int64_t keep, Word* values, std::uint32_t* indices, bool together) {
    for (std::int64_t i = 0; i < cols_; ++i) {
      pairs_[static_cast<std::size_t>(i)] =
          Pair::make(kernels::order_key(order_, x[i]), static_cast<std::uint32_t>(i));
    }
    const Pair* sorted = pairs_.get();
    if (keep < cols_ / 8) {
      std::nth_element(pairs_.get(), pairs_.get() + keep, pairs_.get() + cols_);
      sorted = sort_pairs<kKeyBits>(pairs_.get(), other_.get(), keep);
    } else if (together) {
      sorted = sort_together<kKeyBits>(pairs_.get(), other_.get(), cols_);
    } else {
      sorted = sort_pairs<kKeyBits>(pairs_.get(), other_.get(), cols_);
    }
    // Zeros have one key for both signs, and NaNs one for all: those are fetched.
    const std::uint64_t zero = kernels::order_key(order_, Word{0});
    const std::uint64_t nan = static_cast<Word>(order_.nan);
    for (std::int64_t i = 0; i < keep; ++i) {
      const std::uint64_t key = sorted[i].key();
      indices[i] = sorted[i].index();
      values[i] = key == zero || key == nan ? x[sorted[i].index()]
                                            : kernels::bits_of_key(order_, static_cast<Word>(key));
    }
  }

 private:
  const Order& order_;
  std::int64_t cols_;
  std::unique_ptr<Pair[]> pairs_, other_;
};

template <class Word>
void sort_rows(const Order& order, const Word* x, std::int64_t rows, std::int64_t cols,
               std::int64_t keep, Word* values, std::uint32_t* indices) {
  if (cols >= kLongRow && rows < ThreadPool::shared().threads()) {
    RowSorter<Word> sorter(order, cols);
    for (std::int64_t r = 0; r < rows; ++r) {
      sorter.sort(x + r * cols, keep, values + r * keep, indices + r * keep, true);
    }
    return;
  }
  const std::int64_t grain = std::max<std::int64_t>(kGrain / 8 / cols, 1);
  ThreadPool::shared().parallel_for(0, rows, grain, [&](std::int64_t first, std::int64_t last) {
    RowSorter<Word> sorter(order, cols);
    for (std::int64_t r = first; r < last; ++r) {
      sorter.sort(x + r * cols, keep, values + r * keep, indices + r * keep, false);
    }
  });
}

}  // namespace

void sort(const Tensor& x, bool descending, std::int64_t keep, Tensor& values, Tensor& indices) {
  const Stream stream = values.device().stream();
  const Order order = ops::order_of(x.dtype(), descending, !descending);
  const std::int64_t cols = x.shape()[x.rank() - 1], rows = x.count() / cols;
  std::uint32_t* places = indices.write<std::uint32_t>(stream);
  const auto run = [&]<class Word>(Word) {
    sort_rows(order, x.read<Word>(stream), rows, cols, keep, values.write<Word>(stream), places);
  };
  switch (size_of(x.dtype())) {
    case 1:
      return run(std::uint8_t{});
    case 2:
      return run(std::uint16_t{});
    case 4:
      return run(std::uint32_t{});
    default:
      return run(std::uint64_t{});
  }
}

}  // namespace tl::cpu
