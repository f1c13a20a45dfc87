#include "runtime/segment_list.h"

#include <bit>

namespace tl {

// Sizes are counted in granules. Below kSteps granules every size has a list of its own; above, a
// power of two is cut into kSteps lists.
SegmentList::Place SegmentList::place_of(std::uint64_t bytes) noexcept {
  const std::uint64_t granules = bytes / kGranularity;
  if (granules < kSteps) return {0, static_cast<unsigned>(granules)};
  const unsigned high = static_cast<unsigned>(std::bit_width(granules)) - 1;
  const auto step = static_cast<unsigned>(granules >> (high - kStepBits)) - kSteps;
  return {high - kStepBits + 1, step};
}

void SegmentList::add(Chunk* chunk) noexcept {
  const Place place = place_of(chunk->capacity);
  Chunk*& head = lists_[place.power][place.step];
  chunk->is_free = true;
  chunk->previous_free = nullptr;
  chunk->next_free = head;
  if (head != nullptr) head->previous_free = chunk;
  head = chunk;
  powers_ |= std::uint64_t{1} << place.power;
  steps_[place.power] |= 1U << place.step;
}

void SegmentList::remove(Chunk* chunk) noexcept {
  const Place place = place_of(chunk->capacity);
  if (chunk->previous_free != nullptr) {
    chunk->previous_free->next_free = chunk->next_free;
  } else {
    lists_[place.power][place.step] = chunk->next_free;
  }
  if (chunk->next_free != nullptr) chunk->next_free->previous_free = chunk->previous_free;
  chunk->next_free = nullptr;
  chunk->previous_free = nullptr;
  chunk->is_free = false;
  if (lists_[place.power][place.step] == nullptr) {
    steps_[place.power] &= ~(1U << place.step);
    if (steps_[place.power] == 0) powers_ &= ~(std::uint64_t{1} << place.power);
  }
}

// Chunks of one list differ by at most a sixteenth, so a few looks are enough to find a good one.
Chunk* SegmentList::best_in_list(Place place, std::uint64_t bytes) noexcept {
  constexpr int kLooks = 32;
  Chunk* best = nullptr;
  int looks = kLooks;
  for (Chunk* c = lists_[place.power][place.step]; c != nullptr && looks-- > 0; c = c->next_free) {
    if (c->capacity == bytes) return c;
    if (c->capacity > bytes && (best == nullptr || c->capacity < best->capacity)) best = c;
  }
  return best;
}

Chunk* SegmentList::take(std::uint64_t bytes) noexcept {
  const Place place = place_of(bytes);
  // The list of this very size first: its chunks may be a little smaller than asked for, but a
  // block that was just given back is here and fits exactly.
  Chunk* chunk = best_in_list(place, bytes);
  if (chunk == nullptr) {
    // Any chunk of a higher list fits.
    std::uint32_t steps = place.step + 1 < kSteps ? steps_[place.power] >> (place.step + 1) : 0;
    if (steps != 0) {
      const unsigned step = place.step + 1 + static_cast<unsigned>(std::countr_zero(steps));
      chunk = lists_[place.power][step];
    } else {
      const std::uint64_t powers =
          place.power + 1 < kClasses ? powers_ >> (place.power + 1) : std::uint64_t{0};
      if (powers == 0) return nullptr;
      const unsigned power = place.power + 1 + static_cast<unsigned>(std::countr_zero(powers));
      chunk = lists_[power][static_cast<unsigned>(std::countr_zero(steps_[power]))];
    }
  }
  remove(chunk);
  return chunk;
}

}  // namespace tl
