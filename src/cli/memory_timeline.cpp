#include "cli/memory_timeline.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <utility>

#include "tl/runtime/label.h"

namespace tl::cli {

namespace {

constexpr std::size_t kMostSamples = std::size_t{1} << 15;

std::atomic<MemoryTimeline*> heard_by = nullptr;

// Of four samples the highest and the lowest stay, so a peak is never lost.
void halve(std::vector<MemorySample>& samples) {
  std::vector<MemorySample> kept;
  kept.reserve(kMostSamples);
  for (std::size_t at = 0; at < samples.size(); at += 4) {
    const auto first = samples.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last =
        samples.begin() + static_cast<std::ptrdiff_t>(std::min(at + 4, samples.size()));
    const auto [low, high] = std::minmax_element(
        first, last, [](const MemorySample& a, const MemorySample& b) { return a.live < b.live; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  samples = std::move(kept);
}

}  // namespace

std::vector<MemorySample> PlaceMemory::peaks(std::size_t most) const {
  std::vector<MemorySample> tops;  // no sample beside them is higher
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool rose = i == 0 || samples[i - 1].live < samples[i].live;
    const bool falls = i + 1 == samples.size() || samples[i + 1].live < samples[i].live;
    if (rose && falls && samples[i].is_taken && samples[i].live >= peak / 4 &&
        samples[i].live > 0) {
      tops.push_back(samples[i]);
    }
  }
  std::stable_sort(tops.begin(), tops.end(),
                   [](const MemorySample& a, const MemorySample& b) { return a.live > b.live; });
  std::vector<MemorySample> out;
  for (const MemorySample& top : tops) {
    // Another line, and not the same mountain.
    const double apart = (samples.back().seconds - samples.front().seconds) / 20;
    const bool is_known = std::any_of(out.begin(), out.end(), [&](const MemorySample& other) {
      return other.line == top.line || std::fabs(other.seconds - top.seconds) < apart;
    });
    if (!is_known && out.size() < most) out.push_back(top);
  }
  return out;
}

MemoryTimeline::MemoryTimeline() {
  heard_by = this;
  // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): it may be called from here on
  before_ = set_memory_hook(hear);
}

MemoryTimeline::~MemoryTimeline() {
  if (is_listening_) finish();
}

double MemoryTimeline::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

// Without memory for its own notes it misses an event; the program it watches goes on.
void MemoryTimeline::hear(const MemoryEvent& event) noexcept {
  MemoryTimeline* const timeline = heard_by;
  if (timeline == nullptr) return;
  try {
    timeline->note(event);
    if (timeline->before_ != nullptr) timeline->before_(event);
  } catch (const std::exception&) {
    return;
  }
}

MemoryTimeline::Place& MemoryTimeline::place_of(const MemoryEvent& event) {
  std::string name = event.location.text();
  if (event.is_pinned) name += " pinned";
  for (Place& each : places_) {
    if (each.told.name == name) return each;
  }
  places_.emplace_back().told.name = std::move(name);
  return places_.back();
}

std::size_t MemoryTimeline::line_of(Place& place, std::string_view label) {
  const auto [at, is_new] = place.line_of.try_emplace(label.data(), place.told.lines.size());
  if (is_new) {
    place.told.lines.emplace_back().line = label.empty() ? "(no line)" : std::string(label);
    place.live_of.push_back(0);
  }
  return at->second;
}

void MemoryTimeline::add_sample(Place& place, const MemorySample& sample) {
  if (place.told.samples.size() >= kMostSamples) halve(place.told.samples);
  place.told.samples.push_back(sample);
}

// What each line holds is noted when the memory falls from a peak: while it climbs every block
// would be a new one.
void MemoryTimeline::note_peak(Place& place) {
  if (std::exchange(place.is_at_peak, false)) place.peak_of = place.live_of;
}

void MemoryTimeline::note(const MemoryEvent& event) {
  const std::lock_guard lock(mutex_);
  Place& place = place_of(event);
  if (event.kind == MemoryEvent::Kind::Return) {
    const auto block = place.blocks.find(event.block);
    if (block == place.blocks.end()) return;  // from before, or a file that is mapped
    note_peak(place);
    const Held held = block->second;
    place.blocks.erase(block);
    place.live -= held.bytes;
    place.live_of[held.line] -= held.bytes;
    add_sample(place, {seconds(), place.live, held.line, false});
    return;
  }
  // A copy of shared memory has the label of what it was copied from; the line that runs is wanted.
  const Label running = Label::current();
  const std::size_t line = line_of(place, running == Label() ? event.label : running.text());
  LineUse& use = place.told.lines[line];
  if (event.kind == MemoryEvent::Kind::Detach) {
    ++use.detaches;
    return;
  }
  use.allocated += event.bytes;
  ++use.allocations;
  ++place.told.allocations;
  place.blocks[event.block] = {line, event.bytes};
  place.live += event.bytes;
  place.live_of[line] += event.bytes;
  const MemorySample sample{seconds(), place.live, line, true};
  if (place.live > place.told.peak) {
    place.told.peak = place.live;
    place.told.peak_seconds = sample.seconds;
    place.told.peak_line = line;
    place.is_at_peak = true;
  }
  add_sample(place, sample);
}

std::vector<PlaceMemory> MemoryTimeline::finish() {
  // Somebody may have put another hook in its place since.
  if (const MemoryHook now = set_memory_hook(before_); now != hear) set_memory_hook(now);
  heard_by = nullptr;
  is_listening_ = false;
  const std::lock_guard lock(mutex_);
  std::vector<PlaceMemory> out;
  for (Place& place : places_) {
    note_peak(place);
    place.peak_of.resize(place.told.lines.size(), 0);
    for (std::size_t i = 0; i < place.peak_of.size(); ++i) {
      place.told.lines[i].at_peak = place.peak_of[i];
    }
    place.told.left = place.live;
    if (place.told.allocations > 0) out.push_back(std::move(place.told));
  }
  places_.clear();
  std::stable_sort(out.begin(), out.end(),
                   [](const PlaceMemory& a, const PlaceMemory& b) { return a.peak > b.peak; });
  return out;
}

}  // namespace tl::cli
