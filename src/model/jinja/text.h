// Texts as Python sees them: sequences of characters. Bytes that are not UTF-8 count as one
// character each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/jinja/budget.h"

namespace tl::jinja {

std::size_t count_characters(std::string_view text) noexcept;
// The place of character `index`, or the size of the text where it has fewer.
std::size_t character_offset(std::string_view text, std::size_t index) noexcept;
std::size_t character_length(std::string_view text) noexcept;  // bytes of the first one
std::vector<std::string_view> characters(std::string_view text);

bool is_space(std::uint32_t code_point) noexcept;
enum class Side { Left, Right, Both };
std::string_view strip(std::string_view text, Side side);
std::string_view strip(std::string_view text, Side side, std::string_view set);
std::vector<std::string_view> split_lines(std::string_view text);

// Letters of the Latin, Greek and Cyrillic alphabets have cases.
std::uint32_t lower(std::uint32_t code_point) noexcept;
std::uint32_t upper(std::uint32_t code_point) noexcept;
std::string lower(std::string_view text);
std::string upper(std::string_view text);
std::string capitalize(std::string_view text);  // the first character large, the others small
bool is_letter(std::uint32_t code_point) noexcept;

// The first `most` of `old` become `fresh`.
std::string replace(Budget& budget, std::string_view text, std::string_view old,
                    std::string_view fresh, std::size_t most);

}  // namespace tl::jinja
