// The result of every simulator call.
//
// CUresult and hipError_t agree on all the values a runtime meets, so one enumeration serves both
// ABIs and the wrappers hand it on as it is. Only the names differ.
#pragma once

namespace simgpu {

enum class Status : int {
  Ok = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  InvalidConfiguration = 9,  // hip only
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchFailed = 719,
  NotSupported = 801,
  Unknown = 999,
};

struct StatusText {
  Status status;
  const char* cuda_name;
  const char* hip_name;
  const char* text;
};

// Null where the number is none of the above.
const StatusText* status_text(int status);

}  // namespace simgpu
