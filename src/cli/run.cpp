// `tl run` and `tl test`: programs of the language and the tests in them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/learn_watch.h"
#include "cli/plot_file.h"
#include "cli/program_run.h"
#include "cli/progress.h"
#include "tl/base/error.h"

namespace tl::cli {

namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::shared_ptr<ProgramOptions> program = std::make_shared<ProgramOptions>();
  std::string file, plot;
  std::vector<std::string> arguments;
  bool quiet = false;
  bool debug = false;
  bool test = false;
  bool bench = false;
};

struct TestCount {
  std::size_t passed = 0;
  std::size_t failed = 0;
};

void run_tests(Interpreter& interpreter, const std::string& filter, TestCount& count) {
  const std::vector<std::string>& tests = interpreter.tests();
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (tests[i].find(filter) == std::string::npos) continue;
    std::cout << "test " << tests[i] << " ... " << std::flush;
    try {
      interpreter.run_test(i);
      std::cout << "✓ ok\n" << std::flush;
      ++count.passed;
    } catch (const ProgramFailed& e) {
      std::cout << "✗ FAILED\n" << std::flush;
      fmt::print(stderr, "  Error: {}\n{}", e.message.message, e.message.text);
      ++count.failed;
    }
  }
}

void print_summary(const TestCount& count) {
  std::cout << "\ntest result: " << (count.failed == 0 ? "ok" : "FAILED") << ". " << count.passed
            << " passed; " << count.failed << " failed\n";
}

int run_benches(Interpreter& interpreter) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::string>& benches = interpreter.benches();
  if (benches.empty()) {
    std::cout << "No benchmark blocks found\n";
    return 0;
  }
  std::cout << "=== Running Benchmarks ===\n";
  for (std::size_t i = 0; i < benches.size(); ++i) {
    std::cout << "bench " << benches[i] << " ...\n" << std::flush;
    const Clock::time_point start = Clock::now();
    try {
      interpreter.run_bench(i);
    } catch (const ProgramFailed& e) {
      show_failure(e);
      return 1;
    }
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    std::cout << fmt::format("  Total time: {:.3f}ms\n\n", took.count());
  }
  return 0;
}

int run_main(Interpreter& interpreter, const RunOptions& options) {
  if (!options.quiet) std::cout << "Executing...\n\n" << std::flush;
  try {
    interpreter.run_main();
  } catch (const ProgramFailed& e) {
    show_failure(e);
    return 1;
  }
  if (!options.quiet) std::cout << "\n✅ Program executed successfully!\n";
  return 0;
}

int run_program(const RunOptions& options, const ProgramOptions& program) {
  return with_interpreter(program, options.arguments, [&](Interpreter& interpreter) {
    const std::string mark = options.debug ? "[DEBUG] " : "";
    const bool frame = !options.quiet;
    if (frame) std::cout << mark << "Parsing " << options.file << "...\n" << std::flush;
    if (!load_program(interpreter, options.file)) return 1;
    if (frame) {
      std::cout << mark << "Parsed " << interpreter.declarations() << " declarations\n";
      if (interpreter.has_main()) std::cout << mark << "Found main block\n";
    }
    if (options.debug) {
      std::cout << mark << "Test blocks: " << interpreter.tests().size()
                << ", bench blocks: " << interpreter.benches().size() << "\n";
    }
    if (frame) std::cout << "\n";
    if (options.test) {
      if (interpreter.tests().empty()) {
        std::cout << "No test blocks found\n";
        return 0;
      }
      std::cout << "=== Running Tests ===\n";
      TestCount count;
      run_tests(interpreter, {}, count);
      print_summary(count);
      return count.failed == 0 ? 0 : 1;
    }
    if (options.bench) return run_benches(interpreter);
    return run_main(interpreter, options);
  });
}

// A program that fails half-way has losses up to there, which are worth a look too.
int run(const RunOptions& options) {
  if (options.quiet) set_quiet(true);
  PlotFile plot(options.plot);
  std::vector<Series> losses;
  ProgramOptions program = *options.program;
  if (plot.is_wanted()) program.losses = &losses;
  const int code = run_program(options, program);
  if (!plot.is_wanted()) return code;
  if (losses.empty()) {
    if (code != 0) return code;
    throw Error(ErrorKind::BadArgument, "run", "there is no loss to plot: no learn block of ",
                options.file, " made a step");
  }
  const Chart chart = loss_chart(options.file, std::move(losses));
  plot.write({.title = chart.title, .panels = {chart}});
  return code;
}

struct TestOptions {
  std::shared_ptr<ProgramOptions> program = std::make_shared<ProgramOptions>();
  std::vector<std::string> paths;
  std::string filter;
};

// The programs that `paths` name; of folders, all in them.
std::vector<std::string> programs_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
      if (entry.path().extension() == ".tl") inside.push_back(entry.path().string());
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

int test(const TestOptions& options) {
  const std::vector<std::string> files = programs_of(options.paths);
  if (files.empty()) {
    throw Error(ErrorKind::BadArgument, "test", "there is no .tl file in ", options.paths.front());
  }
  TestCount total;
  int code = 0;
  for (const std::string& file : files) {
    const int result = with_interpreter(*options.program, {}, [&](Interpreter& interpreter) {
      if (files.size() > 1) std::cout << file << "\n" << std::flush;
      if (!load_program(interpreter, file)) {
        ++total.failed;
        return 1;
      }
      TestCount count;
      run_tests(interpreter, options.filter, count);
      total.passed += count.passed;
      total.failed += count.failed;
      return count.failed == 0 ? 0 : 1;
    });
    code = std::max(code, result);
  }
  if (total.passed + total.failed == 0) {
    std::cout << "No test blocks found\n" << std::flush;
    return code;
  }
  print_summary(total);
  std::cout.flush();
  return code;
}

}  // namespace

void add_run(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "run a TensorLogic program");
  command.add_option("file", options->file, "the program; - for standard input")->required();
  command.add_option("arguments", options->arguments, "what args() gives to the program");
  add_program_options(command, options->program);
  command.add_flag("-q,--quiet", options->quiet,
                   "without the lines around what the program prints");
  command.add_flag("-d,--debug", options->debug, "tell more about what is done");
  command.add_flag("--test", options->test, "run its test blocks instead of main");
  command.add_flag("--bench", options->bench, "run its bench blocks instead of main");
  add_plot_option(command, options->plot, "draw the losses of its learn blocks");
  command.callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

void add_test(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<TestOptions>();
  CLI::App& command =
      *app.add_subcommand("test", "run the test blocks of TensorLogic programs, each on its own");
  command.add_option("files", options->paths, "programs, or folders of them")->required();
  command.add_option("--filter", options->filter, "only tests whose name has this in it");
  add_program_options(command, options->program);
  command.callback([options, &chosen] { chosen = [options] { return test(*options); }; });
}

}  // namespace tl::cli
