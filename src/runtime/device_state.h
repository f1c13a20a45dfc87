// What is behind a Device handle: an identity with a stream and a seed of its own, over the shared
// Context.
#pragma once

#include <atomic>
#include <cstdint>

#include "tl/runtime/stream.h"

namespace tl {

class Context;

struct DeviceState {
  DeviceState(Context& owner, Stream home) noexcept;
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;

  Context& context;
  Stream stream;
  std::uint64_t id;  // tells handles of one location apart
  std::atomic<std::uint64_t> seed;
  std::atomic<std::uint64_t> random_position{0};  // of the seed's sequence, not yet used
  std::atomic<std::uint32_t> references{1};

  void add() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
  void remove() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

}  // namespace tl
