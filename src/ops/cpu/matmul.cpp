#include "ops/cpu/matmul.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/cpu/gemm.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

// The same product seen as C' = B' * A', each of them transposed.
void transpose(Gemm& g) {
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  std::swap(g.a_row, g.b_col);
  std::swap(g.a_col, g.b_row);
  std::swap(g.c_row, g.c_col);
  std::swap(g.bias_row, g.bias_col);
}

// Products so small that nothing but the sums themselves should be done.
template <class T, class Sum>
void tiny(const Gemm& g) {
  const auto* a = static_cast<const T*>(g.a);
  const auto* b = static_cast<const T*>(g.b);
  const auto* bias = static_cast<const T*>(g.bias);
  auto* c = static_cast<T*>(g.c);
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      const T* x = a + i * g.a_row;
      const T* y = b + j * g.b_col;
      Sum sum = 0;
      for (std::int64_t p = 0; p < g.k; ++p) {
        sum += static_cast<Sum>(x[p * g.a_col]) * static_cast<Sum>(y[p * g.b_row]);
      }
      if (bias != nullptr) sum += static_cast<Sum>(bias[i * g.bias_row + j * g.bias_col]);
      c[i * g.c_row + j * g.c_col] = convert<T>(sum);
    }
  }
}

// Integers are summed in unsigned words, which wrap as the dtype does. Threads share the rows of C;
// each adds up whole rows of B, a stripe of columns at a time.
template <class T>
void gemm_integer(const Gemm& g) {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr std::int64_t kStripe = 256, kBlock = 128;
  const auto* a = static_cast<const T*>(g.a);
  const auto* b = static_cast<const T*>(g.b);
  const auto* bias = static_cast<const T*>(g.bias);
  auto* c = static_cast<T*>(g.c);
  const std::int64_t grain = std::max<std::int64_t>(8, 100000 / (g.n * g.k));
  ThreadPool::shared().parallel_for(0, g.m, grain, [&](std::int64_t first, std::int64_t last) {
    std::vector<Word> block(static_cast<std::size_t>(kBlock * kStripe));
    std::vector<Word> sums(static_cast<std::size_t>((last - first) * kStripe));
    for (std::int64_t j0 = 0; j0 < g.n; j0 += kStripe) {
      const std::int64_t columns = std::min(kStripe, g.n - j0);
      std::fill(sums.begin(), sums.end(), Word{0});
      for (std::int64_t p0 = 0; p0 < g.k; p0 += kBlock) {
        const std::int64_t depth = std::min(kBlock, g.k - p0);
        // Along whichever way B lies in memory.
        const T* from = b + p0 * g.b_row + j0 * g.b_col;
        const bool down = g.b_row == 1;
        const std::int64_t outer = down ? columns : depth, inner = down ? depth : columns;
        const std::int64_t outer_step = down ? g.b_col : g.b_row;
        const std::int64_t inner_step = down ? g.b_row : g.b_col;
        for (std::int64_t y = 0; y < outer; ++y) {
          for (std::int64_t x = 0; x < inner; ++x) {
            block[static_cast<std::size_t>(down ? x * kStripe + y : y * kStripe + x)] =
                static_cast<Word>(from[y * outer_step + x * inner_step]);
          }
        }
        for (std::int64_t i = first; i < last; ++i) {
          Word* to = sums.data() + (i - first) * kStripe;
          for (std::int64_t p = 0; p < depth; ++p) {
            const Word x = static_cast<Word>(a[i * g.a_row + (p0 + p) * g.a_col]);
            const Word* row = block.data() + p * kStripe;
            for (std::int64_t j = 0; j < columns; ++j) to[j] += x * row[j];
          }
        }
      }
      for (std::int64_t i = first; i < last; ++i) {
        const Word* from = sums.data() + (i - first) * kStripe;
        for (std::int64_t j = 0; j < columns; ++j) {
          Word sum = from[j];
          if (bias != nullptr) {
            sum += static_cast<Word>(bias[i * g.bias_row + (j0 + j) * g.bias_col]);
          }
          c[i * g.c_row + (j0 + j) * g.c_col] = static_cast<T>(sum);
        }
      }
    }
  });
}

void multiply(Gemm g) {
  const bool is_tiny = g.m * g.n * g.k <= 512;
  visit_dtype("matmul", g.dtype, [&]<class T> {
    if constexpr (std::is_same_v<T, bool>) {
      return;  // the checks let no bool through
    } else if constexpr (std::is_integral_v<T>) {
      using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
      is_tiny ? tiny<T, Word>(g) : gemm_integer<T>(g);
    } else {
      using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
      if (is_tiny) return tiny<T, Sum>(g);
      if (g.n < g.m && g.n <= 4) transpose(g);
      if (gemm_amx(g, g.dtype)) return;
      if (g.dtype == DType::BF16 && g.m > 4 && gemm_bf16(g)) return;
      gemm_float(g);
    }
  });
}

}  // namespace

void matmul(const ops::Product& p, Tensor& out) {
  const Stream stream = out.device().stream();
  const std::size_t size = size_of(out.dtype());
  const std::byte* a = p.a.read(stream);
  const std::byte* b = p.b.read(stream);
  const std::byte* bias = p.bias ? p.bias->read(stream) : nullptr;
  std::byte* c = out.write(stream);
  const Dims a_batch = p.batch_strides(p.a), b_batch = p.batch_strides(p.b);

  const auto one = [&](std::int64_t item) {
    std::int64_t rest = item, at_a = 0, at_b = 0;
    for (int d = p.batch.size() - 1; d >= 0; --d) {
      const std::int64_t i = rest % p.batch[d];
      rest /= p.batch[d];
      at_a += i * a_batch[d];
      at_b += i * b_batch[d];
    }
    Gemm g{};
    g.dtype = out.dtype();
    g.m = p.m;
    g.n = p.n;
    g.k = p.k;
    g.a = a + static_cast<std::uint64_t>(at_a) * size;
    // A dimension of size 1 has no stride worth looking at: 1 serves best.
    g.a_row = p.a_row();
    g.a_col = p.k == 1 ? 1 : p.a_col();
    g.b = b + static_cast<std::uint64_t>(at_b) * size;
    g.b_row = p.k == 1 ? 1 : p.b_row();
    g.b_col = p.n == 1 ? 1 : p.b_col();
    g.bias = bias;
    if (p.bias) {
      g.bias_row = p.bias->strides()[0];
      g.bias_col = p.bias->strides()[1];
    }
    g.c = c + static_cast<std::uint64_t>(item * p.m * p.n) * size;
    g.c_row = p.n;
    g.c_col = 1;
    multiply(g);
  };

  // Whole items for each thread when there are enough of them; loops inside then run on the thread
  // they are on.
  const std::int64_t items = p.items();
  ThreadPool& pool = ThreadPool::shared();
  if (items >= pool.threads()) {
    const std::int64_t grain = std::max<std::int64_t>(1, 200000 / (p.m * p.n * p.k));
    pool.parallel_for(0, items, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) one(i);
    });
  } else {
    for (std::int64_t i = 0; i < items; ++i) one(i);
  }
}

}  // namespace tl::cpu
