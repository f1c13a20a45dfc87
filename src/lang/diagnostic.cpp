#include "lang/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace tl::lang {

namespace {

constexpr std::size_t kTab = 4;            // columns
constexpr std::size_t kMostColumns = 160;  // of a source line that are shown
constexpr std::size_t kBeforeSpan = 60;    // of them, before what is underlined in a longer line
constexpr std::size_t kMostFrames = 20;    // that are all shown
constexpr std::size_t kFramesAtEnds = 5;   // of more

// ---- characters and the columns they take

struct Range {
  std::uint32_t first, last;
};
// East Asian wide and full-width characters and emoji, in blocks.
constexpr std::array<Range, 14> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x33FF},
                                          {0x3400, 0x4DBF},
                                          {0x4E00, 0x9FFF},
                                          {0xA000, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1F64F},
                                          {0x1F680, 0x1F9FF},
                                          {0x20000, 0x3FFFD}}};
// Marks that stand on the character before them, and what is not seen at all.
constexpr std::array<Range, 8> kNarrow = {{{0x0300, 0x036F},
                                           {0x0483, 0x0489},
                                           {0x0591, 0x05BD},
                                           {0x1AB0, 0x1AFF},
                                           {0x1DC0, 0x1DFF},
                                           {0x200B, 0x200F},
                                           {0x20D0, 0x20FF},
                                           {0xFE00, 0xFE0F}}};

template <std::size_t N>
bool is_in(const std::array<Range, N>& ranges, std::uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](Range r) { return code >= r.first && code <= r.last; });
}

struct Cell {
  std::string text;
  std::size_t width = 1;
};

// The character at the start of `text`, as a terminal is to show it, and its bytes.
std::pair<Cell, std::size_t> first_cell(std::string_view text) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const std::uint32_t first = byte(0);
  if (first == '\t') return {{std::string(kTab, ' '), kTab}, 1};
  if (first < 0x20 || first == 0x7F) return {{"\uFFFD", 1}, 1};
  if (first < 0x80) return {{std::string(text.substr(0, 1)), 1}, 1};
  const std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  std::uint32_t code = length == 2 ? first & 0x1FU : length == 3 ? first & 0x0FU : first & 0x07U;
  bool is_valid = length > 1 && length <= text.size();
  for (std::size_t i = 1; i < length && is_valid; ++i) {
    is_valid = (byte(i) & 0xC0U) == 0x80U;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool is_control = code >= 0x80 && code < 0xA0;
  // Characters that change the direction of what follows hide what a line says.
  const bool is_turning = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  if (!is_valid) return {{"\uFFFD", 1}, 1};
  if (is_control || is_turning) return {{"\uFFFD", 1}, length};
  const std::size_t width = is_in(kWide, code) ? 2 : is_in(kNarrow, code) ? 0 : 1;
  return {{std::string(text.substr(0, length)), width}, length};
}

// ---- colours

std::string painted(bool colour, std::string_view code, std::string_view text) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}
constexpr std::string_view kRed = "1;31";
constexpr std::string_view kYellow = "1;33";
constexpr std::string_view kBold = "1";
constexpr std::string_view kDim = "2";

// ---- the line with its carets

struct Snippet {
  std::string line;
  std::string carets;
};

// Bytes [begin, end) of `line` underlined, one caret at least.
Snippet underlined(std::string_view line, std::size_t begin, std::size_t end) {
  struct Placed {
    Cell cell;
    std::size_t byte, column;
  };
  std::vector<Placed> cells;
  std::size_t columns = 0;
  for (std::size_t byte = 0; byte < line.size();) {
    auto [cell, length] = first_cell(line.substr(byte));
    const std::size_t width = cell.width;
    cells.push_back({std::move(cell), byte, columns});
    columns += width;
    byte += length;
  }
  const auto column_of = [&](std::size_t byte) {
    const auto at =
        std::find_if(cells.begin(), cells.end(), [&](const Placed& p) { return p.byte >= byte; });
    return at == cells.end() ? columns : at->column;
  };
  const std::size_t first = column_of(begin);
  const std::size_t last = std::max(column_of(end), first + 1);
  std::size_t shown_from = 0;
  std::size_t shown_to = columns;
  if (columns > kMostColumns) {
    shown_from = first > kBeforeSpan ? first - kBeforeSpan : 0;
    shown_to = std::min(columns, shown_from + kMostColumns);
  }
  Snippet out;
  if (shown_from > 0) out.line = "...";
  const std::size_t shift = out.line.size();
  for (const Placed& placed : cells) {
    if (placed.column >= shown_from && placed.column + placed.cell.width <= shown_to)
      out.line += placed.cell.text;
  }
  if (shown_to < columns) out.line += "...";
  out.carets =
      std::string(first - shown_from + shift, ' ') +
      std::string(std::max<std::size_t>(std::min(last, shown_to + 1), first + 1) - first, '^');
  return out;
}

void add_snippet(std::string& out, const Source& source, const Span& span, bool colour,
                 std::string_view caret_colour) {
  const std::uint32_t line = source.line(span.begin);
  const std::string_view text = source.line_text(line);
  const auto line_begin =
      static_cast<std::size_t>(text.data() == nullptr ? 0 : text.data() - source.text().data());
  const std::size_t begin = std::max<std::size_t>(span.begin, line_begin) - line_begin;
  const std::size_t end =
      std::min(std::max<std::size_t>(span.end, span.begin) - line_begin, text.size());
  const Snippet snippet = underlined(text, begin, end);
  const std::string number = std::to_string(line);
  const std::string margin(number.size(), ' ');
  const auto gutter = [&](std::string_view in_margin, std::string_view bar) {
    return painted(colour, kDim, fmt::format("{} {}", in_margin, bar));
  };
  out += gutter(margin, "|") + "\n";
  out += gutter(number, "|") + (snippet.line.empty() ? "" : " " + snippet.line) + "\n";
  out += gutter(margin, "|") + " " + painted(colour, caret_colour, snippet.carets) + "\n";
}

std::string_view severity_name(Severity severity) {
  return severity == Severity::Error ? "error" : "warning";
}

// Calls f(index) for frames that are shown and skipped(count) for the rest, in order.
template <class F, class Skipped>
void visit_frames(std::size_t count, F f, Skipped skipped) {
  const bool is_all = count <= kMostFrames;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_all && i == kFramesAtEnds) {
      skipped(count - 2 * kFramesAtEnds);
      i = count - kFramesAtEnds;
    }
    f(i);
  }
}

}  // namespace

std::string render(const Sources& sources, const Diagnostic& diagnostic, bool colour) {
  const std::string_view severity_colour = diagnostic.severity == Severity::Error ? kRed : kYellow;
  std::string out = painted(colour, severity_colour, severity_name(diagnostic.severity));
  out += painted(colour, kBold, ": " + diagnostic.message) + "\n";
  std::string margin = " ";
  if (diagnostic.span.source < sources.size()) {
    const Source& source = sources[diagnostic.span.source];
    margin.assign(std::to_string(source.line(diagnostic.span.begin)).size(), ' ');
    out += margin + painted(colour, kDim, "-->") + " " + sources.place(diagnostic.span) + "\n";
    add_snippet(out, source, diagnostic.span, colour, severity_colour);
  }
  if (!diagnostic.hint.empty())
    out += margin + " = " + painted(colour, kBold, "help") + ": " + diagnostic.hint + "\n";
  if (diagnostic.stack.empty()) return out;
  out += "Stack trace:\n";
  visit_frames(
      diagnostic.stack.size(),
      [&](std::size_t i) {
        const Frame& frame = diagnostic.stack[i];
        out += fmt::format("{:>2}. in {}", i + 1, frame.function);
        if (frame.at.source < sources.size()) out += " at " + sources.place(frame.at);
        out += "\n";
      },
      [&](std::size_t count) { out += fmt::format("    ... {} more calls\n", count); });
  return out;
}

std::string render_json(const Sources& sources, const Diagnostic& diagnostic) {
  using Json = nlohmann::ordered_json;
  const auto add_place = [&](Json& to, const Span& span) {
    if (span.source >= sources.size()) return;
    const Source& source = sources[span.source];
    const Position at = source.position(span.begin);
    to["file"] = source.name();
    to["line"] = at.line;
    to["column"] = at.column;
  };
  Json out;
  out["severity"] = severity_name(diagnostic.severity);
  out["message"] = diagnostic.message;
  add_place(out, diagnostic.span);
  if (diagnostic.span.source < sources.size()) {
    const Position end = sources[diagnostic.span.source].position(
        std::max(diagnostic.span.begin, diagnostic.span.end));
    out["end_line"] = end.line;
    out["end_column"] = end.column;
  }
  if (!diagnostic.hint.empty()) out["hint"] = diagnostic.hint;
  if (!diagnostic.stack.empty()) {
    Json frames = Json::array();
    visit_frames(
        diagnostic.stack.size(),
        [&](std::size_t i) {
          Json frame;
          frame["function"] = diagnostic.stack[i].function;
          add_place(frame, diagnostic.stack[i].at);
          frames.push_back(std::move(frame));
        },
        [&](std::size_t count) { frames.push_back({{"more", count}}); });
    out["stack"] = std::move(frames);
  }
  // Names of files and texts of programs need not be UTF-8.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tl::lang
