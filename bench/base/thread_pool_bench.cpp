// What handing a loop to the pool costs, beside the same loop on one thread. The size from which
// the pool wins is the grain worth asking for.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tl/base/thread_pool.h"

namespace tl {
namespace {

void add_one(std::vector<float>& values, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i) values[static_cast<std::size_t>(i)] += 1.0F;
}

void one_thread(benchmark::State& state) {
  std::vector<float> values(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    add_one(values, 0, state.range(0));
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
}

void pool(benchmark::State& state) {
  std::vector<float> values(static_cast<std::size_t>(state.range(0)));
  ThreadPool threads;
  for (auto _ : state) {
    threads.parallel_for(0, state.range(0), 1, [&](std::int64_t first, std::int64_t last) {
      add_one(values, first, last);
    });
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
}

BENCHMARK(one_thread)->RangeMultiplier(16)->Range(1 << 8, 1 << 24)->UseRealTime();
BENCHMARK(pool)->RangeMultiplier(16)->Range(1 << 8, 1 << 24)->UseRealTime();

}  // namespace
}  // namespace tl
