#include "cli/model_run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <set>
#include <utility>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/base/thread_pool.h"
#include "tl/model/weights.h"

namespace tl::cli {

void add_device_options(CLI::App& command, const std::shared_ptr<ModelOptions>& options) {
  add_device_option(command, options->device);
  command.add_option("--threads", options->threads, "of the CPU; 0 for as many as there are CPUs")
      ->type_name("N")
      ->check(CLI::Range(0, ThreadPool::kMaxThreads))
      ->capture_default_str();
  command.add_option("--cache-type", options->cache_type, "how keys and values are kept")
      ->check(CLI::IsMember(std::set<std::string>{"f16", "bf16", "q8_0", "f32"}))
      ->capture_default_str();
  command.add_flag("-q,--quiet", options->quiet,
                   "no progress, no times and no memory line on stderr");
}

void add_model_options(CLI::App& command, const std::shared_ptr<ModelOptions>& options) {
  command.add_option("model", options->path,
                     "a GGUF file, or any part of one; without it the model that comes with tl");
  add_device_options(command, options);
  command
      .add_option("-c,--context", options->context,
                  "positions, at most what the model was trained for, which 0 stands for")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_template_option(CLI::App& command, const std::shared_ptr<ModelOptions>& options) {
  command
      .add_option("--template", options->chat_template,
                  "a chat template that is built in, instead of the model's own")
      ->type_name("NAME");
}

Tokenizer LoadedModel::tokenizer(bool quiet) const {
  Tokenizer tokenizer = Tokenizer::from_gguf(file);
  if (!quiet) {
    for (const std::string& warning : tokenizer.warnings()) {
      fmt::print(stderr, "tl: {} {}\n", coloured(stderr, Colour::Yellow, "warning:"), warning);
    }
  }
  return tokenizer;
}

ChatTemplate LoadedModel::chat_template(const ModelOptions& options) const {
  if (!options.chat_template.empty()) return ChatTemplate::builtin(options.chat_template);
  if (auto own = ChatTemplate::from_gguf(file)) return *std::move(own);
  std::string names;
  for (const std::string_view name : ChatTemplate::builtin_names()) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorKind::BadArgument, options.path,
              "has no chat template; --template takes one of ", names);
}

namespace {

Decoder load_decoder(const GgufFile& file, const ModelOptions& options, std::int64_t chunk,
                     const Device& device, MemoryWatch& memory) {
  Progress progress("load", file.tensor_bytes(), "bytes");
  LoadOptions how;
  how.progress = [&](const LoadProgress& now) {
    if (interrupted()) {
      throw Error(ErrorKind::BadArgument, options.path, "the loading was interrupted");
    }
    progress.set(now.done, now.tensor);
  };
  const ModelWeights weights = ModelWeights::load(file, device, how);
  memory.note_model(weights.size_bytes());
  std::int64_t context = options.context;
  if (context == 0 && options.least_context > 0) {
    const std::string key = join(file.architecture(), ".context_length");
    if (options.least_context > file.get_or<std::int64_t>(key, 0)) context = options.least_context;
  }
  return {file, weights, {parse_kv_type(options.cache_type), context, chunk}};
}

// Everything of the model is gone when it returns.
void load_and_work(const ModelOptions& options, std::int64_t chunk, const Device& device,
                   MemoryWatch& memory, const std::function<void(LoadedModel&)>& work) {
  const GgufFile file = GgufFile::open(options.path);
  const auto start = std::chrono::steady_clock::now();
  LoadedModel model{.file = file,
                    .decoder = load_decoder(file, options, chunk, device, memory),
                    .memory = memory,
                    .load_seconds = 0};
  model.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (const std::int64_t trained = model.decoder.config().context; options.context > trained) {
    throw Error(ErrorKind::BadArgument, options.path, "a context of ", options.context,
                " positions is longer than the ", trained, " that the model was trained for");
  }
  work(model);
}

}  // namespace

MemoryUse with_model(const ModelOptions& options, std::int64_t chunk,
                     const std::function<void(LoadedModel&)>& work) {
  if (options.quiet) set_quiet(true);
  if (options.threads > 0) ThreadPool::shared().set_threads(options.threads);
  const Device device = Device::parse(*options.device);
  const InterruptScope scope;
  MemoryWatch memory(device);
  std::exception_ptr failure;
  try {
    load_and_work(options, chunk, device, memory, work);
  } catch (...) {
    failure = std::current_exception();
  }
  const MemoryUse use = memory.finish();
  if (failure) std::rethrow_exception(failure);
  if (!options.quiet) {
    fmt::print(
        stderr, "{}\n",
        coloured(stderr, Colour::Dim, fmt::format("memory: {} ({})", use.text(), device.text())));
  }
  if (use.missing > 0) {
    throw Error(ErrorKind::Device, "memory", format_bytes(use.missing), " of ", device.text(),
                " did not come back");
  }
  return use;
}

std::string format_speed(double tokens_per_second) {
  return tokens_per_second > 0 ? fmt::format("{:.1f} tokens/s", tokens_per_second) : "";
}

}  // namespace tl::cli
