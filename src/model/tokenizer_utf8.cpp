#include "model/tokenizer_utf8.h"

#include <algorithm>

#include "tl/base/text.h"

namespace tl::tok {

CodePoint first_code_point(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const CodePoint bad{0xFFFD, 1, false};
  if (first < 0xC2 || first > 0xF4) return bad;
  const std::size_t length = promised_length(text[0]);
  if (text.size() < length) return bad;
  std::uint32_t value = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return bad;
    value = value << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return bad;
  return {value, length, true};
}

std::size_t unfinished_tail(std::string_view text) noexcept {
  const std::size_t most = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= most; ++back) {
    const char first = text[text.size() - back];
    if ((static_cast<unsigned char>(first) & 0xC0) == 0x80) continue;  // not the first byte
    if (promised_length(first) <= back) return 0;
    // Can more bytes make it a character? The second byte decides about overlong forms and
    // surrogates; with any third and fourth what it begins is valid.
    const auto lead = static_cast<unsigned char>(first);
    if (lead < 0xC2 || lead > 0xF4) return 0;
    std::string whole(text.substr(text.size() - back));
    if (back == 1) whole += lead == 0xE0 || lead == 0xF0 ? '\xA0' : '\x80';
    whole.resize(promised_length(first), '\x80');
    return first_invalid_utf8(whole) == whole.size() ? back : 0;
  }
  return 0;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string to_utf8(std::uint32_t code_point) {
  std::string out;
  append_utf8(out, code_point);
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const std::size_t good = first_invalid_utf8(text);
    out += text.substr(0, good);
    if (good == text.size()) return out;
    out += kReplacement;
    text.remove_prefix(good + 1);
  }
}

}  // namespace tl::tok
