// What the language adds to the library's own cost, and how fast its scalars are. The same loop in
// Python: bench/lang/loop.py.
#include <benchmark/benchmark.h>

#include <sstream>
#include <string>

#include "tl/lang/interpreter.h"
#include "tl/ops/binary.h"
#include "tl/ops/create.h"
#include "tl/ops/unary.h"

namespace {

constexpr int kTurns = 10000;

void run_program(benchmark::State& state, const std::string& body) {
  std::ostringstream out;
  tl::InterpreterOptions options;
  options.out = &out;
  tl::Interpreter interpreter(std::move(options));
  const std::string program =
      "fn work(n: int) -> void {\n" + body + "\n}\nmain { work(" + std::to_string(kTurns) + ") }\n";
  if (!interpreter.load_text("bench", program)) {
    state.SkipWithError(interpreter.report().c_str());
    return;
  }
  for (auto _ : state) interpreter.run_main();
  state.SetItemsProcessed(state.iterations() * kTurns);
}

void scalar_loop(benchmark::State& state) {
  run_program(state, "let s = 0 let i = 0 while i < n { s = s + i % 7 i = i + 1 }");
}
void calls(benchmark::State& state) {
  run_program(state, "let s = 0 for i in 0..n { s = max(s, i) }");
}
void program_add(benchmark::State& state) {
  run_program(state, "let a = ones([4]) let b = ones([4]) for i in 0..n { let c = a + b }");
}
void library_add(benchmark::State& state) {
  const tl::Tensor a = tl::ones({4}, tl::DType::F32, tl::Device::cpu());
  const tl::Tensor b = a;
  for (auto _ : state) benchmark::DoNotOptimize(tl::add(a, b));
  state.SetItemsProcessed(state.iterations());
}
void program_exp(benchmark::State& state) {
  run_program(state, "let a = ones([4]) for i in 0..n { let c = exp(a) }");
}
void library_exp(benchmark::State& state) {
  const tl::Tensor a = tl::ones({4}, tl::DType::F32, tl::Device::cpu());
  for (auto _ : state) benchmark::DoNotOptimize(tl::exp(a));
  state.SetItemsProcessed(state.iterations());
}

}  // namespace

BENCHMARK(scalar_loop);
BENCHMARK(calls);
BENCHMARK(library_add);
BENCHMARK(program_add);
BENCHMARK(library_exp);
BENCHMARK(program_exp);

BENCHMARK_MAIN();
