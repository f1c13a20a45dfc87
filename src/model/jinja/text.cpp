#include "model/jinja/text.h"

#include <utility>

#include "model/tokenizer_utf8.h"

namespace tl::jinja {

namespace {

using tok::append_utf8;
using tok::CodePoint;
using tok::first_code_point;

template <class F>
std::string mapped(std::string_view text, const F& f) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (point.is_valid) {
      append_utf8(out, f(point.value));
    } else {
      out += text[0];
    }
    text.remove_prefix(point.length);
  }
  return out;
}

// Strips what `is_off` takes from either side.
template <class F>
std::string_view strip_if(std::string_view text, Side side, const F& is_off) {
  if (side != Side::Right) {
    while (!text.empty()) {
      const std::string_view first = text.substr(0, character_length(text));
      if (!is_off(first)) break;
      text.remove_prefix(first.size());
    }
  }
  if (side != Side::Left) {
    while (!text.empty()) {
      std::size_t start = text.size() - 1;
      while (start > 0 && text.size() - start < 4 &&
             (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
        --start;
      }
      if (character_length(text.substr(start)) != text.size() - start) start = text.size() - 1;
      if (!is_off(text.substr(start))) break;
      text = text.substr(0, start);
    }
  }
  return text;
}

bool in_range(std::uint32_t c, std::uint32_t low, std::uint32_t high) {
  return c >= low && c <= high;
}

// Pairs of letters where the large one is even (or odd) and the small one follows it.
bool is_even_pair(std::uint32_t c) {
  return in_range(c, 0x100, 0x137) || in_range(c, 0x14A, 0x177) || in_range(c, 0x1E00, 0x1E95) ||
         in_range(c, 0x1EA0, 0x1EFF) || in_range(c, 0x460, 0x481) || in_range(c, 0x48A, 0x4BF) ||
         in_range(c, 0x4D0, 0x52F) || in_range(c, 0x3D8, 0x3EF);
}
bool is_odd_pair(std::uint32_t c) {
  return in_range(c, 0x139, 0x148) || in_range(c, 0x179, 0x17E) || in_range(c, 0x4C1, 0x4CE);
}

}  // namespace

std::size_t character_length(std::string_view text) noexcept {
  return first_code_point(text).length;
}

std::size_t count_characters(std::string_view text) noexcept {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += character_length(text.substr(at));
  return count;
}

std::size_t character_offset(std::string_view text, std::size_t index) noexcept {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += character_length(text.substr(at));
  return at;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, character_length(text)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

bool is_space(std::uint32_t c) noexcept {
  return in_range(c, 0x09, 0x0D) || in_range(c, 0x1C, 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || in_range(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string_view strip(std::string_view text, Side side) {
  return strip_if(text, side, [](std::string_view c) {
    const CodePoint point = first_code_point(c);
    return point.is_valid && is_space(point.value);
  });
}

std::string_view strip(std::string_view text, Side side, std::string_view set) {
  return strip_if(text, side,
                  [&](std::string_view c) { return set.find(c) != std::string_view::npos; });
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = first_code_point(text.substr(at));
    const std::uint32_t c = point.value;
    const bool ends = point.is_valid && (in_range(c, 0x0A, 0x0D) || in_range(c, 0x1C, 0x1E) ||
                                         c == 0x85 || c == 0x2028 || c == 0x2029);
    if (ends) lines.push_back(text.substr(start, at - start));
    at += point.length;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    if (ends) start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::uint32_t lower(std::uint32_t c) noexcept {
  if (in_range(c, 'A', 'Z') || (in_range(c, 0xC0, 0xDE) && c != 0xD7)) return c + 32;
  if (c < 0x100) return c;
  if (c == 0x130) return 'i';
  if (c == 0x178) return 0xFF;
  if (is_even_pair(c)) return c | 1;
  if (is_odd_pair(c)) return (c & 1) != 0 ? c + 1 : c;
  if (in_range(c, 0x391, 0x3AB) && c != 0x3A2) return c + 32;
  if (c == 0x386) return 0x3AC;
  if (in_range(c, 0x388, 0x38A)) return c + 37;
  if (c == 0x38C) return 0x3CC;
  if (c == 0x38E || c == 0x38F) return c + 63;
  if (in_range(c, 0x410, 0x42F)) return c + 32;
  if (in_range(c, 0x400, 0x40F)) return c + 80;
  if (in_range(c, 0x531, 0x556)) return c + 48;
  if (in_range(c, 0xFF21, 0xFF3A)) return c + 32;
  return c;
}

std::uint32_t upper(std::uint32_t c) noexcept {
  if (in_range(c, 'a', 'z') || (in_range(c, 0xE0, 0xFE) && c != 0xF7)) return c - 32;
  if (c == 0xFF) return 0x178;
  if (c == 0xB5) return 0x39C;
  if (c < 0x100) return c;
  if (c == 0x131) return 'I';
  if (c == 0x17F) return 'S';
  if (c == 0x138 || c == 0x149) return c;
  if (is_even_pair(c)) return c & ~1U;
  if (is_odd_pair(c)) return (c & 1) != 0 ? c : c - 1;
  if (c == 0x3C2) return 0x3A3;
  if (in_range(c, 0x3B1, 0x3CB)) return c - 32;
  if (c == 0x3AC) return 0x386;
  if (in_range(c, 0x3AD, 0x3AF)) return c - 37;
  if (c == 0x3CC) return 0x38C;
  if (c == 0x3CD || c == 0x3CE) return c - 63;
  if (in_range(c, 0x430, 0x44F)) return c - 32;
  if (in_range(c, 0x450, 0x45F)) return c - 80;
  if (in_range(c, 0x561, 0x586)) return c - 48;
  if (in_range(c, 0xFF41, 0xFF5A)) return c - 32;
  return c;
}

std::string lower(std::string_view text) {
  return mapped(text, [](std::uint32_t c) { return lower(c); });
}

std::string upper(std::string_view text) {
  constexpr std::string_view kSharpS = "\xC3\x9F";  // the one common letter whose large form is two
  std::string out;
  for (std::size_t at = text.find(kSharpS); at != std::string_view::npos; at = text.find(kSharpS)) {
    out += upper(text.substr(0, at)) + "SS";
    text.remove_prefix(at + kSharpS.size());
  }
  return out + mapped(text, [](std::uint32_t c) { return upper(c); });
}

std::string capitalize(std::string_view text) {
  bool first = true;
  return mapped(text,
                [&](std::uint32_t c) { return std::exchange(first, false) ? upper(c) : lower(c); });
}

bool is_letter(std::uint32_t c) noexcept {
  if (c < 0x80) return in_range(c | 0x20, 'a', 'z');
  return c == 0xAA || c == 0xB5 || c == 0xBA ||
         (c >= 0xC0 && c != 0xD7 && c != 0xF7 && !is_space(c) && !in_range(c, 0x2000, 0x206F) &&
          !in_range(c, 0x20A0, 0x20CF) && !in_range(c, 0x2190, 0x2BFF) &&
          !in_range(c, 0x3001, 0x3004) && !in_range(c, 0x3008, 0x3020) &&
          !in_range(c, 0xFF01, 0xFF20) && !in_range(c, 0x1F000, 0x1FAFF));
}

std::string replace(Budget& budget, std::string_view text, std::string_view old,
                    std::string_view fresh, std::size_t most) {
  std::vector<std::string_view> parts;  // what lies between
  if (old.empty()) {                    // Python has it before every character and after the last
    parts.emplace_back();
    while (!text.empty() && parts.size() < most) {
      parts.push_back(text.substr(0, character_length(text)));
      text.remove_prefix(parts.back().size());
    }
    if (most == 0) parts.clear();
  } else {
    while (parts.size() < most) {
      const std::size_t found = text.find(old);
      if (found == std::string_view::npos) break;
      parts.push_back(text.substr(0, found));
      text.remove_prefix(found + old.size());
    }
  }
  budget.take(text.size());
  std::string out;
  for (const std::string_view part : parts) {
    budget.take(part.size() + fresh.size());
    out += part;
    out += fresh;
  }
  out += text;
  return out;
}

}  // namespace tl::jinja
