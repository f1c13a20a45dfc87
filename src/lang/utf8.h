// Texts as characters: code points in UTF-8. A byte that begins none counts as a character.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace tl::lang {

// The bytes of the character that begins at `at`, which is inside the text.
inline std::size_t utf8_length(std::string_view text, std::size_t at) noexcept {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::size_t length = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || (static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) {
      return 1;
    }
  }
  return length;
}

inline std::size_t utf8_count(std::string_view text) noexcept {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += utf8_length(text, at)) ++count;
  return count;
}

inline std::vector<std::string_view> utf8_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (std::size_t at = 0; at < text.size(); at += characters.back().size()) {
    characters.push_back(text.substr(at, utf8_length(text, at)));
  }
  return characters;
}

}  // namespace tl::lang
