// Text for people: tables, and colour where a terminal shows it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace tl::cli
