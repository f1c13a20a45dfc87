// Sampling a token: greedy, with the defaults, and without top-k, of 32000 and of 151936 logits,
// for one row and for 16, on the CPU and on the GPUs that are there. On a GPU a round is a chain of
// tokens that nobody waits for, as when a model generates: the time is per token.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tl/model/sampler.h"
#include "tl/ops/random.h"

namespace tl {
namespace {

constexpr int kChain = 64;  // tokens of a round

void sample_rows(benchmark::State& state, const Device& device, const SamplingOptions& options,
                 std::int64_t vocabulary, std::int64_t rows) {
  const Tensor logits = rand_normal(0, 3, {rows, vocabulary}, DType::F32, device);
  std::vector<Sampler> samplers;
  std::vector<Sampler*> pointers;
  samplers.reserve(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    SamplingOptions mine = options;
    mine.seed = static_cast<std::uint64_t>(r);
    pointers.push_back(&samplers.emplace_back(mine, vocabulary, device));
  }
  const int chain = device.is_cpu() ? 1 : kChain;
  for ([[maybe_unused]] const auto _ : state) {
    for (int i = 0; i < chain; ++i) {
      benchmark::DoNotOptimize(Sampler::sample(pointers, logits).memory().data());
    }
    device.synchronize();
  }
  state.counters["per token"] =
      benchmark::Counter(static_cast<double>(chain), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

SamplingOptions changed(const std::function<void(SamplingOptions&)>& change) {
  SamplingOptions options;
  change(options);
  return options;
}

}  // namespace
}  // namespace tl

int main(int argc, char** argv) {
  using tl::SamplingOptions;
  const std::vector<std::pair<std::string, SamplingOptions>> cases = {
      {"greedy", tl::changed([](SamplingOptions& o) { o.temperature = 0; })},
      {"defaults", SamplingOptions()},
      {"defaults and penalties", tl::changed([](SamplingOptions& o) {
         o.repetition_penalty = 1.1;
         o.frequency_penalty = 0.1;
       })},
      {"top-p alone", tl::changed([](SamplingOptions& o) {
         o.top_k = 0;
         o.min_p = 0;
       })},
      {"min-p alone", tl::changed([](SamplingOptions& o) {
         o.top_k = 0;
         o.top_p = 1;
       })},
      {"typical alone", tl::changed([](SamplingOptions& o) {
         o.top_k = 0;
         o.top_p = 1;
         o.min_p = 0;
         o.typical_p = 0.9;
       })},
      {"temperature alone", tl::changed([](SamplingOptions& o) {
         o.top_k = 0;
         o.top_p = 1;
         o.min_p = 0;
       })}};
  for (const tl::Device& device : tl::Device::all()) {
    for (const std::int64_t vocabulary : {32000, 151936}) {
      for (const std::int64_t rows : {1, 16}) {
        for (const auto& [name, options] : cases) {
          const std::string title = device.text() + "/" + name + "/" + std::to_string(vocabulary) +
                                    "/" + std::to_string(rows);
          benchmark::RegisterBenchmark(title.c_str(), tl::sample_rows, device, options, vocabulary,
                                       rows)
              ->UseRealTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
