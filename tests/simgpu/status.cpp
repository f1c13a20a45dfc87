// Names and sentences for error numbers, in the words of each vendor's API.
#include "status.h"

namespace simgpu {
namespace {

constexpr StatusText kTexts[] = {
    {Status::Ok, "CUDA_SUCCESS", "hipSuccess", "no error"},
    {Status::InvalidValue, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue", "invalid argument"},
    {Status::OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory", "out of memory"},
    {Status::NotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized",
     "initialization error"},
    {Status::InvalidConfiguration, "CUDA_ERROR_UNKNOWN", "hipErrorInvalidConfiguration",
     "invalid configuration argument"},
    {Status::NoDevice, "CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice", "no GPU device is detected"},
    {Status::InvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice",
     "invalid device ordinal"},
    {Status::InvalidImage, "CUDA_ERROR_INVALID_IMAGE", "hipErrorInvalidImage",
     "device kernel image is invalid"},
    {Status::InvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext",
     "invalid device context"},
    {Status::NoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {Status::InvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle",
     "invalid resource handle"},
    {Status::NotFound, "CUDA_ERROR_NOT_FOUND", "hipErrorNotFound", "named symbol not found"},
    {Status::NotReady, "CUDA_ERROR_NOT_READY", "hipErrorNotReady", "device not ready"},
    {Status::IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {Status::LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure",
     "unspecified launch failure"},
    {Status::NotSupported, "CUDA_ERROR_NOT_SUPPORTED", "hipErrorNotSupported",
     "operation not supported"},
    {Status::Unknown, "CUDA_ERROR_UNKNOWN", "hipErrorUnknown", "unknown error"},
};

}  // namespace

const StatusText* status_text(int status) {
  for (const StatusText& entry : kTexts) {
    if (static_cast<int>(entry.status) == status) return &entry;
  }
  return nullptr;
}

}  // namespace simgpu
