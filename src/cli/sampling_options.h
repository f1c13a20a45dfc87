// The options that choose among tokens, for every command that writes text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tl/model/engine.h"
#include "tl/model/sampler.h"

namespace CLI {  // NOLINT(readability-identifier-naming): it is theirs
class App;
}

namespace tl::cli {

struct TextOptions {
  SamplingOptions sampling;
  std::optional<std::uint64_t> seed;  // nothing: another one each time
  std::int64_t max_tokens = -1;
  std::vector<std::string> stop;
  bool ignore_end = false;
  ContextPolicy context = ContextPolicy::Stop;
  std::optional<std::int64_t> keep;  // nothing: the token that begins a text

  // A request with all of this; the prompt is the caller's.
  GenerationRequest request(const Tokenizer& tokenizer) const;
  std::uint64_t next_seed() const;
};

void add_text_options(CLI::App& command, const std::shared_ptr<TextOptions>& options);

}  // namespace tl::cli
