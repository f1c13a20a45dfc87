// `tl demo`: short programs that show what the runtime does, on the device at hand.
#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace tl::cli {

void add_demo(CLI::App& app, Action& chosen) {
  CLI::App& demo = *app.add_subcommand("demo", "show what the runtime does");
  demo.require_subcommand(1);
  add_demo_memory(demo, chosen);
}

}  // namespace tl::cli
