// `tl train`: a language model from texts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/memory_watch.h"
#include "cli/plot_file.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/train_log.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/base/thread_pool.h"
#include "tl/model/train.h"

namespace tl::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kInterrupted = 130;  // as a shell has it

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct TrainArguments {
  std::string path;
  std::shared_ptr<std::string> device = std::make_shared<std::string>("auto");
  int threads = 0;
  bool resume = false;
  double time_limit = 0;                     // seconds; 0: none
  std::string plot;                          // a file; may be empty
  std::vector<std::string> named, settings;  // KEY=VALUE, of options and of --set
  Clock::time_point start = Clock::now();
};

TrainOverrides overrides_of(const TrainArguments& options) {
  TrainOverrides out;
  std::vector<std::string> all = options.named;
  all.insert(all.end(), options.settings.begin(), options.settings.end());
  for (const std::string& each : all) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorKind::BadArgument, "--set", "'", each, "' is not KEY=VALUE");
    }
    out.emplace_back(each.substr(0, equals), each.substr(equals + 1));
  }
  return out;
}

// One run, from the data to the file.
class TrainRun {
 public:
  TrainRun(const TrainArguments& options, const TrainConfig& config, const Device& device)
      : options_(options),
        device_(device),
        plot_(options.plot.empty() ? PlotFile() : PlotFile(options.plot)),
        trainer_(config, device) {}

  int run() {
    begin();
    TrainLog log(trainer_.config().work_stem() + ".csv", trainer_.steps());
    log_ = &log;
    {
      const auto all = static_cast<std::uint64_t>(trainer_.config().steps);
      progress_ = std::make_unique<Progress>("training", all, "steps");
      while (trainer_.steps() < trainer_.config().steps && !interrupted() && !time_is_up()) step();
      progress_.reset();
    }
    return end();
  }

  std::uint64_t parameter_bytes() const {
    return 4 * static_cast<std::uint64_t>(trainer_.model().parameter_count());
  }

 private:
  void begin() {
    const ModelSizes& s = trainer_.model().sizes();
    for (const std::string& warning : trainer_.tokenizer().warnings()) {
      fmt::print(stderr, "tl: {} {}\n", coloured(stderr, Colour::Yellow, "warning:"), warning);
    }
    fmt::print(
        "model: {:.2f} M parameters, vocabulary {}, {} layers, width {}, {} heads ({} of "
        "keys), ffn {}, context {}, on {}\n",
        static_cast<double>(trainer_.model().parameter_count()) / 1e6, s.vocabulary, s.layers,
        s.width, s.heads, s.kv_heads, s.ffn, s.context, device_.text());
    print_text("train", trainer_.train_text());
    if (trainer_.held_out_text().tokens > 0) print_text("held-out", trainer_.held_out_text());
    const bool has_state = std::filesystem::exists(trainer_.state_path());
    if (options_.resume) {
      trainer_.resume();
      fmt::print("resumed after step {}\n", trainer_.steps());
    } else if (has_state) {
      fmt::print(
          "a state of an earlier run is in {} and will be replaced; --resume goes on from "
          "it\n",
          trainer_.state_path());
    }
    std::fflush(stdout);
  }

  void step() {
    const TrainConfig& config = trainer_.config();
    const double rate = trainer_.rate();
    trainer_.step();
    const std::int64_t now = trainer_.steps();
    progress_->set(static_cast<std::uint64_t>(now));
    const auto is_due = [&](std::int64_t every) { return every > 0 && now % every == 0; };
    const bool is_last = now == config.steps;
    const bool evaluates = is_due(config.evaluate_every) && !is_last;
    if (now == 1 || is_last || evaluates || is_due(config.print_every)) report(rate, evaluates);
    if (is_due(config.save_every) && !is_last) save();
  }

  void report(double rate, bool evaluates) {
    const std::vector<double> losses = trainer_.losses();  // waits
    log_->pause();
    std::optional<HeldOutLoss> held_out;
    if (evaluates && trainer_.held_out_text().tokens > 0) {
      const auto start = Clock::now();
      held_out = trainer_.evaluate();
      evaluate_seconds_ = seconds_since(start);
    }
    if (progress_) progress_->hide();
    if (!losses.empty()) log_->line(trainer_, device_, losses, rate, held_out);
    log_->go_on();
    printed_ = trainer_.steps();
  }

  void save() {
    const auto start = Clock::now();
    trainer_.save();
    save_seconds_ = seconds_since(start);
  }

  // With time for what is still to be done: steps on their way, a last evaluation and two files.
  bool time_is_up() const {
    if (options_.time_limit <= 0) return false;
    const auto on_the_way = static_cast<double>(trainer_.steps() - printed_ + 1);
    const double needed = on_the_way * log_->seconds_per_step() + evaluate_seconds_ +
                          2 * save_seconds_ + kSpareSeconds;
    return seconds_since(options_.start) + needed > options_.time_limit;
  }

  int end() {
    const TrainConfig& config = trainer_.config();
    const bool is_done = trainer_.steps() >= config.steps;
    if (printed_ != trainer_.steps()) report(trainer_.rate(), false);
    trainer_.save();
    const std::string why = is_done ? "" : interrupted() ? "stopped by a signal" : "out of time";
    if (trainer_.held_out_text().tokens > 0) {
      const HeldOutLoss held_out = trainer_.evaluate();
      fmt::print("held-out: loss {:.4f}, {:.4f} bits per byte, {} tokens\n", held_out.loss,
                 held_out.bits_per_byte, format_count(held_out.tokens));
    }
    trainer_.write_model();
    if (plot_.is_wanted()) {
      const Chart chart = log_->chart(file_name(config.output));
      plot_.write({.title = chart.title, .panels = {chart}});
    }
    fmt::print("{}: {}, {} after {} steps\n", config.output, config.output_type,
               format_bytes(std::filesystem::file_size(config.output)), trainer_.steps());
    if (is_done) return 0;
    fmt::print("{} at step {} of {}; --resume goes on from {}\n", why, trainer_.steps(),
               config.steps, trainer_.state_path());
    return interrupted() ? kInterrupted : 0;
  }

  static constexpr double kSpareSeconds = 2;

  const TrainArguments& options_;
  Device device_;
  PlotFile plot_;
  Trainer trainer_;
  std::unique_ptr<Progress> progress_;  // while there are steps
  TrainLog* log_ = nullptr;
  std::int64_t printed_ = 0;
  double evaluate_seconds_ = 0, save_seconds_ = 0;
};

int train(const TrainArguments& options) {
  if (options.threads > 0) ThreadPool::shared().set_threads(options.threads);
  const TrainConfig config = read_train_config(options.path, overrides_of(options));
  const Device device = Device::parse(*options.device);
  const InterruptScope scope(Signals::Both);
  MemoryWatch memory(device);
  std::exception_ptr failure;
  int code = 0;
  std::uint64_t parameters = 0;
  try {
    TrainRun run(options, config, device);
    parameters = run.parameter_bytes();
    code = run.run();
  } catch (...) {
    failure = std::current_exception();
  }
  const MemoryUse use = memory.finish();
  if (failure) std::rethrow_exception(failure);
  fmt::print("memory: parameters {}, peak {}, {} ({})\n", format_bytes(parameters),
             format_bytes(use.peak),
             use.missing == 0 ? "all returned" : format_bytes(use.missing) + " not returned",
             device.text());
  if (use.missing > 0) {
    throw Error(ErrorKind::Device, "memory", format_bytes(use.missing), " of ", device.text(),
                " did not come back");
  }
  return code;
}

// An option that stands for --set KEY=VALUE.
void add_setting(CLI::App& command, const std::shared_ptr<TrainArguments>& options,
                 const std::string& flag, const std::string& key, const std::string& help) {
  command
      .add_option_function<std::string>(
          flag,
          [options, key](const std::string& value) { options->named.push_back(key + "=" + value); },
          help)
      ->type_name("VALUE");
}

}  // namespace

void add_train(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<TrainArguments>();
  CLI::App& command = *app.add_subcommand("train", "train a language model from texts");
  command.add_option("config", options->path, "a JSON file: docs/training.md has its keys")
      ->required();
  add_device_option(command, options->device);
  command.add_option("--threads", options->threads, "of the CPU; 0 for as many as there are CPUs")
      ->type_name("N")
      ->check(CLI::Range(0, ThreadPool::kMaxThreads))
      ->capture_default_str();
  command.add_flag("--resume", options->resume, "go on from the state that was saved last");
  command
      .add_option("--time-limit", options->time_limit,
                  "stop and save in time for this many seconds; 0 for no limit")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_plot_option(command, options->plot, "draw the losses when it is done");
  add_setting(command, options, "--steps", "steps", "instead of the file's");
  add_setting(command, options, "--batch", "batch", "instead of the file's");
  add_setting(command, options, "--rate", "rate", "instead of the file's");
  add_setting(command, options, "--seed", "seed", "instead of the file's");
  add_setting(command, options, "--precision", "precision", "f32, tf32 or bf16");
  add_setting(command, options, "--output", "output", "the GGUF file to write");
  command
      .add_option("--set", options->settings,
                  "any key of the file, e.g. architecture.layers=4; may come several times")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.callback([options, &chosen] { chosen = [options] { return train(*options); }; });
}

}  // namespace tl::cli
