// The CUDA driver API's types as simgpu speaks them, and what its wrappers share. Declared here so
// that no SDK is needed to build it.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "export.h"
#include "simulator.h"

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;

struct CUuuid {
  char bytes[16];
};

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int allowed;  // of CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  } value;
};

struct CUlaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  CUstream stream;
  CUlaunchAttribute* attributes;
  unsigned attribute_count;
};

namespace simgpu {

inline constexpr int kNoDevice = -1;

Simulator& sim();

// The device of the calling thread's context, or why there is none: cuInit was not called, no
// context is current, or the device is lost.
Status enter(int& device);

inline CUresult result(Status status) { return static_cast<int>(status); }

inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

template <class T>
Handle handle(T* opaque) {
  return reinterpret_cast<Handle>(opaque);
}

// Runs `call(device)` in the current context.
template <class F>
CUresult in_context(F&& call) {
  int device = kNoDevice;
  const Status status = enter(device);
  return result(status == Status::Ok ? call(device) : status);
}

// The same for calls that hand something out: `call(device, &value)` fills it.
template <class Value, class T, class F>
CUresult hand_out(T* out, F&& call) {
  return in_context([&](int device) {
    if (out == nullptr) return sim().bad_call(Status::InvalidValue);
    Value value{};
    const Status status = call(device, &value);
    if (status != Status::Ok) return status;
    if constexpr (std::is_same_v<Value, T>) {
      *out = value;
    } else {
      *out = reinterpret_cast<T>(value);
    }
    return status;
  });
}

}  // namespace simgpu
