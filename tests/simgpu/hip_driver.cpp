// libamdhip64's C ABI over the simulator: versions, devices, properties, errors.
//
// Built twice: as libsimhip.so, which is ROCm 6 or what SIMGPU_ROCM says, and with SIMGPU_HIP5 as
// libsimhip5.so, which is ROCm 5 and lacks the symbol that ROCm 6 brought. A library cannot hide a
// symbol at run time.
#include "hip_driver.h"

#include <cstdio>
#include <cstring>
#include <utility>

namespace simgpu {

const Flavour kFlavour{
    .max_grid = {0x7FFF'FFFF, 0x7FFF'FFFF, 0x7FFF'FFFF},
    .default_dynamic_shared = 64 << 10,
    .max_dynamic_shared = 64 << 10,
    .limit_threads_per_grid = true,
    .too_many_threads = Status::InvalidConfiguration,
    .extra_end = 3,
};

namespace {

thread_local int current = 0;
thread_local hipError_t last_error = 0;

struct Attribute {
  int number;
  int value;
};

constexpr Attribute kAttributes[] = {
    {5, 1'000'000},     // ClockRate, kHz
    {16, 0},            // Integrated
    {19, 4 << 20},      // L2CacheSize
    {23, 9},            // ComputeCapabilityMajor
    {26, 1024},         // MaxBlockDimX
    {27, 1024},         // MaxBlockDimY
    {28, 64},           // MaxBlockDimZ
    {29, 0x7FFF'FFFF},  // MaxGridDimX
    {30, 0x7FFF'FFFF},  // MaxGridDimY
    {31, 0x7FFF'FFFF},  // MaxGridDimZ
    {56, 1024},         // MaxThreadsPerBlock
    {57, 2048},         // MaxThreadsPerMultiProcessor
    {59, 128},          // MemoryBusWidth
    {60, 1'000'000},    // MemoryClockRate, kHz
    {61, 0},            // ComputeCapabilityMinor
    {63, 4},            // MultiprocessorCount
    {68, 0},            // PciDeviceId
    {74, 64 << 10},     // MaxSharedMemoryPerBlock
};
constexpr int kPciBusId = 67;
constexpr int kWarpSize = 87;

// Where the fields lie in hipDeviceProp_t. Its layout changed with ROCm 6; the old symbol kept the
// old one.
struct PropertyLayout {
  std::size_t bytes, total_memory, shared_per_block, warp, max_threads, major, minor, processors,
      l2, pci_bus, arch;
};
constexpr PropertyLayout kOldLayout{792, 256, 264, 276, 280, 328, 332, 336, 340, 368, 396};
#ifndef SIMGPU_HIP5
constexpr PropertyLayout kNewLayout{1472, 288, 296, 308, 320, 360, 364, 388, 616, 584, 1160};
#endif

void write_name(char* out, std::size_t bytes) {
  std::snprintf(out, bytes, "Simulated GPU, %u lanes", sim().settings().warp);
}

Status check_device(int device) {
  if (sim().settings().devices == 0) return Status::NoDevice;
  return sim().has_device(device) ? Status::Ok : Status::InvalidDevice;
}

Status write_properties(void* out, int device, const PropertyLayout& layout) {
  if (const Status status = check_device(device); status != Status::Ok) return status;
  if (out == nullptr) return Status::InvalidValue;
  auto* at = static_cast<char*>(out);
  const auto put = [at](std::size_t offset, auto value) {
    std::memcpy(at + offset, &value, sizeof value);
  };
  std::memset(at, 0, layout.bytes);
  write_name(at, 256);
  put(layout.total_memory, sim().settings().memory);
  put(layout.shared_per_block, std::size_t{64} << 10);
  put(layout.warp, static_cast<int>(sim().settings().warp));
  put(layout.max_threads, 1024);
  put(layout.major, 9);
  put(layout.minor, 0);
  put(layout.processors, 4);
  put(layout.l2, 4 << 20);
  put(layout.pci_bus, device + 1);
  // Real names carry features too; who looks for a code object has to cut them off.
  std::snprintf(at + layout.arch, 256, "sim%u:sramecc+:xnack-", sim().settings().warp);
  return Status::Ok;
}

}  // namespace

Simulator& sim() { return Simulator::get(); }

int rocm_version() {
#ifdef SIMGPU_HIP5
  return 5;
#else
  return sim().settings().rocm;
#endif
}

Status enter(int& device) {
  if (sim().settings().devices == 0) return Status::NoDevice;
  device = current;
  return sim().device_status(device);
}

hipError_t result(Status status) {
  // Until ROCm 6 this is the last result; since ROCm 7 the last error, as in CUDA.
  if (status != Status::Ok || rocm_version() < 7) last_error = static_cast<int>(status);
  return static_cast<int>(status);
}

}  // namespace simgpu

using namespace simgpu;

SIMGPU_EXPORT hipError_t hipInit(unsigned flags) {
  if (flags != 0) return result(Status::InvalidValue);
  return result(check_device(0));
}

SIMGPU_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  if (version == nullptr) return result(Status::InvalidValue);
  const int rocm = rocm_version();
  *version = rocm == 5 ? 50221153 : rocm == 6 ? 60443484 : 70253211;
  return result(Status::Ok);
}

SIMGPU_EXPORT hipError_t hipDriverGetVersion(int* version) { return hipRuntimeGetVersion(version); }

SIMGPU_EXPORT hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return result(Status::InvalidValue);
  *count = sim().settings().devices;
  return result(check_device(0));
}

SIMGPU_EXPORT hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  const Status status = check_device(ordinal);
  if (status == Status::Ok) *device = ordinal;
  return result(status);
}

SIMGPU_EXPORT hipError_t hipGetDevice(int* device) {
  const Status status = check_device(current);
  if (status == Status::Ok) *device = current;
  return result(status);
}

SIMGPU_EXPORT hipError_t hipSetDevice(int device) {
  const Status status = check_device(device);
  if (status == Status::Ok) {
    current = device;
    sim().count_context_switch();
  }
  return result(status);
}

SIMGPU_EXPORT hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  const Status status = check_device(device);
  if (status != Status::Ok) return result(status);
  if (name == nullptr || length <= 0) return result(Status::InvalidValue);
  write_name(name, static_cast<std::size_t>(length));
  return result(Status::Ok);
}

SIMGPU_EXPORT hipError_t hipDeviceTotalMem(std::size_t* bytes, hipDevice_t device) {
  const Status status = check_device(device);
  if (status == Status::Ok) *bytes = sim().settings().memory;
  return result(status);
}

SIMGPU_EXPORT hipError_t hipDeviceGetAttribute(int* value, int attribute, int device) {
  if (const Status status = check_device(device); status != Status::Ok) return result(status);
  if (value == nullptr) return result(Status::InvalidValue);
  if (attribute == kWarpSize || attribute == kPciBusId) {
    *value = attribute == kWarpSize ? static_cast<int>(sim().settings().warp) : device + 1;
    return result(Status::Ok);
  }
  for (const Attribute& known : kAttributes) {
    if (known.number != attribute) continue;
    *value = known.value;
    return result(Status::Ok);
  }
  return result(Status::InvalidValue);
}

SIMGPU_EXPORT hipError_t hipGetDeviceProperties(void* properties, int device) {
  return result(write_properties(properties, device, kOldLayout));
}

#ifndef SIMGPU_HIP5
SIMGPU_EXPORT hipError_t hipGetDevicePropertiesR0600(void* properties, int device) {
  return result(write_properties(properties, device, kNewLayout));
}
#endif

SIMGPU_EXPORT hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
  Status status = check_device(device);
  if (status == Status::Ok) status = check_device(peer);
  if (status == Status::Ok) *can = device != peer ? 1 : 0;
  return result(status);
}

SIMGPU_EXPORT hipError_t hipGetLastError() { return std::exchange(last_error, 0); }

SIMGPU_EXPORT hipError_t hipPeekAtLastError() { return last_error; }

SIMGPU_EXPORT const char* hipGetErrorName(hipError_t error) {
  const StatusText* text = status_text(error);
  return text != nullptr ? text->hip_name : "hipErrorUnknown";
}

SIMGPU_EXPORT const char* hipGetErrorString(hipError_t error) {
  const StatusText* text = status_text(error);
  return text != nullptr ? text->text : "unknown error";
}
