// libcuda's C ABI over the simulator: devices, contexts, memory.
#include "cuda_driver.h"

#include <cstdio>
#include <cstring>

namespace simgpu {

const Flavour kFlavour{
    .max_grid = {0x7FFF'FFFF, 65535, 65535},
    .default_dynamic_shared = 48 << 10,
    .max_dynamic_shared = 227 << 10,
    .limit_threads_per_grid = false,
    .too_many_threads = Status::InvalidValue,
    .extra_end = 0,
};

namespace {

// Set by cuInit; atomics keep an early second thread honest.
std::atomic<bool> initialised = false;
thread_local int current = kNoDevice;

// A context handle is its device's number in disguise; it is valid while the device's primary
// context is retained.
constexpr std::uintptr_t kContextBase = 0x51C0'0000'0000;

CUcontext context_of(int device) {
  if (device == kNoDevice) return nullptr;
  return reinterpret_cast<CUcontext>(kContextBase + static_cast<std::uintptr_t>(device) * 16);
}

int device_of(CUcontext context) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(context) - kContextBase;
  const int device = static_cast<int>(offset / 16);
  if (offset % 16 != 0 || offset / 16 > 1024 || !sim().has_device(device)) return kNoDevice;
  return sim().context_alive(device) ? device : kNoDevice;
}

struct Attribute {
  int number;
  int value;
};

constexpr Attribute kAttributes[] = {
    {1, 1024},          // MAX_THREADS_PER_BLOCK
    {2, 1024},          // MAX_BLOCK_DIM_X
    {3, 1024},          // MAX_BLOCK_DIM_Y
    {4, 64},            // MAX_BLOCK_DIM_Z
    {5, 0x7FFF'FFFF},   // MAX_GRID_DIM_X
    {6, 65535},         // MAX_GRID_DIM_Y
    {7, 65535},         // MAX_GRID_DIM_Z
    {8, 48 << 10},      // MAX_SHARED_MEMORY_PER_BLOCK
    {9, 64 << 10},      // TOTAL_CONSTANT_MEMORY
    {11, 0x7FFF'FFFF},  // MAX_PITCH
    {12, 65536},        // MAX_REGISTERS_PER_BLOCK
    {13, 1'000'000},    // CLOCK_RATE, kHz
    {14, 512},          // TEXTURE_ALIGNMENT
    {16, 4},            // MULTIPROCESSOR_COUNT
    {17, 0},            // KERNEL_EXEC_TIMEOUT
    {18, 0},            // INTEGRATED
    {19, 1},            // CAN_MAP_HOST_MEMORY
    {20, 0},            // COMPUTE_MODE
    {31, 1},            // CONCURRENT_KERNELS
    {32, 0},            // ECC_ENABLED
    {34, 0},            // PCI_DEVICE_ID
    {36, 1'000'000},    // MEMORY_CLOCK_RATE, kHz
    {37, 128},          // GLOBAL_MEMORY_BUS_WIDTH
    {38, 4 << 20},      // L2_CACHE_SIZE
    {39, 2048},         // MAX_THREADS_PER_MULTIPROCESSOR
    {40, 2},            // ASYNC_ENGINE_COUNT
    {41, 1},            // UNIFIED_ADDRESSING
    {50, 0},            // PCI_DOMAIN_ID
    {78, 0},            // STREAM_PRIORITIES_SUPPORTED
    {81, 100 << 10},    // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    {82, 65536},        // MAX_REGISTERS_PER_MULTIPROCESSOR
    {83, 0},            // MANAGED_MEMORY
    {95, 0},            // COOPERATIVE_LAUNCH: blocks run one after the other
    {97, 227 << 10},    // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    {106, 32},          // MAX_BLOCKS_PER_MULTIPROCESSOR
    {111, 1024},        // RESERVED_SHARED_MEMORY_PER_BLOCK
    {115, 1},           // MEMORY_POOLS_SUPPORTED
};

}  // namespace

Simulator& sim() { return Simulator::get(); }

Status enter(int& device) {
  if (!initialised) return Status::NotInitialized;
  if (current == kNoDevice || !sim().context_alive(current)) {
    return sim().bad_call(Status::InvalidContext);
  }
  device = current;
  return sim().device_status(device);
}

}  // namespace simgpu

using namespace simgpu;

namespace {

// For what needs no context: initialised, and the device exists.
Status check_device(CUdevice device) {
  if (!initialised) return Status::NotInitialized;
  return sim().has_device(device) ? Status::Ok : Status::InvalidDevice;
}

}  // namespace

SIMGPU_EXPORT CUresult cuInit(unsigned flags) {
  if (flags != 0) return result(Status::InvalidValue);
  if (sim().settings().devices == 0) return result(Status::NoDevice);
  initialised = true;
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return result(Status::InvalidValue);
  *version = 13000;
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuDeviceGetCount(int* count) {
  if (!initialised) return result(Status::NotInitialized);
  if (count == nullptr) return result(Status::InvalidValue);
  *count = sim().settings().devices;
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  const Status status = check_device(ordinal);
  if (status == Status::Ok) *device = ordinal;
  return result(status);
}

SIMGPU_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  const Status status = check_device(device);
  if (status != Status::Ok) return result(status);
  if (name == nullptr || length <= 0) return result(Status::InvalidValue);
  std::snprintf(name, static_cast<std::size_t>(length), "Simulated GPU, %u lanes",
                sim().settings().warp);
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  const Status status = check_device(device);
  if (status == Status::Ok) *bytes = sim().settings().memory;
  return result(status);
}

SIMGPU_EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  if (const Status status = check_device(device); status != Status::Ok) return result(status);
  if (value == nullptr) return result(Status::InvalidValue);
  const bool wide = sim().settings().warp == 64;
  switch (attribute) {
    case 10:  // WARP_SIZE
      *value = wide ? 64 : 32;
      return result(Status::Ok);
    case 33:  // PCI_BUS_ID
      *value = device + 1;
      return result(Status::Ok);
    case 75:  // COMPUTE_CAPABILITY_MAJOR: no real GPU will ever be an sm_932 or an sm_964
      *value = wide ? 96 : 93;
      return result(Status::Ok);
    case 76:  // COMPUTE_CAPABILITY_MINOR
      *value = wide ? 4 : 2;
      return result(Status::Ok);
    default:
      break;
  }
  for (const Attribute& known : kAttributes) {
    if (known.number != attribute) continue;
    *value = known.value;
    return result(Status::Ok);
  }
  return result(Status::InvalidValue);
}

SIMGPU_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  const Status status = check_device(device);
  if (status != Status::Ok) return result(status);
  std::memcpy(uuid->bytes, "simgpu-cuda-dev", 15);
  uuid->bytes[15] = static_cast<char>(device);
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Status status = check_device(device);
  if (status != Status::Ok) return result(status);
  if (context == nullptr) return result(Status::InvalidValue);
  sim().retain_context(device);
  *context = context_of(device);
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const Status status = check_device(device);
  if (status != Status::Ok) return result(status);
  if (sim().release_context(device)) return result(Status::Ok);
  return result(sim().bad_call(Status::InvalidContext));
}

SIMGPU_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!initialised) return result(Status::NotInitialized);
  *context = context_of(current);
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  if (!initialised) return result(Status::NotInitialized);
  const int device = device_of(context);
  if (context != nullptr && device == kNoDevice) {
    return result(sim().bad_call(Status::InvalidContext));
  }
  current = device;
  sim().count_context_switch();
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  if (!initialised) return result(Status::NotInitialized);
  if (current == kNoDevice) return result(Status::InvalidContext);
  *device = current;
  return result(Status::Ok);
}

SIMGPU_EXPORT CUresult cuCtxSynchronize() {
  return in_context([](int device) { return sim().synchronize_device(device); });
}

SIMGPU_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  Status status = check_device(device);
  if (status == Status::Ok) status = check_device(peer);
  if (status == Status::Ok) *can = device != peer ? 1 : 0;
  return result(status);
}

SIMGPU_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return in_context([&](int device) { return sim().memory_info(device, free, total); });
}

SIMGPU_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                         CUcontext from_context, std::size_t bytes,
                                         CUstream stream) {
  return in_context([&](int device) {
    const int to_device = device_of(to_context);
    const int from_device = device_of(from_context);
    if (to_device == kNoDevice || from_device == kNoDevice) {
      return sim().bad_call(Status::InvalidContext);
    }
    return sim().copy_peer(device, pointer(to), to_device, pointer(from), from_device, bytes,
                           handle(stream));
  });
}

SIMGPU_EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  const StatusText* text = status_text(error);
  *name = text != nullptr ? text->cuda_name : nullptr;
  return result(text != nullptr ? Status::Ok : Status::InvalidValue);
}

SIMGPU_EXPORT CUresult cuGetErrorString(CUresult error, const char** words) {
  const StatusText* text = status_text(error);
  *words = text != nullptr ? text->text : nullptr;
  return result(text != nullptr ? Status::Ok : Status::InvalidValue);
}
