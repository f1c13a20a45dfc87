// Time of a training step of a small transformer; bench/grad/torch_train.py is the same in PyTorch.
//
//   train_bench [--device cuda:0] [--steps 20] [--batch 8] [--time 256] [--layers 8] [--width 256]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "grad/transformer.h"

namespace {

struct Options {
  std::string device = "cpu";
  int steps = 20;
  std::int64_t batch = 8, time = 256;
  tl::bench::TransformerSizes sizes{
      .vocabulary = 8192, .width = 256, .layers = 8, .heads = 8, .context = 256};
};

tl::Tensor tokens(const Options& o, const tl::Device& device, std::int64_t shift) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < o.batch * o.time; ++i) {
    ids.push_back(((i + shift) * 7919) % o.sizes.vocabulary);
  }
  return tl::Tensor::from(ids, {o.batch, o.time}, device);
}

int run(const Options& o) {
  const tl::Device device = tl::Device::parse(o.device);
  tl::bench::Transformer model(o.sizes, tl::DType::F32, device);
  const auto optimizer = tl::make_adamw({.rate = 3e-4, .weight_decay = 0.01});
  const tl::Tensor ids = tokens(o, device, 0), targets = tokens(o, device, 1);
  std::vector<double> times;
  double first = 0, last = 0;
  for (int i = 0; i < o.steps + 3; ++i) {
    device.synchronize();
    const auto start = std::chrono::steady_clock::now();
    const tl::Tensor loss = model.step(*optimizer, ids, targets);
    device.synchronize();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    last = loss.item().real();
    if (i == 0) first = last;
    if (i >= 3) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "%s: %.1f M parameters, %lld tokens a step: median %.2f ms, least %.2f ms, loss %.4f -> "
      "%.4f\n",
      o.device.c_str(), static_cast<double>(model.parameter_count()) / 1e6,
      static_cast<long long>(o.batch * o.time), times[times.size() / 2], times[0], first, last);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Times a training step."};
  app.add_option("--device", o.device);
  app.add_option("--steps", o.steps)->check(CLI::PositiveNumber);
  app.add_option("--batch", o.batch)->check(CLI::PositiveNumber);
  app.add_option("--time", o.time)->check(CLI::PositiveNumber);
  app.add_option("--layers", o.sizes.layers)->check(CLI::PositiveNumber);
  app.add_option("--width", o.sizes.width)->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
    o.sizes.context = o.time;
    return run(o);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_bench: %s\n", error.what());
    return 1;
  }
}
