// Merging of neighbours, as both kinds of pair vocabularies do it: always the best pair, the
// leftmost of equals, until none is left. A heap keeps it at n log n for a word of n characters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace tl::tok {

struct Symbol {
  std::uint32_t start = 0;   // in the text, bytes
  std::uint32_t length = 0;  // 0: it is part of the one before it
  std::int32_t previous = -1, next = -1;
  std::int32_t id = -1;
};

// What two neighbours become.
struct Merge {
  std::uint32_t order = 0;  // smaller ones come first
  std::int32_t id = -1;     // negative: they do not merge
};

// Kept from word to word, so that its memory is.
class Merger {
 public:
  std::vector<Symbol> symbols;

  void begin() { symbols.clear(); }
  void add(std::size_t start, std::size_t length, std::int32_t id) {
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(length),
                       index - 1, index + 1, id});
  }

  // `lookup(left, right)` is asked for the Merge of two symbols.
  template <class Lookup>
  void merge(const Lookup& lookup) {
    if (symbols.empty()) return;
    symbols.back().next = -1;
    heap_.clear();
    for (std::int32_t left = 0; left + 1 < static_cast<std::int32_t>(symbols.size()); ++left) {
      consider(lookup, left, [&](const Candidate& each) { heap_.push_back(each); });
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    const auto push = [&](const Candidate& each) {
      heap_.push_back(each);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    };
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const Candidate best = heap_.back();
      heap_.pop_back();
      const auto index = static_cast<std::int32_t>(best.key & 0xFFFFFFFFU);
      Symbol& left = at(index);
      if (left.length == 0 || left.next < 0) continue;
      Symbol& right = at(left.next);
      if (left.length + right.length != best.size) continue;  // one of them has grown since
      left.length += right.length;
      left.id = best.id;
      right.length = 0;
      left.next = right.next;
      if (left.next >= 0) {
        at(left.next).previous = index;
        consider(lookup, index, push);
      }
      if (left.previous >= 0) consider(lookup, left.previous, push);
    }
  }

 private:
  struct Candidate {
    std::uint64_t key;   // order, then the index of the left symbol
    std::uint32_t size;  // of both symbols when they were looked at
    std::int32_t id;
    friend bool operator>(const Candidate& a, const Candidate& b) { return a.key > b.key; }
  };

  Symbol& at(std::int32_t index) { return symbols[static_cast<std::size_t>(index)]; }

  template <class Lookup, class Take>
  void consider(const Lookup& lookup, std::int32_t index, const Take& take) {
    const Symbol& left = at(index);
    const Symbol& right = at(left.next);
    const Merge merge = lookup(left, right);
    if (merge.id < 0) return;
    take(Candidate{std::uint64_t{merge.order} << 32 | static_cast<std::uint32_t>(index),
                   left.length + right.length, merge.id});
  }

  std::vector<Candidate> heap_;
};

}  // namespace tl::tok
