// `tl repl`: the language at a prompt.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/program_run.h"
#include "cli/terminal.h"
#include "tl/base/text.h"
#include "tl/base/version.h"
#include "tl/lang/interpreter.h"
#include "tl/runtime/report.h"

namespace tl::cli {

namespace {

constexpr std::string_view kHelp =
    "Type statements, expressions and declarations; a block may go over several lines.\n"
    "  :help [NAME]   this, or help for a builtin\n"
    "  :type EXPR     what kind of value it is\n"
    "  :time INPUT    how long it takes\n"
    "  :mem           memory of the devices\n"
    "  :vars          the variables there are\n"
    "  :load FILE     enter a file\n"
    "  :clear         forget all variables\n"
    "  :quit          leave (or Ctrl-D)\n";

class Prompt {
 public:
  explicit Prompt(Interpreter& interpreter) : interpreter_(interpreter), editor_("tl[1]> ") {
    editor_.set_completer([this](std::string_view word) { return complete(word); });
    if (const std::string_view home = environment("HOME"); !home.empty()) {
      editor_.keep_history((std::filesystem::path(home) / ".tl_history").string());
    }
  }

  void run() {
    if (editor_.is_terminal()) {
      std::cout << fmt::format("TensorLogic REPL v{}\n:help for help, :quit to leave\n", version())
                << std::flush;
    }
    std::string pending;
    while (true) {
      editor_.set_prompt(pending.empty() ? fmt::format("tl[{}]> ", number_) : "   ...> ");
      std::cout.flush();
      const std::optional<std::string> line = editor_.read();
      if (!line) {
        if (!pending.empty()) finish(pending, true);
        break;
      }
      if (pending.empty() && is_command(*line)) {
        if (!command(*line)) break;
        continue;
      }
      if (!pending.empty()) pending += '\n';
      pending += *line;
      if (pending.find_first_not_of(" \t\n") == std::string::npos) {
        pending.clear();
        continue;
      }
      // An empty line ends what is not complete, so that a slip does not hold one for ever.
      if (finish(pending, line->empty())) pending.clear();
    }
    if (editor_.is_terminal()) std::cout << "Goodbye!\n";
  }

 private:
  static bool is_command(const std::string& line) {
    return line.starts_with(':') || line == "exit" || line == "quit" || line == "help" ||
           line == "vars" || line == "clear";
  }

  // False: more lines are needed.
  bool finish(const std::string& text, bool is_last) {
    clear_interrupt();
    std::string value;
    const Interpreter::Input result = interpreter_.enter(text, value);
    if (result == Interpreter::Input::Incomplete && !is_last) return false;
    ++number_;
    std::cout.flush();
    if (result == Interpreter::Input::Incomplete) {
      fmt::print(stderr, "error: the input ends too early\n");
      return true;
    }
    if (!value.empty()) std::cout << value << "\n" << std::flush;
    const std::string report = interpreter_.report();
    if (!report.empty()) fmt::print(stderr, "{}", report);
    return true;
  }

  // False: leave.
  bool command(const std::string& line) {
    const std::size_t space = line.find(' ');
    std::string name = line.substr(0, space);
    if (!name.starts_with(':')) name.insert(0, ":");
    std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    while (rest.ends_with(' ')) rest.pop_back();
    if (name == ":quit" || name == ":exit" || name == ":q") return false;
    if (name == ":help") {
      help(rest);
    } else if (name == ":vars") {
      for (const auto& [variable, value] : interpreter_.variables()) {
        std::cout << fmt::format("{} = {}\n", variable, value) << std::flush;
      }
    } else if (name == ":clear") {
      interpreter_.clear();
      std::cout << "Environment cleared\n";
    } else if (name == ":mem") {
      std::cout << memory_report().text();
    } else if (name == ":type") {
      finish("type(" + rest + ")", true);
    } else if (name == ":time") {
      const auto start = std::chrono::steady_clock::now();
      finish(rest, true);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      std::cout << fmt::format("{}\n", format_duration(took.count())) << std::flush;
    } else if (name == ":load") {
      load(rest);
    } else {
      fmt::print(stderr, "error: there is no command {}\n{}", name, kHelp);
    }
    return true;
  }

  void load(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      fmt::print(stderr, "error: File not found: {}\n", path);
      return;
    }
    std::ostringstream text;
    text << in.rdbuf();
    finish(std::move(text).str(), true);
  }

  static void help(const std::string& name) {
    if (name.empty()) {
      std::cout << kHelp;
      return;
    }
    for (const BuiltinHelp& b : builtin_help()) {
      if (b.name != name) continue;
      std::cout << fmt::format("{}{}\n    {}\n", b.name, b.signature, b.help) << std::flush;
      return;
    }
    fmt::print(stderr, "error: there is no builtin '{}'\n", name);
  }

  std::vector<std::string> complete(std::string_view word) const {
    std::vector<std::string> words;
    const auto add = [&](const std::string& name) {
      if (name.starts_with(word)) words.push_back(name);
    };
    for (const std::string& name : interpreter_.names()) add(name);
    for (const std::string& name : language_keywords()) add(name);
    for (const BuiltinHelp& b : builtin_help()) add(b.name);
    return words;
  }

  Interpreter& interpreter_;
  LineEditor editor_;
  int number_ = 1;
};

}  // namespace

void add_repl(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<ProgramOptions>();
  CLI::App& command = *app.add_subcommand("repl", "TensorLogic at a prompt");
  add_program_options(command, options);
  command.callback([options, &chosen] {
    chosen = [options] {
      return with_interpreter(*options, {}, [](Interpreter& interpreter) {
        Prompt(interpreter).run();
        return 0;
      });
    };
  });
}

}  // namespace tl::cli
