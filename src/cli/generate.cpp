// `tl generate`: what a model writes after a prompt, or after several at once.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/default_model.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_run.h"
#include "cli/progress.h"
#include "cli/sampling_options.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/engine.h"

namespace tl::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kGenerateWhere = "generate";

struct GenerateArguments {
  std::shared_ptr<ModelOptions> model = std::make_shared<ModelOptions>();
  std::shared_ptr<TextOptions> text = std::make_shared<TextOptions>();
  std::vector<std::string> prompts;
  std::string system;
  std::int64_t parallel = 0;  // 0: all prompts, at most 8
  std::int64_t chunk = 512;
  bool lines = false;
  bool chat = false;
  bool raw = false;
  bool special = false;
  bool json = false;
  bool no_stream = false;
};

// What a run leaves behind; the model is gone by then.
struct Outcome {
  std::vector<GenerationResult> results;
  std::vector<std::uint64_t> seeds;
  double load_seconds = 0;
};

std::vector<std::string> read_prompts(const GenerateArguments& options) {
  std::vector<std::string> prompts = options.prompts;
  if (prompts.empty()) {
    std::string text = read_input(kGenerateWhere);
    // The new line that `echo` and editors put at the end is nobody's wish.
    if (text.ends_with('\n')) text.pop_back();
    if (options.lines) {
      for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        if (end > at) prompts.push_back(text.substr(at, end - at));
        at = end + 1;
      }
    } else if (!text.empty()) {
      prompts.push_back(std::move(text));
    }
  }
  if (prompts.empty()) throw Error(ErrorKind::BadArgument, kGenerateWhere, "the prompt is empty");
  for (const std::string& prompt : prompts) {
    if (prompt.empty()) throw Error(ErrorKind::BadArgument, kGenerateWhere, "the prompt is empty");
    expect_utf8(kGenerateWhere, prompt);
  }
  return prompts;
}

std::vector<std::vector<TokenId>> encode(const std::vector<std::string>& prompts,
                                         const GenerateArguments& options, const LoadedModel& model,
                                         const Tokenizer& tokenizer) {
  std::vector<std::vector<TokenId>> out;
  for (const std::string& prompt : prompts) {
    if (!options.chat) {
      out.push_back(tokenizer.encode(prompt, {.parse_special = options.special}));
      continue;
    }
    ChatInput input;
    input.set_tokens(tokenizer);
    if (!options.system.empty()) input.messages.push_back({"system", options.system});
    input.messages.push_back({"user", prompt});
    out.push_back(tokenizer.encode_prompt(model.chat_template(*options.model).render(input)));
  }
  return out;
}

// How many tokens all prompts begin with, without the last one of any.
std::size_t common_prefix(const std::vector<std::vector<TokenId>>& prompts) {
  std::size_t common = prompts.front().size();
  for (const auto& prompt : prompts) {
    const auto [here, there] =
        std::mismatch(prompt.begin(), prompt.end(), prompts.front().begin(), prompts.front().end());
    common = std::min({common, prompt.size() - 1, static_cast<std::size_t>(here - prompt.begin())});
  }
  return common;
}

// Keys and values of what the prompts share, computed once. Less than a block is not worth it.
KvCache shared_cache(const std::vector<std::vector<TokenId>>& prompts, const Decoder& decoder) {
  KvCache cache = decoder.new_cache();
  if (prompts.size() < 2) return cache;
  const std::size_t common = common_prefix(prompts);
  if (common < KvCache::kBlockPositions || std::cmp_greater(common, cache.context())) return cache;
  decoder.forward(std::span(prompts.front()).first(common), cache);
  return cache;
}

// How much of the prompts is read; gone when all are, before the first text.
class PromptProgress {
 public:
  explicit PromptProgress(const std::vector<std::vector<TokenId>>& prompts) {
    for (const auto& prompt : prompts) missing_ += prompt.size();
    progress_ = std::make_unique<Progress>("prompt", missing_, "tokens");
  }

  // For one prompt.
  std::function<void(std::int64_t, std::int64_t)> listener() {
    return [this, before = std::int64_t{0}](std::int64_t done, std::int64_t) mutable {
      if (!progress_ || done <= before) return;  // fewer: the context was shifted
      const auto more = static_cast<std::size_t>(done - before);
      before = done;
      missing_ -= std::min(missing_, more);
      progress_->add(more);
      if (missing_ == 0) progress_.reset();
    };
  }

 private:
  std::unique_ptr<Progress> progress_;
  std::size_t missing_ = 0;
};

Outcome write(const GenerateArguments& options, const std::vector<std::string>& prompts,
              LoadedModel& model) {
  const Tokenizer tokenizer = model.tokenizer(options.model->quiet);
  const auto tokens = encode(prompts, options, model, tokenizer);
  const auto parallel = options.parallel > 0
                            ? options.parallel
                            : std::min<std::int64_t>(static_cast<std::int64_t>(prompts.size()), 8);
  Engine engine(model.decoder, tokenizer, {.sequences = parallel, .step_tokens = 0});
  Outcome outcome;
  outcome.load_seconds = model.load_seconds;
  const bool streams = prompts.size() == 1 && !options.json && !options.no_stream;
  PromptProgress reading(tokens);
  {
    const KvCache shared = shared_cache(tokens, model.decoder);
    for (const std::vector<TokenId>& prompt : tokens) {
      GenerationRequest request = options.text->request(tokenizer);
      request.prompt = prompt;
      request.cache = shared.fork();
      request.on_prompt = reading.listener();
      outcome.seeds.push_back(request.sampling.seed);
      if (streams) {
        request.on_text = [](std::string_view text) {
          write_output(for_terminal(text));
          return true;
        };
      }
      engine.submit(std::move(request));
    }
  }
  while (engine.step()) {
    if (interrupted()) engine.cancel_all();
  }
  model.memory.note_cache(engine.peak_cache_bytes());
  outcome.results = engine.run();
  return outcome;
}

Json timings(const GenerationStatistics& numbers) {
  return {{"prompt_tokens", numbers.prompt_tokens},
          {"reused_tokens", numbers.reused_tokens},
          {"generated_tokens", numbers.generated_tokens},
          {"shifts", numbers.shifts},
          {"queue_seconds", numbers.queue_seconds},
          {"prompt_seconds", numbers.prompt_seconds},
          {"answer_seconds", numbers.answer_seconds},
          {"prompt_tokens_per_second", numbers.prompt_speed()},
          {"answer_tokens_per_second", numbers.answer_speed()}};
}

Json to_json(const GenerationResult& result, const std::string& prompt, std::uint64_t seed) {
  Json json{{"prompt", prompt},
            {"text", result.text},
            {"tokens", result.tokens},
            {"finish_reason", name(result.reason)},
            {"seed", seed},
            {"timings", timings(result.statistics)}};
  if (result.error) json["error"] = result.message;
  return json;
}

void print_json(const GenerateArguments& options, const std::vector<std::string>& prompts,
                const Outcome& outcome, const MemoryUse& memory, const std::string& device) {
  Json json{{"model", options.model->path}, {"device", device}};
  Json results = Json::array();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    results.push_back(to_json(outcome.results[i], prompts[i], outcome.seeds[i]));
  }
  if (results.size() == 1) {
    json.update(results.front());
  } else {
    json["results"] = std::move(results);
  }
  json["load_seconds"] = outcome.load_seconds;
  json["memory"] = {{"model", memory.model},
                    {"cache", memory.cache},
                    {"peak", memory.peak},
                    {"missing", memory.missing},
                    {"returned", memory.missing == 0}};
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_texts(const std::vector<std::string>& prompts, const Outcome& outcome) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts.size() > 1) {
      fmt::print(
          "{}{}\n", i == 0 ? "" : "\n",
          coloured(stdout, Colour::Bold, fmt::format("{}: {}", i + 1, in_quotes(prompts[i]))));
    }
    fmt::print("{}\n", for_terminal(outcome.results[i].text));
  }
}

void print_statistics(const Outcome& outcome) {
  for (const GenerationResult& result : outcome.results) {
    const GenerationStatistics& numbers = result.statistics;
    const auto line =
        fmt::format("prompt: {} tokens in {} ({}), answer: {} tokens in {} ({}), {}",
                    format_count(static_cast<std::uint64_t>(numbers.prompt_tokens)),
                    format_duration(numbers.prompt_seconds), format_speed(numbers.prompt_speed()),
                    format_count(static_cast<std::uint64_t>(numbers.generated_tokens)),
                    format_duration(numbers.answer_seconds), format_speed(numbers.answer_speed()),
                    name(result.reason));
    fmt::print(stderr, "{}\n", coloured(stderr, Colour::Dim, line));
  }
}

int generate(const GenerateArguments& options) {
  const std::vector<std::string> prompts = read_prompts(options);
  const bool streams = prompts.size() == 1 && !options.json && !options.no_stream;
  options.model->path = model_or_default(options.model->path);
  Outcome outcome;
  std::string device;
  const MemoryUse memory = with_model(*options.model, options.chunk, [&](LoadedModel& model) {
    device = model.decoder.device().text();
    outcome = write(options, prompts, model);
    if (streams) write_output("\n");
    // With one prompt its error is the command's; with several each has its own place.
    if (prompts.size() == 1 && outcome.results.front().error && !options.json) {
      std::rethrow_exception(outcome.results.front().error);
    }
    if (!options.model->quiet) print_statistics(outcome);
  });
  if (options.json) {
    print_json(options, prompts, outcome, memory, device);
  } else if (!streams) {
    print_texts(prompts, outcome);
  }
  int failed = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const GenerationResult& result = outcome.results[i];
    if (!result.error) continue;
    ++failed;
    fmt::print(stderr, "tl: {} {}{}\n", coloured(stderr, Colour::Red, "error:"),
               prompts.size() > 1 ? fmt::format("prompt {}: ", i + 1) : "", result.message);
  }
  const auto is_cancelled = [](const GenerationResult& result) {
    return result.reason == FinishReason::Cancelled;
  };
  if (std::any_of(outcome.results.begin(), outcome.results.end(), is_cancelled)) {
    throw Error(ErrorKind::BadArgument, kGenerateWhere, "it was interrupted");
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace

void add_generate(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<GenerateArguments>();
  CLI::App& command =
      *app.add_subcommand("generate", "write what a model says after a prompt, or after several");
  add_model_options(command, options->model);
  command
      .add_option("-p,--prompt", options->prompts,
                  "the text; several are written at once; else standard input")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_flag("--lines", options->lines, "every line of standard input is a prompt");
  CLI::Option* chat = command.add_flag(
      "--chat", options->chat, "the prompt is a message of a chat, by the model's template");
  command.add_flag("--raw", options->raw, "the prompt is text as it is (this is the default)")
      ->excludes(chat);
  command.add_option("--system", options->system, "with --chat: how the model should be")
      ->type_name("TEXT")
      ->needs(chat);
  add_template_option(command, options->model);
  command.add_flag("--special", options->special,
                   "control tokens written in the prompt are those tokens");
  add_text_options(command, options->text);
  command
      .add_option("--parallel", options->parallel,
                  "prompts that are worked on at once; 0 for all, at most 8")
      ->type_name("N")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command.add_option("--chunk", options->chunk, "tokens of prompts that are computed together")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_flag("--json", options->json, "print text, tokens, times and memory as JSON");
  command.add_flag("--no-stream", options->no_stream, "print the answer when it is complete");
  command.callback([options, &chosen] { chosen = [options] { return generate(*options); }; });
}

}  // namespace tl::cli
