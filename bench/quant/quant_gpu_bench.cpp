// Products of quantised matrices on a GPU, by every path, from the device's own clock.
//
//   quant_gpu_bench [--device cuda:0] [--type Q4_K] [--rows N] [--paths] > rows.txt
//
// Weights are taken in turn from as many copies as the device's cache cannot hold, so that each is
// read from memory as in a model. Work is queued behind a long fill, so that the device never waits
// for the host. One line per case: path, type, n x k, m, microseconds, GB/s of the weight, TFLOP/s.
// Without --paths only what linear() chooses. bench/quant/ggml_products.cpp times the same.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "quant/gpu/product.h"
#include "tl/base/error.h"
#include "tl/ops/copy.h"
#include "tl/ops/random.h"
#include "tl/quant/qtensor.h"
#include "tl/runtime/stream.h"

namespace tl {
namespace {

using gpu::ProductPath;

std::string_view name_of(ProductPath path) {
  switch (path) {
    case ProductPath::Vector:
      return "vector";
    case ProductPath::Row:
      return "row";
    case ProductPath::Pieces:
      return "pieces";
    case ProductPath::Decoded:
      return "decoded";
    case ProductPath::Narrow:
      return "narrow";
    case ProductPath::Wide:
      return "wide";
    case ProductPath::Group:
      return "group";
  }
  return "?";
}

struct Case {
  QType type;
  std::int64_t n, k, m;
};

class Bench {
 public:
  explicit Bench(const Device& device)
      : device_(device), idle_(Tensor::uninitialized({std::int64_t{1} << 32}, DType::U8, device)) {}

  void run(const Case& each, bool all_paths) {
    const std::vector<QTensor> weights = copies(each);
    const Tensor x = rand_normal(0, 1, {each.m, each.k}, DType::F32, device_);
    const gpu::ProductShape shape{each.n, each.k, each.m};
    report(each, "linear", time(weights, [&](const QTensor& w) { linear(x, w); }));
    if (!all_paths) return;
    for (const auto path : {ProductPath::Vector, ProductPath::Row, ProductPath::Pieces,
                            ProductPath::Narrow, ProductPath::Wide, ProductPath::Group}) {
      const bool has_pieces =
          each.type == QType::Q4_K || each.type == QType::Q5_K || each.type == QType::Q6_K;
      if ((path == ProductPath::Vector && each.m > 8) || (path == ProductPath::Row && each.m > 1) ||
          (path == ProductPath::Pieces && (each.m > 1 || !has_pieces)) ||
          (path == ProductPath::Group && each.m < 16)) {
        continue;
      }
      report(each, name_of(path), time(weights, [&](const QTensor& w) {
               Tensor y = Tensor::uninitialized({each.m, each.n}, DType::F32, device_);
               gpu::product(path, each.type, w.memory(), shape, x, y);
             }));
    }
  }

 private:
  // The same numbers in different places.
  std::vector<QTensor> copies(const Case& each) const {
    constexpr std::uint64_t kEnough = 256 << 20;
    const Tensor numbers = rand_normal(0, 1, {256, each.k}, DType::F32);
    const auto some = QTensor::quantize(numbers, each.type).to_blocks();
    std::vector<std::byte> blocks;
    for (std::int64_t row = 0; row < each.n; row += 256) {
      blocks.insert(blocks.end(), some.begin(), some.end());
    }
    blocks.resize(q_bytes("bench", each.type, each.n, each.k));
    std::vector<QTensor> made;
    for (std::uint64_t bytes = 0; bytes < kEnough; bytes += blocks.size()) {
      made.push_back(QTensor::from_blocks(blocks, each.type, {each.n, each.k}, device_));
    }
    return made;
  }

  // Microseconds of one call: the median of a few rounds.
  template <class F>
  double time(const std::vector<QTensor>& weights, F call) {
    constexpr int kRounds = 7, kCalls = 60;
    for (const QTensor& w : weights) call(w);
    std::vector<double> times;
    Stream stream = device_.stream();
    for (int round = 0; round < kRounds; ++round) {
      fill(idle_, Scalar(round));  // some milliseconds
      const Event first = stream.record(true);
      for (int i = 0; i < kCalls; ++i) call(weights[static_cast<std::size_t>(i) % weights.size()]);
      const Event last = stream.record(true);
      last.synchronize();
      times.push_back(last.milliseconds_since(first) * 1e3 / kCalls);
    }
    std::sort(times.begin(), times.end());
    return times[kRounds / 2];
  }

  void report(const Case& each, std::string_view path, double microseconds) const {
    const double bytes = static_cast<double>(q_bytes("bench", each.type, each.n, each.k));
    const double flops = 2.0 * static_cast<double>(each.n) * static_cast<double>(each.k) *
                         static_cast<double>(each.m);
    std::printf("%-8s %-7s %5ldx%-5ld %4ld %9.2f us %8.0f GB/s %7.1f TFLOP/s\n",
                std::string(path).c_str(), std::string(name(each.type)).c_str(),
                static_cast<long>(each.n), static_cast<long>(each.k), static_cast<long>(each.m),
                microseconds, bytes / microseconds / 1e3, flops / microseconds / 1e6);
    std::fflush(stdout);
  }

  Device device_;
  Tensor idle_;
};

int run(int argc, char** argv) {
  CLI::App app("products of quantised matrices on a GPU");
  std::string device = "cuda:0", type;
  std::int64_t rows = 0;
  bool paths = false;
  app.add_option("--device", device);
  app.add_option("--type", type, "one type only");
  app.add_option("--rows", rows, "one number of rows of x only");
  app.add_flag("--paths", paths, "every path, not only the one that linear() chooses");
  CLI11_PARSE(app, argc, argv);
  Bench bench(Device::parse(device));
  struct Sizes {
    std::int64_t n, k;
  };
  for (const std::int64_t m : {1, 2, 4, 8, 16, 32, 64, 128, 512, 2048}) {
    if (rows != 0 && rows != m) continue;
    for (const Sizes size : {Sizes{2048, 2048}, Sizes{4096, 4096}, Sizes{14336, 4096}}) {
      for (const QType each : {QType::Q4_0, QType::Q4_K, QType::Q5_K, QType::Q6_K, QType::Q8_0}) {
        if (type.empty() ? each == QType::Q5_K : type != name(each)) continue;  // ggml's has four
        bench.run({each, size.n, size.k, m}, paths);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace tl

int main(int argc, char** argv) {
  try {
    return tl::run(argc, argv);
  } catch (const tl::Error& error) {
    std::fprintf(stderr, "quant_gpu_bench: %s\n", error.what());
    return 1;
  }
}
