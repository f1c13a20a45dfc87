// `tl demo chat`: what `make demo` runs. A person gets a chat with the model that comes with the
// program; a script sees three questions and their answers.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/chat.h"
#include "cli/command.h"
#include "tl/base/version.h"
#include "tl/runtime/device.h"

namespace tl::cli {

namespace {

int demo_chat(ChatArguments options) {
  const bool is_terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (!is_terminal) {
    options.ask = {"What is Tallow?", "What is 23 + 45?",
                   "Tell me a story about a fox who lost a key."};
    options.separate = true;
    options.text->sampling.temperature = 0;  // the same answers each time
    options.text->max_tokens = 300;          // also of a model that never ends
    const Device device = Device::parse(*options.model->device);
    fmt::print("Tallow {} on {}: {}\n\n", version(), device.text(), device.name());
  }
  return chat(options);
}

}  // namespace

void add_demo_chat(CLI::App& demo, Action& chosen) {
  const auto options = std::make_shared<ChatArguments>();
  CLI::App& command = *demo.add_subcommand(
      "chat", "talk with the model that comes with tl; without a terminal, three questions");
  add_model_options(command, options->model);
  add_template_option(command, options->model);
  command.callback([options, &chosen] { chosen = [options] { return demo_chat(*options); }; });
}

}  // namespace tl::cli
