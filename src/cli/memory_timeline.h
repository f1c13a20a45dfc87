// What a program holds of memory from moment to moment, told by the runtime's hook, and which lines
// took it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tl/runtime/report.h"

namespace tl::cli {

// A line of a program, or another label; what it took in all and what of it was live at the peak.
struct LineUse {
  std::string line;
  std::uint64_t allocated = 0;  // bytes, all times together
  std::uint64_t allocations = 0;
  std::uint64_t detaches = 0;  // of them, those that a write to shared memory made
  std::uint64_t at_peak = 0;   // bytes
};

struct MemorySample {
  double seconds = 0;
  std::uint64_t live = 0;  // bytes
  std::size_t line = 0;    // of PlaceMemory::lines: who took or returned some
  bool is_taken = false;   // and not returned
};

// One place that memory is taken from: a device, or host memory pinned for one.
struct PlaceMemory {
  std::string name;  // "cuda:0", "cuda:0 pinned"
  std::uint64_t peak = 0;
  double peak_seconds = 0;
  std::size_t peak_line = 0;  // of `lines`
  std::uint64_t allocations = 0;
  std::uint64_t left = 0;             // bytes that did not come back
  std::vector<LineUse> lines;         // in the order in which they came
  std::vector<MemorySample> samples;  // by time; thinned, with all that is highest and lowest
  // The highest moments of different lines, the highest first.
  std::vector<MemorySample> peaks(std::size_t most) const;
};

// Listens from its making to finish(); one at a time.
class MemoryTimeline {
 public:
  MemoryTimeline();
  ~MemoryTimeline();
  MemoryTimeline(const MemoryTimeline&) = delete;
  MemoryTimeline& operator=(const MemoryTimeline&) = delete;

  // Places that had memory, the one with the highest peak first.
  std::vector<PlaceMemory> finish();
  double seconds() const;

 private:
  struct Held {
    std::size_t line;
    std::uint64_t bytes;
  };
  struct Place {
    PlaceMemory told;
    std::uint64_t live = 0;
    std::vector<std::uint64_t> live_of;                    // each line
    std::vector<std::uint64_t> peak_of;                    // each line, at the peak
    bool is_at_peak = false;                               // peak_of is still to be noted
    std::unordered_map<const char*, std::size_t> line_of;  // by the label's text, which stays
    std::unordered_map<std::uint64_t, Held> blocks;        // by serial number
  };
  static void hear(const MemoryEvent& event) noexcept;
  void note(const MemoryEvent& event);
  Place& place_of(const MemoryEvent& event);
  static std::size_t line_of(Place& place, std::string_view label);
  static void add_sample(Place& place, const MemorySample& sample);
  static void note_peak(Place& place);

  std::mutex mutex_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Place> places_;
  MemoryHook before_ = nullptr;
  bool is_listening_ = true;
};

}  // namespace tl::cli
