// What the commands that run a model share: its options, loading it, and giving everything back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/memory_watch.h"
#include "tl/model/chat_template.h"
#include "tl/model/decoder.h"
#include "tl/model/engine.h"
#include "tl/model/gguf.h"
#include "tl/model/tokenizer.h"

namespace CLI {  // NOLINT(readability-identifier-naming): it is theirs
class App;
}

namespace tl::cli {

struct ModelOptions {
  std::string path;
  std::shared_ptr<std::string> device = std::make_shared<std::string>("auto");
  int threads = 0;           // 0: as many as there are CPUs
  std::int64_t context = 0;  // 0: what the model was trained for
  // So many positions there are in any case, also where the model was trained for fewer: for
  // measuring, where what it says does not matter.
  std::int64_t least_context = 0;
  std::string cache_type = "f16";
  std::string chat_template;  // one that is built in; empty: the model's own
  bool quiet = false;         // nothing on stderr but errors and warnings
};

// --device, --threads, --context, --cache-type and --quiet; MODEL too.
void add_model_options(CLI::App& command, const std::shared_ptr<ModelOptions>& options);
// The parts of it for a command that has its own way with models.
void add_device_options(CLI::App& command, const std::shared_ptr<ModelOptions>& options);
void add_template_option(CLI::App& command, const std::shared_ptr<ModelOptions>& options);

struct LoadedModel {
  GgufFile file;
  Decoder decoder;
  MemoryWatch& memory;
  double load_seconds = 0;

  Tokenizer tokenizer(bool quiet) const;  // writes its warnings to stderr
  // The built-in one that the options name, else the model's own. Throws BadArgument where there
  // is none.
  ChatTemplate chat_template(const ModelOptions& options) const;
};

// Loads the model, gives it to `work`, drops everything and looks whether the device has all of it
// back. The memory line goes to stderr unless the options are quiet. Throws what the work throws,
// and Device for memory that did not come back. Ctrl-C while the model is loaded is an error.
MemoryUse with_model(const ModelOptions& options, std::int64_t chunk,
                     const std::function<void(LoadedModel&)>& work);

std::string format_speed(double tokens_per_second);  // "41.2 tokens/s"

}  // namespace tl::cli
