// Lines that a person types, with editing and history; or those of a pipe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tl::cli {

class LineEditor {
 public:
  // Uses libedit where standard input and output are a terminal, else reads plain lines.
  explicit LineEditor(std::string prompt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  void set_prompt(std::string prompt);
  // What the word before the cursor could become; the tab key asks.
  using Completer = std::function<std::vector<std::string>(std::string_view word)>;
  void set_completer(Completer completer);
  // Lines of earlier times, which those of this one join. A file that cannot be used is no error.
  void keep_history(const std::string& path);

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
