#include "cli/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "tl/base/error.h"
#include "tl/base/text.h"

namespace tl::cli {

std::string read_input(std::string_view where) {
  std::string out;
  char buffer[1 << 16];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin))
    out.append(buffer, got);
  if (std::ferror(stdin) != 0) {
    throw Error(ErrorKind::BadFile, where, "the standard input could not be read");
  }
  return out;
}

void expect_utf8(std::string_view where, std::string_view text) {
  if (const std::size_t bad = first_invalid_utf8(text); bad != text.size()) {
    throw Error(
        ErrorKind::BadArgument, where, "the text is not UTF-8: byte ", bad, " is ",
        fmt::format("0x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[bad]))));
  }
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t good = first_invalid_utf8(text);
    for (const char c : text.substr(0, good)) {
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (c == '\n') {
        out += "\\n";
      } else if (c == '\t') {
        out += "\\t";
      } else if (c == '\r') {
        out += "\\r";
      } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
      } else {
        out += c;
      }
    }
    if (good == text.size()) break;
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[good])));
    text.remove_prefix(good + 1);
  }
  return out + "\"";
}

std::vector<TokenId> parse_token_ids(std::string_view where, std::string_view text) {
  std::vector<TokenId> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    at = std::find_if_not(at, end, [](char c) {
      return std::string_view(" \t\r\n,;[]").find(c) != std::string_view::npos;
    });
    if (at == end) return ids;
    TokenId id = 0;
    const auto [stop, failed] = std::from_chars(at, end, id);
    if (failed != std::errc()) {
      const std::string_view word(at,
                                  static_cast<std::size_t>(std::min(end - at, std::ptrdiff_t{20})));
      throw Error(ErrorKind::BadArgument, where, "there should be a token id at byte ",
                  at - text.data(), ", not ", in_quotes(word));
    }
    ids.push_back(id);
    at = stop;
  }
}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorKind::BadFile, "output", "it could not be written");
  }
}

}  // namespace tl::cli
