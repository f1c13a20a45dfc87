// Lines that a person types, with editing and history; or those of a pipe.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace tl::cli {

class LineEditor {
 public:
  // Uses libedit where standard input and output are a terminal, else reads plain lines.
  explicit LineEditor(std::string prompt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  bool is_terminal() const noexcept { return edit_ != nullptr; }
  // Without its new line; nothing at the end of input. A line that ends with a backslash goes on in
  // the next one. Ctrl-C at a terminal drops what was typed and asks again.
  std::optional<std::string> read();

 private:
  struct Edit;
  std::optional<std::string> read_line();
  std::optional<std::string> read_plain();

  std::unique_ptr<Edit> edit_;  // none for a pipe
  std::string waiting_;         // of a pipe: what was read and not given out
};

}  // namespace tl::cli
