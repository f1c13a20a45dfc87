// The free memory of one stream, found by size in constant time.
//
// The pool takes segments from the driver and cuts them into chunks. Free chunks hang in lists by
// size class (two-level segregated fit: the power of two, then sixteen steps inside it), with
// bitmaps that say which lists are not empty. Neighbouring free chunks are joined at once, so a
// segment whose chunks were all given back is one chunk again. The chunk records live in host
// memory, since a GPU's memory cannot be touched from here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tl {

struct Chunk {
  std::byte* start = nullptr;
  std::uint64_t capacity = 0;  // bytes, a multiple of SegmentList::kGranularity
  Chunk* before = nullptr;     // neighbours in the segment, by address
  Chunk* after = nullptr;
  Chunk* next_free = nullptr;  // links of the free list it hangs in
  Chunk* previous_free = nullptr;
  bool is_free = false;

  bool whole_segment() const noexcept { return before == nullptr && after == nullptr; }
};

class SegmentList {
 public:
  static constexpr std::uint64_t kGranularity = 512;  // every chunk starts and ends on a multiple
  static constexpr unsigned kStepBits = 4;
  static constexpr unsigned kSteps = 1U << kStepBits;
  static constexpr unsigned kClasses = 56;

  // The best chunk of at least `bytes`, taken out of its list; null when there is none.
  Chunk* take(std::uint64_t bytes) noexcept;
  void add(Chunk* chunk) noexcept;
  void remove(Chunk* chunk) noexcept;

  // Calls f(chunk) for every free chunk; f may remove the chunk it is given.
  template <class F>
  void for_each(F&& f) {
    for (auto& lists : lists_) {
      for (Chunk* head : lists) {
        for (Chunk* chunk = head; chunk != nullptr;) {
          Chunk* next = chunk->next_free;
          f(chunk);
          chunk = next;
        }
      }
    }
  }

 private:
  struct Place {
    unsigned power;
    unsigned step;
  };
  static Place place_of(std::uint64_t bytes) noexcept;
  Chunk* best_in_list(Place place, std::uint64_t bytes) noexcept;

  std::uint64_t powers_ = 0;                     // bit p: some list of lists_[p] is not empty
  std::array<std::uint32_t, kClasses> steps_{};  // bit s of [p]: lists_[p][s] is not empty
  std::array<std::array<Chunk*, kSteps>, kClasses> lists_{};
};

}  // namespace tl
