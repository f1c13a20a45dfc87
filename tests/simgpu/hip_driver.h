// HIP's types as simgpu speaks them, and what its wrappers share. HIP has no contexts to speak of:
// every thread has a current device, 0 at first, and a last error.
#pragma once

#include <cstdint>
#include <type_traits>

#include "export.h"
#include "simulator.h"

using hipError_t = int;
using hipDevice_t = int;
using hipDeviceptr_t = void*;
using hipStream_t = struct ihipStream_t*;
using hipEvent_t = struct ihipEvent_t*;
using hipModule_t = struct ihipModule_t*;
using hipFunction_t = struct ihipModuleSymbol_t*;

namespace simgpu {

Simulator& sim();
int rocm_version();  // 5, 6 or 7

// The calling thread's device, or why there is none: no device at all, or a lost one.
Status enter(int& device);

// What a call answers; also what hipGetLastError says next.
hipError_t result(Status status);

template <class T>
Handle handle(T* opaque) {
  return reinterpret_cast<Handle>(opaque);
}

// Runs `call(device)` on the current device.
template <class F>
hipError_t on_device(F&& call) {
  int device = 0;
  const Status status = enter(device);
  return result(status == Status::Ok ? call(device) : status);
}

// The same for calls that hand something out: `call(device, &value)` fills it.
template <class Value, class T, class F>
hipError_t hand_out(T* out, F&& call) {
  return on_device([&](int device) {
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
