// Time of attention, of cross entropy and of rope with their gradients; bench/grad/torch_fused.py
// is the same in PyTorch. The peak is what a forward and a backward take beside their inputs.
//
//   fused_bench [--device cuda:0] [--repeat 20] [--batch 32] [--heads 4 8] [--time 256 512 2048]
//               [--size 64] [--rows 8192] [--classes 8192]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tl/grad/grad.h"
#include "tl/ops/attention.h"
#include "tl/ops/create.h"
#include "tl/ops/loss.h"
#include "tl/ops/rope.h"

namespace {

struct Options {
  std::string device = "cpu";
  int repeat = 20;
  std::int64_t batch = 32, size = 64, rows = 8192, classes = 8192;
  std::vector<std::int64_t> heads = {4, 8}, times = {256, 512, 2048};
};

// Between -1 and 1, and not all the same.
tl::Tensor numbers(const tl::Shape& shape, const tl::Device& device, std::uint64_t state) {
  std::vector<float> values(static_cast<std::size_t>(tl::element_count("numbers", shape)));
  for (float& v : values) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    v = static_cast<float>(static_cast<double>(state >> 11) / 4503599627370496.0 - 1);
  }
  return tl::Tensor::from(values, shape, device);
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : o_(options), device_(tl::Device::parse(options.device)) {}

  void run() const {
    for (const bool causal : {false, true}) {
      for (const std::int64_t time : o_.times) {
        for (const std::int64_t heads : o_.heads) attention(heads, time, causal);
      }
    }
    cross_entropy();
    rope();
  }

 private:
  void attention(std::int64_t heads, std::int64_t time, bool causal) const {
    const tl::Shape shape{o_.batch, heads, time, o_.size};
    const tl::Tensor q = numbers(shape, device_, 1), k = numbers(shape, device_, 2);
    const tl::Tensor v = numbers(shape, device_, 3), g = numbers(shape, device_, 4);
    const auto forward = [&](const tl::Tensor& x) {
      return tl::attention(x, k, v, std::nullopt, causal);
    };
    report(
        "attention " + std::string(causal ? "causal " : "") + shape.text(),
        [&] { const tl::Tensor y = forward(q); },
        [&] {
          const tl::Tensor x = tl::follow(q), keys = tl::follow(k), values = tl::follow(v);
          const tl::Tensor y = tl::attention(x, keys, values, std::nullopt, causal);
          const tl::Gradients found = tl::backward(y, g);
        });
  }

  void cross_entropy() const {
    const tl::Tensor logits = numbers({o_.rows, o_.classes}, device_, 1);
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < o_.rows; ++i) ids.push_back(i * 7919 % o_.classes);
    const tl::Tensor targets = tl::Tensor::from(ids, {o_.rows}, device_);
    report(
        "cross entropy " + logits.shape().text(),
        [&] { const tl::Tensor y = tl::cross_entropy(logits, targets); },
        [&] {
          const tl::Tensor x = tl::follow(logits);
          const tl::Gradients found = tl::backward(tl::cross_entropy(x, targets));
        });
  }

  void rope() const {
    const std::int64_t time = o_.times.back(), heads = o_.heads.back();
    const tl::Shape shape{o_.batch, heads, time, o_.size};
    const tl::Tensor x = numbers(shape, device_, 1), g = numbers(shape, device_, 2);
    const tl::Tensor c = numbers({time, o_.size / 2}, device_, 3);
    const tl::Tensor s = numbers({time, o_.size / 2}, device_, 4);
    report(
        "rope " + shape.text(), [&] { const tl::Tensor y = tl::rope(x, c, s); },
        [&] {
          const tl::Tensor in = tl::follow(x);
          const tl::Gradients found = tl::backward(tl::rope(in, c, s), g);
        });
  }

  double time(const std::function<void()>& f) const {
    std::vector<double> times;
    for (int i = 0; i < o_.repeat + 3; ++i) {
      device_.synchronize();
      const auto start = std::chrono::steady_clock::now();
      f();
      device_.synchronize();
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      if (i >= 3) times.push_back(took.count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  void report(const std::string& what, const std::function<void()>& forward,
              const std::function<void()>& both) const {
    device_.synchronize();
    const std::uint64_t before = device_.pool().live_bytes;
    device_.reset_peak();
    const double all = time(both);
    const auto peak = static_cast<double>(device_.pool().peak_bytes - before) / (1 << 20);
    std::printf("%-40s forward %9.3f ms, with gradients %9.3f ms, peak %8.1f MiB\n", what.c_str(),
                time(forward), all, peak);
    std::fflush(stdout);
  }

  const Options& o_;
  tl::Device device_;
};

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Times ops that have gradients of their own."};
  app.add_option("--device", o.device);
  app.add_option("--repeat", o.repeat)->check(CLI::PositiveNumber);
  app.add_option("--batch", o.batch)->check(CLI::PositiveNumber);
  app.add_option("--heads", o.heads)->check(CLI::PositiveNumber);
  app.add_option("--time", o.times)->check(CLI::PositiveNumber);
  app.add_option("--size", o.size)->check(CLI::PositiveNumber);
  app.add_option("--rows", o.rows)->check(CLI::PositiveNumber);
  app.add_option("--classes", o.classes)->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    Bench(o).run();
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fused_bench: %s\n", error.what());
    return 1;
  }
}
