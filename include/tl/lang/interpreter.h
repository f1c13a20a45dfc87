// Running TensorLogic programs.
//
//   Interpreter interpreter;
//   if (!interpreter.load_file("hello.tl")) std::cerr << interpreter.report();
//   interpreter.run_main();  // throws ProgramFailed, whose what() tells all of it
//
// An interpreter holds one program, or what was typed at a prompt so far, and belongs to one
// thread. docs/language.md has the language.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tl/runtime/device.h"

namespace tl {

// What a learn block does, for who shows it.
struct LearnProgress {
  enum class Stage : std::uint8_t { Begin, Step, End } stage = Stage::Begin;
  std::string_view place;   // of the block: "train.tl:12"
  std::int64_t step = 0;    // how many it has made
  std::int64_t steps = 0;   // how many it will make; 0 where its own loops decide
  std::int64_t epochs = 0;  // what the block says
  // With Step: what was made small, before the step. A number that is on a device is fetched by the
  // call, which waits for it.
  std::function<double()> loss;
};

struct InterpreterOptions {
  Device device = Device::cpu();  // where tensors of the program are made
  // Called for the device when the program makes its first tensor, in place of `device`.
  std::function<Device()> open_device;
  std::ostream* out = nullptr;         // what it prints; standard output when there is none
  std::istream* in = nullptr;          // what input() reads; standard input
  std::vector<std::string> arguments;  // args() in the program
  std::uint64_t step_limit = 0;        // calls and turns of loops; 0: none
  const std::atomic<bool>* interrupted = nullptr;  // ends what runs when it becomes true
  bool colour = false;                             // in reports
  bool verbose = true;                             // "Loaded model from: ..." and such lines
  // A name that nothing declares is a relation where a fact, a rule or a query has it; else it is
  // an error.
  bool undeclared_relations = false;
  bool allow_files = true;         // false: no imports, and builtins that take a path are refused
  std::ostream* perf = nullptr;    // a line for every builtin called and how long it took
  std::ostream* shares = nullptr;  // a line whenever a variable comes to share a tensor
  // Called when a learn block begins, after each of its steps, and when it ends, also by an error.
  // What it throws ends the program, but at the end it must not throw.
  std::function<void(const LearnProgress&)> on_learn;
};

// What was found wrong with a program before it ran, or that ended it.
struct ProgramMessage {
  bool is_error = true;
  std::string message;
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string text;  // several lines for a person: place, source line, hint, stack
  std::string json;  // the same as an object on one line
};

// A program ended with an error; nothing it had at the time is left.
struct ProgramFailed : std::runtime_error {
  explicit ProgramFailed(ProgramMessage m) : std::runtime_error(m.text), message(std::move(m)) {}
  ProgramMessage message;
};

class Interpreter {
 public:
  explicit Interpreter(InterpreterOptions options = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Reads and compiles a program and what it imports. False when it has errors; messages() has
  // them, and warnings too. Throws BadFile when the file itself cannot be read.
  bool load_file(const std::string& path);
  bool load_text(std::string name, std::string text);
  const std::vector<ProgramMessage>& messages() const noexcept;
  std::string report() const;  // all messages for a person

  std::size_t declarations() const noexcept;
  bool has_main() const noexcept;
  const std::vector<std::string>& tests() const noexcept;
  const std::vector<std::string>& benches() const noexcept;

  // Each begins with fresh globals: the declarations are run first. Throw ProgramFailed.
  void run_main();
  void run_test(std::size_t index);
  void run_bench(std::size_t index);
  // Gives up all variables, which is done by the next run too.
  void clear();

  // ---- at the prompt: one input after another over the same variables
  enum class Input : std::uint8_t { Done, Incomplete, Failed };
  // `value` is what an expression gave, as print shows it; empty for none.
  Input enter(std::string text, std::string& value);
  std::vector<std::pair<std::string, std::string>> variables() const;  // names and values
  std::vector<std::string> names() const;  // that could be completed: variables and functions

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- about the language
struct BuiltinHelp {
  std::string name;
  std::string signature;
  std::string section;
  std::string help;
};
std::vector<BuiltinHelp> builtin_help();       // by name
std::vector<std::string> language_keywords();  // for completion

// The text laid out as `tl fmt` does. When it has errors they are in `messages` and it comes back
// as it is.
std::string format_program(std::string name, std::string text,
                           std::vector<ProgramMessage>& messages);

}  // namespace tl
