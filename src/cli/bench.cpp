// `tl bench`: how many tokens of a prompt a model reads in a second, and how many it writes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cli/bench_result.h"
#include "cli/command.h"
#include "cli/default_model.h"
#include "cli/interrupt.h"
#include "cli/model_run.h"
#include "cli/plot_file.h"
#include "cli/program_run.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/base/thread_pool.h"
#include "tl/model/decoder.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kWhere = "bench";

struct Options {
  std::shared_ptr<ModelOptions> model = std::make_shared<ModelOptions>();
  std::vector<std::string> paths;
  std::vector<std::int64_t> prompts{512};
  std::vector<std::int64_t> answers{128};
  std::vector<std::int64_t> depths{0};
  std::int64_t chunk = 512;
  int repetitions = 5;
  bool json = false;
  std::string plot;
};

std::vector<BenchTest> tests_of(const Options& options) {
  std::vector<BenchTest> tests;
  for (const std::int64_t depth : options.depths) {
    for (const std::int64_t count : options.prompts) {
      if (count > 0) tests.push_back({false, count, depth});
    }
    for (const std::int64_t count : options.answers) {
      if (count > 0) tests.push_back({true, count, depth});
    }
  }
  if (tests.empty()) throw Error(ErrorKind::BadArgument, kWhere, "there is nothing to measure");
  return tests;
}

// Tokens anywhere in the vocabulary, so that rows of the embedding are not read twice.
Tensor random_tokens(std::int64_t count, const Decoder& decoder) {
  std::mt19937_64 random(static_cast<std::uint64_t>(count));
  std::uniform_int_distribution<std::uint32_t> any(
      0, static_cast<std::uint32_t>(decoder.config().vocabulary - 1));
  std::vector<std::uint32_t> tokens(static_cast<std::size_t>(count));
  for (std::uint32_t& token : tokens) token = any(random);
  return Tensor::from(tokens, decoder.device());
}

double run_once(const BenchTest& test, const Decoder& decoder, const KvCache& before,
                const Tensor& tokens) {
  KvCache cache = before.fork();
  decoder.device().synchronize();
  const auto start = std::chrono::steady_clock::now();
  if (test.writes) {
    for (std::int64_t i = 0; i < test.tokens; ++i) decoder.forward(tokens.narrow(0, i, 1), cache);
  } else {
    decoder.forward(tokens, cache);
  }
  decoder.device().synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

BenchMeasured measure(const BenchTest& test, int repetitions, LoadedModel& model) {
  const Decoder& decoder = model.decoder;
  KvCache before = decoder.new_cache();
  if (test.depth > 0) decoder.forward(random_tokens(test.depth, decoder), before);
  const Tensor tokens = random_tokens(test.tokens, decoder);
  BenchMeasured out{.test = test, .seconds = {}};
  Progress progress(test.name(), static_cast<std::uint64_t>(repetitions), "runs");
  for (int i = -1; i < repetitions; ++i) {  // the first one warms up and is not counted
    if (interrupted()) throw Error(ErrorKind::BadArgument, kWhere, "it was interrupted");
    progress.set(static_cast<std::uint64_t>(std::max(i, 0)), i < 0 ? "warming up" : "");
    // Warming up a long answer takes no more than a few of its tokens.
    const BenchTest now = i < 0 && test.writes
                              ? BenchTest{true, std::min<std::int64_t>(test.tokens, 4), test.depth}
                              : test;
    const double seconds = run_once(now, decoder, before, tokens);
    if (i >= 0) out.seconds.push_back(seconds);
  }
  const auto positions = static_cast<std::uint64_t>(test.depth + test.tokens);
  const auto block = static_cast<std::uint64_t>(KvCache::kBlockPositions);
  model.memory.note_cache((positions + block - 1) / block * before.block_bytes());
  return out;
}

BenchResult bench_model(const Options& options, const std::string& path) {
  ModelOptions how = *options.model;
  how.path = path;
  for (const BenchTest& test : tests_of(options)) {
    how.least_context = std::max(how.least_context, test.depth + test.tokens);
  }
  BenchResult result;
  result.path = path;
  result.memory = with_model(how, options.chunk, [&](LoadedModel& model) {
    const Device device = model.decoder.device();
    result.name = model.file.get_or<std::string>("general.name", path);
    result.device = device.text();
    result.device_name = device.name();
    result.bytes = model.file.tensor_bytes();
    result.parameters = model.file.parameters();
    for (const BenchTest& test : tests_of(options)) {
      result.tests.push_back(measure(test, options.repetitions, model));
    }
  });
  return result;
}

Json to_json(const BenchResult& result) {
  Json tests = Json::array();
  for (const BenchMeasured& each : result.tests) {
    tests.push_back({{"test", each.test.name()},
                     {"kind", each.test.writes ? "tg" : "pp"},
                     {"tokens", each.test.tokens},
                     {"depth", each.test.depth},
                     {"tokens_per_second", each.mean_speed()},
                     {"deviation", each.deviation()},
                     {"seconds", each.seconds}});
  }
  return {{"model", result.path},
          {"name", result.name},
          {"bytes", result.bytes},
          {"parameters", result.parameters},
          {"device", result.device},
          {"device_name", result.device_name},
          {"threads", ThreadPool::shared().threads()},
          {"tests", std::move(tests)},
          {"memory",
           {{"model", result.memory.model},
            {"cache", result.memory.cache},
            {"peak", result.memory.peak},
            {"returned", result.memory.missing == 0}}}};
}

std::string format_parameters(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  return count >= 1'000'000'000 ? fmt::format("{:.2f} B", number / 1e9)
                                : fmt::format("{:.2f} M", number / 1e6);
}

void print(const std::vector<BenchResult>& results) {
  Table table;
  table.column("model").column("size", Table::Align::Right).column("params", Table::Align::Right);
  table.column("device").column("threads", Table::Align::Right).column("test");
  table.column("tokens/s", Table::Align::Right).column("+/-", Table::Align::Right);
  for (const BenchResult& result : results) {
    for (const BenchMeasured& each : result.tests) {
      table.row({result.name, format_bytes(result.bytes), format_parameters(result.parameters),
                 result.device,
                 result.device == "cpu" ? std::to_string(ThreadPool::shared().threads()) : "",
                 each.test.name(), fmt::format("{:.2f}", each.mean_speed()),
                 fmt::format("{:.2f}", each.deviation())});
    }
  }
  table.print(stdout);
}

// The bench blocks of a program: the quickest, the middle and the slowest of the repetitions.
int bench_program(const Options& options, const std::string& path, Table& table, Json& json,
                  BarSeries& bars) {
  ProgramOptions program;
  program.device = options.model->device;
  return with_interpreter(program, {}, [&](Interpreter& interpreter) {
    if (!load_program(interpreter, path)) return 1;
    if (interpreter.benches().empty()) {
      throw Error(ErrorKind::BadArgument, kWhere, path, " has no bench blocks");
    }
    for (std::size_t i = 0; i < interpreter.benches().size(); ++i) {
      std::vector<double> seconds;
      for (int turn = 0; turn <= options.repetitions; ++turn) {
        const auto start = std::chrono::steady_clock::now();
        try {
          interpreter.run_bench(i);
        } catch (const ProgramFailed& e) {
          show_failure(e);
          return 1;
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (turn > 0) seconds.push_back(took.count());  // the first warms up
      }
      std::sort(seconds.begin(), seconds.end());
      const double median = seconds[seconds.size() / 2];
      const std::string& name = interpreter.benches()[i];
      table.row({path, name, format_duration(seconds.front()), format_duration(median),
                 format_duration(seconds.back())});
      bars.bars.push_back({fmt::format("{}: {}", file_name(path), name), median * 1e3,
                           (seconds.back() - seconds.front()) / 2 * 1e3});
      json.push_back({{"program", path},
                      {"bench", name},
                      {"seconds_min", seconds.front()},
                      {"seconds_median", median},
                      {"seconds_max", seconds.back()}});
    }
    return 0;
  });
}

int bench_programs(const Options& options) {
  Table table;
  table.column("program").column("bench").column("min", Table::Align::Right);
  table.column("median", Table::Align::Right).column("max", Table::Align::Right);
  Json json = Json::array();
  BarSeries bars;
  PlotFile plot(options.plot);
  for (const std::string& path : options.paths) {
    if (const int code = bench_program(options, path, table, json, bars); code != 0) return code;
  }
  if (options.json) {
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    table.print(stdout);
  }
  plot.write({.title = "Bench blocks",
              .panels = {BarChart{
                  .value_label = "milliseconds: the median, with half of the range to both sides",
                  .series = {bars}}}});
  return 0;
}

void print_json(const std::vector<BenchResult>& results) {
  Json json = Json::array();
  for (const BenchResult& result : results) json.push_back(to_json(result));
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

int bench(const Options& options) {
  const auto is_program = [](const std::string& path) { return path.ends_with(".tl"); };
  if (std::all_of(options.paths.begin(), options.paths.end(), is_program)) {
    return bench_programs(options);
  }
  tests_of(options);  // says at once when there is nothing to do
  std::vector<BenchResult> results;
  PlotFile plot(options.plot);
  for (const std::string& path : options.paths) results.push_back(bench_model(options, path));
  if (options.json) {
    print_json(results);
  } else {
    print(results);
  }
  plot.write(bench_figure(results));
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("bench",
                                          "measure how fast models read prompts (pp) and write "
                                          "answers (tg), or bench blocks of programs");
  command.add_option(
      "models", options->paths,
      "GGUF files, or TensorLogic programs (.tl); without one the model that comes with tl");
  add_device_options(command, options->model);
  const auto list = [&](const char* name, std::vector<std::int64_t>& to, const char* help) {
    command.add_option(name, to, help)
        ->type_name("N,...")
        ->delimiter(',')
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30))
        ->allow_extra_args(false)
        ->capture_default_str();
  };
  list("-p,--prompt", options->prompts, "tokens of a prompt; 0 for none");
  list("-n,--answer", options->answers, "tokens of an answer; 0 for none");
  list("-d,--depth", options->depths, "tokens that are in the cache before");
  command
      .add_option("-r,--repetitions", options->repetitions, "of each test, after one to warm up")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--chunk", options->chunk, "tokens of prompts that are computed together")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_flag("--json", options->json, "print it as JSON");
  add_plot_option(command, options->plot,
                  "draw the speeds, over the depth where there are several");
  command.callback([options, &chosen] {
    chosen = [options] {
      if (options->paths.empty()) options->paths.push_back(default_model_path());
      return bench(*options);
    };
  });
}

}  // namespace tl::cli
