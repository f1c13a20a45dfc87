// What is held on which device and by whom, and the hook for failures that no one can catch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tl/base/error.h"
#include "tl/runtime/location.h"
#include "tl/runtime/pool.h"

namespace tl {

struct LabelUse {
  std::string label;  // empty: taken outside any label
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

struct DeviceMemoryReport {
  DeviceLocation location;
  PoolStatistics device;       // memory on the device
  PoolStatistics pinned;       // host memory pinned for it
  std::vector<LabelUse> held;  // what is live now, device and pinned together, largest first
};

struct MemoryReport {
  std::vector<DeviceMemoryReport> devices;  // those that were opened

  bool everything_returned() const noexcept;
  // A few lines a person can read, one block per device.
  std::string text() const;
};

MemoryReport memory_report();

// What happens to memory, for a log: who listens is called by every thread, in the middle of its
// work, and must neither throw nor use devices.
struct MemoryEvent {
  enum class Kind : std::uint8_t { Allocate, Detach, Return } kind = Kind::Allocate;
  DeviceLocation location;
  std::uint64_t bytes = 0;
  std::uint64_t block = 0;     // its serial number
  std::uint64_t detached = 0;  // Detach: the block that keeps the old bytes
  std::string_view label;      // kept for the life of the process
  bool is_pinned = false;      // host memory for the device, not memory on it
};
using MemoryHook = void (*)(const MemoryEvent&) noexcept;
MemoryHook set_memory_hook(MemoryHook hook) noexcept;  // null: none. Returns the one before.

// Called for failures inside destructors, where nothing can be thrown. The hook must not throw; the
// default does nothing (the failure is counted in PoolStatistics::failures all the same). Returns
// the previous hook.
using ErrorHook = std::function<void(const Error&)>;
ErrorHook set_error_hook(ErrorHook hook);

}  // namespace tl
