// Products of quantised matrices on the CPU: a vector (m = 1) and a batch (m = 512) times 4096 x
// 4096 and 14336 x 4096. Beside it bench/quant/ggml_products.cpp times the same with ggml; run them
// in turns, with the same number of threads (TL_NUM_THREADS), and compare the least times of one
// call, which other work on the machine disturbs least:
//
//   TL_NUM_THREADS=2 quant_bench --benchmark_min_time=1
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tl/ops/random.h"
#include "tl/quant/qtensor.h"

namespace tl {
namespace {

void linear_of(benchmark::State& state, QType type, std::int64_t n, std::int64_t k,
               std::int64_t m) {
  // Made once, however often the benchmark is repeated.
  static std::map<std::pair<QType, std::int64_t>, QTensor> made;
  QTensor& w = made[{type, n}];
  if (w.count() == 0) w = QTensor::quantize(rand_normal(0, 1, {n, k}, DType::F32), type);
  const Tensor x = rand_normal(0, 1, {m, k}, DType::F32);
  using Clock = std::chrono::steady_clock;
  Clock::duration least = Clock::duration::max();
  for ([[maybe_unused]] const auto _ : state) {
    const Clock::time_point from = Clock::now();
    benchmark::DoNotOptimize(linear(x, w).memory().data());
    least = std::min(least, Clock::now() - from);
  }
  // A label, because counters are printed with too few digits.
  const auto tenths = std::chrono::duration_cast<std::chrono::nanoseconds>(least).count() / 100;
  state.SetLabel("least " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
                 " us");
  const auto products = static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(m);
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(w.size_bytes()) / 1e9,
                                              benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GMAC/s"] =
      benchmark::Counter(products / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace
}  // namespace tl

int main(int argc, char** argv) {
  using tl::QType;
  for (const std::int64_t m : {1, 512}) {
    for (const std::int64_t n : {4096, 14336}) {
      for (const QType type : {QType::Q4_0, QType::Q4_K, QType::Q6_K, QType::Q8_0}) {
        const std::string title =
            std::string(name(type)) + "/" + std::to_string(n) + "x4096/" + std::to_string(m);
        benchmark::RegisterBenchmark(title.c_str(), tl::linear_of, type, n, 4096, m)
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
