// What the commands that run TensorLogic programs share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/chart.h"
#include "tl/lang/interpreter.h"

namespace tl::cli {

struct ProgramOptions {
  std::shared_ptr<std::string> device;
  std::string seed;  // empty: TL_SEED, or none
  std::uint64_t step_limit = 0;
  bool memory_check = false;
  bool no_files = false;
  bool undeclared_relations = false;
  bool no_notes = false;        // nothing about facts, entities and files that were loaded
  std::ostream* out = nullptr;  // what it prints; null: standard output
  std::vector<Series>* losses = nullptr;  // of its learn blocks, where somebody wants them
};

void add_program_options(CLI::App& command, const std::shared_ptr<ProgramOptions>& options);

// Makes an interpreter on the device asked for, has `work` use it, and looks whether all memory
// came back. The exit code is the work's, or 1 when memory is missing.
int with_interpreter(const ProgramOptions& options, std::vector<std::string> arguments,
                     const std::function<int(Interpreter&)>& work);

// A file, or standard input for "-". False: it has errors, which were written to stderr; warnings
// are too.
bool load_program(Interpreter& interpreter, const std::string& path);

// "Error: ..." of a program that ended, on stderr.
void show_failure(const ProgramFailed& failure);

}  // namespace tl::cli
