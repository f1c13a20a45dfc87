#include "cli/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <utility>

#include "cli/interrupt.h"
#include "tl/base/error.h"

namespace tl::cli {

struct LineEditor::Edit {
  explicit Edit(std::string text)
      : prompt(std::move(text)),
        lines(::history_init()),
        el(::el_init("tl", stdin, stdout, stderr)) {
    if (lines == nullptr || el == nullptr) {
      throw Error(ErrorKind::Device, "terminal", "line editing could not be set up");
    }
    HistEvent event;
    constexpr int kRemembered = 1000;
    ::history(lines, &event, H_SETSIZE, kRemembered);
    ::history(lines, &event, H_SETUNIQUE, 1);
    ::el_set(el, EL_CLIENTDATA, this);
    ::el_set(el, EL_EDITOR, "emacs");
    ::el_set(el, EL_PROMPT, &prompt_of);
    ::el_set(el, EL_HIST, ::history, lines);
    ::el_set(el, EL_GETCFN, &read_character);
    ::el_source(el, nullptr);  // ~/.editrc
  }
  ~Edit() {
    if (lines != nullptr && !history_file.empty()) {
      HistEvent event;
      ::history(lines, &event, H_SAVE, history_file.c_str());
    }
    if (el != nullptr) ::el_end(el);
    if (lines != nullptr) ::history_end(lines);
  }
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  static Edit& of(EditLine* el) {
    void* self = nullptr;
    ::el_get(el, EL_CLIENTDATA, &self);
    return *static_cast<Edit*>(self);
  }
  static char* prompt_of(EditLine* el) { return of(el).prompt.data(); }
  // Its own reading goes on after a signal; ours ends the line.
  static int read_character(EditLine* el, wchar_t* out) {
    std::mbstate_t state{};
    while (true) {
      char byte = 0;
      if (!wait_for_input(STDIN_FILENO)) return -1;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got < 0 && errno == EINTR) continue;  // the window has another size
      if (got <= 0) return static_cast<int>(got);
      // Ctrl-D that was typed while an answer was written, when the terminal still ended lines.
      if (byte == 0) byte = 4;
      if (Edit& self = of(el); byte == '\t' && self.completer) {
        const std::string rest = self.complete();  // names: one byte, one character
        if (rest.empty()) continue;
        if (rest.size() > 1) ::el_push(el, rest.c_str() + 1);
        *out = static_cast<wchar_t>(rest.front());
        return 1;
      }
      const std::size_t used = std::mbrtowc(out, &byte, 1, &state);
      if (used == static_cast<std::size_t>(-2)) continue;  // more bytes of it are to come
      if (used == static_cast<std::size_t>(-1)) {
        state = {};  // no character of this locale
        continue;
      }
      return 1;
    }
  }

  // The rest of the word before the cursor, as far as all that it could become agree; what it could
  // become is shown when they part there. (libedit's own way to bind a function to a key never
  // frees the function's name.)
  std::string complete() {
    const LineInfo* line = ::el_line(el);
    const char* start = line->cursor;
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':';
    };
    while (start > line->buffer && is_word(start[-1])) --start;
    const std::string_view word(start, static_cast<std::size_t>(line->cursor - start));
    if (word.empty()) return {};
    const std::vector<std::string> words = completer(word);
    if (words.empty()) return {};
    std::string common = words.front();
    for (const std::string& other : words) {
      std::size_t same = 0;
      while (same < common.size() && same < other.size() && common[same] == other[same]) ++same;
      common.resize(same);
    }
    if (common.size() > word.size()) return common.substr(word.size());
    if (words.size() > 1) {
      fmt::print("\n");
      for (const std::string& other : words) fmt::print("{}  ", other);
      fmt::print("\n");
      std::fflush(stdout);
      ::el_set(el, EL_REFRESH);
    }
    return {};
  }

  std::string prompt;
  Completer completer;
  std::string history_file;
  ::History* lines;
  EditLine* el;
};

LineEditor::LineEditor(std::string prompt) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) return;
  // Only how characters are read and shown; numbers stay as they are written.
  std::setlocale(LC_CTYPE, "");
  edit_ = std::make_unique<Edit>(std::move(prompt));
}

LineEditor::~LineEditor() = default;

void LineEditor::set_prompt(std::string prompt) {
  if (edit_ != nullptr) edit_->prompt = std::move(prompt);
}
void LineEditor::set_completer(Completer completer) {
  if (edit_ != nullptr) edit_->completer = std::move(completer);
}
void LineEditor::keep_history(const std::string& path) {
  if (edit_ == nullptr) return;
  HistEvent event;
  ::history(edit_->lines, &event, H_LOAD, path.c_str());
  edit_->history_file = path;
}

std::optional<std::string> LineEditor::read_plain() {
  while (true) {
    if (const std::size_t end = waiting_.find('\n'); end != std::string::npos) {
      std::string line = waiting_.substr(0, end);
      waiting_.erase(0, end + 1);
      return line;
    }
    if (!wait_for_input(STDIN_FILENO)) return std::nullopt;
    char buffer[1 << 16];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(ErrorKind::BadFile, "input", "it cannot be read: ", std::strerror(errno));
    if (got == 0) {
      if (waiting_.empty()) return std::nullopt;
      return std::exchange(waiting_, {});
    }
    waiting_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::optional<std::string> LineEditor::read_line() {
  if (edit_ == nullptr) return read_plain();
  while (true) {
    clear_interrupt();
    int count = 0;
    const char* line = ::el_gets(edit_->el, &count);
    if (line == nullptr && interrupted()) {
      fmt::print("\n");
      ::el_reset(edit_->el);
      continue;
    }
    if (line == nullptr || count <= 0) {
      fmt::print("\n");
      return std::nullopt;
    }
    std::string out(line, static_cast<std::size_t>(count));
    while (out.ends_with('\n') || out.ends_with('\r')) out.pop_back();
    if (!out.empty()) {
      HistEvent event;
      ::history(edit_->lines, &event, H_ENTER, out.c_str());
    }
    return out;
  }
}

std::optional<std::string> LineEditor::read() {
  std::optional<std::string> all = read_line();
  while (all && all->ends_with('\\')) {
    all->back() = '\n';
    const std::optional<std::string> more = read_line();
    if (!more) break;
    *all += *more;
  }
  return all;
}

}  // namespace tl::cli
