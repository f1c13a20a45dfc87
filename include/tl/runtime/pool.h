// What a device's pool of memory tells about itself.
#pragma once

#include <cstdint>

namespace tl {

struct PoolStatistics {
  std::uint64_t live_bytes = 0;  // held by handles and transfers, as asked for
  std::uint64_t live_blocks = 0;
  std::uint64_t peak_bytes = 0;    // the most that live_bytes ever was
  std::uint64_t pooled_bytes = 0;  // kept from the driver for reuse
  std::uint64_t held_bytes = 0;    // part of pooled_bytes that waits for work on a second stream
  std::uint64_t reserved_bytes =
      0;  // taken from the driver: what live blocks occupy, and the pooled bytes
  std::uint64_t allocations = 0;   // blocks handed out
  std::uint64_t hits = 0;          // of them, those that needed no driver call
  std::uint64_t returns = 0;       // blocks given back
  std::uint64_t mapped_bytes = 0;  // host bytes shown in place (RawMemory::mapped): not the pool's
  std::uint64_t mapped_blocks = 0;
  std::uint64_t failures = 0;  // failures that could not be thrown (in destructors)
};

}  // namespace tl
