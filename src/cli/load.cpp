// `tl load`: how fast a model comes to a device, what that takes, and that all of it goes back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/progress.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/gguf.h"
#include "tl/model/weights.h"
#include "tl/runtime/device.h"
#include "tl/runtime/read_into.h"
#include "tl/runtime/report.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kLoadWhere = "load";

struct LoadArguments {
  std::string path;
  std::shared_ptr<std::string> device = std::make_shared<std::string>("auto");
  int threads = 0;
  int times = 1;
  bool copy = false;
  bool check = false;
  bool json = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A line of /proc/self/status that is given in kB, in bytes.
std::optional<std::uint64_t> process_memory(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field) && line.size() > field.size() && line[field.size()] == ':') {
      return std::stoull(line.substr(field.size() + 1)) * 1024;
    }
  }
  return std::nullopt;
}

// How much more of this process was in memory at most than when the object was made; nothing where
// the system does not tell.
class ResidentPeak {
 public:
  ResidentPeak() {
    std::ofstream reset("/proc/self/clear_refs");
    if (reset << "5" << std::flush) start_ = process_memory("VmRSS");
  }
  std::optional<std::uint64_t> growth() const {
    const auto peak = process_memory("VmHWM");
    if (!start_ || !peak) return std::nullopt;
    return *peak > *start_ ? *peak - *start_ : 0;
  }

 private:
  std::optional<std::uint64_t> start_;
};

struct Run {
  std::uint64_t bytes = 0;  // of tensors
  std::size_t tensors = 0;
  double seconds = 0;
  std::uint64_t live = 0;    // on the device, more than before
  std::uint64_t mapped = 0;  // of the file, used in place
  std::uint64_t taken = 0;   // from the driver
  std::uint64_t pinned = 0;  // host memory at most
  std::optional<std::uint64_t> resident;
  std::uint64_t blocks = 0;
  std::uint64_t returned = 0;  // of them
  double unload_seconds = 0;
  std::uint64_t trimmed = 0;

  double gigabytes_per_second() const {
    return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
  }
};

void check_bytes(const GgufFile& file, const ModelWeights& weights) {
  std::vector<std::byte> stored;
  for (const auto& [name, tensor] : weights.tensors()) {
    const GgufTensorInfo& info = file.tensor(name);
    stored.resize(info.size_bytes());
    file.read(info, 0, stored);
    if (tensor.to_blocks() != stored) {
      throw Error(ErrorKind::Device, kLoadWhere, "tensor '", name, "' is not on ",
                  tensor.location(), " as it is in the file");
    }
  }
}

Run load_once(const GgufFile& file, const Device& device, const LoadArguments& options) {
  Run run;
  device.trim();
  device.reset_peak();
  const PoolStatistics before = device.pool();
  const ResidentPeak resident;
  {
    ModelWeights weights;
    {
      Progress progress("load", file.tensor_bytes(), "bytes");
      const LoadOptions how{
          .choose = {},
          .progress = [&](const LoadProgress& now) { progress.set(now.done, now.tensor); },
          .threads = options.threads,
          .copy = options.copy};
      const auto start = std::chrono::steady_clock::now();
      weights = ModelWeights::load(file, device, how);
      run.seconds = seconds_since(start);
    }
    const PoolStatistics loaded = device.pool();
    run.bytes = weights.size_bytes();
    run.tensors = weights.tensors().size();
    run.live = loaded.live_bytes - before.live_bytes;
    run.mapped = loaded.mapped_bytes - before.mapped_bytes;
    run.taken = loaded.reserved_bytes - before.reserved_bytes;
    run.blocks = loaded.allocations - before.allocations;
    run.pinned = device.pinned_pool().peak_bytes;
    run.resident = resident.growth();
    if (options.check) check_bytes(file, weights);
    const auto start = std::chrono::steady_clock::now();
    weights = ModelWeights();
    run.unload_seconds = seconds_since(start);
  }
  const PoolStatistics after = device.pool();
  run.returned = after.returns - before.returns;
  if (after.live_bytes != before.live_bytes || after.live_blocks != before.live_blocks ||
      after.mapped_blocks != before.mapped_blocks || device.pinned_pool().live_blocks != 0 ||
      run.returned != after.allocations - before.allocations) {
    throw Error(ErrorKind::Device, kLoadWhere, "not everything came back:\n",
                memory_report().text());
  }
  run.trimmed = device.trim();
  if (device.pool().reserved_bytes != before.reserved_bytes) {
    throw Error(ErrorKind::Device, kLoadWhere, "the driver did not get back what it gave: ",
                format_bytes(device.pool().reserved_bytes - before.reserved_bytes), " is missing");
  }
  return run;
}

// How much more was taken than the tensors need.
double overhead(const Run& run) {
  return run.live == 0 ? 0
                       : 100 * (static_cast<double>(run.taken) / static_cast<double>(run.live) - 1);
}

void print(const Run& run, const LoadArguments& options) {
  fmt::print("loaded    {} in {}: {:.1f} GB/s\n", format_bytes(run.bytes),
             format_duration(run.seconds), run.gigabytes_per_second());
  if (run.mapped > 0) fmt::print("mapped    {} used in place\n", format_bytes(run.mapped));
  fmt::print("device    {} in {} blocks, {} taken from the driver ({:+.1f} %)\n",
             format_bytes(run.live), format_count(run.blocks), format_bytes(run.taken),
             overhead(run));
  fmt::print(
      "host      {} pinned{}\n", format_bytes(run.pinned),
      run.resident ? fmt::format(", at most {} more in memory", format_bytes(*run.resident)) : "");
  if (options.check) fmt::print("checked   every byte is as in the file\n");
  fmt::print("unloaded  in {}: {} of {} blocks came back, {} went back to the driver\n",
             format_duration(run.unload_seconds), format_count(run.returned),
             format_count(run.blocks), format_bytes(run.trimmed));
}

Json to_json(const Run& run, bool was_checked) {
  return {{"bytes", run.bytes},
          {"tensors", run.tensors},
          {"seconds", run.seconds},
          {"gigabytes_per_second", run.gigabytes_per_second()},
          {"device_bytes", run.live},
          {"mapped_bytes", run.mapped},
          {"driver_bytes", run.taken},
          {"pinned_bytes", run.pinned},
          {"resident_growth", run.resident ? Json(*run.resident) : Json(nullptr)},
          {"blocks", run.blocks},
          {"blocks_returned", run.returned},
          {"unload_seconds", run.unload_seconds},
          {"trimmed_bytes", run.trimmed},
          {"checked", was_checked}};
}

int load(const LoadArguments& options) {
  const Device device = Device::parse(*options.device);
  const GgufFile file = GgufFile::open(options.path);
  Json json{{"file", options.path},
            {"device", device.text()},
            {"name", device.name()},
            {"runs", Json::array()}};
  if (!options.json) {
    fmt::print("{}: {} tensors to {} ({})\n", options.path, format_count(file.tensors().size()),
               device.text(), device.name());
  }
  for (int i = 0; i < options.times; ++i) {
    const Run run = load_once(file, device, options);
    if (options.json) {
      json["runs"].push_back(to_json(run, options.check));
    } else {
      print(run, options);
    }
  }
  if (options.json) fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  return 0;
}

}  // namespace

void add_load(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<LoadArguments>();
  CLI::App& command = *app.add_subcommand(
      "load", "load a GGUF model to a device, say how fast, and give everything back");
  command.add_option("model", options->path, "a GGUF file, or any part of one")->required();
  add_device_option(command, options->device);
  command
      .add_option("--threads", options->threads, "that read; 0 for the CPUs there are, at most 8")
      ->type_name("N")
      ->check(CLI::Range(0, ReadOptions::kMostThreads))
      ->capture_default_str();
  command.add_option("--times", options->times, "load it again, each time from nothing")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_flag("--copy", options->copy,
                   "on the CPU: read the file instead of using it where it is mapped");
  command.add_flag("--check", options->check, "read everything back and compare it with the file");
  command.add_flag("--json", options->json, "print it as JSON");
  add_quiet_option(command);
  command.callback([options, &chosen] { chosen = [options] { return load(*options); }; });
}

}  // namespace tl::cli
