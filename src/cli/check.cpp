// `tl check`, `tl fmt` and `tl doc`: about programs without running them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/program_run.h"
#include "cli/terminal.h"
#include "tl/base/error.h"
#include "tl/lang/interpreter.h"

namespace tl::cli {

namespace {

struct CheckOptions {
  std::vector<std::string> files;
  bool json = false;
};

int check(const CheckOptions& options) {
  std::size_t errors = 0;
  std::string json;
  for (const std::string& file : options.files) {
    Interpreter interpreter;
    const bool good = file == "-" ? interpreter.load_text("standard input", read_input("check"))
                                  : interpreter.load_file(file);
    if (!good) ++errors;
    if (options.json) {
      for (const ProgramMessage& m : interpreter.messages()) {
        json += (json.empty() ? "" : ",\n ") + m.json;
      }
    } else if (!interpreter.messages().empty()) {
      fmt::print(stderr, "{}", interpreter.report());
    }
    if (good && !options.json) fmt::print("{}: no errors\n", file);
  }
  if (options.json) fmt::print("[{}]\n", json);
  return errors == 0 ? 0 : 1;
}

struct FormatOptions {
  std::vector<std::string> files;
  bool check = false;
  bool print = false;
};

std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(ErrorKind::BadFile, "fmt", "cannot read ", path);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

int format_files(const FormatOptions& options) {
  int code = 0;
  for (const std::string& file : options.files) {
    const bool piped = file == "-";
    const std::string before = piped ? read_input("fmt") : read_whole(file);
    std::vector<ProgramMessage> messages;
    const std::string after = format_program(piped ? "standard input" : file, before, messages);
    if (!messages.empty()) {
      for (const ProgramMessage& m : messages) fmt::print(stderr, "{}", m.text);
      code = 1;
      continue;
    }
    if (piped || options.print) {
      write_output(after);
    } else if (options.check) {
      if (after == before) continue;
      fmt::print("{} would be laid out differently\n", file);
      code = 1;
    } else if (after != before) {
      std::ofstream out(file, std::ios::binary | std::ios::trunc);
      out << after;
      out.close();
      if (!out) throw Error(ErrorKind::BadFile, "fmt", "cannot write ", file);
      fmt::print("{}\n", file);
    }
  }
  return code;
}

int doc(const std::string& name) {
  const std::vector<BuiltinHelp> all = builtin_help();
  if (name.empty()) {
    std::string section;
    std::vector<BuiltinHelp> sorted = all;
    std::stable_sort(sorted.begin(), sorted.end(), [](const BuiltinHelp& a, const BuiltinHelp& b) {
      return a.section < b.section;
    });
    for (const BuiltinHelp& b : sorted) {
      if (b.section != section) fmt::print("{}{}\n", section.empty() ? "" : "\n", b.section);
      section = b.section;
      fmt::print("  {}{}\n", b.name, b.signature);
    }
    return 0;
  }
  std::vector<std::string> names;
  for (const BuiltinHelp& b : all) {
    if (b.name == name) {
      fmt::print("{}{}\n\n    {}\n", coloured(stdout, Colour::Bold, b.name), b.signature, b.help);
      return 0;
    }
    names.push_back(b.name);
  }
  const std::string meant = nearest(name, names);
  throw Error(ErrorKind::BadArgument, "doc", "there is no builtin '", name, "'",
              meant.empty() ? std::string() : "; did you mean '" + meant + "'?");
}

}  // namespace

void add_check(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App& command = *app.add_subcommand(
      "check", "look for mistakes in TensorLogic programs without running them");
  command.add_option("files", options->files, "programs; - for standard input")->required();
  command.add_flag("--json", options->json, "print what was found as JSON");
  command.callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

void add_fmt(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<FormatOptions>();
  CLI::App& command = *app.add_subcommand("fmt", "lay out TensorLogic programs");
  command.add_option("files", options->files, "programs; - for standard input")->required();
  command.add_flag("--check", options->check, "change nothing; fail when a file would change");
  command.add_flag("--print", options->print, "to standard output instead of the file");
  command.callback([options, &chosen] { chosen = [options] { return format_files(*options); }; });
}

void add_doc(CLI::App& app, Action& chosen) {
  const auto name = std::make_shared<std::string>();
  CLI::App& command =
      *app.add_subcommand("doc", "help for a builtin of the language, or the list of all");
  command.add_option("name", *name, "a builtin");
  command.callback([name, &chosen] { chosen = [name] { return doc(*name); }; });
}

}  // namespace tl::cli
