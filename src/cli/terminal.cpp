#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
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

StatusLine::StatusLine() : is_shown_(::isatty(STDERR_FILENO) == 1) {}

StatusLine::~StatusLine() {
  if (is_shown_) fmt::print(stderr, "\r\033[K");
}

void StatusLine::show(std::string_view text) {
  if (!is_shown_) return;
  winsize window{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  fmt::print(stderr, "\r\033[K{}", text.substr(0, known ? window.ws_col - 1U : 79U));
  std::fflush(stderr);
}

void StatusLine::show_tensor(std::size_t index, std::size_t count, std::string_view tensor,
                             QType from, QType to) {
  if (!is_shown_) return;
  show(fmt::format("[{}/{}] {} {} to {}", index + 1, count, tensor, name(from), name(to)));
}

void StatusLine::show_bytes(std::uint64_t done, std::uint64_t total, std::string_view what) {
  constexpr std::size_t kWidth = 24;
  constexpr auto kPause = std::chrono::milliseconds(30);
  const auto now = std::chrono::steady_clock::now();
  if (!is_shown_ || total == 0 || (done != total && now - last_ < kPause)) return;
  last_ = now;
  const double part = static_cast<double>(done) / static_cast<double>(total);
  const auto full = std::min(kWidth, static_cast<std::size_t>(part * kWidth));
  show(fmt::format("[{}{}] {:3.0f} % of {}  {}", std::string(full, '='),
                   std::string(kWidth - full, ' '), 100 * part, format_bytes(total), what));
}

}  // namespace tl::cli
