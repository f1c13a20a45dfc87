// Text for people: tables, a line that tells how far work is, and colour where a terminal shows it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tl/quant/format.h"

namespace tl::cli {

enum class Colour { Red, Green, Yellow, Bold, Dim };

// `text` in colour when `stream` is a terminal and NO_COLOR is not set, else as it is.
std::string coloured(std::FILE* stream, Colour colour, std::string_view text);

// Text of strangers for standard output. At a terminal what would move the cursor, change colours
// or ring is U+FFFD; a file or a pipe gets it as it is.
std::string for_terminal(std::string_view text);

class Table {
 public:
  enum class Align { Left, Right };

  // A column whose cells are all empty is left out when printed.
  Table& column(std::string title, Align align = Align::Left);
  Table& row(std::vector<std::string> cells);  // one cell per column
  void print(std::FILE* stream) const;

 private:
  struct Column {
    std::string title;
    Align align;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// One line on stderr that is written over while work goes on and gone when the object is. Nothing
// is written where stderr is no terminal.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(std::string_view text);  // cut to the width of the terminal
  // Tensor `index` of `count` goes from one type to another.
  void show_tensor(std::size_t index, std::size_t count, std::string_view tensor, QType from,
                   QType to);
  // A bar, the bytes, and `what` is being done. Written when there is something new to see.
  void show_bytes(std::uint64_t done, std::uint64_t total, std::string_view what);

 private:
  bool is_shown_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tl::cli
