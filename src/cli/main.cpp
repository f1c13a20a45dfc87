// The program `tl`: reads the command line, runs the subcommand, and turns what went wrong into one
// line and an exit code: 1 when the work failed, 2 when the command line cannot be understood.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/base/version.h"

namespace tl::cli {

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int complain(int code, std::string_view message) {
  fmt::print(stderr, "tl: {} {}\n", coloured(stderr, Colour::Red, "error:"), message);
  return code;
}

int complain_usage(std::string_view message, const CLI::App& app) {
  std::string command = app.get_name();
  for (const CLI::App* up = app.get_parent(); up != nullptr; up = up->get_parent()) {
    command = fmt::format("{} {}", up->get_name(), command);
  }
  complain(kUsage, message);
  fmt::print(stderr, "See '{} --help'.\n", command);
  return kUsage;
}

std::string with_suggestion(std::string message, std::string_view typed,
                            const std::vector<std::string>& words) {
  if (const std::string meant = nearest(typed, words); !meant.empty()) {
    message += fmt::format("; did you mean '{}'?", meant);
  }
  return message;
}

// With an empty filter CLI11 gives all subcommands, not those on the command line.
std::vector<CLI::App*> commands_of(CLI::App& app) { return app.get_subcommands({}); }

std::vector<std::string> command_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

// The innermost command that `arguments` names. When a word stands where only the name of a command
// can stand and is none, `unknown` is that word.
CLI::App& named_command(CLI::App& app, const std::vector<std::string>& arguments,
                        std::string& unknown) {
  CLI::App* at = &app;
  for (const std::string& argument : arguments) {
    const std::vector<CLI::App*> commands = commands_of(*at);
    if (argument.starts_with('-') || commands.empty()) break;
    const auto next = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->get_name() == argument;
    });
    if (next == commands.end()) {
      unknown = argument;
      break;
    }
    at = *next;
  }
  return *at;
}

// The first flag that the command does not know; empty when that was not the mistake.
std::string unknown_flag(const CLI::App& app, const std::vector<std::string>& extras,
                         std::vector<std::string>& known) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& extra : extras) {
    if (extra.starts_with("--")) return extra.substr(0, extra.find('='));
  }
  return {};
}

int run(std::vector<std::string> arguments) {
  CLI::App app("Tallow: tensors on CPUs, NVIDIA and AMD GPUs", "tl");
  app.set_version_flag("--version", "tl " + std::string(version()), "print the version");
  app.require_subcommand(1);
  Action chosen;
  add_run(app, chosen);
  add_repl(app, chosen);
  add_check(app, chosen);
  add_test(app, chosen);
  add_mem(app, chosen);
  add_fmt(app, chosen);
  add_doc(app, chosen);
  add_devices(app, chosen);
  add_demo(app, chosen);
  add_ops(app, chosen);
  add_convert(app, chosen);
  add_quantize(app, chosen);
  add_inspect(app, chosen);
  add_load(app, chosen);
  add_tokenize(app, chosen);
  add_tokenizer(app, chosen);
  add_generate(app, chosen);
  add_chat(app, chosen);
#ifdef TL_HAS_SERVE
  add_serve(app, chosen);
#endif
  add_bench(app, chosen);
  add_logits(app, chosen);
  add_train(app, chosen);

  if (arguments.empty()) {
    fmt::print(stderr, "{}", app.help());
    return kUsage;
  }
  if (arguments.front() == "help" || arguments.front() == "version") {
    arguments.front().insert(0, "--");
  }
  std::string unknown;
  CLI::App& command = named_command(app, arguments, unknown);
  if (!unknown.empty()) {
    return complain_usage(with_suggestion(fmt::format("there is no command '{}'", unknown), unknown,
                                          command_names(command)),
                          command);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());  // of the command that was named, with the way to it
    return 0;
  } catch (const CLI::CallForVersion& asked) {
    fmt::print("{}\n", asked.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    std::vector<std::string> known;
    const std::string flag = unknown_flag(command, command.remaining(), known);
    if (flag.empty()) return complain_usage(error.what(), command);
    return complain_usage(
        with_suggestion(fmt::format("there is no option '{}'", flag), flag, known), command);
  }
  return chosen();
}

}  // namespace

}  // namespace tl::cli

int main(int argc, char** argv) {
  try {
    const int code = tl::cli::run(std::vector<std::string>(argv + 1, argv + argc));
    // A full disk or a closed pipe shows only when the output is really written.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return tl::cli::complain(tl::cli::kFailed, "the output could not be written");
    }
    return code;
  } catch (const std::exception& error) {
    return tl::cli::complain(tl::cli::kFailed, error.what());
  }
}
