// Small helpers that turn numbers and lists into text for messages and tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tl {

// 0 B, 999 B, 1.00 KiB, 12.0 MiB, 1.00 GiB: three digits, binary units.
std::string format_bytes(std::uint64_t bytes);

// 950 ns, 12.3 us, 4.56 ms, 1.20 s.
std::string format_duration(double seconds);

// 1234567 -> "1,234,567".
std::string format_count(std::uint64_t count);

std::string join_list(std::span<const std::string> items, std::string_view separator);

// The place of the first byte that is not part of valid UTF-8 (no overlong forms, no surrogates,
// nothing above U+10FFFF); text.size() when there is none.
std::size_t first_invalid_utf8(std::string_view text) noexcept;

// The value of an environment variable, or an empty view when it is unset.
std::string_view environment(const char* variable) noexcept;

}  // namespace tl
