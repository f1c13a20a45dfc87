#include "capi/guard.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "tl/base/version.h"

namespace tl::capi {

namespace {

thread_local std::string last_error;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
thread_local bool lost_the_message =
    false;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

tl_status status_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::BadArgument:
      return TL_BAD_ARGUMENT;
    case ErrorKind::SizeMismatch:
      return TL_SIZE_MISMATCH;
    case ErrorKind::ShapeMismatch:
      return TL_SHAPE_MISMATCH;
    case ErrorKind::DTypeMismatch:
      return TL_DTYPE_MISMATCH;
    case ErrorKind::InvalidIndex:
      return TL_INVALID_INDEX;
    case ErrorKind::Overflow:
      return TL_OVERFLOW;
    case ErrorKind::Unsupported:
      return TL_UNSUPPORTED;
    case ErrorKind::BadFile:
      return TL_BAD_FILE;
    case ErrorKind::OutOfMemory:
      return TL_OUT_OF_MEMORY;
    case ErrorKind::DriverMissing:
      return TL_DRIVER_MISSING;
    case ErrorKind::NoSuchDevice:
      return TL_NO_SUCH_DEVICE;
    case ErrorKind::WrongDevice:
      return TL_WRONG_DEVICE;
    case ErrorKind::Device:
      return TL_DEVICE_FAILED;
    case ErrorKind::DeviceLost:
      return TL_DEVICE_LOST;
    case ErrorKind::MissingKernel:
      return TL_MISSING_KERNEL;
    case ErrorKind::ModuleLoad:
      return TL_MODULE_LOAD;
    case ErrorKind::CompileFailed:
      return TL_COMPILE_FAILED;
  }
  return TL_INTERNAL;
}

tl_status fail(tl_status status, std::string_view message) noexcept {
  try {
    last_error = message;
    lost_the_message = false;
  } catch (...) {  // no memory for the message either
    lost_the_message = true;
  }
  return status;
}

char* new_text(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));  // NOLINT: freed by tl_text_free
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace tl::capi

using tl::capi::last_error;
using tl::capi::lost_the_message;

const char* tl_status_name(int status) {
  switch (status) {
    case TL_OK:
      return "ok";
    case TL_BAD_ARGUMENT:
      return "bad argument";
    case TL_SIZE_MISMATCH:
      return "size mismatch";
    case TL_SHAPE_MISMATCH:
      return "shape mismatch";
    case TL_DTYPE_MISMATCH:
      return "dtype mismatch";
    case TL_INVALID_INDEX:
      return "invalid index";
    case TL_OVERFLOW:
      return "overflow";
    case TL_UNSUPPORTED:
      return "unsupported";
    case TL_BAD_FILE:
      return "bad file";
    case TL_OUT_OF_MEMORY:
      return "out of memory";
    case TL_DRIVER_MISSING:
      return "driver missing";
    case TL_NO_SUCH_DEVICE:
      return "no such device";
    case TL_WRONG_DEVICE:
      return "wrong device";
    case TL_DEVICE_FAILED:
      return "device failed";
    case TL_DEVICE_LOST:
      return "device lost";
    case TL_MISSING_KERNEL:
      return "missing kernel";
    case TL_MODULE_LOAD:
      return "module load";
    case TL_COMPILE_FAILED:
      return "compile failed";
    case TL_BAD_HANDLE:
      return "bad handle";
    case TL_INTERNAL:
      return "internal";
    default:
      return "unknown";
  }
}

const char* tl_last_error() {
  return lost_the_message ? "the host has no memory left" : last_error.c_str();
}

const char* tl_version() { return tl::version().data(); }  // a literal, ended by a zero

void tl_text_free(char* text) { std::free(text); }  // NOLINT: from malloc, see new_text
