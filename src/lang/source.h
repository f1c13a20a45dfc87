// Source texts and places in them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tl::lang {

// Bytes begin ... end - 1 of a source.
struct Span {
  std::uint32_t source = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

// From the start of one to the end of the other.
inline Span cover(const Span& first, const Span& last) {
  return {first.source, first.begin, last.end};
}

struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;  // in characters
};

class Source {
 public:
  Source(std::string name, std::string text);

  const std::string& name() const noexcept { return name_; }  // as messages show it
  const std::string& text() const noexcept { return text_; }
  Position position(std::uint32_t offset) const;
  std::uint32_t line(std::uint32_t offset) const;        // counts from 1
  std::string_view line_text(std::uint32_t line) const;  // without its end

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> line_starts_;
};

// All sources of a program: the file, what it imports, what was typed at a prompt.
// References stay valid.
class Sources {
 public:
  std::uint32_t add(std::string name, std::string text);
  const Source& operator[](std::uint32_t id) const { return *sources_[id]; }
  std::size_t size() const noexcept { return sources_.size(); }
  std::string_view text(const Span& span) const;
  std::string place(const Span& span) const;  // "chat.tl:3:14"

 private:
  std::vector<std::unique_ptr<Source>> sources_;
};

}  // namespace tl::lang
