#include "tl/base/text.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace tl {

namespace {

// Three significant digits, as "1.23", "12.3" or "123".
std::string three_digits(double value, const char* unit) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, value, unit);
  return text.data();
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value, kUnits[unit]);
}

std::string format_duration(double seconds) {
  if (seconds < 999.5e-9) return three_digits(seconds * 1e9, "ns");
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6, "us");
  if (seconds < 999.5e-3) return three_digits(seconds * 1e3, "ms");
  return three_digits(seconds, "s");
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string join_list(std::span<const std::string> items, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += separator;
    out += items[i];
  }
  return out;
}

std::size_t first_invalid_utf8(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  std::size_t at = 0;
  while (at < text.size()) {
    const unsigned char lead = byte(at);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const std::size_t length = lead < 0xc2   ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || text.size() - at < length) return at;
    // The second byte's range keeps out overlong forms, surrogates and what is above U+10FFFF.
    const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(at + 1) < low || byte(at + 1) > high) return at;
    for (std::size_t i = 2; i < length; ++i) {
      if ((byte(at + i) & 0xc0) != 0x80) return at;
    }
    at += length;
  }
  return at;
}

std::string_view environment(const char* variable) noexcept {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

}  // namespace tl
