#include "base/svg_writer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tl/base/error.h"  // join
#include "tl/base/text.h"

namespace tl {

namespace {

constexpr double kCharacter = 0.62;  // of the font size: about the mean width in common fonts
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The colours of series are told apart on both grounds, also by those who see colours differently.
struct SvgColour {
  std::string_view light, dark;
};
constexpr std::array<SvgColour, SvgWriter::kColours> kSeriesColours{{{"#2a78d6", "#3987e5"},
                                                                     {"#eb6834", "#d95926"},
                                                                     {"#1baf7a", "#199e70"},
                                                                     {"#4a3aa7", "#9085e9"},
                                                                     {"#eda100", "#c98500"},
                                                                     {"#e34948", "#e66767"},
                                                                     {"#008300", "#3aa83a"},
                                                                     {"#e87ba4", "#d55181"}}};

// The variables of one ground.
std::string colours_of(bool is_dark) {
  std::string out =
      is_dark ? "--ground:#1a1a19;--ink:#ffffff;--soft:#c3c2b7;--grid:#2f2f2c;--axis:#5c5b57"
              : "--ground:#fcfcfb;--ink:#0b0b0b;--soft:#52514e;--grid:#e6e5df;--axis:#a5a49c";
  for (std::size_t i = 0; i < kSeriesColours.size(); ++i) {
    const SvgColour& each = kSeriesColours[i];
    out += ";--s" + std::to_string(i) + ":" + std::string(is_dark ? each.dark : each.light);
  }
  return out;
}

std::string style() {
  std::string out = "svg{" + colours_of(false) +
                    ";font-family:system-ui,'DejaVu Sans',sans-serif;font-size:12px}\n"
                    "@media (prefers-color-scheme:dark){svg{" +
                    colours_of(true) +
                    "}}\n"
                    ".ground{fill:var(--ground)}\n"
                    "text{fill:var(--soft)}\n"
                    ".title{fill:var(--ink);font-size:16px;font-weight:600}\n"
                    ".panel{fill:var(--ink);font-size:13px;font-weight:600}\n"
                    ".value{fill:var(--ink)}\n"
                    ".grid{stroke:var(--grid)}\n"
                    ".axis{stroke:var(--axis)}\n"
                    ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
                    ".fine{stroke-width:1.2}\n"
                    ".again{stroke-dasharray:6 4}\n"
                    ".spread{stroke:var(--ink);stroke-width:1.5;fill:none}\n"
                    ".mark{fill:var(--ground);stroke:var(--ink);stroke-width:2}\n"
                    ".leader{stroke:var(--soft);stroke-width:1}\n"
                    ".note{fill:var(--ink);stroke:var(--ground);stroke-width:4;paint-order:stroke;"
                    "stroke-linejoin:round}\n";
  for (std::size_t i = 0; i < kSeriesColours.size(); ++i) {
    const std::string n = std::to_string(i);
    out += join(".s", n, "{stroke:var(--s", n, ")}.f", n, "{fill:var(--s", n, ")}\n");
  }
  return out;
}

// How many bytes of UTF-8 make the character at `at`; the text is valid.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return std::min(bytes, text.size() - at);
}

bool is_for_xml(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead >= 0x20 && lead != 0x7f;
  return character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";  // U+FFFE and U+FFFF
}

// With U+FFFD where a byte is no part of UTF-8.
std::string as_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t good = first_invalid_utf8(text);
    out += text.substr(0, good);
    if (good == text.size()) break;
    out += kReplacement;
    text.remove_prefix(good + 1);
  }
  return out;
}

}  // namespace

std::string xml_text(std::string_view text) {
  const std::string valid = as_utf8(text);
  std::string out;
  for (std::size_t at = 0; at < valid.size();) {
    const std::size_t bytes = character_bytes(valid, at);
    const std::string_view character = std::string_view(valid).substr(at, bytes);
    at += bytes;
    if (character == "<") {
      out += "&lt;";
    } else if (character == ">") {
      out += "&gt;";
    } else if (character == "&") {
      out += "&amp;";
    } else if (character == "\"") {
      out += "&quot;";
    } else if (character == "\n" || character == "\t") {
      out += ' ';
    } else {
      out += is_for_xml(character) ? character : kReplacement;
    }
  }
  return out;
}

double text_width(std::string_view text, double font_size) {
  const auto follows = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  const auto bytes = std::count_if(text.begin(), text.end(), follows);
  return static_cast<double>(text.size() - static_cast<std::size_t>(bytes)) * font_size *
         kCharacter;
}

std::string fitted(std::string_view text, double font_size, double width) {
  std::string valid = as_utf8(text);
  if (text_width(valid, font_size) <= width) return valid;
  std::string out;
  for (std::size_t at = 0; at < valid.size();) {
    const std::size_t bytes = character_bytes(valid, at);
    if (text_width(out, font_size) + 2 * font_size * kCharacter > width) break;
    out += valid.substr(at, bytes);
    at += bytes;
  }
  return out + "\xE2\x80\xA6";  // an ellipsis
}

SvgWriter& SvgWriter::operator<<(std::string_view raw) {
  body_ += raw;
  return *this;
}

SvgWriter& SvgWriter::operator<<(double number) {
  const auto tenths = static_cast<std::int64_t>(number * 10 + (number < 0 ? -0.5 : 0.5));
  if (tenths < 0) body_ += '-';
  body_ += std::to_string(std::llabs(tenths) / 10);
  if (tenths % 10 != 0) body_ += '.' + std::to_string(std::llabs(tenths) % 10);
  return *this;
}

void SvgWriter::line(std::string_view css, double x1, double y1, double x2, double y2) {
  *this << "<line class=\"" << css << "\" x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2
        << "\" y2=\"" << y2 << "\"/>\n";
}

void SvgWriter::text(std::string_view css, double x, double y, std::string_view anchor,
                     std::string_view content) {
  *this << "<text class=\"" << css << "\" x=\"" << x << "\" y=\"" << y << "\" text-anchor=\""
        << anchor << "\">" << xml_text(content) << "</text>\n";
}

std::string SvgWriter::file(double width, double height, std::string_view title,
                            std::string_view description) const {
  SvgWriter out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"title desc\" "
         "viewBox=\"0 0 "
      << width << " " << height << "\" width=\"" << width << "\" height=\"" << height << "\">\n"
      << "<title id=\"title\">" << xml_text(title) << "</title>\n<desc id=\"desc\">"
      << xml_text(description) << "</desc>\n<style>" << style()
      << "</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n"
      << body_ << "</svg>\n";
  return std::move(out.body_);
}

}  // namespace tl
