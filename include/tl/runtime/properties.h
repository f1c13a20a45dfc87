// What a device says about itself, and the counts of what it was asked to do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tl {

struct DeviceProperties {
  std::string name;
  std::string architecture;  // "sm_90", "gfx942", "x86_64"; chooses the kernel image
  std::uint64_t total_memory = 0;
  int major = 0;  // compute capability
  int minor = 0;
  int warp_width = 1;  // lanes that run in step
  int multiprocessors = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  std::array<int, 3> max_block{};
  std::array<int, 3> max_grid{};
  std::uint64_t shared_memory_per_block = 0;        // bytes
  std::uint64_t shared_memory_per_block_optin = 0;  // bytes a kernel may ask for
  int registers_per_block = 0;
  std::uint64_t constant_memory = 0;
  std::uint64_t l2_bytes = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  bool integrated = false;
  bool cooperative_launch = false;
  bool managed_memory = false;
  bool can_map_host_memory = false;
  bool bf16 = false;  // bf16 arithmetic in hardware
  bool fp8 = false;
  std::string pci;   // "0000:3b:00.0", empty for the CPU
  std::string uuid;  // empty where the driver gives none
};

struct MemoryInfo {
  std::uint64_t free = 0;  // bytes
  std::uint64_t total = 0;
};

// How often the driver was called on a device since the process started.
struct DriverCalls {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t host_allocations = 0;
  std::uint64_t host_frees = 0;
  std::uint64_t uploads = 0;        // host to device
  std::uint64_t downloads = 0;      // device to host
  std::uint64_t device_copies = 0;  // within the device, or from another one
  std::uint64_t fills = 0;
  std::uint64_t launches = 0;
  std::uint64_t module_loads = 0;
  std::uint64_t module_unloads = 0;
  std::uint64_t events = 0;  // recorded
  std::uint64_t synchronizations = 0;

  friend bool operator==(const DriverCalls&, const DriverCalls&) = default;
};

}  // namespace tl
