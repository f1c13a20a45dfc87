#include "cli/program_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/learn_watch.h"
#include "cli/memory_watch.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/runtime/device.h"
#include "tl/runtime/report.h"

namespace tl::cli {

namespace {

std::uint64_t parse_seed(const std::string& text) {
  std::size_t used = 0;
  std::uint64_t seed = 0;
  try {
    seed = std::stoull(text, &used, 0);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size()) {
    throw Error(ErrorKind::BadArgument, "run", "the seed '", text, "' is not a whole number");
  }
  return seed;
}

// TL_DEBUG_MEMORY: what happens to memory, on stderr.
void log_memory(const MemoryEvent& event) noexcept {
  static constexpr const char* kNames[] = {"alloc", "detach", "return"};
  const std::string place = event.location.text();
  std::fprintf(stderr, "[GPU_MEMORY] %s block %llu, %llu bytes on %s",
               kNames[static_cast<std::size_t>(event.kind)],
               static_cast<unsigned long long>(event.block),
               static_cast<unsigned long long>(event.bytes), place.c_str());
  if (event.kind == MemoryEvent::Kind::Detach) {
    std::fprintf(stderr, " from block %llu", static_cast<unsigned long long>(event.detached));
  }
  if (!event.label.empty()) {
    std::fprintf(stderr, " at %.*s", static_cast<int>(event.label.size()), event.label.data());
  }
  std::fputc('\n', stderr);
}

// TL_BUFFER_MAX_MB: what the pool may keep.
void limit_pool(const Device& device) {
  const std::string text(environment("TL_BUFFER_MAX_MB"));
  if (text.empty()) return;
  std::size_t used = 0;
  std::uint64_t megabytes = 0;
  try {
    megabytes = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || megabytes > (std::uint64_t{1} << 40)) {
    throw Error(ErrorKind::BadArgument, "run", "TL_BUFFER_MAX_MB is '", text,
                "', which is not a number of megabytes");
  }
  device.set_pool_limit(megabytes << 20);
}

// TL_BUFFER_STATS: what the pool did for the program.
void print_pool(const Device& device) {
  const PoolStatistics pool = device.pool();
  const DriverCalls calls = device.driver_calls();
  const double share = pool.allocations == 0 ? 0
                                             : 100 * static_cast<double>(pool.hits) /
                                                   static_cast<double>(pool.allocations);
  fmt::print(stderr,
             "\n=== Buffer Pool Stats: Program Execution ===\n"
             "Pooled buffers: {}\nTotal memory: {:.2f} MB\nAllocations: {}\nReuses: {}\n"
             "Evictions: {}\nReuse rate: {:.1f}%\n"
             "============================================\n",
             calls.allocations - std::min(calls.allocations, calls.frees),
             static_cast<double>(pool.pooled_bytes) / (1 << 20), pool.allocations - pool.hits,
             pool.hits, calls.frees, share);
}

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

}  // namespace

void add_program_options(CLI::App& command, const std::shared_ptr<ProgramOptions>& options) {
  options->device = std::make_shared<std::string>("auto");
  if (const std::string_view device = environment("TL_DEVICE"); !device.empty()) {
    *options->device = device;
  }
  add_device_option(command, options->device);
  command.add_option("--seed", options->seed, "of random numbers (or TL_SEED)")->type_name("N");
  command
      .add_option("--step-limit", options->step_limit,
                  "end the program after so many calls and turns of loops; 0: never")
      ->type_name("N");
  command.add_flag("--no-files", options->no_files,
                   "refuse imports and every builtin that reads or writes a file");
  command.add_flag("--no-notes", options->no_notes,
                   "without lines such as 'Adding fact: Parent' and 'Loaded model from: ...'");
  command.add_flag("--undeclared-relations", options->undeclared_relations,
                   "take names that nothing declares for relations in facts, rules and queries");
  command.add_flag("--memory-check", options->memory_check,
                   "report memory before and after; fail when some did not come back");
}

int with_interpreter(const ProgramOptions& options, std::vector<std::string> arguments,
                     const std::function<int(Interpreter&)>& work) {
  std::ios::sync_with_stdio(false);
  const InterruptScope listening;
  const std::string seed_text =
      options.seed.empty() ? std::string(environment("TL_SEED")) : options.seed;
  std::optional<std::uint64_t> seed;
  if (!seed_text.empty()) seed = parse_seed(seed_text);
  // Opened by the first tensor: a program that has none does not wait for drivers.
  std::optional<MemoryWatch> memory;
  std::optional<Device> watched;
  const auto open_device = [&] {
    const Device device = Device::parse(*options.device);
    if (seed) device.set_seed(*seed);
    limit_pool(device);
    memory.emplace(device, options.memory_check);
    watched = device;
    return device;
  };
  if (seed) Device::cpu().set_seed(*seed);
  const bool logs = is_set("TL_DEBUG_MEMORY");
  if (logs) set_memory_hook(log_memory);
  int code = 0;
  {
    LearnWatch learning(options.out != nullptr ? *options.out : std::cout, options.losses);
    InterpreterOptions settings;
    settings.out = &learning.out();
    settings.on_learn = [&](const LearnProgress& now) { learning.hear(now); };
    settings.open_device = open_device;
    settings.arguments = std::move(arguments);
    settings.step_limit = options.step_limit;
    settings.allow_files = !options.no_files;
    settings.verbose = !options.no_notes;
    settings.undeclared_relations = options.undeclared_relations;
    settings.interrupted = &interrupt_flag();
    settings.colour = ::isatty(STDERR_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    if (is_set("TL_PERF")) settings.perf = &std::cerr;
    if (logs) settings.shares = &std::cerr;
    Interpreter interpreter(std::move(settings));
    code = work(interpreter);
  }
  std::cout.flush();
  if (!memory) memory.emplace(Device::cpu(), options.memory_check);
  const MemoryUse use = memory->finish();
  if (logs) set_memory_hook(nullptr);
  if (is_set("TL_BUFFER_STATS")) print_pool(watched ? *watched : Device::cpu());
  return use.missing != 0 && code == 0 ? 1 : code;
}

bool load_program(Interpreter& interpreter, const std::string& path) {
  const bool good = path == "-" ? interpreter.load_text("standard input", read_input("run"))
                                : interpreter.load_file(path);
  const std::string report = interpreter.report();
  if (!report.empty()) {
    std::cout.flush();
    fmt::print(stderr, "{}", report);
  }
  return good;
}

void show_failure(const ProgramFailed& failure) {
  std::cout.flush();
  fmt::print(stderr, "{}\nFound 1 error(s) and 0 warning(s)\n", failure.what());
}

}  // namespace tl::cli
