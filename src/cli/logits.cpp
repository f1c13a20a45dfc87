// `tl logits`: a model's numbers for every position of a text, to compare with other programs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/default_model.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_run.h"
#include "cli/progress.h"
#include "tl/base/error.h"
#include "tl/base/text.h"
#include "tl/model/decoder.h"
#include "tl/tensor/npy.h"

namespace tl::cli {

namespace {

constexpr const char* kLogitsWhere = "logits";

struct LogitsArguments {
  std::shared_ptr<ModelOptions> model = std::make_shared<ModelOptions>();
  std::string tokens;
  std::string prompt;
  std::string out;
  std::int64_t chunk = 512;
  bool step = false;
};

std::vector<TokenId> tokens_of(const LogitsArguments& options, const LoadedModel& model) {
  if (!options.tokens.empty()) return parse_token_ids(kLogitsWhere, options.tokens);
  expect_utf8(kLogitsWhere, options.prompt);
  return model.tokenizer(options.model->quiet).encode(options.prompt);
}

// (tokens, vocabulary) on the CPU. A chunk at a time goes over, so the device holds no more.
Tensor compute(const std::vector<TokenId>& tokens, std::int64_t chunk, LoadedModel& model) {
  const Decoder& decoder = model.decoder;
  const std::int64_t vocabulary = decoder.config().vocabulary;
  const auto count = static_cast<std::int64_t>(tokens.size());
  KvCache cache = decoder.new_cache();
  if (count > cache.context()) {
    throw Error(ErrorKind::BadArgument, kLogitsWhere, "there are ", count,
                " tokens, and the context holds ", cache.context());
  }
  Tensor all = Tensor::uninitialized({count, vocabulary}, DType::F32, Device::cpu());
  std::byte* to = all.write(Device::cpu().stream());
  Progress progress("logits", static_cast<std::uint64_t>(count), "tokens");
  for (std::int64_t at = 0; at < count; at += chunk) {
    if (interrupted()) throw Error(ErrorKind::BadArgument, kLogitsWhere, "it was interrupted");
    const std::int64_t size = std::min(chunk, count - at);
    const Tensor part = decoder.forward(
        std::span(tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size)),
        cache, LogitRows::All);
    const auto row_bytes = static_cast<std::size_t>(vocabulary) * sizeof(float);
    part.read_bytes({to + static_cast<std::size_t>(at) * row_bytes, part.size_bytes()});
    progress.set(static_cast<std::uint64_t>(at + size));
  }
  model.memory.note_cache(cache.size_bytes());
  return all;
}

int logits(const LogitsArguments& options) {
  if (options.tokens.empty() && options.prompt.empty()) {
    throw Error(ErrorKind::BadArgument, kLogitsWhere,
                "there are no tokens: --tokens or -p gives them");
  }
  options.model->path = model_or_default(options.model->path);
  with_model(*options.model, options.step ? 1 : options.chunk, [&](LoadedModel& model) {
    const std::vector<TokenId> tokens = tokens_of(options, model);
    if (tokens.empty()) throw Error(ErrorKind::BadArgument, kLogitsWhere, "there are no tokens");
    const Tensor result = compute(tokens, options.step ? 1 : options.chunk, model);
    write_npy(options.out, result);
    if (!options.model->quiet) {
      fmt::print("{}: f32 {}\n", options.out, result.shape().text());
    }
  });
  return 0;
}

}  // namespace

void add_logits(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<LogitsArguments>();
  CLI::App& command = *app.add_subcommand(
      "logits", "write a model's logits of every position of a text as a NumPy file");
  add_model_options(command, options->model);
  CLI::Option* tokens =
      command.add_option("--tokens", options->tokens, "token ids: 1,15043,29892")->type_name("IDS");
  command.add_option("-p,--prompt", options->prompt, "text instead, by the model's tokenizer")
      ->type_name("TEXT")
      ->excludes(tokens);
  command.add_option("-o,--out", options->out, "the file: float32 (tokens, vocabulary)")
      ->type_name("FILE.npy")
      ->required();
  command.add_option("--chunk", options->chunk, "tokens that are computed together")
      ->type_name("N")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command.add_flag("--step", options->step, "one token at a time, as when text is written");
  command.callback([options, &chosen] { chosen = [options] { return logits(*options); }; });
}

}  // namespace tl::cli
