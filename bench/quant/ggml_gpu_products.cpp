// The peer of quant_gpu_bench: the same products with ggml's CUDA backend. Not part of the build.
// With a ggml built in GGML/build (static libraries, -DGGML_CUDA=ON):
//
//   g++ -O2 -std=c++20 -IGGML/include bench/quant/ggml_gpu_products.cpp -o ggml_gpu_products \
//     GGML/build/src/libggml.a GGML/build/src/libggml-cpu.a \
//     GGML/build/src/ggml-cuda/libggml-cuda.a GGML/build/src/libggml-base.a \
//     -fopenmp -lpthread -ldl -lcudart -lcublas -lcublasLt -lcuda
//
// Weights are taken in turn from copies that exceed the cache. A long product of f32 comes first,
// behind which the launches queue up; its time alone is subtracted.
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cuda.h>
#include <ggml.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

double graph_seconds(ggml_backend_t backend, ggml_cgraph* graph) {
  std::vector<double> times;
  for (int round = 0; round < 9; ++round) {
    const auto from = std::chrono::steady_clock::now();
    ggml_backend_graph_compute(backend, graph);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  }
  std::sort(times.begin(), times.end());
  return times[4];
}

double microseconds_of(ggml_backend_t backend, ggml_type type, int64_t n, int64_t k, int64_t m) {
  constexpr int kCalls = 300;
  constexpr int64_t kLong = 12288;
  const size_t matrix_bytes = ggml_row_size(type, k) * static_cast<size_t>(n);
  const size_t copies = (static_cast<size_t>(256) << 20) / matrix_bytes + 1;
  ggml_init_params params = {ggml_tensor_overhead() * 1024 + 3 * ggml_graph_overhead(), nullptr,
                             true};
  ggml_context* context = ggml_init(params);
  std::vector<ggml_tensor*> weights;
  for (size_t i = 0; i < copies; ++i) weights.push_back(ggml_new_tensor_2d(context, type, k, n));
  ggml_tensor* x = ggml_new_tensor_2d(context, GGML_TYPE_F32, k, m);
  ggml_tensor* big = ggml_new_tensor_2d(context, GGML_TYPE_F32, kLong, kLong);
  ggml_tensor* before = ggml_mul_mat(context, big, big);
  ggml_cgraph* alone = ggml_new_graph(context);
  ggml_build_forward_expand(alone, before);
  ggml_cgraph* both = ggml_new_graph(context);
  ggml_build_forward_expand(both, before);
  for (int i = 0; i < kCalls; ++i) {
    ggml_build_forward_expand(both,
                              ggml_mul_mat(context, weights[static_cast<size_t>(i) % copies], x));
  }
  ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, backend);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<size_t>(k));
  std::vector<char> blocks(matrix_bytes);
  constexpr int64_t kDifferent = 64;  // rows; the others repeat them
  const size_t row_bytes = ggml_row_size(type, k);
  for (int64_t r = 0; r < n; ++r) {
    char* to = blocks.data() + r * static_cast<int64_t>(row_bytes);
    if (r >= kDifferent) {
      std::memcpy(to, to - kDifferent * static_cast<int64_t>(row_bytes), row_bytes);
      continue;
    }
    for (float& v : row) v = normal(random);
    ggml_quantize_chunk(type, row.data(), to, 0, 1, k, nullptr);
  }
  std::vector<float> values(static_cast<size_t>(k * m));
  for (float& v : values) v = normal(random);
  ggml_backend_buffer_clear(buffer, 0);
  for (ggml_tensor* w : weights) ggml_backend_tensor_set(w, blocks.data(), 0, blocks.size());
  ggml_backend_tensor_set(x, values.data(), 0, values.size() * sizeof(float));
  const double without = graph_seconds(backend, alone);
  const double with = graph_seconds(backend, both);
  ggml_backend_buffer_free(buffer);
  ggml_free(context);
  return (with - without) * 1e6 / kCalls;
}

}  // namespace

// ggml_gpu_products [ROWS...]: so many rows of x, else all.
int main(int argc, char** argv) {
  ggml_backend_t backend = ggml_backend_cuda_init(0);
  if (backend == nullptr) return 1;
  struct Sizes {
    int64_t n, k;
  };
  std::vector<int64_t> rows = {1, 2, 4, 8, 16, 32, 64, 128, 512, 2048};
  if (argc > 1) rows.clear();
  for (int i = 1; i < argc; ++i) rows.push_back(std::atoll(argv[i]));
  for (const int64_t m : rows) {
    for (const Sizes size : {Sizes{2048, 2048}, Sizes{4096, 4096}, Sizes{14336, 4096}}) {
      for (const ggml_type type :
           {GGML_TYPE_Q4_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_Q8_0}) {
        const double time = microseconds_of(backend, type, size.n, size.k, m);
        std::printf("%-8s %-7s %5ldx%-5ld %4ld %9.2f us\n", "ggml", ggml_type_name(type),
                    static_cast<long>(size.n), static_cast<long>(size.k), static_cast<long>(m),
                    time);
        std::fflush(stdout);
      }
    }
  }
  ggml_backend_free(backend);
}
