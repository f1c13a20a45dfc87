#include "tl/base/error.h"

#include <utility>

#include "tl/base/text.h"

namespace tl {

std::string_view name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::BadArgument:
      return "BadArgument";
    case ErrorKind::SizeMismatch:
      return "SizeMismatch";
    case ErrorKind::ShapeMismatch:
      return "ShapeMismatch";
    case ErrorKind::DTypeMismatch:
      return "DTypeMismatch";
    case ErrorKind::InvalidIndex:
      return "InvalidIndex";
    case ErrorKind::Overflow:
      return "Overflow";
    case ErrorKind::Unsupported:
      return "Unsupported";
    case ErrorKind::BadFile:
      return "BadFile";
    case ErrorKind::OutOfMemory:
      return "OutOfMemory";
    case ErrorKind::DriverMissing:
      return "DriverMissing";
    case ErrorKind::NoSuchDevice:
      return "NoSuchDevice";
    case ErrorKind::WrongDevice:
      return "WrongDevice";
    case ErrorKind::Device:
      return "Device";
    case ErrorKind::DeviceLost:
      return "DeviceLost";
    case ErrorKind::MissingKernel:
      return "MissingKernel";
    case ErrorKind::ModuleLoad:
      return "ModuleLoad";
    case ErrorKind::CompileFailed:
      return "CompileFailed";
  }
  return "unknown";
}

OutOfMemory::OutOfMemory(std::string_view where, std::string device_name,
                         std::uint64_t requested_bytes, std::uint64_t free_bytes,
                         std::uint64_t total_bytes, std::uint64_t pooled_bytes,
                         std::string_view held)
    : Error(ErrorKind::OutOfMemory, where, device_name, " has no room for ",
            format_bytes(requested_bytes), ": ", format_bytes(free_bytes), " free of ",
            format_bytes(total_bytes), ", ", format_bytes(pooled_bytes), " kept in the pool",
            held.empty() ? "" : "; held by ", held),
      device(std::move(device_name)),
      requested(requested_bytes),
      free(free_bytes),
      total(total_bytes),
      pooled(pooled_bytes) {}

SizeMismatch::SizeMismatch(std::string_view where, std::uint64_t expected_count,
                           std::uint64_t actual_count)
    : Error(ErrorKind::SizeMismatch, where, "expected ", expected_count, " elements, got ",
            actual_count),
      expected(expected_count),
      actual(actual_count) {}

NoSuchDevice::NoSuchDevice(std::string_view where, std::string_view device_kind, int device_index,
                           int device_count)
    : Error(ErrorKind::NoSuchDevice, where, "there is no ", device_kind, ":", device_index, ", ",
            device_count == 0 ? join("this machine has no ", device_kind, " device")
                              : join("this machine has ", device_count, " ", device_kind,
                                     device_count == 1 ? " device" : " devices")),
      index(device_index),
      count(device_count) {}

DeviceFault::DeviceFault(ErrorKind k, std::string_view where, std::string device_name,
                         int driver_code, std::string_view driver_text)
    : Error(k, where, device_name, ": ", driver_text, " (driver error ", driver_code, ")"),
      device(std::move(device_name)),
      code(driver_code) {}

MissingKernel::MissingKernel(std::string module_name, std::string kernel_name,
                             std::string device_name, std::string architecture_name)
    : Error(ErrorKind::MissingKernel, "module store", "module ", module_name, " has no kernel '",
            kernel_name, "' for ", device_name, " (", architecture_name, ")"),
      module(std::move(module_name)),
      kernel(std::move(kernel_name)),
      device(std::move(device_name)),
      architecture(std::move(architecture_name)) {}

ModuleLoad::ModuleLoad(std::string module_name, std::string device_name,
                       std::string architecture_name,
                       std::vector<std::string> embedded_architectures, std::string_view why)
    : Error(ErrorKind::ModuleLoad, "module store", "cannot load module ", module_name, " on ",
            device_name, " (", architecture_name, "): ", why, "; images are built in for ",
            embedded_architectures.empty() ? "no architecture"
                                           : join_list(embedded_architectures, ", ")),
      module(std::move(module_name)),
      device(std::move(device_name)),
      architecture(std::move(architecture_name)),
      embedded(std::move(embedded_architectures)) {}

CompileFailed::CompileFailed(std::string_view where, std::string_view why, std::string compiler_log)
    : Error(ErrorKind::CompileFailed, where, why, compiler_log.empty() ? "" : ":\n", compiler_log),
      log(std::move(compiler_log)) {}

std::uint64_t checked_multiply(std::string_view where, std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw Error(ErrorKind::Overflow, where, a, " x ", b, " bytes is more than 64 bits can count");
  }
  return product;
}

}  // namespace tl
