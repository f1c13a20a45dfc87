#include "lang/source.h"

#include <algorithm>

#include "tl/base/error.h"

namespace tl::lang {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // places are 32 bits wide

}  // namespace

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  if (text_.size() > kMostBytes)
    throw Error(ErrorKind::BadFile, name_, "a program of ", text_.size(), " bytes is too large");
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
}

std::uint32_t Source::line(std::uint32_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::uint32_t>(after - line_starts_.begin());
}

Position Source::position(std::uint32_t offset) const {
  offset = std::min(offset, static_cast<std::uint32_t>(text_.size()));
  Position at{line(offset), 1};
  for (std::uint32_t i = line_starts_[at.line - 1]; i < offset; ++i)
    if ((static_cast<unsigned char>(text_[i]) & 0xC0U) != 0x80U) ++at.column;
  return at;
}

std::string_view Source::line_text(std::uint32_t line) const {
  if (line == 0 || line > line_starts_.size()) return {};
  const std::size_t begin = line_starts_[line - 1];
  std::size_t end = line < line_starts_.size() ? line_starts_[line] - 1 : text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return std::string_view(text_).substr(begin, end - begin);
}

std::uint32_t Sources::add(std::string name, std::string text) {
  sources_.push_back(std::make_unique<Source>(std::move(name), std::move(text)));
  return static_cast<std::uint32_t>(sources_.size() - 1);
}

std::string_view Sources::text(const Span& span) const {
  const std::string& all = sources_[span.source]->text();
  const std::size_t begin = std::min<std::size_t>(span.begin, all.size());
  const std::size_t end = std::clamp<std::size_t>(span.end, begin, all.size());
  return std::string_view(all).substr(begin, end - begin);
}

std::string Sources::place(const Span& span) const {
  const Source& source = *sources_[span.source];
  const Position at = source.position(span.begin);
  return source.name() + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

}  // namespace tl::lang
