// What ops cost: time on the device by events over many calls in a row, and time of the host per
// call. bench/ops/torch_ops.py measures the same list in the same way with PyTorch, and
// bench/ops/compare.py puts the two side by side.
//
//   ops_bench [--device cuda:0] [--filter TEXT] [--seconds 0.3] [--list] > tallow.json
//
// A call allocates its result and frees the one before, as a program would.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tl/base/thread_pool.h"
#include "tl/base/version.h"
#include "tl/ops/binary.h"
#include "tl/ops/conv.h"
#include "tl/ops/copy.h"
#include "tl/ops/indexing.h"
#include "tl/ops/matmul.h"
#include "tl/ops/norm.h"
#include "tl/ops/reduce.h"
#include "tl/ops/scan.h"
#include "tl/ops/softmax.h"
#include "tl/ops/sort.h"
#include "tl/ops/unary.h"

namespace tl {
namespace {

using Clock = std::chrono::steady_clock;
using Call = std::function<void()>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// ---- operands

class Random {  // the same on every machine
 public:
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  float uniform() {  // -1 to 1
    return static_cast<float>(static_cast<std::int64_t>(next()) >> 40) * 0x1p-23f;
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
};

// Random values: a product of zeros draws less power and runs faster. Large tensors repeat a block.
Tensor values(const Shape& shape, DType dtype, const Device& device) {
  constexpr std::uint64_t kBlock = std::uint64_t{1} << 24;
  Random random;
  Tensor out = Tensor::uninitialized(shape, dtype, device);
  visit_float("bench", dtype, [&]<class T> {
    const auto count = static_cast<std::uint64_t>(out.count());
    std::vector<T> block(std::min(kBlock, count));
    for (T& x : block) x = convert<T>(random.uniform());
    for (std::uint64_t at = 0; at < count; at += block.size()) {
      out.memory().upload(at * sizeof(T), block.data(),
                          std::min<std::uint64_t>(block.size(), count - at) * sizeof(T));
    }
  });
  return out;
}

Tensor indices(const Shape& shape, std::int64_t end, const Device& device) {
  Random random;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(element_count("bench", shape)));
  for (std::int64_t& id : ids) {
    id = static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(end));
  }
  return Tensor::from(ids, shape, device);
}

// ---- the list

struct Case {
  std::string name;
  double bytes = 0;  // read and written at least
  double flops = 0;
  std::function<Call(const Device&)> make;  // operands are made when the case is run
};

std::string size_name(std::int64_t count) {
  return count >= 1 << 20 ? std::to_string(count >> 20) + "M" : std::to_string(count >> 10) + "K";
}

void add_elementwise(std::vector<Case>& list, std::int64_t count) {
  const std::string suffix = "/f32/" + size_name(count);
  const double bytes = 4.0 * static_cast<double>(count);
  const auto unary = [&](const std::string& name, double factor, auto f) {
    list.push_back({name + suffix, factor * bytes, 0, [=](const Device& device) -> Call {
                      const Tensor x = values({count}, DType::F32, device);
                      return [=] { f(x); };
                    }});
  };
  list.push_back({"add" + suffix, 3 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor a = values({count}, DType::F32, device);
                    const Tensor b = values({count}, DType::F32, device);
                    return [=] { add(a, b); };
                  }});
  unary("exp", 2, [](const Tensor& x) { exp(x); });
  unary("gelu", 2, [](const Tensor& x) { gelu(x); });
  unary("copy", 2, [](const Tensor& x) { copy(x); });
  unary("sum", 1, [](const Tensor& x) { sum_all(x); });
}

void add_layouts(std::vector<Case>& list, std::int64_t n) {
  const std::string suffix = "/f32/" + std::to_string(n) + "x" + std::to_string(n);
  const double bytes = 4.0 * static_cast<double>(n) * static_cast<double>(n);
  const auto square = [=](const Device& device) { return values({n, n}, DType::F32, device); };
  list.push_back({"copy_transposed" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = square(device).t();
                    return [=] { copy(x); };
                  }});
  list.push_back({"add_broadcast_row" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = square(device), row = values({n}, DType::F32, device);
                    return [=] { add(x, row); };
                  }});
  list.push_back({"add_broadcast_column" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = square(device), column = values({n, 1}, DType::F32, device);
                    return [=] { add(x, column); };
                  }});
  list.push_back({"add_transposed" + suffix, 3 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = square(device), y = square(device).t();
                    return [=] { add(x, y); };
                  }});
  list.push_back({"add_strided" + suffix, 1.5 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = square(device).slice(1, 0, n, 2);
                    const Tensor y = square(device).slice(1, 0, n, 2);
                    return [=] { add(x, y); };
                  }});
}

void add_rows(std::vector<Case>& list, std::int64_t rows, std::int64_t columns) {
  const std::string suffix = "/f32/" + std::to_string(rows) + "x" + std::to_string(columns);
  const double bytes = 4.0 * static_cast<double>(rows) * static_cast<double>(columns);
  const auto matrix = [=](const Device& device) {
    return values({rows, columns}, DType::F32, device);
  };
  list.push_back({"softmax" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = matrix(device);
                    return [=] { softmax(x, -1); };
                  }});
  list.push_back({"layer_norm" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = matrix(device);
                    const Tensor weight = values({columns}, DType::F32, device);
                    const Tensor bias = values({columns}, DType::F32, device);
                    return [=] { layer_norm(x, weight, bias, 1e-5); };
                  }});
  list.push_back({"sort" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = matrix(device);
                    return [=] { sort(x, -1, false); };
                  }});
  list.push_back({"cumsum" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = matrix(device);
                    return [=] { cumsum(x, -1); };
                  }});
  list.push_back({"index_select" + suffix, 2 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = matrix(device), ids = indices({rows}, rows, device);
                    return [=] { index_select(x, 0, ids); };
                  }});
  list.push_back({"gather" + suffix, 4 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = matrix(device),
                                 ids = indices({rows, columns}, columns, device);
                    return [=] { gather(x, 1, ids); };
                  }});
  list.push_back({"scatter_add" + suffix, 5 * bytes, 0, [=](const Device& device) -> Call {
                    const Tensor x = matrix(device), from = matrix(device);
                    const Tensor ids = indices({rows, columns}, columns, device);
                    return [=] { scatter_add(x, 1, ids, from); };
                  }});
}

void add_matmul(std::vector<Case>& list, DType dtype, std::int64_t n) {
  const double size = static_cast<double>(n);
  list.push_back({join("matmul/", dtype, "/", n),
                  3 * size * size * static_cast<double>(size_of(dtype)), 2 * size * size * size,
                  [=](const Device& device) -> Call {
                    const Tensor a = values({n, n}, dtype, device);
                    const Tensor b = values({n, n}, dtype, device);
                    return [=] { matmul(a, b); };
                  }});
}

// A layer of ResNet-50: input and output channels, kernel, stride, padding, input size.
struct ConvLayer {
  std::int64_t in, out, kernel, stride, padding, size;
};
constexpr ConvLayer kLayers[] = {
    {3, 64, 7, 2, 3, 224},   {64, 64, 1, 1, 0, 56},    {64, 64, 3, 1, 1, 56},
    {64, 256, 1, 1, 0, 56},  {128, 128, 3, 2, 1, 56},  {128, 128, 3, 1, 1, 28},
    {256, 256, 3, 1, 1, 14}, {1024, 512, 1, 1, 0, 14}, {512, 512, 3, 1, 1, 7}};

void add_conv(std::vector<Case>& list, DType dtype, std::int64_t batch, const ConvLayer& l) {
  const std::int64_t to = (l.size + 2 * l.padding - l.kernel) / l.stride + 1;
  const auto flops = static_cast<double>(2 * batch * l.out * to * to * l.in * l.kernel * l.kernel);
  const auto elements = static_cast<double>(batch * (l.in * l.size * l.size + l.out * to * to) +
                                            l.out * l.in * l.kernel * l.kernel);
  list.push_back({join("conv2d/", dtype, "/", batch, "x", l.in, "x", l.size, "/", l.out, "k",
                       l.kernel, "s", l.stride),
                  elements * static_cast<double>(size_of(dtype)), flops,
                  [=](const Device& device) -> Call {
                    const Tensor x = values({batch, l.in, l.size, l.size}, dtype, device);
                    const Tensor kernel = values({l.out, l.in, l.kernel, l.kernel}, dtype, device);
                    return [=] { conv2d(x, kernel, {l.padding}, {l.stride}); };
                  }});
}

constexpr std::int64_t kMega = 1 << 20;

std::vector<Case> gpu_list() {
  std::vector<Case> list;
  for (const std::int64_t count : {std::int64_t{1024}, kMega, 16 * kMega, 256 * kMega}) {
    add_elementwise(list, count);
  }
  add_layouts(list, 4096);
  add_rows(list, 4096, 4096);
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for (const std::int64_t n : {1024, 4096, 8192}) add_matmul(list, dtype, n);
  }
  for (const ConvLayer& layer : kLayers) add_conv(list, DType::F16, 32, layer);
  return list;
}

std::vector<Case> cpu_list() {
  std::vector<Case> list;
  for (const std::int64_t count : {std::int64_t{1024}, kMega, 16 * kMega}) {
    add_elementwise(list, count);
  }
  add_layouts(list, 2048);
  add_rows(list, 1024, 1024);
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const std::int64_t n : {512, 2048}) add_matmul(list, dtype, n);
  }
  for (const ConvLayer& layer : kLayers) add_conv(list, DType::F32, 1, layer);
  return list;
}

// ---- measuring

struct Timing {
  double call;  // seconds a call takes when many follow each other
  double host;  // seconds until a call returns
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

constexpr int kRounds = 5;
constexpr int kHostCalls = 100;  // few enough for the driver's queue to take without waiting

double run_round(const Call& call, const Device& device, int calls) {
  if (device.is_cpu()) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    return seconds_since(start) / calls;
  }
  Stream stream = device.stream();
  const Event first = stream.record(true);
  for (int i = 0; i < calls; ++i) call();
  const Event last = stream.record(true);
  last.synchronize();
  return last.milliseconds_since(first) / 1e3 / calls;
}

Timing measure(const Call& call, const Device& device, double seconds) {
  for (int i = 0; i < 3; ++i) call();  // loads modules, fills the pool
  device.synchronize();
  const double once = std::max(1e-7, run_round(call, device, 3));
  const int calls = static_cast<int>(std::clamp(seconds / kRounds / once, 3.0, 10000.0));
  std::vector<double> times, host_times;
  for (int round = 0; round < kRounds; ++round) times.push_back(run_round(call, device, calls));
  for (int round = 0; round < kRounds; ++round) {
    device.synchronize();
    const int few = std::min(calls, kHostCalls);
    const auto start = Clock::now();
    for (int i = 0; i < few; ++i) call();
    host_times.push_back(seconds_since(start) / few);
  }
  device.synchronize();
  return {median(times), median(host_times)};
}

// ---- the program

struct Options {
  std::string device = "auto";
  std::string filter;
  double seconds = 0.3;  // for one case
  bool list = false;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (word == "--list") {
      options.list = true;
      continue;
    }
    if (value == nullptr) return std::nullopt;
    if (word == "--device") {
      options.device = value;
    } else if (word == "--filter") {
      options.filter = value;
    } else if (word == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else {
      return std::nullopt;
    }
    ++i;
  }
  return options;
}

int run(const Options& options) {
  const Device device = Device::parse(options.device);
  nlohmann::ordered_json out{{"library", join("Tallow ", version())},
                             {"device", device.name()},
                             {"kind", name(device.kind())},
                             {"threads", ThreadPool::shared().threads()},
                             {"cases", nlohmann::ordered_json::array()}};
  for (const Case& one : device.is_cpu() ? cpu_list() : gpu_list()) {
    if (one.name.find(options.filter) == std::string::npos) continue;
    if (options.list) {
      std::printf("%s\n", one.name.c_str());
      continue;
    }
    nlohmann::ordered_json row{{"name", one.name}, {"bytes", one.bytes}, {"flops", one.flops}};
    try {
      const Timing timing = measure(one.make(device), device, options.seconds);
      row["microseconds"] = timing.call * 1e6;
      row["host_microseconds"] = timing.host * 1e6;
      std::fprintf(stderr, "%-40s %10.1f us, host %8.1f us\n", one.name.c_str(), timing.call * 1e6,
                   timing.host * 1e6);
    } catch (const Error& error) {  // no room for the largest: the others still count
      row["problem"] = error.what();
      std::fprintf(stderr, "%-40s %s\n", one.name.c_str(), error.what());
    }
    out["cases"].push_back(row);
    device.trim();
  }
  if (!options.list) std::printf("%s\n", out.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace tl

int main(int argc, char** argv) {
  const auto options = tl::parse(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: ops_bench [--device NAME] [--filter TEXT] [--seconds S] [--list]\n");
    return 2;
  }
  try {
    return tl::run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ops_bench: %s\n", error.what());
    return 1;
  }
}
