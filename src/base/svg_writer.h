// Elements of an SVG file: text that is safe in XML, and the style that light and dark pages share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tl {

// Text of anybody for XML: < > & and quotes are written as entities, what XML cannot hold and what
// is not UTF-8 as U+FFFD.
std::string xml_text(std::string_view text);

// About how wide a text is, and what of it fits with an ellipsis; sizes are in pixels.
double text_width(std::string_view text, double font_size);
std::string fitted(std::string_view text, double font_size, double width);

class SvgWriter {
 public:
  // Numbers of a file are written with a tenth of a pixel.
  SvgWriter& operator<<(std::string_view raw);
  SvgWriter& operator<<(double number);

  void line(std::string_view css, double x1, double y1, double x2, double y2);
  // `anchor` is start, middle or end.
  void text(std::string_view css, double x, double y, std::string_view anchor,
            std::string_view content);

  // Everything so far inside an <svg> with a title and a description for screen readers.
  std::string file(double width, double height, std::string_view title,
                   std::string_view description) const;

  const std::string& body() const noexcept { return body_; }

  static constexpr std::size_t kColours = 8;

 private:
  std::string body_;
};

}  // namespace tl
