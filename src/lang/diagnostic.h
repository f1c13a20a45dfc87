// What is said about a program: errors and warnings with the place they are about.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "lang/source.h"

namespace tl::lang {

enum class Severity : std::uint8_t { Error, Warning };

// A call that was under way when something went wrong, innermost first.
struct Frame {
  std::string function;  // "main", "test adds", "Point::length"
  Span at;
};

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string message;  // "Undefined variable: y"
  Span span;
  std::string hint;  // "did you mean 'x'?"; empty: none
  // Of run-time errors. May be left out of an initialiser.
  std::vector<Frame> stack = {};  // NOLINT(readability-redundant-member-init)
};

// What goes wrong while a program is read or runs. what() is the message alone.
class ProgramError : public std::exception {
 public:
  explicit ProgramError(Diagnostic diagnostic) : diagnostic_(std::move(diagnostic)) {}
  const char* what() const noexcept override { return diagnostic_.message.c_str(); }
  const Diagnostic& diagnostic() const noexcept { return diagnostic_; }
  Diagnostic& diagnostic() noexcept { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

// Several lines: the message, the place, the source line with a caret, the hint, the stack.
std::string render(const Sources& sources, const Diagnostic& diagnostic, bool colour);
// The same as a JSON object on one line.
std::string render_json(const Sources& sources, const Diagnostic& diagnostic);

}  // namespace tl::lang
