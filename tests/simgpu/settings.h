// What the environment asks of the simulator. Read once, when the driver is first used.
#pragma once

#include <cstddef>

namespace simgpu {

struct Settings {
  int devices = 2;                            // SIMGPU_DEVICES
  unsigned warp = 32;                         // SIMGPU_WARP: 32 or 64
  std::size_t memory = std::size_t{4} << 30;  // SIMGPU_MEMORY: bytes per device
  bool threads = false;                       // SIMGPU_MODE: lazy or threads
  bool protect = false;  // SIMGPU_PROTECT: host access to device memory is a crash
  bool reverse = false;  // SIMGPU_ORDER: forward or reverse order of blocks and threads
  int rocm = 6;          // SIMGPU_ROCM: 5, 6 or 7
};

// A value it does not know is named on stderr and the default kept: a misspelt test setup must not
// pass unseen.
Settings read_settings();

}  // namespace simgpu
