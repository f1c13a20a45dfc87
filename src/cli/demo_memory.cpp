// `tl demo memory`: a tensor is cloned a thousand times for free, one clone is written, and
// everything is given back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/sizes.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/base/version.h"
#include "tl/runtime/device.h"
#include "tl/runtime/label.h"
#include "tl/runtime/memory.h"
#include "tl/runtime/report.h"

namespace tl::cli {

namespace {

constexpr const char* kDemoMemoryWhere = "demo memory";
constexpr float kBefore = 1;
constexpr float kWritten = 7;

struct DemoMemoryArguments {
  std::uint64_t bytes = std::uint64_t{1} << 30;
  std::uint64_t clones = 1000;
};

using Memory = DeviceMemory<float>;

// Seconds until the device has done what `work` asked of it.
template <class Work>
double timed(const Device& device, Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  device.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string address(const Memory& memory) {
  return fmt::format("{}", static_cast<const void*>(memory.data()));
}

float at(const Memory& memory, std::uint64_t index) {
  std::array<float, 1> value{};
  memory.copy_to_host_at(index, value);
  return value[0];
}

void expect(bool claim, const char* otherwise) {
  if (!claim) throw Error(ErrorKind::Device, kDemoMemoryWhere, otherwise);
}

// The story as a table: what was done, how long it took, and what is in use afterwards.
class Story {
 public:
  explicit Story(const Device& device) : device_(device) {
    table_.column("step").column("time", Table::Align::Right);
    table_.column("in use", Table::Align::Right).column("owners", Table::Align::Right);
    table_.column("address");
  }
  void step(std::string what, double seconds, std::string owners, std::string where) {
    table_.row({std::move(what), format_duration(seconds), format_bytes(device_.pool().live_bytes),
                std::move(owners), std::move(where)});
  }
  void print() const { table_.print(stdout); }

 private:
  Device device_;
  Table table_;
};

void tell(const Device& device, const DemoMemoryArguments& options) {
  const std::uint64_t count = (options.bytes + sizeof(float) - 1) / sizeof(float);
  const std::uint64_t middle = count / 2;
  const std::uint64_t chosen = options.clones / 2;
  Story story(device);
  const PoolStatistics pool_before = device.pool();

  const LabelScope label("demo tensor");
  Memory tensor;
  double seconds = timed(device, [&] { tensor = Memory(device, count); });
  story.step("take " + format_bytes(tensor.size_bytes()), seconds, format_count(tensor.use_count()),
             address(tensor));

  seconds = timed(device, [&] { tensor.fill(kBefore); });
  story.step(fmt::format("fill it with {}", kBefore), seconds, format_count(tensor.use_count()),
             address(tensor));

  std::vector<Memory> clones;
  clones.reserve(options.clones);
  const double cloning = timed(device, [&] {
    for (std::uint64_t i = 0; i < options.clones; ++i) clones.push_back(tensor);
  });
  for (const Memory& clone : clones) expect(clone.data() == tensor.data(), "a clone was copied");
  story.step(fmt::format("clone it {} times", format_count(options.clones)), cloning,
             format_count(tensor.use_count()), address(clones.back()));

  Memory& written = clones[chosen];
  const std::uint64_t copies_before = device.driver_calls().device_copies;
  const double writing =
      timed(device, [&] { written.copy_from_host_at(middle, std::array<float, 1>{kWritten}); });
  const std::uint64_t copies = device.driver_calls().device_copies - copies_before;
  story.step(fmt::format("write into clone {}", format_count(chosen)), writing,
             format_count(written.use_count()), address(written));

  expect(at(written, middle) == kWritten, "the write is not in the clone it was made to");
  expect(middle == 0 || at(written, 0) == kBefore, "the written clone lost its other numbers");
  expect(at(tensor, middle) == kBefore, "the write is visible in the original");
  expect(written.data() != tensor.data(), "the written clone still shares");

  seconds = timed(device, [&] {
    clones.clear();
    tensor = Memory();
  });
  story.step("drop them all", seconds, "", "");
  const PoolStatistics pool = device.pool();
  const std::uint64_t trimmed = device.trim();

  story.print();
  fmt::print(
      "\nOne clone took {}. The write gave its clone a block of its own, filled by {} on the "
      "device; the other {} still read {}.\n",
      format_duration(cloning / static_cast<double>(options.clones)),
      copies == 1 ? "1 copy" : fmt::format("{} copies", copies), format_count(options.clones - 1),
      kBefore);
  fmt::print(
      "Blocks taken: {}, given back: {}; most in use at once: {}; returned to the system at "
      "the end: {}.\n",
      format_count(pool.allocations - pool_before.allocations),
      format_count(pool.returns - pool_before.returns), format_bytes(pool.peak_bytes),
      format_bytes(trimmed));
}

int demo_memory(const std::string& name, const DemoMemoryArguments& options) {
  const Device device = Device::parse(name);
  const MemoryInfo memory = device.memory_info();
  fmt::print("Tallow {} on {}: {} ({}), {} free of {}\n\n", version(), device.text(), device.name(),
             device.architecture(), format_bytes(memory.free), format_bytes(memory.total));
  tell(device, options);

  const MemoryReport report = memory_report();
  fmt::print("\n{}\n{}", coloured(stdout, Colour::Bold, "Memory report"), report.text());
  if (!report.everything_returned()) {
    throw Error(ErrorKind::Device, kDemoMemoryWhere,
                "memory is still held after everything was dropped");
  }
  return 0;
}

// A usage error for what the parser of a value refuses.
template <class Parse>
auto checked(const char* option, Parse&& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw CLI::ValidationError(option, error.what());
  }
}

}  // namespace

void add_demo_memory(CLI::App& demo, Action& chosen) {
  const auto device = std::make_shared<std::string>("auto");
  const auto options = std::make_shared<DemoMemoryArguments>();
  CLI::App& command = *demo.add_subcommand(
      "memory", "clone a tensor many times, write to one clone, give all back");
  add_device_option(command, device);
  command
      .add_option_function<std::string>(
          "--bytes",
          [options](const std::string& text) {
            options->bytes = checked("--bytes", [&] { return parse_bytes(text); });
            if (options->bytes == 0) throw CLI::ValidationError("--bytes", "must be at least 1");
          },
          "size of the tensor, e.g. 64MiB")
      ->type_name("N")
      ->default_str("1GiB");
  command.add_option("--clones", options->clones, "how many clones to make")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10'000'000}))
      ->capture_default_str();
  command.callback([device, options, &chosen] {
    chosen = [device, options] { return demo_memory(*device, *options); };
  });
}

}  // namespace tl::cli
