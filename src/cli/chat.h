// A conversation with a model, for `tl chat` and `tl demo chat`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/model_run.h"
#include "cli/sampling_options.h"

namespace tl::cli {

struct ChatArguments {
  std::shared_ptr<ModelOptions> model = std::make_shared<ModelOptions>();
  std::shared_ptr<TextOptions> text = std::make_shared<TextOptions>();
  std::string system;
  std::vector<std::string> ask;  // said one after another; then it ends and nothing is read
  bool separate = false;         // each of them begins a chat of its own
  std::int64_t chunk = 512;
};

// Talks until there is no more to come; returns the exit code.
int chat(const ChatArguments& options);

}  // namespace tl::cli
