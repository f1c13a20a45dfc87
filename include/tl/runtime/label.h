// Names for allocations, so that a memory report can say who holds what.
//
// A label is a small number that stands for a text kept for the life of the process. Memory taken
// while a LabelScope is open on the same thread carries its label.
#pragma once

#include <cstdint>
#include <string_view>

namespace tl {

class Label {
 public:
  constexpr Label() noexcept = default;    // no label
  explicit Label(std::string_view text);   // same text, same label
  std::string_view text() const noexcept;  // empty for no label

  // The label of the innermost open scope of this thread.
  static Label current() noexcept;

  friend bool operator==(Label a, Label b) noexcept { return a.id_ == b.id_; }
  std::uint32_t id() const noexcept { return id_; }

 private:
  friend class LabelScope;
  std::uint32_t id_ = 0;
};

class LabelScope {
 public:
  explicit LabelScope(Label label) noexcept;
  explicit LabelScope(std::string_view text) : LabelScope(Label(text)) {}
  ~LabelScope();
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;

 private:
  Label previous_;
};

}  // namespace tl
