#include "ops/cpu/random.h"

#include "kernels/random_numbers.h"
#include "tl/base/thread_pool.h"

namespace tl::cpu {

namespace {

// f(block, k) for every element: the block of its position and its place there.
template <int kEach, class T, class F>
void fill_random(Tensor& out, std::uint64_t seed, std::uint64_t position, F&& f) {
  T* to = out.write<T>(out.device().stream());
  const std::int64_t count = out.count();
  ThreadPool::shared().parallel_for(
      0, (count + kEach - 1) / kEach, 4096, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t p = first; p < last; ++p) {
          const random::Block block =
              random::philox(seed, position + static_cast<std::uint64_t>(p));
          for (int k = 0; k < kEach && p * kEach + k < count; ++k) {
            to[p * kEach + k] = f(block, k);
          }
        }
      });
}

template <class T>
using MadeOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace

void rand_uniform(Tensor& out, std::uint64_t seed, std::uint64_t position, double low, double width,
                  double last) {
  visit_float("rand_uniform", out.dtype(), [&]<class T> {
    using C = MadeOf<T>;
    const C from = static_cast<C>(low), wide = static_cast<C>(width), end = static_cast<C>(last);
    fill_random<random::kPerBlock<C>, T>(
        out, seed, position, [&](const random::Block& block, int k) {
          const T x = convert<T>(random::uniform(block, k, from, wide));
          return convert<C>(x) > end ? convert<T>(end) : x;
        });
  });
}

void rand_normal(Tensor& out, std::uint64_t seed, std::uint64_t position, double mean,
                 double deviation) {
  visit_float("rand_normal", out.dtype(), [&]<class T> {
    using C = MadeOf<T>;
    fill_random<random::kPerBlock<C>, T>(
        out, seed, position, [&](const random::Block& block, int k) {
          return convert<T>(
              random::normal(block, k, static_cast<C>(mean), static_cast<C>(deviation)));
        });
  });
}

void randint(Tensor& out, std::uint64_t seed, std::uint64_t position, std::int64_t low,
             std::uint64_t range) {
  visit_dtype("randint", out.dtype(), [&]<class T> {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      fill_random<2, T>(out, seed, position, [&](const random::Block& block, int k) {
        return static_cast<T>(random::integer(block, k, low, range));
      });
    }
  });
}

}  // namespace tl::cpu
