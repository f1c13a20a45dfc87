// Hash tables of the tokenizers: flat arrays with linear probing, filled once and then only read.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tl::tok {

// Twice as many slots as entries, a power of two.
inline std::size_t slot_count(std::size_t entries) { return std::bit_ceil(2 * entries + 2); }

inline std::size_t mix(std::uint64_t key) noexcept {
  key ^= key >> 32;
  key *= 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(key ^ key >> 29);
}

// Texts, numbered in the order they were added, and the way back from a text to its number.
class TextTable {
 public:
  std::size_t size() const noexcept { return ends_.size(); }
  std::string_view text(std::size_t index) const noexcept {
    const std::size_t start = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(start, ends_[index] - start);
  }

  void reserve(std::size_t texts) {
    ends_.reserve(texts);
    if (slots_.size() < slot_count(texts)) rehash(slot_count(texts));
  }

  // The number of the text, or of the equal one that is there already.
  std::size_t add(std::string_view text) {
    if (2 * (size() + 1) > slots_.size()) rehash(slot_count(2 * size() + 8));
    std::uint32_t& slot = slots_[slot_of(text)];
    if (slot == 0) {
      append(text);
      slot = static_cast<std::uint32_t>(size());
    }
    return slot - 1;
  }
  std::optional<std::size_t> find(std::string_view text) const noexcept {
    if (slots_.empty()) return std::nullopt;
    const std::uint32_t slot = slots_[slot_of(text)];
    return slot == 0 ? std::nullopt : std::optional<std::size_t>(slot - 1);
  }

  // A text that is only kept, and never found.
  void append(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }

 private:
  std::size_t slot_of(std::string_view text) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = std::hash<std::string_view>()(text) & mask;
    while (slots_[at] != 0 && this->text(slots_[at] - 1) != text) at = (at + 1) & mask;
    return at;
  }
  void rehash(std::size_t slots) {
    const std::vector<std::uint32_t> old = std::move(slots_);
    slots_.assign(slots, 0);
    for (const std::uint32_t slot : old) {
      if (slot != 0) slots_[slot_of(text(slot - 1))] = slot;
    }
  }

  std::string bytes_;                 // all texts one after another
  std::vector<std::size_t> ends_;     // of each text in bytes_
  std::vector<std::uint32_t> slots_;  // number + 1; 0: nothing
};

// Values by a key of 64 bits. One key, all ones, cannot be used.
template <class T>
class KeyTable {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::size_t size() const noexcept { return size_; }
  void reserve(std::size_t entries) {
    if (slots_.size() < slot_count(entries)) rehash(slot_count(entries));
  }
  // Keeps the value that is there already.
  void add(std::uint64_t key, const T& value) {
    if (2 * (size_ + 1) > slots_.size()) rehash(slot_count(2 * size_ + 8));
    Slot& slot = slots_[slot_of(key)];
    if (slot.key != kNone) return;
    slot = {key, value};
    ++size_;
  }
  const T* find(std::uint64_t key) const noexcept {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[slot_of(key)];
    return slot.key == kNone ? nullptr : &slot.value;
  }

 private:
  struct Slot {
    std::uint64_t key = kNone;
    T value{};
  };

  std::size_t slot_of(std::uint64_t key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mix(key) & mask;
    while (slots_[at].key != kNone && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  void rehash(std::size_t slots) {
    const std::vector<Slot> old = std::move(slots_);
    slots_.assign(slots, Slot{});
    for (const Slot& slot : old) {
      if (slot.key != kNone) slots_[slot_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

// Texts by their bytes, one step at a time.
class ByteTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr std::int32_t kNothing = -1;

  // `value` is not negative. A later equal text takes the place of the earlier one.
  void add(std::string_view text, std::int32_t value) {
    Node node = kRoot;
    for (const char byte : text) {
      if (const Node* next = children_.find(key(node, byte))) {
        node = *next;
        continue;
      }
      const auto fresh = static_cast<Node>(values_.size());
      children_.add(key(node, byte), fresh);
      values_.push_back(kNothing);
      node = fresh;
    }
    values_[node] = value;
  }
  // Nothing when no text goes on like this.
  std::optional<Node> step(Node node, char byte) const noexcept {
    const Node* next = children_.find(key(node, byte));
    return next == nullptr ? std::nullopt : std::optional<Node>(*next);
  }
  std::int32_t value(Node node) const noexcept {
    return values_[node];
  }  // kNothing inside of texts
  bool is_empty() const noexcept { return values_.size() == 1 && values_[kRoot] == kNothing; }

 private:
  static std::uint64_t key(Node node, char byte) noexcept {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  KeyTable<Node> children_;
  std::vector<std::int32_t> values_{kNothing};
};

}  // namespace tl::tok
