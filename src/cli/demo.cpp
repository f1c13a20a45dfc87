// `tl demo`: short programs that show what the runtime does, on the device at hand.
#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/progress.h"
#include "tl/base/error.h"
#include "tl/runtime/location.h"

namespace tl::cli {

void add_device_option(CLI::App& command, const std::shared_ptr<std::string>& device) {
  command
      .add_option_function<std::string>(
          "--device",
          [device](const std::string& text) {
            try {
              if (text != "auto") DeviceLocation::parse(text);
            } catch (const Error& error) {
              throw CLI::ValidationError("--device", error.what());
            }
            *device = text;
          },
          "cpu, cuda:N, rocm:N, or auto for the best one there is")
      ->type_name("D")
      ->default_str("auto");
}

void add_quiet_option(CLI::App& command) {
  command.add_flag_callback("-q,--quiet", [] { set_quiet(true); }, "show no progress");
}

void add_demo(CLI::App& app, Action& chosen) {
  CLI::App& demo = *app.add_subcommand("demo", "show what the runtime does");
  demo.require_subcommand(1);
  add_demo_chat(demo, chosen);
  add_demo_memory(demo, chosen);
  add_demo_tensors(demo, chosen);
}

}  // namespace tl::cli
