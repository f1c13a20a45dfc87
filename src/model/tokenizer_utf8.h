// UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tl::tok {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view kEscapedSpace =
    "\xE2\x96\x81";  // U+2581, a space in vocabularies

// How many bytes the first byte of a character promises; 1 for a byte that cannot begin one.
inline std::size_t promised_length(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

struct CodePoint {
  std::uint32_t value = 0;  // U+FFFD where the bytes are not UTF-8
  std::size_t length = 0;   // bytes taken, at least 1
  bool is_valid = false;
};

// The character at the start of `text`, which is not empty. Bytes that are not UTF-8 are taken one
// at a time.
CodePoint first_code_point(std::string_view text) noexcept;

// How many bytes at the end of `text` are the beginning of a character that may still be completed.
std::size_t unfinished_tail(std::string_view text) noexcept;

void append_utf8(std::string& out, std::uint32_t code_point);
std::string to_utf8(std::uint32_t code_point);

// The text with U+FFFD for every byte that is not part of UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace tl::tok
