// The peer of quant_bench: the same products with ggml's CPU backend, weights in the layout it
// likes best. Not part of the build. With a ggml built in GGML/build (static libraries, native):
//
//   g++ -O2 -std=c++20 -IGGML/include bench/quant/ggml_products.cpp -o ggml_products \
//     GGML/build/src/libggml.a GGML/build/src/libggml-cpu.a GGML/build/src/libggml-base.a \
//     -fopenmp -lpthread -ldl
//   ggml_products THREADS [ROWS_OF_X...]
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

struct Times {
  double least, median;
};

Times seconds_of(ggml_backend_t backend, ggml_type type, int64_t n, int64_t k, int64_t m) {
  ggml_init_params params = {1 << 20, nullptr, true};
  ggml_context* weights = ggml_init(params);
  ggml_tensor* w = ggml_new_tensor_2d(weights, type, k, n);
  // The first of the backend's own buffer types that takes the matrix, as llama.cpp chooses it.
  ggml_backend_buffer_type_t place = ggml_backend_get_default_buffer_type(backend);
  ggml_backend_dev_t device = ggml_backend_get_device(backend);
  const auto extra =
      reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
          ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
  ggml_context* work = ggml_init(params);
  ggml_tensor* x = ggml_new_tensor_2d(work, GGML_TYPE_F32, k, m);
  ggml_tensor* y = ggml_mul_mat(work, w, x);
  if (extra != nullptr) {
    for (auto* each = extra(device); each != nullptr && *each != nullptr; ++each) {
      ggml_backend_buffer_t probe = ggml_backend_buft_alloc_buffer(*each, 0);
      w->buffer = probe;
      const bool takes = ggml_backend_dev_supports_op(device, y);
      w->buffer = nullptr;
      ggml_backend_buffer_free(probe);
      if (takes) {
        place = *each;
        break;
      }
    }
  }
  ggml_backend_buffer_t weights_at = ggml_backend_alloc_ctx_tensors_from_buft(weights, place);
  std::vector<float> row(static_cast<size_t>(k));
  std::vector<char> blocks(ggml_nbytes(w));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t r = 0; r < n; ++r) {
    if (r < 64) {
      for (float& v : row) v = normal(random);
    }
    ggml_quantize_chunk(type, row.data(), blocks.data() + r * ggml_row_size(type, k), 0, 1, k,
                        nullptr);
  }
  ggml_backend_tensor_set(w, blocks.data(), 0, blocks.size());
  ggml_cgraph* graph = ggml_new_graph(work);
  ggml_build_forward_expand(graph, y);
  ggml_backend_buffer_t work_at =
      ggml_backend_alloc_ctx_tensors_from_buft(work, ggml_backend_get_default_buffer_type(backend));
  std::vector<float> values(static_cast<size_t>(k * m));
  for (float& v : values) v = normal(random);
  ggml_backend_tensor_set(x, values.data(), 0, values.size() * sizeof(float));
  std::vector<double> times;
  const auto start = std::chrono::steady_clock::now();
  while (times.size() < 5 || std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) {
    const auto from = std::chrono::steady_clock::now();
    ggml_backend_graph_compute(backend, graph);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
  }
  std::printf("%-22s", ggml_backend_buft_name(place));
  ggml_backend_buffer_free(weights_at);
  ggml_backend_buffer_free(work_at);
  ggml_free(work);
  ggml_free(weights);
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

}  // namespace

int main(int argc, char** argv) {
  ggml_backend_t backend = ggml_backend_cpu_init();
  ggml_backend_cpu_set_n_threads(backend, argc > 1 ? std::atoi(argv[1]) : 2);
  std::vector<int64_t> rows;
  for (int i = 2; i < argc; ++i) rows.push_back(std::atoi(argv[i]));
  if (rows.empty()) rows = {1, 512};
  for (const int64_t m : rows) {
    for (const int64_t n : {4096, 14336}) {
      for (const ggml_type type :
           {GGML_TYPE_Q4_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_Q8_0}) {
        const Times times = seconds_of(backend, type, n, 4096, m);
        std::printf(" %s/%ldx4096/%ld least %.1f us, median %.1f us\n", ggml_type_name(type),
                    static_cast<long>(n), static_cast<long>(m), times.least * 1e6,
                    times.median * 1e6);
        std::fflush(stdout);
      }
    }
  }
  ggml_backend_free(backend);
}
