#include "model/stop_strings.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tl {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  std::size_t begin = std::string::npos;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    if (const std::size_t after = at + stop.size(); after < end || (after == end && at < begin)) {
      begin = at;
      end = after;
    }
  }
  if (begin != std::string::npos) {
    found_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  std::size_t keep = 0;  // bytes at the end that a stop string may begin with
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > keep; --size) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, size))) keep = size;
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

}  // namespace tl
