#include "model/rope_tables.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "tl/runtime/label.h"

namespace tl::model {

namespace {

RopeTable make(const RopeFrequencies& rope, std::int64_t positions, const Device& device) {
  const auto pairs = static_cast<std::int64_t>(rope.radians.size());
  std::vector<float> cosines, sines;
  cosines.reserve(static_cast<std::size_t>(positions * pairs));
  sines.reserve(cosines.capacity());
  for (std::int64_t p = 0; p < positions; ++p) {
    for (const double radians : rope.radians) {
      const double angle = static_cast<double>(p) * radians;
      cosines.push_back(static_cast<float>(std::cos(angle) * rope.magnitude));
      sines.push_back(static_cast<float>(std::sin(angle) * rope.magnitude));
    }
  }
  const LabelScope label("rope tables");
  return {Tensor::from(cosines, {positions, pairs}, device),
          Tensor::from(sines, {positions, pairs}, device)};
}

}  // namespace

RopeTables::RopeTables(std::vector<RopeFrequencies> ropes, Device device)
    : ropes_(std::move(ropes)), device_(std::move(device)), tables_(ropes_.size()) {}

RopeTable RopeTables::get(int rope, std::int64_t positions) {
  const auto at = static_cast<std::size_t>(rope);
  const std::lock_guard lock(mutex_);
  RopeTable& table = tables_[at];
  if (table.cosines.rank() != 2 || table.cosines.shape()[0] < positions) {
    constexpr std::uint64_t kLeast = 256;
    const auto wanted = std::max(kLeast, std::bit_ceil(static_cast<std::uint64_t>(positions)));
    table = make(ropes_[at], static_cast<std::int64_t>(wanted), device_);
  }
  return table;
}

}  // namespace tl::model
