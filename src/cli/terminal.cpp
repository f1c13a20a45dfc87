#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

#include "tl/base/text.h"

namespace tl::cli {

namespace {

bool shows_colour(std::FILE* stream) {
  // no-color.org: set to anything but the empty text.
  return environment("NO_COLOR").empty() && environment("TERM") != "dumb" &&
         ::isatty(::fileno(stream)) == 1;
}

std::string_view code(Colour colour) {
  switch (colour) {
    case Colour::Red:
      return "31";
    case Colour::Green:
      return "32";
    case Colour::Yellow:
      return "33";
    case Colour::Bold:
      return "1";
    case Colour::Dim:
      return "2";
  }
  return "0";
}

}  // namespace

std::string coloured(std::FILE* stream, Colour colour, std::string_view text) {
  if (!shows_colour(stream)) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code(colour), text);
}

std::string for_terminal(std::string_view text) {
  if (::isatty(STDOUT_FILENO) != 1) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F
    if (is_c1) ++i;
    if (is_c1 || byte == 0x7F || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      out += "\uFFFD";
    } else {
      out += text[i];
    }
  }
  return out;
}

Table& Table::column(std::string title, Align align) {
  columns_.push_back({std::move(title), align});
  return *this;
}

Table& Table::row(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
  return *this;
}

void Table::print(std::FILE* stream) const {
  std::vector<std::size_t> widths(columns_.size(), 0);  // 0: nothing in it, not printed
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const auto& cells : rows_) widths[c] = std::max(widths[c], cells[c].size());
    if (widths[c] > 0) widths[c] = std::max(widths[c], columns_[c].title.size());
  }
  const auto line = [&](auto&& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!text.empty()) text += "  ";
      const bool right = columns_[c].align == Align::Right;
      text += fmt::format(fmt::runtime(right ? "{:>{}}" : "{:<{}}"), cell(c), widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  const std::string titles = line([&](std::size_t c) { return columns_[c].title; });
  fmt::print(stream, "{}\n", coloured(stream, Colour::Bold, titles));
  for (const auto& cells : rows_) {
    fmt::print(stream, "{}\n", line([&](std::size_t c) { return cells[c]; }));
  }
}

}  // namespace tl::cli
